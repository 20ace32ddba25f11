//! The In Channel Address Allocator: which physical block a logical one is given.
//!
//! Invariant: a block that a record says is kept erased is taken only after another record says that it may be.

use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError};

use super::record_log::{PROGRAMS_A_RECORD, unless_block_fails};
use super::table::PhysicalUse;
use super::trial::TrialOutcome;
use super::{BlockMapDrive, Leftover};

/// Blocks of a die that are open before one of them is taken.
const OPEN_MIN: usize = 2;
/// Erases that a block may be behind those that are kept before these are opened.
const LEAD_ERASES: u32 = 2;

impl<N: Nand> BlockMapDrive<N> {
    /// The least worn free block of a die, erased; `None` where the die has none.
    pub(super) fn take(&mut self, die: u32) -> Result<Option<u32>, NandError> {
        self.settle_die(die)?;
        self.record_all_due()?;
        self.record_what_changed()?;
        self.keep_some_open(die)?;
        let mut is_even = true;
        loop {
            let open = self.table.least_erased(die, &[PhysicalUse::Erased, PhysicalUse::Free]);
            let kept = self.table.least_erased(die, &[PhysicalUse::Kept]);
            let block = match (open, kept) {
                (None, None) => return self.try_suspects(die),
                (Some(open), None) => open,
                (Some(open), Some(kept))
                    if !is_even || self.table.erases(open) <= self.table.erases(kept) + LEAD_ERASES =>
                {
                    open
                }
                (None, Some(kept)) => {
                    self.open_kept(die, kept)?;
                    continue;
                }
                // Evenness is not worth a failure of the caller's.
                (Some(_), Some(kept)) => {
                    is_even = unless_block_fails(self.open_kept(die, kept))?;
                    continue;
                }
            };
            if self.table.used_as(block) == PhysicalUse::Erased || self.erase_now(block, Cause::Host)? {
                return Ok(Some(block));
            }
            self.set_suspect(block)?;
        }
    }

    /// Erases the blocks that a start has left to erase. One that holds older bytes of a logical block stays until it can be: that
    /// one is not erased before.
    pub(super) fn erase_leftovers(&mut self) -> Result<(), NandError> {
        let mut at = 0;
        while let Some(&Leftover { block, older_of }) = self.leftovers.get(at) {
            // The last resort of a die may have taken it since.
            let is_left = self.table.used_as(block) == PhysicalUse::Suspect;
            let is_gone = !is_left
                || self.erase_now(block, Cause::Metadata)?
                || matches!(self.judge(block)?, TrialOutcome::Good | TrialOutcome::Bad);
            if is_gone || older_of.is_none() {
                self.leftovers.swap_remove(at);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// Besides the block that is taken one more is to be open, if it can be: the control of a test.
    fn keep_some_open(&mut self, die: u32) -> Result<(), NandError> {
        let is_open = |block: &u32| matches!(self.table.used_as(*block), PhysicalUse::Erased | PhysicalUse::Free);
        match self.table.least_erased(die, &[PhysicalUse::Kept]) {
            Some(kept) if self.table.on_die(die).filter(is_open).count() < OPEN_MIN => {
                unless_block_fails(self.open_kept(die, kept)).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Lets some blocks of the segment of `kept` be taken, by a record.
    fn open_kept(&mut self, die: u32, kept: u32) -> Result<(), NandError> {
        let pages = self.chip.layout(CellMode::Slc).pages().max(1);
        let segment = self.segments.of_physical(kept);
        let mut opened = Vec::new();
        for _ in 0..PROGRAMS_A_RECORD.div_ceil(pages).max(2) {
            let of_segment = self.segments.blocks(segment);
            let next = of_segment
                .filter(|&block| self.geometry.die_of(block) == die && self.table.used_as(block) == PhysicalUse::Kept);
            let Some(next) = next.min_by_key(|&block| self.table.erases(block)) else { break };
            // Until the record is there nothing takes it, the records themselves neither.
            self.table.set_use(next, PhysicalUse::Suspect);
            opened.push(next);
        }
        let recorded = self.record(segment);
        let now = if recorded.is_ok() { PhysicalUse::Erased } else { PhysicalUse::Kept };
        opened.into_iter().for_each(|block| self.table.set_use(block, now));
        recorded
    }

    /// A free block could not be erased: it is tested, and marked bad if it fails where another passes.
    fn set_suspect(&mut self, block: u32) -> Result<(), NandError> {
        self.table.set_use(block, PhysicalUse::Suspect);
        self.judge(block).map(drop)
    }

    /// The last resort: blocks of a die that failed, and pass a test now.
    fn try_suspects(&mut self, die: u32) -> Result<Option<u32>, NandError> {
        let suspects = self.table.on_die(die).filter(|&block| self.table.used_as(block) == PhysicalUse::Suspect);
        for suspect in suspects.collect::<Vec<_>>() {
            self.judge(suspect)?;
            if self.table.used_as(suspect) == PhysicalUse::Free && self.erase_now(suspect, Cause::Host)? {
                return Ok(Some(suspect));
            }
        }
        Ok(None)
    }
}
