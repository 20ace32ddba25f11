//! The In Channel Address Allocator: which physical block a logical one is given.
//!
//! Invariant: a block that a record says is kept erased is taken only after another record says that it may be.

use nand::{Cause, CellMode, Nand, NandError};

use super::BlockMapDrive;
use super::table::PhysicalUse;

/// Programs that a record stands for at least: they are at most one in so many of all.
pub const PROGRAMS_A_RECORD: u32 = 512;
/// Erases that a block may be behind those that are kept before these are opened.
const LEAD_ERASES: u32 = 2;

impl<N: Nand> BlockMapDrive<N> {
    /// The least worn free block of a die, erased; `None` where the die has none.
    pub(super) fn take(&mut self, die: u32) -> Result<Option<u32>, NandError> {
        self.settle_die(die)?;
        self.record_what_changed()?;
        loop {
            let open = self.table.least_erased(die, &[PhysicalUse::Erased, PhysicalUse::Free]);
            let kept = self.table.least_erased(die, &[PhysicalUse::Kept]);
            let block = match (open, kept) {
                (None, None) => return self.try_suspects(die),
                (Some(open), None) => open,
                (Some(open), Some(kept)) if self.table.erases(open) <= self.table.erases(kept) + LEAD_ERASES => open,
                (_, Some(kept)) => {
                    self.open_kept(die, kept)?;
                    continue;
                }
            };
            if self.table.used_as(block) == PhysicalUse::Erased || self.erase_now(block, Cause::Host)? {
                return Ok(Some(block));
            }
            self.set_suspect(block)?;
        }
    }

    /// Lets some blocks of the segment of `kept` be taken, by a record.
    fn open_kept(&mut self, die: u32, kept: u32) -> Result<(), NandError> {
        let pages = self.chip.layout(CellMode::Slc).pages().max(1);
        let segment = self.segments.of_physical(kept);
        for _ in 0..PROGRAMS_A_RECORD.div_ceil(pages).max(2) {
            let of_segment = self.segments.blocks(segment);
            let next = of_segment
                .filter(|&block| self.geometry.die_of(block) == die && self.table.used_as(block) == PhysicalUse::Kept);
            let Some(next) = next.min_by_key(|&block| self.table.erases(block)) else { break };
            self.table.set_use(next, PhysicalUse::Erased);
        }
        self.record(segment)
    }

    /// A free block could not be erased: it is tested, and marked bad if it fails where another passes.
    fn set_suspect(&mut self, block: u32) -> Result<(), NandError> {
        self.table.set_use(block, PhysicalUse::Suspect);
        self.judge(block)
    }

    /// The last resort: blocks of a die that failed, and pass a test now.
    fn try_suspects(&mut self, die: u32) -> Result<Option<u32>, NandError> {
        while let Some(suspect) = self.table.least_erased(die, &[PhysicalUse::Suspect]) {
            self.judge(suspect)?;
            match self.table.used_as(suspect) {
                PhysicalUse::Free if self.erase_now(suspect, Cause::Host)? => return Ok(Some(suspect)),
                PhysicalUse::Bad => {}
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}
