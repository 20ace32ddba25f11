//! A real chip whose operations are counted, as an emulated chip counts its own.
//!
//! Invariant: an operation is counted once, whether it succeeds or not, and its time is the duration of the call.

use std::time::Instant;

use emulator::Counters;
use nand::{Cause, CellMode, Failure, Nand, NandError, NandWrapper, PageRead, ReadInfo};

/// A chip, and its counters. Blocks do not tell their mode, so reads and erases count as operations on native blocks.
pub struct CountedChip<N> {
    chip: N,
    counters: Counters,
}

impl<N> CountedChip<N> {
    /// Nothing is counted yet.
    pub fn new(chip: N) -> Self {
        Self { chip, counters: Counters::default() }
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn ns_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl<N: Nand> NandWrapper for CountedChip<N> {
    type Inner = N;

    fn inner(&self) -> &N {
        &self.chip
    }

    fn inner_mut(&mut self) -> &mut N {
        &mut self.chip
    }

    fn pass_read(
        &mut self,
        block: u32,
        page: u32,
        column: u32,
        data: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<ReadInfo, NandError> {
        let begun = Instant::now();
        let read = self.chip.read(block, page, column, data, spare, cause);
        let (counters, taken_ns) = (&mut self.counters, ns_since(begun));
        counters.reads.add(CellMode::Native, None, cause, taken_ns);
        counters.flash_ns += taken_ns;
        counters.read_bytes += data.len() as u64;
        counters.spare_only_reads += u64::from(data.is_empty());
        counters.corrected_bits += read.as_ref().map_or(0, |info| u64::from(info.corrected_bits));
        counters.uncorrectable_reads += u64::from(matches!(read, Err(NandError::Uncorrectable { .. })));
        read
    }

    fn pass_program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), NandError> {
        let begun = Instant::now();
        let programmed = self.chip.program(block, unit, mode, data, spare, cause);
        let (counters, taken_ns) = (&mut self.counters, ns_since(begun));
        counters.programs.add(mode, None, cause, taken_ns);
        counters.flash_ns += taken_ns;
        counters.programmed_bytes += data.len() as u64;
        counters.program_failures += u64::from(matches!(programmed, Err(NandError::ProgramFailed { .. })));
        programmed
    }

    fn pass_erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        let begun = Instant::now();
        let erased = self.chip.erase(block, cause);
        let (counters, taken_ns) = (&mut self.counters, ns_since(begun));
        counters.erases.add(CellMode::Native, None, cause, taken_ns);
        counters.flash_ns += taken_ns;
        counters.erase_failures += u64::from(matches!(erased, Err(NandError::EraseFailed { .. })));
        erased
    }

    fn pass_barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.counters.barriers += 1;
        self.chip.barrier(failures)
    }

    /// One after the other: each has a time of its own.
    fn pass_read_many(&mut self, reads: &mut [PageRead<'_>]) {
        for PageRead { block, page, column, data, spare, cause, outcome } in reads {
            *outcome = self.pass_read(*block, *page, *column, data, spare, *cause);
        }
    }

    fn pass_settle(&mut self, die: u32, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.counters.settles += 1;
        self.chip.settle(die, failures)
    }
}
