//! Mounting: find the anchor, load the block table, go on where the log stopped, or recover; and unmounting.
//!
//! Invariant: a read-only mount programs and erases nothing, and a refused mount changes nothing.

use nand::{CellMode, Nand, NandError};

use super::format::{name_seed, volume_seed};
use super::replay::Replay;
use super::scan::{Scan, Tail, end_of_meta};
use crate::error::{Error, Result};
use crate::flash::blocks::BlockTable;
use crate::flash::head::HeadId;
use crate::flash::newest::{self, Found};
use crate::flash::shape::Shape;
use crate::flash::{Flash, Phase};
use crate::format::anchor::{ANCHOR_BLOCKS, Anchor};
use crate::format::inode::{Inode, ROOT_INO, kind};
use crate::format::key::{KEY_END, Key, KeyKind, key, offset_of};
use crate::format::place::NO_SLOT;
use crate::format::table::{BLOCK_BYTES, BlockEntry, Use};
use crate::format::tag::{Kind, wide};
use crate::index::Index;
use crate::index::tree::Tree;
use crate::policy::budget::Call;
use crate::store::Store;
use crate::store::checkpoint::Tables;
use crate::store::options::MountOptions;
use crate::store::records::Volume;
use crate::store::report::Ended;

/// Sequence numbers left out after a recovery: those of programs in flight that nobody saw.
pub const SEQ_GAP: u64 = 1024;

const NO_ROOT: Error = Error::Corrupt { what: "the root directory", slot: 0 };

/// Mounts the chip; on failure the chip is given back.
pub fn mount<N: Nand>(mut nand: N, options: MountOptions) -> core::result::Result<Store<N>, (N, Error)> {
    let found = match Shape::of(&nand).and_then(|shape| Ok((newest::find(&mut nand, &shape)?, shape))) {
        Ok((found, shape)) => check_anchor(&found.anchor, &shape).map(|()| (found, shape)),
        Err(error) => Err(error),
    };
    let (found, shape) = match found {
        Ok(parts) => parts,
        Err(error) => return Err((nand, error)),
    };
    let mut store = before_replay(nand, shape, &found, options);
    match open_volume(&mut store, &found) {
        Ok(()) => {
            store.begin_life();
            Ok(store)
        }
        Err(error) => Err((store.into_chip(), error)),
    }
}

fn before_replay<N: Nand>(nand: N, shape: Shape, found: &Found, options: MountOptions) -> Store<N> {
    let anchor = &found.anchor;
    let blocks = shape.geometry.blocks;
    let entries = alloc::vec![BlockEntry::default(); blocks as usize];
    let tables = Tables::empty(blocks, shape.slot_bytes);
    let cache_slots = options.cache_bytes / 2 / shape.slot_bytes;
    let seed = volume_seed(&anchor.volume_id);
    let flash = Flash::new(nand, shape, seed, entries, cache_slots, Phase::Recovering);
    let volume = Volume {
        id: anchor.volume_id,
        label: anchor.label.clone(),
        created_ns: anchor.created_ns,
        epoch: anchor.epoch,
        checkpoint: anchor.checkpoint,
        next_ino: anchor.next_ino,
        files: anchor.files,
        hash_seed: name_seed(&anchor.volume_id),
        clean: anchor.clean,
        manager: anchor.manager,
        cells: anchor.cells,
    };
    let index = Index::new(Tree { root: anchor.root, pages: anchor.index_pages }, anchor.reserved_chunks);
    Store::new(flash, index, volume, tables, options)
}

fn open_volume<N: Nand>(store: &mut Store<N>, found: &Found) -> Result<()> {
    let anchor = &found.anchor;
    let read_only = store.records().options().read_only;
    load_tables(store, found)?;
    let flash = store.records_mut().flash_mut();
    flash.resume_anchors(found);
    flash.numbers_mut().go_on_with(anchor.seq);
    if anchor.clean {
        reopen_heads(flash, anchor);
    } else {
        replay_log(store, anchor)?;
    }
    let flash = store.records_mut().flash_mut();
    flash.hold_head_blocks();
    if flash.phase() == Phase::Recovering {
        flash.enter(if read_only { Phase::ReadOnly } else { Phase::Mounted });
    }
    match store.records_mut().inode(ROOT_INO) {
        Ok(_) => {}
        Err(Error::Corrupt { .. }) => stand_in_for_root(store, anchor),
        Err(_) => return Err(NO_ROOT),
    }
    if store.records().flash().phase() == Phase::ReadOnly {
        return Ok(());
    }
    let tidied = if anchor.clean { Ok(()) } else { store.restore_reserve() };
    let tidied = tidied.and_then(|()| remove_orphans(store));
    or_only_read(store, tidied)
}

/// Fills the block table from its pages and what the anchor adds.
fn load_tables<N: Nand>(store: &mut Store<N>, found: &Found) -> Result<()> {
    let anchor = &found.anchor;
    // Behind it a later mount failed to write its first anchor, and may have gone on to test blocks.
    let at_rest = anchor.clean && found.end == found.unit + 1;
    let levels = store.records().options().policy.levels();
    let slots = store.records_mut().flash_mut().slots_mut();
    let slot_bytes = slots.shape().slot_bytes;
    let mut tables = Tables::empty(anchor.blocks, slot_bytes);
    if anchor.tables.len() != tables.slots.len() {
        return Err(Error::Corrupt { what: "the list of table pages", slot: 0 });
    }
    for (page, &slot) in anchor.tables.iter().enumerate().filter(|&(_, &slot)| slot != NO_SLOT) {
        let bytes = slots.read_uncached(slot, Kind::Table, nand::Cause::Metadata)?;
        let entries = tables.entries.iter_mut().skip(page * slot_bytes / BLOCK_BYTES);
        entries.zip(bytes.chunks_exact(BLOCK_BYTES)).for_each(|(to, from)| *to = wide(from));
    }
    tables.slots.clone_from(&anchor.tables);
    let mut encoded = tables.entries.clone();
    for &(block, entry) in &anchor.changes {
        *encoded.get_mut(block as usize).ok_or(Error::Corrupt { what: "block number", slot: 0 })? = entry;
    }
    // Where a block of the pair has gone bad, another may have been written to in its place, and the power have failed.
    let replaced = anchor.pair.iter().any(|&block| slots.nand().is_bad(block));
    let (mut entries, mut doubtful) = (alloc::vec::Vec::with_capacity(encoded.len()), alloc::vec::Vec::new());
    let block_bytes = slots.shape().stride * slot_bytes as u64;
    for (block, bits) in (0u32..).zip(encoded) {
        let mut entry = BlockEntry::decode(bits).ok_or(Error::Corrupt { what: "block entry", slot: 0 })?;
        if u64::from(entry.live_bytes) > block_bytes {
            return Err(Error::Corrupt { what: "block entry", slot: 0 });
        }
        if anchor.pair.contains(&block) {
            entry.used_as = Use::Anchor;
        } else if entry.used_as == Use::Anchor {
            entry = BlockEntry { erases: entry.erases, ..BlockEntry::default() };
        }
        if slots.nand().is_bad(block) && entry.used_as != Use::Bad {
            match entry.live_bytes {
                0 => entry.used_as = Use::Bad,
                _ => entry.failing = true,
            }
        }
        // Of a free block: nothing has been programmed since its last erase that counts.
        let unused = entry.used_as == Use::Free && (entry.erased || entry.sealed);
        entry.erased &= at_rest && !(replaced && block < ANCHOR_BLOCKS);
        doubtful.extend((unused && !entry.erased).then_some(block));
        entries.push(entry);
    }
    let mut blocks = BlockTable::new(entries, slots.nand().endurance(CellMode::Native));
    doubtful.into_iter().for_each(|block| blocks.doubt(block));
    if !levels {
        blocks.take_in_turn();
    }
    slots.set_blocks(blocks);
    store.set_tables(tables);
    Ok(())
}

/// After a clean unmount the heads go on where they stood, each in the first of its blocks that the anchor lists.
fn reopen_heads<N: Nand>(flash: &mut Flash<N>, anchor: &Anchor) {
    for at in &anchor.heads {
        if let Some(id) = HeadId::from_number(at.head)
            && flash.slots().head(id).block().is_none()
        {
            reopen_head(flash, id, at.block, at.unit);
        }
    }
}

fn reopen_head<N: Nand>(flash: &mut Flash<N>, id: HeadId, block: u32, unit: u32) {
    let entry = flash.blocks().get(block).entry;
    if id.owns(&entry) && !entry.failing {
        flash.slots_mut().reopen(id, block, unit);
    }
}

/// Replays the log and, unless the mount is read-only, makes the outcome a checkpoint. A chip on which that cannot be
/// done any more can still be read.
fn replay_log<N: Nand>(store: &mut Store<N>, anchor: &Anchor) -> Result<()> {
    let records = store.records_mut();
    let scan = Scan::new(records.flash_mut().slots_mut(), anchor)?;
    let last_seq = scan.last_seq.max(anchor.seq);
    let dropped = Replay::new(records).apply(&scan)?;
    // Before anything is written: a volume without a root is refused.
    if records.inode(ROOT_INO) == Err(Error::NotFound) {
        return Err(NO_ROOT);
    }
    records.flash_mut().numbers_mut().go_on_with(last_seq + SEQ_GAP);
    if dropped {
        records.volume_mut().epoch += 1;
    }
    if records.options().read_only {
        return Ok(());
    }
    let recovered = recover(store, anchor, &scan);
    or_only_read(store, recovered)
}

/// Where a mount cannot write what it should, what is there can still be read. A chip that refuses as misuse what the
/// tables allow says that they are wrong.
fn or_only_read<N: Nand>(store: &mut Store<N>, written: Result<()>) -> Result<()> {
    match written {
        Err(Error::NoSpace) => store.only_read(Ended::NoBlocks),
        Err(Error::WriteOutage) => store.only_read(Ended::WriteOutage),
        Err(Error::Corrupt { .. } | Error::Nand(NandError::Misuse { .. })) => store.only_read(Ended::Damaged),
        outcome => return outcome,
    }
    Ok(())
}

/// Makes the outcome of replay a checkpoint. Heads go on in the blocks they stood in, so that recovery on a full chip
/// needs no fresh ones.
fn recover<N: Nand>(store: &mut Store<N>, anchor: &Anchor, scan: &Scan) -> Result<()> {
    store.records_mut().flash_mut().count_recovery()?;
    // Each recovery that is cut short uses up room in the heads; fresh blocks the next one has again. They must not be
    // all there are: one may fail.
    let fresh = anchor.recoveries > 0 && store.can_recover_in_fresh_blocks();
    let flash = store.records_mut().flash_mut();
    // A head may have left several blocks without a summary: it stood in the last one.
    for &Tail { id, block, unit } in scan.tails.iter().rev().filter(|_| !fresh) {
        if flash.slots().head(id).block().is_none() {
            reopen_head(flash, id, block, unit);
        }
    }
    for at in anchor.heads.iter().filter(|at| at.head == HeadId::Meta as u8) {
        let unit = end_of_meta(flash.slots_mut(), at.block, at.unit, anchor.recoveries)?;
        reopen_head(flash, HeadId::Meta, at.block, unit);
    }
    store.open_ahead_for_pair()?;
    let flash = store.records_mut().flash_mut();
    let slots: alloc::vec::Vec<_> = flash.slots().stash().iter().map(|stashed| stashed.slot).collect();
    for slot in slots {
        store.move_one(slot)?;
    }
    store.checkpoint_as(false)?;
    store.records_mut().flash_mut().slots_mut().set_stash(Default::default());
    Ok(())
}

/// The root's own node cannot be read: what is below it can, but nothing more is written.
fn stand_in_for_root<N: Nand>(store: &mut Store<N>, anchor: &Anchor) {
    store.only_read(Ended::Damaged);
    let root = Inode { parent: ROOT_INO, ..Inode::new(kind::DIR | 0o755, 0, 0, anchor.created_ns) };
    let inodes = store.records_mut().inodes();
    inodes.insert(ROOT_INO, root);
    inodes.count_open(ROOT_INO, 1);
}

/// Removes what lost its last name while it was open. Nobody has anything open at a mount or an unmount.
fn remove_orphans<N: Nand>(store: &mut Store<N>) -> Result<()> {
    let (mut from, to): (Key, Key) = (key(0, KeyKind::Orphan, 0), key(1, KeyKind::Inode, 0).min(KEY_END));
    while let Some(entry) = store.records_mut().next(from, to)? {
        match store.begin(Call::REMOVAL) {
            // They are of no use to anyone; the rest can be read.
            Err(Error::ReadOnly) => return Ok(()),
            ready => ready?,
        }
        match store.records_mut().forget_orphan(offset_of(entry.key)) {
            // What cannot be read stays; the rest of the volume is as good as before.
            Err(Error::Corrupt { .. }) => {}
            outcome => {
                outcome?;
                store.end()?;
            }
        }
        from = entry.end();
    }
    Ok(())
}

/// Syncs, writes a clean checkpoint and gives the chip back.
pub fn unmount<N: Nand>(mut store: Store<N>, now_ns: i64) -> (N, Result<()>) {
    store.records_mut().set_wall_ns(now_ns);
    let records = store.records_mut();
    let untouched =
        records.flash().anchors().is_untouched() && records.volume().clean && records.inodes().dirty_count() == 0;
    let outcome = match (records.flash().phase(), untouched) {
        (Phase::ReadOnly, _) => Ok(()),
        (_, true) => rest_on_two_pages(records.flash_mut()),
        (_, false) => close_volume(&mut store),
    };
    (store.into_chip(), outcome)
}

/// Where the unmount before was cut short, one page says where everything stands. Makes it two, if there is room.
fn rest_on_two_pages<N: Nand>(flash: &mut Flash<N>) -> Result<()> {
    let (pair, shape) = (flash.anchors().pair(), flash.shape().clone());
    if flash.broken().is_some() || newest::stands_twice(flash.slots_mut().nand_mut(), &shape, pair)? {
        return Ok(());
    }
    let Some(anchor) = flash.anchors().last().cloned() else { return Ok(()) };
    while !flash.anchors().is_own() {
        match flash.write_anchor(anchor.clone()) {
            Err(Error::NoSpace) => break,
            outcome => outcome?,
        }
    }
    Ok(())
}

fn close_volume<N: Nand>(store: &mut Store<N>) -> Result<()> {
    store.writable()?;
    remove_orphans(store)?;
    store.begin(Call::REMOVAL)?;
    store.checkpoint_as(true)
}

pub fn check_anchor(anchor: &Anchor, shape: &Shape) -> Result<()> {
    let same = anchor.blocks == shape.geometry.blocks
        && anchor.slot_bytes as usize == shape.slot_bytes
        && u64::from(anchor.slots_per_block) == shape.stride
        && (!anchor.cells.is_told() || anchor.cells.bits_per_cell == shape.geometry.bits_per_cell);
    if !same {
        return Err(Error::NotFlexfs("its anchor describes a chip of another shape"));
    }
    // A head may stand past its block's end, by what torn programs may have hit.
    let heads = anchor.heads.iter().all(|at| at.block < anchor.blocks && at.unit < 1 << 24);
    let numbers = anchor.heads.iter().map(|at| at.head).chain(anchor.names.iter().map(|name| name.head));
    let known = numbers.into_iter().all(|head| HeadId::from_number(head).is_some());
    let counters =
        [anchor.seq, anchor.serial, anchor.checkpoint, anchor.next_ino, anchor.files, anchor.reserved_chunks];
    let sound = heads
        && known
        && anchor.pair.iter().all(|&block| block < anchor.blocks.min(ANCHOR_BLOCKS))
        && anchor.pair.first() != anchor.pair.last()
        && counters.iter().all(|&counter| counter < 1 << 47)
        && anchor.epoch < 1 << 31
        && anchor.index_pages <= shape.stride * u64::from(anchor.blocks);
    if !sound {
        return Err(Error::Corrupt { what: "anchor", slot: 0 });
    }
    Ok(())
}
