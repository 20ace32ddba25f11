//! Where records are written: in two blocks by turns, one page after the other.
//!
//! Invariant: of every segment the newest record stands in the block that is written to, or in the other one, which is
//! erased only when this one is full and holds them all.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError};

use super::BlockMapDrive;
use super::record::SegmentRecord;
use super::table::PhysicalUse;
use super::tag::{ANY_DRIVE, BlockTag, RECORD};

/// Programs that a record stands for at least: they are at most one in so many of all.
pub const PROGRAMS_A_RECORD: u32 = 512;
/// Blocks that are tried for records before they count as not to be written.
const TRIES_MAX: u32 = 3;

/// Why all records are to be written anew after a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordsDue {
    No,
    /// Some of them read with many wrong bits.
    Fading,
    /// Newer ones do not read, and these keep blocks that those may have let go: no block is taken before.
    Outdated,
}

/// The two blocks, and what is not recorded yet.
#[derive(Debug)]
pub struct RecordLog {
    pub pair: [u32; 2],
    /// Which of them is written to, and the unit to write next.
    pub current: usize,
    pub unit: u32,
    /// Of each segment, the erases since its last record.
    pub changes: Vec<u32>,
    /// Programs when the last record was written.
    programs: u64,
    /// Whether all records are to be written anew.
    pub due: RecordsDue,
}

impl RecordLog {
    /// Nothing is recorded of so many segments.
    pub fn new(segments: u32) -> Self {
        Self {
            pair: [0; 2],
            current: 0,
            unit: 0,
            changes: vec![0; segments as usize],
            programs: 0,
            due: RecordsDue::No,
        }
    }

    pub fn ram_bytes(&self) -> usize {
        self.changes.capacity() * size_of::<u32>()
    }

    fn block(&self) -> u32 {
        self.pair.get(self.current).copied().unwrap_or_default()
    }
}

/// Whether it succeeded, unless more than a block has failed.
pub fn unless_block_fails(outcome: Result<(), NandError>) -> Result<bool, NandError> {
    match outcome {
        Ok(()) => Ok(true),
        Err(NandError::ProgramFailed { .. } | NandError::EraseFailed { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl<N: Nand> BlockMapDrive<N> {
    /// Notes an erase of a block, which a record is to tell of some time.
    pub(super) fn note_erase(&mut self, physical: u32) {
        self.note_change(self.segments.of_physical(physical));
    }

    /// Notes that a record of a segment is to be written some time.
    pub(super) fn note_change(&mut self, segment: u32) {
        if let Some(changes) = self.records.changes.get_mut(segment as usize) {
            *changes += 1;
        }
    }

    /// Records the segment with the most erases since its last record, if enough was programmed since the last one.
    pub(super) fn record_what_changed(&mut self) -> Result<(), NandError> {
        if self.counts.programs < self.records.programs + u64::from(PROGRAMS_A_RECORD) {
            return Ok(());
        }
        let most = self.records.changes.iter().zip(0..).max_by_key(|(changes, _)| **changes);
        let Some((_, segment)) = most.filter(|(changes, _)| **changes > 0) else { return Ok(()) };
        // Erase counts are not worth a failure of the caller's.
        self.records.programs = self.counts.programs;
        unless_block_fails(self.record(segment)).map(drop)
    }

    /// Writes all records anew if they are due.
    pub(super) fn record_all_due(&mut self) -> Result<(), NandError> {
        match self.records.due {
            RecordsDue::No => {}
            RecordsDue::Fading => drop(unless_block_fails(self.go_on_in_other())?),
            RecordsDue::Outdated => self.go_on_in_other()?,
        }
        self.records.due = RecordsDue::No;
        Ok(())
    }

    /// Writes a record of a segment and waits for it.
    pub(super) fn record(&mut self, segment: u32) -> Result<(), NandError> {
        let units = self.chip.layout(CellMode::Slc).units();
        if self.records.unit < units && self.write_record(segment)? {
            return Ok(());
        }
        self.go_on_in_other()
    }

    /// Writes all records to the other block, or to one in its place where it fails. This one is not touched before they are
    /// all there, and is the next to be erased then.
    fn go_on_in_other(&mut self) -> Result<(), NandError> {
        // Of no block that may be taken the erase is still under way.
        (0..self.table.size().dies).try_for_each(|die| self.settle_die(die))?;
        let this = self.records.current.min(1);
        let mut block = self.records.pair.get(1 - this).copied().unwrap_or_default();
        let mut outcome = Err(NandError::EraseFailed { block });
        for _ in 0..TRIES_MAX {
            if self.erase_now(block, Cause::Metadata)? {
                self.table.set_use(block, PhysicalUse::Record);
                self.set_other(this, block);
                (self.records.current, self.records.unit) = (1 - this, 0);
                outcome = self.record_all();
                if outcome.is_ok() {
                    return outcome;
                }
                (self.records.current, self.records.unit) = (this, u32::MAX);
            }
            let dies = 0..self.table.size().dies;
            let open = [PhysicalUse::Erased, PhysicalUse::Free];
            let other =
                dies.filter_map(|die| self.table.least_erased(die, &open)).min_by_key(|&of| self.table.erases(of));
            let Some(other) = other else { break };
            self.table.set_use(block, PhysicalUse::Suspect);
            block = other;
        }
        self.set_other(this, block);
        self.table.set_use(block, PhysicalUse::Record);
        outcome
    }

    fn set_other(&mut self, this: usize, block: u32) {
        if let Some(slot) = self.records.pair.get_mut(1 - this) {
            *slot = block;
        }
    }

    /// Writes a record of every segment.
    pub(super) fn record_all(&mut self) -> Result<(), NandError> {
        for segment in 0..self.segments.count() {
            if !self.write_record(segment)? {
                return Err(NandError::ProgramFailed { block: self.records.block(), unit: self.records.unit - 1 });
            }
        }
        Ok(())
    }

    /// Writes a record to the next unit. Whether it succeeded.
    fn write_record(&mut self, segment: u32) -> Result<bool, NandError> {
        let (block, unit, mode) = (self.records.block(), self.records.unit, CellMode::Slc);
        let page_bytes = self.geometry.page_bytes as usize;
        let record = SegmentRecord::of(&self.table, self.segments, self.number, self.records.pair, segment);
        let mut data = record.encode(page_bytes);
        data.resize(page_bytes * self.chip.layout(mode).pages_per_unit() as usize, 0xff);
        self.generation += 1;
        let tag = BlockTag { logical: RECORD, generation: self.generation, erases: self.table.erases(block) };
        self.records.unit += 1;
        let written = self.program_own(block, unit, mode, &data, tag.encode(ANY_DRIVE), Cause::Metadata)?;
        if written {
            self.records.programs = self.counts.programs;
            if let Some(changes) = self.records.changes.get_mut(segment as usize) {
                *changes = 0;
            }
        }
        Ok(written)
    }
}
