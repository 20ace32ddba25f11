//! How anchors are written, to a pair of blocks in turn.
//!
//! Invariants: the block that holds the newest anchor is never erased; where there is no other, one unit is left out while
//! there are more than a recovery may need, and every anchor is read back.

use alloc::vec;

use nand::{Cause, CellMode, Nand};

use super::Flash;
use super::anchor_log::{PartnerState, Takeover};
use super::block_test::{Controls, Tester, Verdict};
use super::blocks::{BlockTable, Horizon};
use super::newest::{self, Page};
use super::outage::Operation;
use super::slots::Slots;
use crate::error::{Error, Result};
use crate::format::anchor::{Anchor, MAKESHIFT_UNITS};
use crate::format::table::{BlockEntry, Use};
use crate::format::tag::{Kind, Tag};

/// Programs of one anchor that may fail, each in another place.
const TRIES_MAX: u32 = 16;
/// Erases an anchor block may be ahead of the average before another takes its place.
const WEAR_MARGIN: u32 = 32;
/// The same, as a part of what a block endures: one in so many.
const MARGIN_PART: u32 = 4;

/// When a block for anchors is needed beside the one with the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartnerNeed {
    /// Before long.
    Soon,
    Now,
    /// There is no place for an anchor otherwise.
    LastResort,
}

impl<N: Nand> Flash<N> {
    /// Writes an anchor: everything appended before is on flash first.
    pub fn write_anchor(&mut self, mut anchor: Anchor) -> Result<()> {
        self.flush_units()?;
        for _ in 0..TRIES_MAX {
            if self.anchors.unit >= self.anchors.units(self.slots.shape.slc.units) {
                self.move_on()?;
            }
            // A mount that finds nothing behind the first half relies on it that the pair was another there at most.
            if self.anchors.other_is_due(self.slots.shape.slc.units) {
                self.prepare_other(PartnerNeed::Soon)?;
            }
            anchor.serial = self.anchors.last.as_ref().map_or(0, |last| last.serial) + 1;
            anchor.pair = self.anchors.pair;
            anchor.other_erased = self.anchors.other == PartnerState::Ready;
            anchor.names = self.anchors.names.iter().map(|&(named, _)| named).collect();
            anchor.written_bytes = self.slots.written_bytes;
            let (current, unit) = (self.anchors.current, self.anchors.unit);
            let Some(&block) = self.anchors.pair.get(current) else { return Err(Error::NoSpace) };
            self.anchors.unit += 1;
            if current == self.anchors.newest {
                self.anchors.end = unit + 1;
            }
            // Among several lanes each block that is named begins a chain.
            let chains = self.slots.lanes.are_several().then(|| anchor.clone().listing_chains());
            if self.program_anchor(block, unit, chains.as_ref().unwrap_or(&anchor))? {
                (self.anchors.newest, self.anchors.end) = (current, unit + 1);
                self.anchors.last = Some(anchor.clone());
                self.anchors.takeover = self.anchors.takeover.after_anchor();
                self.anchors.pair_changed = false;
                return Ok(());
            }
            if !self.anchors.makeshift {
                self.slots.fail_block(block);
                self.anchors.unit = self.slots.shape.slc.units;
            } else if newest::leaves_gap(&mut self.slots.nand, &self.slots.shape, block, unit)? {
                return Err(self.slots.outage.declare());
            }
        }
        // Blocks fail though they pass their tests.
        Err(self.slots.outage.declare())
    }

    /// Writes a checkpoint's anchor: blocks named before its era began are not named any more.
    pub fn write_checkpoint(&mut self, anchor: Anchor, era: u64) -> Result<()> {
        let names = self.anchors.names.clone();
        self.anchors.names.retain(|&(_, named)| named >= era);
        // Of a volume at rest no single page may be the only one that says where the rest is.
        let once = if anchor.clean { self.write_anchor(anchor.clone()) } else { Ok(()) };
        let outcome = once.and_then(|()| self.write_anchor(anchor));
        match outcome {
            Ok(()) => self.numbers.end_era(era),
            Err(_) => self.anchors.names = names,
        }
        outcome
    }

    /// Makes two erased blocks, or one that is erased and one that is not needed, the first pair of a volume.
    pub fn begin_anchors(&mut self, pair: [u32; 2]) {
        self.anchors.pair = pair;
        self.anchors.takeover = Takeover::Own;
        for block in pair {
            if let Some(mut found) = self.slots.blocks.get_mut(block) {
                (found.entry.used_as, found.entry.erased) = (Use::Anchor, false);
            }
        }
        self.slots.blocks.recount();
    }

    /// The block that does not hold the newest anchor goes bad. The one that does.
    #[cfg(test)]
    pub fn lose_anchor_block(&mut self) -> Result<u32> {
        self.slots.retire(self.anchors.pair[1 - self.anchors.newest])?;
        self.anchors.other = PartnerState::Missing;
        Ok(self.anchors.newest().0)
    }

    /// Takes over what the newest anchor counted.
    pub fn remember_anchor(&mut self, anchor: &Anchor) {
        self.anchors.last = Some(anchor.clone());
        self.slots.written_bytes = anchor.written_bytes;
    }

    /// Writes the newest anchor again, with the names given since; no longer clean.
    pub fn rewrite_anchor(&mut self) -> Result<()> {
        match self.anchors.last.clone() {
            Some(anchor) => self.write_anchor(Anchor { clean: false, ..anchor }),
            None => Ok(()),
        }
    }

    /// Records that a recovery begins: the next one, should this be cut short, leaves one more page alone.
    pub fn count_recovery(&mut self) -> Result<()> {
        if let Some(anchor) = self.anchors.last.as_mut() {
            anchor.recoveries += 1;
        }
        self.rewrite_anchor()
    }

    /// Writes the newest anchor to the other block, if it stands in this one.
    pub fn leave_anchor_block(&mut self, block: u32) -> Result<()> {
        if self.anchors.pair.get(self.anchors.current) == Some(&block) {
            self.anchors.unit = self.slots.shape.slc.units;
            self.rewrite_anchor()?;
        }
        Ok(())
    }

    fn program_anchor(&mut self, block: u32, unit: u32, anchor: &Anchor) -> Result<bool> {
        let slot_bytes = self.slots.shape.slot_bytes;
        let mut data = anchor.encode(slot_bytes);
        let tag = Tag {
            kind: Kind::Anchor,
            end: true,
            copy: false,
            unlogged: false,
            seq: anchor.seq,
            ino: 0,
            chunk: anchor.checkpoint & 0xffff_ffff,
            len: slot_bytes as u32,
            erases: Some(self.slots.blocks.get(block).entry.erases),
            time_ns: 0,
            dated: false,
            source: 0,
        };
        let raw = tag.encode(0, &data);
        self.slots.count_written(Cause::Metadata, data.len());
        let pages = self.slots.shape.slc.unit_slots / self.slots.shape.slots_per_page;
        data.resize(pages as usize * self.slots.shape.geometry.page_bytes as usize, 0xff);
        let mut spare = vec![0xff; pages as usize * self.slots.shape.geometry.spare_bytes as usize];
        spare.iter_mut().zip(raw).for_each(|(to, from)| *to = from);
        let outcome = self.slots.nand.program(block, unit, CellMode::Slc, &data, &spare, Cause::Metadata);
        if !self.slots.outcome_of(Operation::Program, block, outcome)? {
            return Ok(false);
        }
        if !self.anchors.makeshift {
            return Ok(true);
        }
        // Here a page that looked blank may have been a torn one.
        let found = newest::read_page(&mut self.slots.nand, &self.slots.shape, block, unit)?;
        Ok(matches!(found, Page::Anchor(found) if found.serial == anchor.serial))
    }

    /// Goes on in the block that does not hold the newest anchor; where there is none, makes do with the one that does.
    fn move_on(&mut self) -> Result<()> {
        let newest = self.anchors.newest;
        if !self.anchors.is_own() {
            self.anchors.takeover = Takeover::None;
        }
        if self.anchors.other != PartnerState::Ready || self.anchors.current != newest {
            self.prepare_other(PartnerNeed::Now)?;
        }
        if self.anchors.other == PartnerState::Ready {
            self.enter_other();
            return Ok(());
        }
        // The page after an earlier mount's newest anchor may be torn and look blank. The last pages are too few to leave
        // one out: should it have been torn, reading back shows it.
        let (end, units) = (self.anchors.end, self.slots.shape.slc.units);
        let next = end + u32::from(!self.anchors.is_own() && end + MAKESHIFT_UNITS < units);
        if self.anchors.makeshift || next >= units {
            self.prepare_other(PartnerNeed::LastResort)?;
            if self.anchors.other != PartnerState::Ready {
                return Err(self.slots.outage.ran_out());
            }
            self.enter_other();
            return Ok(());
        }
        self.anchors.current = newest;
        self.anchors.unit = next;
        self.anchors.makeshift = true;
        Ok(())
    }

    /// Goes on in the block that does not hold the newest anchor, which is erased.
    fn enter_other(&mut self) {
        let newest = self.anchors.newest;
        let left = self.anchors.pair.get(newest).copied().unwrap_or(0);
        self.anchors.current = 1 - newest.min(1);
        self.anchors.unit = 0;
        // One that failed is not kept until its turn: should this one fail before, there would be none.
        self.anchors.other =
            if self.slots.blocks.get(left).entry.failing { PartnerState::Missing } else { PartnerState::Old };
        self.anchors.makeshift = false;
    }

    /// One step towards making the other block of the pair ready, or a less worn one in its place.
    pub fn ready_step(&mut self) -> Result<()> {
        if self.anchors.pair_changed {
            return if self.flush_unit()? { Ok(()) } else { self.rewrite_anchor() };
        }
        let other = self.anchors.pair.get(1 - self.anchors.newest.min(1)).copied();
        let worn = other.filter(|&block| self.slots.is_worn(block));
        let fresh = worn.and_then(|worn| less_worn(&self.slots.blocks, self.horizon(), worn));
        match fresh.filter(|&block| !self.slots.blocks.get(block).entry.erased) {
            Some(fresh) if self.slots.look_for_pages(fresh, Cause::Metadata)? => {
                self.slots.erase(fresh, Cause::Metadata).map(|_| ())
            }
            Some(_) => Ok(()),
            None => self.prepare_other(PartnerNeed::Soon),
        }
    }

    /// Finds a block for the pair that has lost one, now that one may be free.
    pub fn complete_pair(&mut self) -> Result<()> {
        self.prepare_other(PartnerNeed::Now)?;
        if self.anchors.other != PartnerState::Ready {
            return Ok(());
        }
        // In that block: the few units left here may be needed yet.
        self.anchors.unit = self.slots.shape.slc.units;
        self.rewrite_anchor()
    }

    /// Erases the block that does not hold the newest anchor, or puts a fresh one in its place where it has gone bad
    /// or, where there is time, is worn. One that has failed is tested first: only where a block of the pair is marked bad does a
    /// mount look for anchors elsewhere.
    pub(super) fn prepare_other(&mut self, need: PartnerNeed) -> Result<()> {
        let other = 1 - self.anchors.newest.min(1);
        let Some(&block) = self.anchors.pair.get(other) else { return Err(Error::NoSpace) };
        let entry = self.slots.blocks.get(block).entry;
        let bad = entry.used_as == Use::Bad || self.slots.nand.is_bad(block);
        self.anchors.other = PartnerState::Ready;
        if need == PartnerNeed::Soon && self.slots.is_worn(block) && self.replace_anchor_block(other)? {
            return Ok(());
        }
        let mut erased = !bad && !entry.failing && self.slots.erase(block, Cause::Metadata)?;
        let mut replaced = false;
        if !erased {
            if bad && entry.used_as != Use::Bad {
                self.slots.retire(block)?;
            }
            let controls = if need == PartnerNeed::LastResort { Controls::Any } else { Controls::Unlisted };
            match if bad { Verdict::Bad } else { Tester(self).test_now(block, controls)? } {
                Verdict::Good => erased = self.slots.erase(block, Cause::Metadata)?,
                Verdict::Bad => replaced = self.replace_anchor_block(other)?,
                Verdict::Open => {}
            }
        }
        if let Some(mut found) = self.slots.blocks.get_mut(block).filter(|_| erased) {
            found.entry.used_as = Use::Anchor;
            found.entry.erased = false;
        }
        if !erased && !replaced {
            self.anchors.other = PartnerState::Missing;
        }
        Ok(())
    }

    /// Puts a fresh, less worn block in place of one of the pair, which is erased or retired.
    fn replace_anchor_block(&mut self, which: usize) -> Result<bool> {
        let horizon = self.horizon();
        let old = self.anchors.pair.get(which).copied().unwrap_or(0);
        let retired = self.slots.blocks.get(old).entry.used_as == Use::Bad;
        let fresh = loop {
            let least_worn = self.slots.blocks.free_for_anchors(horizon).min_by_key(|(_, block)| block.entry.erases);
            let Some((fresh, block)) = least_worn else { return Ok(false) };
            if !retired && block.entry.erases >= self.slots.blocks.get(old).entry.erases {
                return Ok(false);
            }
            // One that a clean anchor lists as erased must not be found half erased.
            if block.entry.erased || self.slots.erase(fresh, Cause::Metadata)? {
                break fresh;
            }
        };
        if !retired {
            self.slots.erase(old, Cause::WearLevel)?;
        }
        if let Some(mut found) = self.slots.blocks.get_mut(fresh) {
            found.entry = BlockEntry { used_as: Use::Anchor, erased: false, ..found.entry };
        }
        if let Some(to) = self.anchors.pair.get_mut(which) {
            *to = fresh;
        }
        self.anchors.pair_changed = true;
        Ok(true)
    }
}

impl<N: Nand> Slots<N> {
    /// Whether a block of the pair is good, but erased far more often than others.
    fn is_worn(&self, block: u32) -> bool {
        let entry = self.blocks.get(block).entry;
        let bad = entry.used_as == Use::Bad || entry.failing || self.nand.is_bad(block);
        let margin = (self.nand.endurance(CellMode::Native) / MARGIN_PART).clamp(1, WEAR_MARGIN);
        !bad && self.blocks.levels() && self.blocks.is_ahead(block, margin)
    }
}

/// The block that may take the place of this one of the pair, if that is more worn.
fn less_worn(blocks: &BlockTable, horizon: Horizon, old: u32) -> Option<u32> {
    let (fresh, block) = blocks.free_for_anchors(horizon).min_by_key(|(_, block)| block.entry.erases)?;
    (block.entry.erases < blocks.get(old).entry.erases).then_some(fresh)
}
