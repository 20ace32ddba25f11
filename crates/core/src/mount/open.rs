//! Mounting: find the anchor, load the block table, go on where the log stopped, or recover; and unmounting.
//!
//! Invariant: a read-only mount programs and erases nothing, and a refused mount changes nothing.

use nand::{Nand, NandError};

use super::format::{name_seed, volume_seed};
use super::ongoing::Tables;
use super::scan::Scan;
use crate::error::{Error, Result};
use crate::flash::Flash;
use crate::flash::head::HeadId;
use crate::flash::newest::{self, Found};
use crate::flash::shape::Shape;
use crate::format::anchor::{ANCHOR_BLOCKS, Anchor};
use crate::format::inode::Inode;
use crate::format::key::{KEY_END, Key, KeyKind, key, offset_of};
use crate::format::place::NO_SLOT;
use crate::format::table::{BLOCK_BYTES, BlockEntry, Use};
use crate::format::tag::{Kind, wide};
use crate::fs::types::{Ended, MountOptions, ROOT_INO, kind};
use crate::fs::{Fs, Volume};
use crate::index::Index;
use crate::index::tree::Tree;

/// Sequence numbers left out after a recovery: those of programs in flight that nobody saw.
pub(crate) const SEQ_GAP: u64 = 1024;

const NO_ROOT: Error = Error::Corrupt { what: "the root directory", slot: 0 };

impl<N: Nand> Fs<N> {
    /// Mounts the chip; on failure the chip is given back.
    pub fn mount(mut nand: N, options: MountOptions) -> core::result::Result<Self, (N, Error)> {
        let found = match Shape::of(&nand).and_then(|shape| Ok((newest::find(&mut nand, &shape)?, shape))) {
            Ok((found, shape)) => check_anchor(&found.anchor, &shape).map(|()| (found, shape)),
            Err(error) => Err(error),
        };
        let (found, shape) = match found {
            Ok(parts) => parts,
            Err(error) => return Err((nand, error)),
        };
        let mut fs = Self::before_replay(nand, shape, &found, options);
        match fs.open_volume(&found) {
            Ok(()) => Ok(fs),
            Err(error) => Err((fs.flash.nand, error)),
        }
    }

    fn before_replay(nand: N, shape: Shape, found: &Found, options: MountOptions) -> Self {
        let anchor = &found.anchor;
        let blocks = shape.geometry.blocks;
        let entries = alloc::vec![BlockEntry::default(); blocks as usize];
        let tables = Tables::empty(blocks, shape.slot_bytes);
        let cache_slots = options.cache_bytes / 2 / shape.slot_bytes;
        let mut flash = Flash::new(nand, shape, volume_seed(&anchor.volume_id), entries, cache_slots);
        flash.now_ns = options.now_ns;
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
        };
        let index = Index {
            tree: Tree { root: anchor.root, pages: anchor.index_pages },
            reserved_chunks: anchor.reserved_chunks,
            ..Index::default()
        };
        Self::assemble(flash, index, volume, tables, options)
    }

    fn open_volume(&mut self, found: &Found) -> Result<()> {
        let anchor = &found.anchor;
        self.load_tables(anchor)?;
        let flash = &mut self.flash;
        flash.anchors.pair = anchor.pair;
        flash.anchors.current = usize::from(anchor.pair.first() != Some(&found.block));
        flash.anchors.newest = flash.anchors.current;
        flash.anchors.end = found.end;
        flash.anchors.unit = flash.shape.slc.units;
        flash.anchors.names = anchor.names.iter().map(|&(head, block)| (head, block, flash.era)).collect();
        flash.anchors.last = Some(anchor.clone());
        flash.written_bytes = anchor.written_bytes;
        set_log_position(flash, anchor.seq);
        if anchor.clean {
            self.reopen_heads(anchor);
        } else {
            self.replay(anchor)?;
        }
        self.flash.hold_head_blocks();
        self.flash.naming = true;
        match self.inode(ROOT_INO) {
            Ok(_) => {}
            Err(Error::Corrupt { .. }) => self.stand_in_for_root(anchor),
            Err(_) => return Err(NO_ROOT),
        }
        if self.options.read_only {
            return Ok(());
        }
        let tidied = if anchor.clean { Ok(()) } else { self.restore_reserve() };
        let tidied = tidied.and_then(|()| self.remove_orphans());
        self.or_only_read(tidied)
    }

    /// Fills the block table from its pages and what the anchor adds.
    fn load_tables(&mut self, anchor: &Anchor) -> Result<()> {
        let slot_bytes = self.flash.shape.slot_bytes;
        let mut tables = Tables::empty(anchor.blocks, slot_bytes);
        if anchor.tables.len() != tables.slots.len() {
            return Err(Error::Corrupt { what: "the list of table pages", slot: 0 });
        }
        for (page, &slot) in anchor.tables.iter().enumerate().filter(|&(_, &slot)| slot != NO_SLOT) {
            let bytes = self.flash.read_uncached(slot, Kind::Table, nand::Cause::Metadata)?;
            let entries = tables.entries.iter_mut().skip(page * slot_bytes / BLOCK_BYTES);
            entries.zip(bytes.chunks_exact(BLOCK_BYTES)).for_each(|(to, from)| *to = wide(from));
        }
        tables.slots.clone_from(&anchor.tables);
        let mut encoded = tables.entries.clone();
        for &(block, entry) in &anchor.changes {
            *encoded.get_mut(block as usize).ok_or(Error::Corrupt { what: "block number", slot: 0 })? = entry;
        }
        // Where a block of the pair has gone bad, another may have been written to in its place, and the power have failed.
        let replaced = anchor.pair.iter().any(|&block| self.flash.nand.is_bad(block));
        let mut entries = alloc::vec::Vec::with_capacity(encoded.len());
        let block_bytes = self.flash.shape.stride * slot_bytes as u64;
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
            if self.flash.nand.is_bad(block) && entry.used_as != Use::Bad {
                match entry.live_bytes {
                    0 => entry.used_as = Use::Bad,
                    _ => entry.failing = true,
                }
            }
            entry.erased &= anchor.clean && !(replaced && block < ANCHOR_BLOCKS);
            entries.push(entry);
        }
        self.flash.blocks = crate::flash::blocks::BlockTable::new(entries);
        self.tables = tables;
        Ok(())
    }

    /// After a clean unmount the heads go on where they stood.
    fn reopen_heads(&mut self, anchor: &Anchor) {
        for at in &anchor.heads {
            if let Some(id) = HeadId::from_number(at.head) {
                self.reopen_head(id, at.block, at.unit);
            }
        }
    }

    fn reopen_head(&mut self, id: HeadId, block: u32, unit: u32) {
        let wanted = if id == HeadId::Meta { Use::Meta } else { Use::Log };
        let entry = self.flash.blocks.get(block).entry;
        if entry.used_as == wanted && !entry.failing && entry.native == (id == HeadId::Native) {
            self.flash.reopen(id, block, unit);
        }
    }

    /// Replays the log and, unless the mount is read-only, makes the outcome a checkpoint. A chip on which that cannot be
    /// done any more can still be read.
    fn replay(&mut self, anchor: &Anchor) -> Result<()> {
        let scan = Scan::new(&mut self.flash, anchor)?;
        let last_seq = scan.last_seq.max(anchor.seq);
        let dropped = self.apply(&scan)?;
        // Before anything is written: a volume without a root is refused.
        if self.inode(ROOT_INO) == Err(Error::NotFound) {
            return Err(NO_ROOT);
        }
        set_log_position(&mut self.flash, last_seq + SEQ_GAP);
        if dropped {
            self.volume.epoch += 1;
        }
        if self.options.read_only {
            return Ok(());
        }
        let recovered = self.recover(anchor, &scan);
        self.or_only_read(recovered)
    }

    /// Where a mount cannot write what it should, what is there can still be read. A chip that refuses as misuse what the
    /// tables allow says that they are wrong.
    fn or_only_read(&mut self, written: Result<()>) -> Result<()> {
        match written {
            Err(Error::NoSpace) => self.only_read(Ended::NoBlocks),
            Err(Error::Corrupt { .. } | Error::Nand(NandError::Misuse { .. })) => self.only_read(Ended::Damaged),
            outcome => return outcome,
        }
        Ok(())
    }

    /// Makes the outcome of replay a checkpoint. Heads go on in the blocks they stood in, so that recovery on a full chip
    /// needs no fresh ones.
    fn recover(&mut self, anchor: &Anchor, scan: &Scan) -> Result<()> {
        // What this recovery writes counts only with its checkpoint.
        self.flash.holding = true;
        self.flash.count_recovery()?;
        // Each recovery that is cut short uses up room in the heads; fresh blocks the next one has again. They must not be
        // all there are: one may fail.
        let fresh = anchor.recoveries > 0 && self.flash.free_blocks() > self.recovery_blocks();
        // A head may have left several blocks without a summary: it stood in the last one.
        for &(id, block, unit) in scan.tails.iter().rev().filter(|_| !fresh) {
            if self.flash.head(id).block.is_none() {
                self.reopen_head(id, block, unit);
            }
        }
        for at in anchor.heads.iter().filter(|at| at.head == HeadId::Meta as u8) {
            let unit = self.flash.end_of_meta(at.block, at.unit, anchor.recoveries)?;
            self.reopen_head(HeadId::Meta, at.block, unit);
        }
        let slots: alloc::vec::Vec<_> = self.flash.stash.iter().map(|stashed| stashed.slot).collect();
        for slot in slots {
            self.move_one(slot)?;
        }
        self.checkpoint_as(false)?;
        self.flash.stash.clear();
        Ok(())
    }

    /// Nothing is written in this mount, because of this.
    fn only_read(&mut self, ended: Ended) {
        self.options.read_only = true;
        self.ended = Some(ended);
    }

    /// The root's own node cannot be read: what is below it can, but nothing more is written.
    fn stand_in_for_root(&mut self, anchor: &Anchor) {
        self.only_read(Ended::Damaged);
        let root = Inode { parent: ROOT_INO, ..Inode::new(kind::DIR | 0o755, 0, 0, anchor.created_ns) };
        self.inodes.insert(ROOT_INO, root);
        self.inodes.count_open(ROOT_INO, 1);
    }

    /// Removes what lost its last name while it was open. Nobody has anything open at a mount or an unmount.
    fn remove_orphans(&mut self) -> Result<()> {
        let (mut from, to): (Key, Key) = (key(0, KeyKind::Orphan, 0), key(1, KeyKind::Inode, 0).min(KEY_END));
        while let Some(entry) = self.index.next(&mut self.flash, from, to)? {
            match self.begin_removal() {
                // They are of no use to anyone; the rest can be read.
                Err(Error::ReadOnly) => return Ok(()),
                ready => ready?,
            }
            match self.forget_orphan(offset_of(entry.key)) {
                // What cannot be read stays; the rest of the volume is as good as before.
                Err(Error::Corrupt { .. }) => {}
                outcome => {
                    outcome?;
                    self.end_change(self.options.now_ns)?;
                }
            }
            from = entry.end();
        }
        Ok(())
    }

    /// Syncs, writes a clean checkpoint and gives the chip back.
    pub fn unmount(mut self, now_ns: i64) -> (N, Result<()>) {
        self.options.now_ns = now_ns;
        let untouched = !self.flash.anchors.own && self.volume.clean && self.inodes.dirty_count() == 0;
        let outcome = match (self.options.read_only, untouched) {
            (true, _) => Ok(()),
            (false, true) => self.rest_on_two_pages(),
            (false, false) => self.close_volume(),
        };
        (self.flash.nand, outcome)
    }

    /// Where the unmount before was cut short, one page says where everything stands. Makes it two, if there is room.
    fn rest_on_two_pages(&mut self) -> Result<()> {
        let pair = self.flash.anchors.pair;
        if self.flash.broken.is_some() || newest::stands_twice(&mut self.flash.nand, &self.flash.shape, pair)? {
            return Ok(());
        }
        match self.flash.repeat_anchor() {
            Err(Error::NoSpace) => Ok(()),
            outcome => outcome,
        }
    }

    fn close_volume(&mut self) -> Result<()> {
        self.writable()?;
        self.remove_orphans()?;
        self.begin_removal()?;
        while self.checkpoint.is_some() {
            self.checkpoint_step()?;
        }
        self.checkpoint_as(true)
    }
}

pub(crate) fn set_log_position<N: Nand>(flash: &mut Flash<N>, seq: u64) {
    flash.next_seq = seq;
    flash.ended_seq = seq;
    flash.committed_seq = seq;
    flash.promised_seq = seq;
}

pub(crate) fn check_anchor(anchor: &Anchor, shape: &Shape) -> Result<()> {
    let same = anchor.blocks == shape.geometry.blocks
        && anchor.slot_bytes as usize == shape.slot_bytes
        && u64::from(anchor.slots_per_block) == shape.stride;
    if !same {
        return Err(Error::NotFlexfs("its anchor describes a chip of another shape"));
    }
    // A head may stand past its block's end, by what torn programs may have hit.
    let heads = anchor.heads.iter().all(|at| at.block < anchor.blocks && at.unit < 1 << 24);
    let counters =
        [anchor.seq, anchor.serial, anchor.checkpoint, anchor.next_ino, anchor.files, anchor.reserved_chunks];
    let sound = heads
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
