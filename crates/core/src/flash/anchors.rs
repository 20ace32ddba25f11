//! The pair of blocks anchors are written to in turn.
//!
//! Invariants: the block that holds the newest anchor is never erased; after a mount that found the volume in use, the
//! first anchor goes to the other block, since the last page of this one may have been torn; where there is no other, one
//! unit is left out while there are more than a recovery may need, and every anchor is read back.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError};

use super::Flash;
use super::newest::{self, Page};
use crate::error::{Error, Result};
use crate::format::anchor::{Anchor, MAKESHIFT_UNITS, half_used, ordinary_units};
use crate::format::table::{BlockEntry, Use};
use crate::format::tag::{Kind, Tag};

/// Erases an anchor block may be ahead of the average before another takes its place.
const WEAR_MARGIN: u32 = 32;

/// The block of the pair that does not hold the newest anchor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Other {
    /// Holds older anchors, or is not known to be erased.
    #[default]
    Old,
    /// Erased.
    Ready,
    /// Gone bad, and no other has taken its place yet: a block that anchors may stand in must be found, or emptied.
    Missing,
}

/// Where anchors are written.
#[derive(Default)]
pub struct AnchorLog {
    pub pair: [u32; 2],
    /// Which of the pair holds the newest anchor.
    pub newest: usize,
    /// The first unit of that block that nothing was programmed to.
    pub end: u32,
    /// Which of the pair is written to.
    pub current: usize,
    /// The unit to write next there; past the end: go to the other block.
    pub unit: u32,
    /// The newest anchor.
    pub last: Option<Anchor>,
    /// Blocks named since the checkpoint: head, block, era.
    pub names: Vec<(u8, u32, u64)>,
    pub other: Other,
    /// The block with the newest anchor is written on because there is no other: what was programmed is read back.
    pub makeshift: bool,
    /// Whether this mount has written an anchor: only then is the newest known to be stable.
    pub own: bool,
}

impl<N: Nand> Flash<N> {
    /// Writes an anchor: everything appended before is on flash first.
    pub fn write_anchor(&mut self, mut anchor: Anchor) -> Result<()> {
        self.flush_units()?;
        loop {
            if self.anchors.unit >= self.anchor_units() {
                self.move_on()?;
            }
            anchor.serial = self.anchors.last.as_ref().map_or(0, |last| last.serial) + 1;
            anchor.pair = self.anchors.pair;
            anchor.names = self.anchors.names.iter().map(|&(head, block, _)| (head, block)).collect();
            anchor.written_bytes = self.written_bytes;
            let (current, unit) = (self.anchors.current, self.anchors.unit);
            let Some(&block) = self.anchors.pair.get(current) else { return Err(Error::NoSpace) };
            self.anchors.unit += 1;
            if current == self.anchors.newest {
                self.anchors.end = unit + 1;
            }
            if self.program_anchor(block, unit, &anchor)? {
                (self.anchors.newest, self.anchors.end) = (current, unit + 1);
                self.anchors.last = Some(anchor.clone());
                self.anchors.own = true;
                // Well before it is needed, so that there is time to find another should it have gone bad.
                if self.anchors.other == Other::Old && self.anchors.unit >= half_used(self.shape.slc.units) {
                    self.prepare_other(true)?;
                }
                // A block taken out of the pair must not be used while an anchor still lists it.
                if anchor.pair == self.anchors.pair {
                    return Ok(());
                }
                continue;
            }
            if !self.anchors.makeshift {
                self.fail_block(block);
                self.anchors.unit = self.shape.slc.units;
            }
        }
    }

    /// Units of a block that anchors are written to: a few more are kept for making do.
    fn anchor_units(&self) -> u32 {
        let units = self.shape.slc.units;
        if self.anchors.makeshift { units } else { ordinary_units(units) }
    }

    /// Writes the newest anchor again, with the names given since; no longer clean.
    pub fn rewrite_anchor(&mut self) -> Result<()> {
        match self.anchors.last.clone() {
            Some(anchor) => self.write_anchor(Anchor { clean: false, ..anchor }),
            None => Ok(()),
        }
    }

    /// Writes the newest anchor once more, as it is.
    pub fn repeat_anchor(&mut self) -> Result<()> {
        self.anchors.last.clone().map_or(Ok(()), |anchor| self.write_anchor(anchor))
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
            self.anchors.unit = self.shape.slc.units;
            self.rewrite_anchor()?;
        }
        Ok(())
    }

    /// Before the first program or erase of a mount, makes sure the newest anchor is stable and not clean.
    pub fn own_anchor(&mut self) -> Result<()> {
        if self.anchors.own { Ok(()) } else { self.rewrite_anchor() }
    }

    fn program_anchor(&mut self, block: u32, unit: u32, anchor: &Anchor) -> Result<bool> {
        let slot_bytes = self.shape.slot_bytes;
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
            erases: self.blocks.get(block).entry.erases,
            stamp: 0,
        };
        let raw = tag.encode(0, &data);
        self.count_written(Cause::Metadata, data.len());
        let pages = self.shape.slc.unit_slots / self.shape.slots_per_page;
        data.resize(pages as usize * self.shape.geometry.page_bytes as usize, 0xff);
        let mut spare = vec![0xff; pages as usize * self.shape.geometry.spare_bytes as usize];
        spare.iter_mut().zip(raw).for_each(|(to, from)| *to = from);
        let outcome = self.nand.program(block, unit, CellMode::Slc, &data, &spare, Cause::Metadata);
        let failed = self.wait()?;
        match outcome {
            // Here a page that looked blank may have been a torn one.
            Ok(()) if !failed && self.anchors.makeshift => {
                let found = newest::read_page(&mut self.nand, &self.shape, block, unit)?;
                Ok(matches!(found, Page::Anchor(found) if found.serial == anchor.serial))
            }
            Ok(()) => Ok(!failed),
            Err(NandError::ProgramFailed { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on in the block that does not hold the newest anchor; where there is none, makes do with the one that does.
    fn move_on(&mut self) -> Result<()> {
        let newest = self.anchors.newest;
        if self.anchors.other != Other::Ready || self.anchors.current != newest {
            self.prepare_other(false)?;
        }
        if self.anchors.other == Other::Ready {
            let left = self.anchors.pair.get(newest).copied().unwrap_or(0);
            self.anchors.current = 1 - newest.min(1);
            self.anchors.unit = 0;
            // One that failed is not kept until its turn: should this one fail before, there would be none.
            self.anchors.other = if self.blocks.get(left).entry.failing { Other::Missing } else { Other::Old };
            self.anchors.makeshift = false;
            return Ok(());
        }
        // The page after an earlier mount's newest anchor may be torn and look blank. The last pages are too few to leave
        // one out: should it have been torn, reading back shows it.
        let (end, units) = (self.anchors.end, self.shape.slc.units);
        let next = end + u32::from(!self.anchors.own && end + MAKESHIFT_UNITS < units);
        if self.anchors.makeshift || next >= units {
            return Err(Error::NoSpace);
        }
        self.anchors.current = newest;
        self.anchors.unit = next;
        self.anchors.makeshift = true;
        Ok(())
    }

    /// Finds a block for the pair that has lost one, now that one may be free.
    pub fn complete_pair(&mut self) -> Result<()> {
        self.prepare_other(false)?;
        if self.anchors.other != Other::Ready {
            return Ok(());
        }
        // In that block: the few units left here may be needed yet.
        self.anchors.unit = self.shape.slc.units;
        self.rewrite_anchor()
    }

    /// Erases the block that does not hold the newest anchor, or puts a fresh one in its place where it has gone bad
    /// or, if `for_wear`, is worn.
    fn prepare_other(&mut self, for_wear: bool) -> Result<()> {
        let other = 1 - self.anchors.newest.min(1);
        let Some(&block) = self.anchors.pair.get(other) else { return Err(Error::NoSpace) };
        let entry = self.blocks.get(block).entry;
        let bad = entry.used_as == Use::Bad || entry.failing || self.nand.is_bad(block);
        self.anchors.other = Other::Ready;
        if for_wear && !bad && self.anchor_is_worn(block) && self.replace_anchor_block(other)? {
            return Ok(());
        }
        if !bad && self.erase(block, Cause::Metadata)? {
            if let Some(mut found) = self.blocks.get_mut(block) {
                found.entry.used_as = Use::Anchor;
                found.entry.erased = false;
            }
            return Ok(());
        }
        if self.blocks.get(block).entry.used_as != Use::Bad {
            self.retire(block)?;
        }
        if !self.replace_anchor_block(other)? {
            self.anchors.other = Other::Missing;
        }
        Ok(())
    }

    fn anchor_is_worn(&self, block: u32) -> bool {
        let total: u64 = self.blocks.iter().map(|(_, block)| u64::from(block.entry.erases)).sum();
        let mean = (total / u64::from(self.blocks.len().max(1))) as u32;
        self.blocks.get(block).entry.erases > mean + WEAR_MARGIN
    }

    /// Puts a fresh, less worn block in place of one of the pair, which is erased or retired.
    fn replace_anchor_block(&mut self, which: usize) -> Result<bool> {
        let horizon = self.horizon();
        let old = self.anchors.pair.get(which).copied().unwrap_or(0);
        let retired = self.blocks.get(old).entry.used_as == Use::Bad;
        let fresh = loop {
            let least_worn = self.blocks.free_for_anchors(horizon).min_by_key(|(_, block)| block.entry.erases);
            let Some((fresh, block)) = least_worn else { return Ok(false) };
            if !retired && block.entry.erases >= self.blocks.get(old).entry.erases {
                return Ok(false);
            }
            // One that a clean anchor lists as erased must not be found half erased.
            if block.entry.erased || self.erase(fresh, Cause::Metadata)? {
                break fresh;
            }
        };
        if !retired {
            self.erase(old, Cause::WearLevel)?;
        }
        if let Some(mut found) = self.blocks.get_mut(fresh) {
            found.entry = BlockEntry { used_as: Use::Anchor, erased: false, ..found.entry };
        }
        if let Some(to) = self.anchors.pair.get_mut(which) {
            *to = fresh;
        }
        Ok(true)
    }
}
