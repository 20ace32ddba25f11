//! The drive as a chip: every operation on a logical block goes to its physical one, and every answer comes back under the
//! logical number.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Failure, Geometry, Layout, Nand, NandError, PageRead, ReadInfo};

use super::BlockMapDrive;
use super::record_log::unless_block_fails;
use super::table::PhysicalUse;
use super::tag::BlockTag;

/// An error of the chip, under the caller's number of the block.
fn told(error: NandError, logical: u32) -> NandError {
    match error {
        NandError::Uncorrectable { page, .. } => NandError::Uncorrectable { block: logical, page },
        NandError::ProgramFailed { unit, .. } => NandError::ProgramFailed { block: logical, unit },
        NandError::EraseFailed { .. } => NandError::EraseFailed { block: logical },
        NandError::OutOfRange { page, .. } => NandError::OutOfRange { block: logical, page },
        NandError::Misuse { unit, rule, .. } => NandError::Misuse { block: logical, unit, rule },
        error => error,
    }
}

impl<N: Nand> BlockMapDrive<N> {
    fn check_block(&self, logical: u32) -> Result<(), NandError> {
        let outside = NandError::OutOfRange { block: logical, page: 0 };
        if logical < self.geometry.blocks { Ok(()) } else { Err(outside) }
    }

    /// The answer to a read of a logical block that has no physical one.
    fn read_blank(&self, read: &mut PageRead<'_>) -> Result<ReadInfo, NandError> {
        let PageRead { block, page, column, .. } = *read;
        let end = u64::from(column) + read.data.len() as u64;
        let fits = page < self.geometry.pages_per_block
            && end <= u64::from(self.geometry.page_bytes)
            && read.spare.len() <= self.geometry.spare_bytes as usize;
        if !fits {
            return Err(NandError::OutOfRange { block, page });
        }
        read.data.fill(0xff);
        read.spare.fill(0xff);
        Ok(ReadInfo::of_ecc(self.correctable_bits, 0))
    }

    /// Whether a read can be carried to the chip: its block, if it has one.
    fn read_from(&self, read: &PageRead<'_>) -> Result<Option<u32>, NandError> {
        self.check_block(read.block)?;
        if read.spare.len() > self.geometry.spare_bytes as usize {
            return Err(NandError::OutOfRange { block: read.block, page: read.page });
        }
        Ok(self.table.physical(read.block))
    }

    fn note_read(&mut self, outcome: &Result<ReadInfo, NandError>) {
        if let Ok(info) = outcome {
            self.correctable_bits = info.correctable_bits;
        }
    }

    /// The physical block of a logical one that is about to be programmed at this unit.
    fn block_to_program(&mut self, logical: u32, unit: u32, mode: CellMode, cause: Cause) -> Result<u32, NandError> {
        let failed = NandError::ProgramFailed { block: logical, unit };
        self.erase_leftovers()?;
        if let Some(physical) = self.table.physical(logical) {
            // Where a later program failed the next one is the chip's to refuse, as on a bare chip.
            let is_closed = self.table.used_as(physical) == PhysicalUse::Closed;
            return if is_closed { Err(failed) } else { Ok(physical) };
        }
        let die = self.geometry.die_of(logical);
        if self.table.is_withdrawn(logical) {
            return Err(failed);
        }
        let physical = self.take(die)?.ok_or(failed.clone())?;
        if !self.table.has_enough(die) {
            // As many logical blocks fail as there are too few physical ones, and this early: another block passes the caller's test.
            self.table.withdraw(logical);
            return Err(failed);
        }
        if self.table.physical(logical).is_some() {
            // The erase before this failed, as is known only now.
            return Err(failed);
        }
        self.generation += 1;
        self.table.set_use(physical, PhysicalUse::InUse);
        self.table.set_physical(logical, Some(physical));
        // Where the first page were blank, the block would count as one that is not in use.
        if unit > 0 {
            let pages = self.chip.layout(mode).pages_per_unit() as usize;
            let blank = vec![0xff; pages * self.geometry.page_bytes as usize];
            let tag = self.tag_of(logical, physical).encode(self.number);
            if !self.program_own(physical, 0, mode, &blank, tag, cause)? {
                self.table.set_use(physical, PhysicalUse::Closed);
                return Err(NandError::ProgramFailed { block: logical, unit });
            }
        }
        Ok(physical)
    }

    /// The tag of pages of a block in use. The generation is the greatest given so far: that of the block's first page is not kept,
    /// and a greater one says as much, since the block that stood here before was given up earlier.
    fn tag_of(&self, logical: u32, physical: u32) -> BlockTag {
        BlockTag { logical, generation: self.generation, erases: self.table.erases(physical) }
    }
}

impl<N: Nand> Nand for BlockMapDrive<N> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn layout(&self, mode: CellMode) -> &Layout {
        self.chip.layout(mode)
    }

    fn endurance(&self, mode: CellMode) -> u32 {
        self.chip.endurance(mode)
    }

    fn read(
        &mut self,
        block: u32,
        page: u32,
        column: u32,
        data: &mut [u8],
        spare: &mut [u8],
        cause: Cause,
    ) -> Result<ReadInfo, NandError> {
        self.counts.reads += 1;
        let mut read = PageRead::new(block, page, column, data, spare, cause);
        let Some(physical) = self.read_from(&read)? else { return self.read_blank(&mut read) };
        let outcome = self.chip.read(physical, page, column, data, spare, cause).map_err(|error| told(error, block));
        self.note_read(&outcome);
        outcome
    }

    fn program(
        &mut self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        spare: &[u8],
        cause: Cause,
    ) -> Result<(), NandError> {
        self.check_block(block)?;
        let pages = self.chip.layout(mode).pages_per_unit() as usize;
        let whole = pages * self.geometry.spare_bytes as usize;
        if spare.len() > whole || (pages > 1 && spare.len() != whole) {
            return Err(NandError::OutOfRange { block, page: unit });
        }
        if unit >= self.chip.layout(mode).units() || data.len() != pages * self.geometry.page_bytes as usize {
            return Err(NandError::OutOfRange { block, page: unit });
        }
        if self.table.is_marked(block) {
            return Err(NandError::Misuse { block, unit, rule: "bad blocks are not programmed" });
        }
        self.counts.programs += 1;
        let physical = self.block_to_program(block, unit, mode, cause).map_err(|error| told(error, block))?;
        let tagged = self.tagged_spare(mode, spare, self.tag_of(block, physical).encode(self.number));
        let posted = self.chip.program(physical, unit, mode, data, &tagged, cause);
        self.spare = tagged;
        if let Err(NandError::ProgramFailed { .. }) = posted {
            self.table.set_use(physical, PhysicalUse::after_failed_program(unit));
        }
        posted.map_err(|error| told(error, block))
    }

    fn erase(&mut self, block: u32, cause: Cause) -> Result<(), NandError> {
        self.check_block(block)?;
        if self.table.is_marked(block) {
            return Err(NandError::Misuse { block, unit: 0, rule: "bad blocks are not erased" });
        }
        self.counts.trims += 1;
        self.erase_leftovers().and_then(|()| self.trim(block, cause)).map_err(|error| told(error, block))
    }

    fn barrier(&mut self, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        let mut inside = Vec::new();
        self.chip.barrier(&mut inside)?;
        self.hear(inside)?;
        self.erases.fill(None);
        failures.append(&mut self.failures);
        Ok(())
    }

    fn read_many(&mut self, reads: &mut [PageRead<'_>]) {
        self.counts.reads += reads.len() as u64;
        let mut carried = Vec::with_capacity(reads.len());
        let mut answers = Vec::with_capacity(reads.len());
        for read in reads.iter_mut() {
            match self.read_from(read) {
                Ok(Some(physical)) => {
                    let PageRead { page, column, cause, .. } = *read;
                    carried.push(PageRead::new(physical, page, column, read.data, read.spare, cause));
                    answers.push((read.block, &mut read.outcome));
                }
                Ok(None) => read.outcome = self.read_blank(read),
                Err(refusal) => read.outcome = Err(refusal),
            }
        }
        self.chip.read_many(&mut carried);
        for ((logical, answer), read) in answers.into_iter().zip(carried) {
            *answer = read.outcome.map_err(|error| told(error, logical));
        }
    }

    fn settle(&mut self, die: u32, failures: &mut Vec<Failure>) -> Result<(), NandError> {
        self.settle_die(die)?;
        failures.append(&mut self.failures);
        Ok(())
    }

    fn pending_ns(&self, die: u32) -> u64 {
        self.chip.pending_ns(die)
    }

    fn is_bad(&self, block: u32) -> bool {
        self.table.is_marked(block)
    }

    fn mark_bad(&mut self, block: u32) -> Result<(), NandError> {
        self.check_block(block)?;
        self.table.mark(block);
        let segment = self.segments.of_logical(block);
        // Where no record can be written the mark holds until a restart, and goes into the next one.
        self.note_change(segment);
        // Twice: a mark is not lost with a page.
        let recorded = self.record(segment).and_then(|()| self.record(segment));
        unless_block_fails(recorded).map(drop).map_err(|error| told(error, block))
    }
}
