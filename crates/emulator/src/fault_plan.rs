//! The faults that are due: which show, and in which operations they come.
//!
//! Invariant: programs and erases are counted once each, the operation that the power is cut in included; with no fault
//! on, an operation pays for faults with a few comparisons and no draw.

use crate::{array::PageArray, faults::FaultConfig};

/// The end that an operation comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationFate {
    Succeeds,
    Fails,
    /// It fails, and the block is as it was and no worse.
    Refused,
    PowerCut,
}

/// The faults of a chip, and the operations that they wait for.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultPlan {
    pub(crate) config: FaultConfig,
    /// Operations still to go before the power is cut.
    pub(crate) cut_in: Option<u64>,
    /// Programs and erases still to be refused, whatever their block.
    pub(crate) refused_left: u64,
    /// Those that were.
    pub(crate) refused: u64,
    /// Programs, counted from the chip's making, that are to fail.
    failing_programs: Vec<u64>,
    /// Erases that are to fail.
    failing_erases: Vec<u64>,
    /// Programs since the chip was made or opened.
    programs_done: u64,
    /// Erases since then.
    erases_done: u64,
}

impl FaultPlan {
    /// Programs and erases since the chip was made or opened.
    pub(crate) fn operations(&self) -> u64 {
        self.programs_done + self.erases_done
    }

    pub(crate) fn count_program(&mut self) {
        self.programs_done += 1;
    }

    pub(crate) fn count_erase(&mut self) {
        self.erases_done += 1;
    }

    /// Makes the `n`th program from now fail.
    pub(crate) fn fail_program_at(&mut self, n: u64) {
        self.failing_programs.push(self.programs_done + n);
    }

    /// Makes the `n`th erase from now fail.
    pub(crate) fn fail_erase_at(&mut self, n: u64) {
        self.failing_erases.push(self.erases_done + n);
    }

    /// Whether a program or erase is still to fail.
    pub(crate) fn failure_is_armed(&self) -> bool {
        self.failing_programs.iter().any(|&at| at >= self.programs_done)
            || self.failing_erases.iter().any(|&at| at >= self.erases_done)
    }

    /// Counts a read where cuts count reads, and says whether the power goes in it.
    pub(crate) fn cuts_read(&mut self) -> bool {
        self.config.cut_counts_reads && self.cut_now()
    }

    /// The fate of the next program, which is on `block`.
    pub(crate) fn program_fate(&mut self, array: &PageArray, block: u32) -> OperationFate {
        let chosen = self.failing_programs.contains(&self.programs_done);
        self.fate(array, block, chosen, self.programs_done)
    }

    /// The fate of the next erase, which is of `block`.
    pub(crate) fn erase_fate(&mut self, array: &PageArray, block: u32) -> OperationFate {
        let chosen = self.failing_erases.contains(&self.erases_done);
        self.fate(array, block, chosen, self.erases_done)
    }

    fn fate(&mut self, array: &PageArray, block: u32, chosen: bool, operation: u64) -> OperationFate {
        if self.cut_now() {
            return OperationFate::PowerCut;
        }
        if self.refused_left > 0 {
            self.refused_left -= u64::from(self.refused_left != u64::MAX);
            self.refused += 1;
            return OperationFate::Refused;
        }
        if chosen || array.table.meta(block).failed || array.wears_out(block, operation, &self.config) {
            return OperationFate::Fails;
        }
        OperationFate::Succeeds
    }

    /// Counts an operation and says whether the power goes in it.
    fn cut_now(&mut self) -> bool {
        match self.cut_in {
            None => false,
            Some(0) => {
                self.cut_in = None;
                true
            }
            Some(left) => {
                self.cut_in = Some(left - 1);
                false
            }
        }
    }
}
