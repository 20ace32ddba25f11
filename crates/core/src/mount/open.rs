//! Mounting: find the anchor, load the block table, go on where the log stopped, or recover; and unmounting.
//!
//! Invariant: a read-only mount programs and erases nothing, and a refused mount changes nothing.

use alloc::vec::Vec;

use nand::{CellMode, Nand, NandError};

use super::actions::Action;
use super::format::{name_seed, volume_seed};
use super::replay::Replay;
use super::scan::Scan;
use crate::error::{Error, Result};
use crate::flash::blocks::BlockTable;
use crate::flash::head::{HeadId, Tail};
use crate::flash::newest::{self, Found};
use crate::flash::shape::Shape;
use crate::flash::slots::{ChipSetup, Slots};
use crate::flash::{Flash, Phase};
use crate::format::anchor::{ANCHOR_BLOCKS, Anchor, fits_lanes};
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
    let anchor = &found.anchor;
    let entries = alloc::vec![BlockEntry::default(); shape.geometry.blocks as usize];
    let cache_slots = options.cache_bytes / 2 / shape.slot_bytes;
    let lanes = lanes_of(&shape, anchor, options.lanes);
    let chip = ChipSetup { shape, seed: volume_seed(&anchor.volume_id), entries, lanes };
    let mut flash = Flash::new(nand, chip, cache_slots, Phase::Recovering);
    let (tables, log) = match take_over(&found, &mut flash, options.policy.levels()) {
        Ok(parts) => parts,
        Err(error) => return Err((flash.into_nand(), error)),
    };
    let index = Index::new(Tree { root: anchor.root, pages: anchor.index_pages }, anchor.reserved_chunks);
    let mut store = Store::new(flash, index, volume_of(anchor), tables, options);
    match open_volume(&mut store, anchor, log) {
        Ok(()) => {
            store.records_mut().recovery().begin_life();
            Ok(store)
        }
        Err(error) => Err((store.into_chip(), error)),
    }
}

/// What an anchor says of its volume.
fn volume_of(anchor: &Anchor) -> Volume {
    Volume {
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
    }
}

/// The log of a volume that was not unmounted: how it was found, and what it says.
struct FoundLog {
    scan: Scan,
    actions: Vec<Action>,
}

/// Takes the flash over as the newest anchor says: its block table, its heads, and the log, if the volume was in use.
fn take_over<N: Nand>(found: &Found, flash: &mut Flash<N>, levels: bool) -> Result<(Tables, Option<FoundLog>)> {
    let anchor = &found.anchor;
    let tables = load_tables(found, flash.slots_mut(), levels)?;
    flash.resume_anchors(found);
    flash.numbers_mut().go_on_with(anchor.seq);
    hold_listed_heads(anchor, flash);
    if anchor.clean {
        reopen_heads(anchor, flash.slots_mut());
        return Ok((tables, None));
    }
    let scan = Scan::new(flash.slots_mut(), anchor)?;
    let actions = scan.take_in(flash)?;
    Ok((tables, Some(FoundLog { scan, actions })))
}

fn open_volume<N: Nand>(store: &mut Store<N>, anchor: &Anchor, log: Option<FoundLog>) -> Result<()> {
    if let Some(log) = log {
        replay_log(store, anchor, &log)?;
    }
    store.records_mut().recovery().begin_mount();
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
fn load_tables<N: Nand>(found: &Found, slots: &mut Slots<N>, levels: bool) -> Result<Tables> {
    let anchor = &found.anchor;
    // Behind it a later mount failed to write its first anchor, and may have gone on to test blocks.
    let at_rest = anchor.clean && found.end == found.unit + 1;
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
    let (mut entries, mut doubtful) = (Vec::with_capacity(encoded.len()), Vec::new());
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
    Ok(tables)
}

/// Another mount after a cut would go on in the blocks that the anchor lists: until the next checkpoint they are used for nothing
/// else, though nothing is in them, though they failed, and though there are fewer lanes now.
fn hold_listed_heads<N: Nand>(anchor: &Anchor, flash: &mut Flash<N>) {
    let era = flash.numbers().era();
    for at in &anchor.heads {
        if let Some(mut block) = flash.slots_mut().blocks_mut().get_mut(at.block) {
            block.era = era;
        }
    }
}

/// After a clean unmount the heads go on where they stood, as many lanes of each as there are now, in the first of the blocks
/// that the anchor lists.
fn reopen_heads<N: Nand>(anchor: &Anchor, slots: &mut Slots<N>) {
    for at in &anchor.heads {
        let Some(head) = HeadId::from_number(at.head) else { continue };
        slots.reopen(Tail { head, block: at.block, unit: at.unit });
    }
}

/// Blocks that a chip has for each lane, at least.
const BLOCKS_A_LANE: u32 = 64;
/// The most lanes of a head.
const LANES_MAX: u8 = 32;

/// Lanes of each head: as many as wanted, else the greatest power of two that has a die and 64 blocks for each; and no more
/// than an anchor has space for.
fn lanes_of(shape: &Shape, anchor: &Anchor, wanted: Option<u8>) -> u8 {
    let geometry = &shape.geometry;
    let most = geometry.dies().min(geometry.blocks / BLOCKS_A_LANE).min(u32::from(LANES_MAX)).max(1);
    let mut lanes = wanted.unwrap_or(1 << most.ilog2()).clamp(1, LANES_MAX);
    while lanes > 1 && !fits_lanes(shape.slot_bytes, anchor.tables.len(), lanes) {
        lanes /= 2;
    }
    lanes
}

/// Replays the log and, unless the mount is read-only, makes the outcome a checkpoint. A chip on which that cannot be
/// done any more can still be read.
fn replay_log<N: Nand>(store: &mut Store<N>, anchor: &Anchor, log: &FoundLog) -> Result<()> {
    let records = store.records_mut();
    let dropped = Replay::new(records).apply(&log.scan, &log.actions)?;
    // Before anything is written: a volume without a root is refused.
    if records.inode(ROOT_INO) == Err(Error::NotFound) {
        return Err(NO_ROOT);
    }
    records.recovery().go_on_with(log.scan.last_seq.max(anchor.seq) + SEQ_GAP);
    if dropped {
        records.recovery().begin_epoch();
    }
    if records.options().read_only {
        return Ok(());
    }
    let pages = anchor.heads.iter().filter(|at| at.head == HeadId::Meta as u8);
    let pages: Vec<Tail> = pages.map(|at| Tail { head: HeadId::Meta, block: at.block, unit: at.unit }).collect();
    let recovered = store.recover(&log.scan.tails, &pages, anchor.recoveries);
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

/// The root's own node cannot be read: what is below it can, but nothing more is written.
fn stand_in_for_root<N: Nand>(store: &mut Store<N>, anchor: &Anchor) {
    store.only_read(Ended::Damaged);
    let root = Inode { parent: ROOT_INO, ..Inode::new(kind::DIR | 0o755, 0, 0, anchor.created_ns) };
    store.records_mut().recovery().stand_in(ROOT_INO, root);
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
    let records = store.records();
    let untouched =
        records.flash().anchors().is_untouched() && records.volume().clean && records.space().dirty_inodes == 0;
    let outcome = match (records.flash().phase(), untouched) {
        (Phase::ReadOnly, _) => Ok(()),
        (_, true) => store.records_mut().recovery().rest_on_two_pages(),
        (_, false) => close_volume(&mut store),
    };
    (store.into_chip(), outcome)
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
