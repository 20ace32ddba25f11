//! Space: what can be promised, and keeping enough blocks free for it.
//!
//! Invariant (reserve): a caller's data never takes the blocks that collection needs to make room again.

use nand::{CellMode, Nand};

use super::Fs;
use super::reserve::ROOMY;
use super::types::*;
use crate::error::{Error, Result};
use crate::flash::head::HeadId;
use crate::format::table::Use;
use crate::policy::victim;

/// Fewer free blocks than this: background work makes room (FlexFS §3.1).
pub(crate) const FREE_SOFT: u32 = 5;
/// Blocks that hold anchors, and blocks that log heads stand in.
const ANCHORS: u64 = 2;
const HEADS: u64 = 2;
/// Blocks emptied in a row without one more free block, before the chip counts as full: what is left to gain is less
/// than what moving it around costs.
const FRUITLESS_MAX: u32 = 64;
/// The same where so much was done in vain before.
const FRUITLESS_AGAIN_MAX: u32 = 4;
/// Between two steps of background work, ns.
const STEP_NS: i64 = 1_000_000;

impl<N: Nand> Fs<N> {
    /// Bytes that can be stored: all blocks but the bad ones, the anchors', the index's (three times: a checkpoint
    /// writes the new one beside the old, and so may a recovery after it), the heads' and the reserve, less what stays
    /// unused in full ones.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        let shape = &self.flash.shape;
        let bad = u64::from(self.flash.blocks.bad);
        let index_blocks = (self.index.tree.pages * 3).div_ceil(u64::from(shape.slc.content_slots())) + 1;
        let fixed = bad + ANCHORS + index_blocks.max(2) + HEADS + u64::from(self.reserve_blocks());
        let blocks = u64::from(self.flash.blocks.len()).saturating_sub(fixed);
        let per_block = match self.options.mode.relocates_to_native() {
            true => shape.native.content_slots(),
            false => shape.slc.content_slots(),
        };
        let slots = blocks * u64::from(per_block);
        let unused = blocks.max(slots / 80).max(self.failing_slots(blocks, per_block));
        slots.saturating_sub(unused) * shape.slot_bytes as u64
    }

    /// Bytes that are taken, on flash, in the write buffers, and by reservation.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.flash.blocks.live_bytes + self.log.bytes() + self.reserved_bytes()
    }

    /// Whether what is relocated goes to native cells. Where another mode wrote more than SLC cells have space for, it
    /// does so in any mode: nothing could be gained otherwise.
    pub(crate) fn relocates_to_native(&self) -> bool {
        let holds_native =
            || self.flash.blocks.iter().any(|(_, block)| block.entry.native && block.entry.live_bytes > 0);
        self.options.mode.relocates_to_native() || self.used_bytes() > self.capacity_bytes() && holds_native()
    }

    /// Whether `bytes` more can be stored.
    pub(crate) fn need_bytes(&self, bytes: u64) -> Result<()> {
        if self.used_bytes() + bytes > self.capacity_bytes() { Err(Error::NoSpace) } else { Ok(()) }
    }

    /// What `statfs` tells.
    pub fn statfs(&mut self) -> Result<StatFs> {
        let capacity_bytes = self.capacity_bytes();
        let free_bytes = capacity_bytes.saturating_sub(self.used_bytes());
        Ok(StatFs {
            chunk_bytes: self.flash.shape.slot_bytes as u32,
            capacity_bytes,
            free_bytes,
            reservable_bytes: free_bytes / self.reserved_bytes_each() * self.chunk_bytes(),
            files: self.volume.files,
        })
    }

    /// Makes sure that the operation to come finds room on the chip. What gives space back may use the reserve.
    pub(crate) fn make_room(&mut self, gives_back: bool) -> Result<()> {
        if self.needs_checkpoint() {
            self.checkpoint_now()?;
        }
        self.keep_anchor_blocks()?;
        if self.head_room() >= self.operation_slots() && self.index_floor() <= self.index_reserve {
            return Ok(());
        }
        let floor: fn(&Self) -> u32 = if gives_back { Self::removal_floor } else { Self::free_floor };
        self.free_up(floor)?;
        if self.flash.free_blocks() < floor(self) && self.index_blocks(ROOMY) > 1 {
            self.checkpoint_now()?;
        }
        let free = self.flash.free_blocks();
        if free >= floor(self) {
            self.index_reserve = self.index_floor();
        }
        if free >= floor(self) || (gives_back && free >= self.host_blocks()) { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Slots the heads that callers write to have left.
    pub(super) fn head_room(&self) -> u32 {
        let room = |id: HeadId| self.flash.head(id).room(self.flash.shape.mode(id.mode()));
        match self.options.mode.writes_native() {
            true => room(HeadId::Native).min(room(HeadId::Slc)),
            false => room(HeadId::Slc),
        }
    }

    fn needs_checkpoint(&self) -> bool {
        let interval = victim::checkpoint_interval_blocks(self.flash.blocks.len());
        self.flash.opened >= interval
            || self.index.delta.len() >= self.delta_limit()
            || self.flash.anchors.names.len() >= crate::format::anchor::NAMES_MAX / 2
    }

    /// Changes of the index kept in memory before a checkpoint is due.
    fn delta_limit(&self) -> usize {
        (self.options.cache_bytes / 8 / 96).max(256)
    }

    /// Makes at least one step towards more free blocks. `false`: there is none.
    pub(crate) fn reclaim(&mut self) -> Result<bool> {
        self.collections += 1;
        self.flash.retire_emptied()?;
        if self.collector.is_none() {
            if self.needs_checkpoint() {
                self.checkpoint_now()?;
            }
            // What the last victims gave must be free before collection takes one more block: recovery would miss it.
            if self.flash.blocks_free_soon() <= self.kept_blocks() && self.release_waiting()? {
                return Ok(true);
            }
            // And they must be free for a recovery that cannot rely on the last pages.
            let certain = self.flash.blocks_free_for_certain();
            if certain <= self.kept_blocks() && certain < self.flash.free_blocks() {
                self.checkpoint_now()?;
                return Ok(true);
            }
            match self.best_victim() {
                None => return self.release_waiting(),
                Some((number, false)) => self.start_collecting(number, false),
                // The best one was written since the last checkpoint: with the next it can be used again.
                Some((_, true)) => {
                    self.checkpoint_now()?;
                    return Ok(true);
                }
            }
        }
        while self.collector.is_some() {
            self.collect_step()?;
        }
        Ok(true)
    }

    /// After a recovery, whose blocks the next one would miss. No space: not even a removal would find any.
    pub(crate) fn restore_reserve(&mut self) -> Result<()> {
        self.keep_anchor_blocks()?;
        match self.free_up(Self::recovery_floor) {
            // What is there can be read; whoever writes next is told.
            Err(Error::NoSpace | Error::Corrupt { .. }) => {}
            outcome => outcome?,
        }
        let can_remove = self.flash.free_blocks() >= self.host_blocks() || self.head_room() >= self.operation_slots();
        if can_remove { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Empties blocks until so many are free, or too little comes of it.
    fn free_up(&mut self, floor: fn(&Self) -> u32) -> Result<()> {
        // With as much to keep as when nothing came of it, little will come of it again, and blocks wear.
        let hopeless = self.fruitless_at.is_some_and(|live_bytes| self.flash.blocks.live_bytes >= live_bytes);
        let most = if hopeless { FRUITLESS_AGAIN_MAX } else { FRUITLESS_MAX };
        let (mut best, mut fruitless) = (self.flash.free_blocks(), 0);
        while self.flash.free_blocks() < floor(self) {
            if fruitless == most {
                self.fruitless_at.get_or_insert(self.flash.blocks.live_bytes);
                return Ok(());
            }
            if !self.reclaim()? {
                break;
            }
            fruitless = if self.flash.free_blocks() > best { 0 } else { fruitless + 1 };
            best = best.max(self.flash.free_blocks());
        }
        self.fruitless_at = None;
        Ok(())
    }

    /// Frees blocks that are empty but wait for a commit, for their copies, or for a checkpoint.
    pub(super) fn release_waiting(&mut self) -> Result<bool> {
        let before = self.flash.free_blocks();
        self.flash.flush_units()?;
        self.follow_moved()?;
        self.flash.settle();
        if self.flash.free_blocks() > before {
            return Ok(true);
        }
        let horizon = self.flash.horizon();
        let waiting = (0..self.flash.blocks.len()).any(|block| self.flash.blocks.waits_for_checkpoint(block, horizon));
        if !waiting {
            return Ok(false);
        }
        self.checkpoint_now()?;
        Ok(self.flash.free_blocks() > before)
    }

    /// The block that is best to empty, and whether a checkpoint should come first: it must not, for a little.
    fn best_victim(&self) -> Option<(u32, bool)> {
        let target = match self.relocates_to_native() {
            true => self.flash.shape.native.content_slots(),
            false => self.flash.shape.slc.content_slots(),
        };
        let outlook =
            victim::Outlook { era: self.flash.durable_era, target_bytes: target * self.flash.shape.slot_bytes as u32 };
        let ranked =
            self.flash.blocks.iter().filter_map(|(number, block)| Some((victim::rank(block, outlook)?, number)));
        victim::choose(ranked, outlook)
    }

    /// Starts moving the content of the least erased block, if it has fallen far behind, to the most erased one that is
    /// free: callers go on with the former. Whether it did.
    fn level_wear(&mut self) -> bool {
        let limit = victim::wear_gap(self.flash.nand.endurance(CellMode::Native));
        let log = self.flash.blocks.iter().filter(|(_, block)| {
            block.entry.used_as == Use::Log && !block.open && !block.stuck && block.entry.live_bytes > 0
        });
        let coldest = log.map(|(number, block)| (block.entry.erases, number)).min();
        let good = self.flash.blocks.iter().filter(|(_, block)| block.entry.used_as != Use::Bad);
        let most = good.map(|(_, block)| block.entry.erases).max().unwrap_or(0);
        let worn = self.flash.blocks.pick(self.flash.horizon(), true);
        let worn = worn.map_or(0, |number| self.flash.blocks.get(number).entry.erases);
        match coldest {
            // From one young block to another would wear both for nothing.
            Some((erases, number)) if most > erases + limit && worn > erases + limit / 2 => {
                self.start_levelling(number);
                true
            }
            _ => false,
        }
    }

    /// Does at most one page's worth of internal work; returns when to call again, or `None` when idle.
    pub fn background(&mut self, now_ns: i64) -> Result<Option<i64>> {
        if self.writable().is_err() {
            return Ok(None);
        }
        let outcome = self.background_step(now_ns);
        self.noted(outcome)
    }

    fn background_step(&mut self, now_ns: i64) -> Result<Option<i64>> {
        let soon = Ok(Some(now_ns.saturating_add(STEP_NS)));
        self.flash.now_ns = now_ns;
        if let Some(since_ns) = self.log.since_ns {
            let due_ns = since_ns.saturating_add(self.options.commit_ns);
            if now_ns < due_ns {
                return Ok(Some(due_ns));
            }
            self.flash.own_anchor()?;
            self.make_room(true)?;
            self.commit(true)?;
            return soon;
        }
        if self.checkpoint.is_some() {
            self.checkpoint_step()?;
            return soon;
        }
        if self.collector.is_some() {
            self.collect_step()?;
            return soon;
        }
        if self.scrub_step(now_ns)? || self.renew_step()? {
            return soon;
        }
        if !self.flash.anchors.own {
            return Ok(None);
        }
        if self.needs_checkpoint() {
            self.begin_checkpoint(false)?;
            return soon;
        }
        self.flash.retire_emptied()?;
        if self.flash.free_blocks() < FREE_SOFT
            && let Some((number, false)) = self.best_victim()
        {
            self.start_collecting(number, false);
            return soon;
        }
        if self.level_wear() { soon } else { Ok(None) }
    }
}
