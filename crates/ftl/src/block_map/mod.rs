//! A drive that maps only blocks, for a file system that allocates pages: the co-design of Qiu et al., §III.
//!
//! The drive is a chip around a chip. Its blocks are logical; each has a physical one on the same die while anything is
//! programmed in it. A first program takes the least worn free block of the die, an erase (*block TRIM*) gives it back, and
//! nothing else ever changes the map: nothing is copied. Invariants: the map is found again from the chip alone, by the tags
//! in all pages; a block's erase has ended before its logical block is programmed again; a block is marked bad only after a
//! test that another block passes.

mod access;
mod create;
mod find_records;
mod record;
mod record_log;
mod report;
mod start;
mod table;
mod tag;
mod take;
mod trial;
mod trim;

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Failure, Geometry, Nand, NandError};

pub use create::DriveFormat;
use record::Segments;
use record_log::RecordLog;
pub use report::{ChannelReport, DriveReport};
use table::{DriveSize, DriveTable, PhysicalUse};
use tag::TAG_BYTES;

/// Spare bytes of each page that the drive takes for itself.
pub const DRIVE_TAG_BYTES: u32 = TAG_BYTES as u32;

/// Operations that the caller asked for, one command each, and those that the drive did by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveCounts {
    pub reads: u64,
    pub programs: u64,
    pub trims: u64,
    /// Programs of records, and of first pages that carry a tag alone.
    pub own_programs: u64,
    /// Erases before use, and of records.
    pub own_erases: u64,
    /// Page reads of the start.
    pub start_reads: u64,
    /// Blocks that were marked bad, and programs and erases of tests.
    pub retired: u64,
    pub trial_operations: u64,
}

/// An erase that was posted and not waited for.
#[derive(Clone, Copy, Debug)]
struct PostedErase {
    physical: u32,
    logical: u32,
}

/// A block that a start has left to erase.
#[derive(Clone, Copy, Debug)]
struct Leftover {
    block: u32,
    /// The logical block for which it stood before another one, and would do so again once that is erased.
    older_of: Option<u32>,
}

/// A drive on a chip.
#[derive(Debug)]
pub struct BlockMapDrive<N> {
    chip: N,
    /// Its shape, as the caller sees it.
    geometry: Geometry,
    /// The number that its tags' checksums begin with.
    number: u32,
    table: DriveTable,
    segments: Segments,
    records: RecordLog,
    /// The generation that was given last.
    generation: u64,
    /// Blocks that a start found torn or out of date: they are erased before the first change, so that a start only reads.
    leftovers: Vec<Leftover>,
    /// Of each die, the erase that was posted last.
    erases: Vec<Option<PostedErase>>,
    /// Failures that the caller has not heard of yet, in its numbers.
    failures: Vec<Failure>,
    counts: DriveCounts,
    /// Bits of a codeword that the chip corrects, as it told last.
    correctable_bits: u32,
    /// The spare bytes of a unit.
    spare: Vec<u8>,
}

impl<N: Nand> BlockMapDrive<N> {
    fn new(chip: N, size: DriveSize, number: u32) -> Self {
        let inside = chip.geometry();
        let segments = Segments::of(size, inside.page_bytes);
        let spare_bytes = inside.spare_bytes - TAG_BYTES as u32;
        let geometry = Geometry { blocks: size.logical_blocks(), spare_bytes, ..inside.clone() };
        Self {
            geometry,
            number,
            table: DriveTable::new(size),
            segments,
            records: RecordLog::new(segments.count()),
            generation: 0,
            leftovers: Vec::new(),
            erases: vec![None; size.dies as usize],
            failures: Vec::new(),
            counts: DriveCounts::default(),
            correctable_bits: 0,
            spare: Vec::new(),
            chip,
        }
    }

    /// The chip that it stands on.
    pub fn chip(&self) -> &N {
        &self.chip
    }

    /// The same, to operate: what is done to it the drive does not know of.
    pub fn chip_mut(&mut self) -> &mut N {
        &mut self.chip
    }

    /// Gives the chip back.
    pub fn into_chip(self) -> N {
        self.chip
    }

    pub fn counts(&self) -> &DriveCounts {
        &self.counts
    }

    /// Bytes that its state takes in memory, but for the spare bytes of a unit.
    pub fn ram_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<N>()
            + self.table.ram_bytes()
            + self.records.ram_bytes()
            + self.leftovers.capacity() * size_of::<Leftover>()
            + self.erases.capacity() * size_of::<Option<PostedErase>>()
    }

    /// The physical block behind a logical one, if there is one.
    pub fn physical(&self, logical: u32) -> Option<u32> {
        self.table.physical(logical)
    }

    /// The logical block that a physical one stands for, if there is one.
    pub fn logical(&self, physical: u32) -> Option<u32> {
        self.table.logical(physical)
    }

    /// The two physical blocks that hold records.
    pub fn record_blocks(&self) -> [u32; 2] {
        self.records.pair
    }

    /// How often the physical block behind a logical one was erased, if there is one.
    pub fn erases(&self, logical: u32) -> Option<u32> {
        self.table.physical(logical).map(|physical| self.table.erases(physical))
    }

    /// Waits for a die; what failed on it is known then, and its erase has ended.
    fn settle_die(&mut self, die: u32) -> Result<(), NandError> {
        let mut failures = Vec::new();
        self.chip.settle(die, &mut failures)?;
        self.hear(failures)?;
        self.end_erase(die);
        Ok(())
    }

    /// Hears of failures on the chip.
    fn hear(&mut self, failures: Vec<Failure>) -> Result<(), NandError> {
        for Failure { block, unit } in failures {
            match unit {
                Some(_) => self.note_failed_program(block, unit),
                None => self.note_failed_erase(block)?,
            }
        }
        Ok(())
    }

    /// The caller has the bytes: it is told, and the block goes on until it is erased.
    fn note_failed_program(&mut self, physical: u32, unit: Option<u32>) {
        if matches!(self.table.used_as(physical), PhysicalUse::InUse | PhysicalUse::Failing) {
            self.table.set_use(physical, PhysicalUse::after_failed_program(unit.unwrap_or(0)));
        }
        if let Some(logical) = self.table.logical(physical) {
            self.failures.push(Failure { block: logical, unit });
        }
    }

    /// The erase that was posted to a die has ended well, if one was.
    fn end_erase(&mut self, die: u32) {
        if let Some(slot) = self.erases.get_mut(die as usize) {
            *slot = None;
        }
    }

    /// Erases a physical block and waits for it. Whether that went well.
    fn erase_now(&mut self, physical: u32, cause: Cause) -> Result<bool, NandError> {
        let die = self.geometry.die_of(physical);
        self.settle_die(die)?;
        self.counts.own_erases += 1;
        // Failures elsewhere may be heard of meanwhile: no test of those takes it.
        let used_as = self.table.used_as(physical);
        self.table.set_use(physical, PhysicalUse::Suspect);
        let erased = self.chip.erase(physical, cause);
        let ended = self.ended_well(die, physical, erased);
        self.table.set_use(physical, used_as);
        let went_well = ended?;
        if went_well {
            self.table.set(physical, PhysicalUse::Erased, self.table.erases(physical) + 1);
            self.note_erase(physical);
        }
        Ok(went_well)
    }

    /// Waits for an operation of the drive's own on a physical block. Whether it succeeded.
    fn ended_well(&mut self, die: u32, physical: u32, posted: Result<(), NandError>) -> Result<bool, NandError> {
        match posted {
            Ok(()) => {}
            Err(NandError::ProgramFailed { .. } | NandError::EraseFailed { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        let mut failures = Vec::new();
        self.chip.settle(die, &mut failures)?;
        let (own, others) = failures.into_iter().partition::<Vec<_>, _>(|failure| failure.block == physical);
        self.hear(others)?;
        Ok(own.is_empty())
    }

    /// Programs a unit of a block with a tag of its own and waits for it. Whether it succeeded.
    fn program_own(
        &mut self,
        physical: u32,
        unit: u32,
        mode: CellMode,
        data: &[u8],
        tag: [u8; TAG_BYTES],
        cause: Cause,
    ) -> Result<bool, NandError> {
        let spare = self.tagged_spare(mode, &[], tag);
        self.counts.own_programs += 1;
        let posted = self.chip.program(physical, unit, mode, data, &spare, cause);
        self.spare = spare;
        self.ended_well(self.geometry.die_of(physical), physical, posted)
    }

    /// The spare bytes of a unit: the caller's, and behind them the tag, in every page of it.
    fn tagged_spare(&mut self, mode: CellMode, spare: &[u8], tag: [u8; TAG_BYTES]) -> Vec<u8> {
        let pages = self.chip.layout(mode).pages_per_unit() as usize;
        let (told, all) = (self.geometry.spare_bytes as usize, self.geometry.spare_bytes as usize + TAG_BYTES);
        let mut tagged = core::mem::take(&mut self.spare);
        tagged.clear();
        tagged.resize(pages * all, 0xff);
        let mut callers = spare.chunks(told.max(1));
        for page in tagged.chunks_exact_mut(all) {
            let (to, behind) = page.split_at_mut(told);
            to.iter_mut().zip(callers.next().unwrap_or(&[])).for_each(|(to, from)| *to = *from);
            behind.copy_from_slice(&tag);
        }
        tagged
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_failures;
