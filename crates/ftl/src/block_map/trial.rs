//! The test of a physical block that failed: it is marked bad only where it fails again and another block passes.
//!
//! A round erases the block, programs two units with a pattern that is no tag, and reads them back. Two rounds of at most
//! three decide; a round that is failed counts only once another free block, the control, has passed one.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError};

use super::BlockMapDrive;
use super::table::PhysicalUse;

/// Rounds of the same outcome that decide.
const ROUNDS: u32 = 2;
/// Controls in a row that fail before the chip counts as failing.
const CONTROLS_MAX: u32 = 3;
/// Units that a round programs.
const UNITS: u32 = 2;
/// What pages are programmed with, and inverted in every other round. As a tag it has a wrong checksum.
const PATTERN: u8 = 0xb8;

/// What came of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialOutcome {
    Good,
    Bad,
    /// No other block is free to be the control.
    Open,
    /// No block passes.
    ChipFails,
}

impl<N: Nand> BlockMapDrive<N> {
    /// Tests a block in which nothing is needed.
    pub(super) fn try_out(&mut self, suspect: u32) -> Result<TrialOutcome, NandError> {
        let (mut passed, mut failed) = (0, 0);
        while passed < ROUNDS && failed < ROUNDS {
            if self.round(suspect, passed + failed)? {
                passed += 1;
                continue;
            }
            match self.control_passes(suspect)? {
                Some(true) => failed += 1,
                Some(false) => return Ok(TrialOutcome::ChipFails),
                None => return Ok(TrialOutcome::Open),
            }
        }
        self.table.set_use(suspect, if failed < ROUNDS { PhysicalUse::Free } else { PhysicalUse::Suspect });
        Ok(if failed < ROUNDS { TrialOutcome::Good } else { TrialOutcome::Bad })
    }

    /// Whether one of a few other free blocks passes a round; `None` where there are none.
    fn control_passes(&mut self, suspect: u32) -> Result<Option<bool>, NandError> {
        let dies = self.table.size().dies;
        let near = suspect % dies;
        let all = (0..dies).map(|turn| (near + turn) % dies).flat_map(|die| self.table.on_die(die));
        // The erase of a block may still be under way.
        let is_awaited = |block: u32| self.erases.iter().flatten().any(|posted| posted.physical == block);
        let is_open = |block: u32| matches!(self.table.used_as(block), PhysicalUse::Free | PhysicalUse::Erased);
        let takeable = |block: u32| is_open(block) && !is_awaited(block);
        let controls: Vec<u32> = all.filter(|&block| takeable(block)).take(CONTROLS_MAX as usize).collect();
        if controls.is_empty() {
            return Ok(None);
        }
        for (at, &control) in controls.iter().enumerate() {
            let passes = self.round(control, 0)?;
            self.table.set_use(control, PhysicalUse::Free);
            if passes {
                // The chip works, so that the controls before this one have a test of their own to pass.
                controls.iter().take(at).for_each(|&failed| self.table.set_use(failed, PhysicalUse::Suspect));
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// Whether a block is erased, programmed and read as it should be.
    fn round(&mut self, block: u32, number: u32) -> Result<bool, NandError> {
        let mode = CellMode::Native;
        let die = self.geometry.die_of(block);
        let pattern = if number.is_multiple_of(2) { PATTERN } else { !PATTERN };
        let layout = self.chip.layout(mode);
        let (units, pages) = (layout.units().min(UNITS), layout.pages_per_unit() as usize);
        let read: Vec<u32> = (0..units).flat_map(|unit| layout.unit_pages(unit).iter().copied()).collect();
        let data = vec![pattern; pages * self.geometry.page_bytes as usize];
        let spare = vec![pattern; pages * self.chip.geometry().spare_bytes as usize];
        self.counts.trial_operations += 1;
        let erased = self.chip.erase(block, Cause::Metadata);
        if !self.ended_well(die, block, erased)? {
            return Ok(false);
        }
        self.table.set(block, self.table.used_as(block), self.table.erases(block) + 1);
        for unit in 0..units {
            self.counts.trial_operations += 1;
            let posted = self.chip.program(block, unit, mode, &data, &spare, Cause::Metadata);
            if !self.ended_well(die, block, posted)? {
                return Ok(false);
            }
        }
        let mut found = vec![0; self.geometry.page_bytes as usize];
        for page in read {
            match self.chip.read(block, page, 0, &mut found, &mut [], Cause::Metadata) {
                Ok(_) if found.iter().all(|&byte| byte == pattern) => {}
                Ok(_) | Err(NandError::Uncorrectable { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
