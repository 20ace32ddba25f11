//! Block TRIM: the erase of a logical block erases its physical one and gives it back.
//!
//! Invariant: the caller hears of a failed erase only where its die has no block left to stand in, or where the chip as a
//! whole fails; the old bytes never come back after an erase that the caller took for done.

use nand::{Cause, Failure, Nand, NandError};

use super::table::PhysicalUse;
use super::trial::TrialOutcome;
use super::{BlockMapDrive, PostedErase};

impl<N: Nand> BlockMapDrive<N> {
    /// Erases a logical block.
    pub(super) fn trim(&mut self, logical: u32, cause: Cause) -> Result<(), NandError> {
        let die = self.geometry.die_of(logical);
        // One erase of a die is under way at most, and what failed before is known.
        self.settle_die(die)?;
        let has_older = self.leftovers.iter().any(|leftover| leftover.older_of == Some(logical));
        if self.table.is_withdrawn(logical) || has_older {
            return Err(NandError::EraseFailed { block: logical });
        }
        let Some(physical) = self.table.physical(logical) else { return Ok(()) };
        self.table.set_physical(logical, None);
        if self.table.used_as(physical).has_failed() {
            return self.set_aside(physical, logical);
        }
        match self.chip.erase(physical, cause) {
            Ok(()) => {
                self.table.set(physical, PhysicalUse::Erased, self.table.erases(physical) + 1);
                self.note_erase(physical);
                if let Some(slot) = self.erases.get_mut(die as usize) {
                    *slot = Some(PostedErase { physical, logical });
                }
                Ok(())
            }
            Err(NandError::EraseFailed { .. }) => self.set_aside(physical, logical),
            Err(error) => {
                self.table.set_physical(logical, Some(physical));
                Err(error)
            }
        }
    }

    /// A posted erase has failed.
    pub(super) fn note_failed_erase(&mut self, physical: u32) -> Result<(), NandError> {
        let die = self.geometry.die_of(physical);
        let posted = self.erases.get_mut(die as usize).and_then(Option::take);
        let Some(PostedErase { logical, .. }) = posted.filter(|posted| posted.physical == physical) else {
            self.table.set_use(physical, PhysicalUse::Suspect);
            return Ok(());
        };
        self.table.set(physical, PhysicalUse::Suspect, self.table.erases(physical).saturating_sub(1));
        match self.set_aside(physical, logical) {
            Err(NandError::EraseFailed { .. }) => {
                self.failures.push(Failure { block: logical, unit: None });
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Tests a block that failed, whose logical block has none now. An error, if that one can be given no other.
    fn set_aside(&mut self, physical: u32, logical: u32) -> Result<(), NandError> {
        self.table.set_use(physical, PhysicalUse::Suspect);
        let verdict = self.try_out(physical)?;
        match verdict {
            TrialOutcome::Good => {}
            TrialOutcome::Bad => self.retire(physical)?,
            TrialOutcome::Open | TrialOutcome::ChipFails => {
                // Nothing can be told of the block, which may still hold the old bytes: it is not let go.
                self.table.set_use(physical, PhysicalUse::Closed);
                self.table.set_physical(logical, Some(physical));
            }
        }
        let failed = Err(NandError::EraseFailed { block: physical });
        if !matches!(verdict, TrialOutcome::Good | TrialOutcome::Bad) {
            return failed;
        }
        if !self.table.has_enough(self.geometry.die_of(physical)) {
            self.table.withdraw(logical);
            return failed;
        }
        Ok(())
    }

    /// Tests a block in which nothing is needed, and marks it bad if it fails where another passes.
    pub(super) fn judge(&mut self, suspect: u32) -> Result<TrialOutcome, NandError> {
        let outcome = self.try_out(suspect)?;
        if outcome == TrialOutcome::Bad {
            self.retire(suspect)?;
        }
        Ok(outcome)
    }

    fn retire(&mut self, physical: u32) -> Result<(), NandError> {
        self.table.set_use(physical, PhysicalUse::Bad);
        self.counts.retired += 1;
        self.chip.mark_bad(physical)
    }
}
