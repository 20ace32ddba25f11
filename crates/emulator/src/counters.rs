//! What a chip counts: operations by mode, by cause and by page type, and the flash time they cost.
//!
//! Invariant: every operation that reaches the cells is counted once, and its cost is in `flash_ns` exactly as the
//! profile prices it; waiting is not flash time.

use nand::{Cause, CellMode};
use serde::Serialize;

/// A number for each [`Cause`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ByCause {
    /// Data a caller reads or writes.
    pub host: u64,
    /// The file system's own structures.
    pub metadata: u64,
    /// Moves from SLC to native blocks.
    pub migration: u64,
    /// Garbage collection.
    pub gc: u64,
    /// Wear levelling.
    pub wear_level: u64,
}

impl ByCause {
    /// The number for one cause.
    pub fn get(&self, cause: Cause) -> u64 {
        match cause {
            Cause::Host => self.host,
            Cause::Metadata => self.metadata,
            Cause::Migration => self.migration,
            Cause::Gc => self.gc,
            Cause::WearLevel => self.wear_level,
        }
    }

    /// The sum over all causes.
    pub fn total(&self) -> u64 {
        Cause::ALL.iter().map(|&cause| self.get(cause)).sum()
    }

    fn add(&mut self, cause: Cause, amount: u64) {
        let slot = match cause {
            Cause::Host => &mut self.host,
            Cause::Metadata => &mut self.metadata,
            Cause::Migration => &mut self.migration,
            Cause::Gc => &mut self.gc,
            Cause::WearLevel => &mut self.wear_level,
        };
        *slot += amount;
    }
}

/// One kind of operation, by mode and cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OpCounts {
    /// On blocks in SLC mode.
    pub slc: ByCause,
    /// On blocks in native mode, and on blocks that have no mode because they are erased.
    pub native: ByCause,
    /// Of those on native blocks: by level on the word line, LSB first. Erases are not split.
    pub native_by_level: [u64; 4],
    /// Flash time spent on them, nanoseconds.
    pub flash_ns: u64,
}

impl OpCounts {
    /// The counts of one mode.
    pub fn mode(&self, mode: CellMode) -> &ByCause {
        match mode {
            CellMode::Slc => &self.slc,
            CellMode::Native => &self.native,
        }
    }

    /// All of them for one cause.
    pub fn cause(&self, cause: Cause) -> u64 {
        self.slc.get(cause) + self.native.get(cause)
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.slc.total() + self.native.total()
    }

    /// Counts an operation: on a page of this level, where that is known, for this cause, of so many ns.
    pub fn add(&mut self, mode: CellMode, level: Option<usize>, cause: Cause, cost_ns: u64) {
        match mode {
            CellMode::Slc => self.slc.add(cause, 1),
            CellMode::Native => {
                self.native.add(cause, 1);
                if let Some(slot) = level.and_then(|level| self.native_by_level.get_mut(level)) {
                    *slot += 1;
                }
            }
        }
        self.flash_ns += cost_ns;
    }
}

/// The counts of a chip since it was made or opened, or since its counters were last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Page reads, partial ones included.
    pub reads: OpCounts,
    /// Programs of a unit.
    pub programs: OpCounts,
    /// Erases.
    pub erases: OpCounts,
    /// Of the reads: those of spare bytes alone.
    pub spare_only_reads: u64,
    /// Data bytes that reads returned.
    pub read_bytes: u64,
    /// Data bytes that programs wrote.
    pub programmed_bytes: u64,
    /// Raw bit errors that the ECC engine corrected.
    pub corrected_bits: u64,
    /// Reads that failed.
    pub uncorrectable_reads: u64,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Barriers waited for.
    pub barriers: u64,
    /// Waits for a single die.
    pub settles: u64,
    /// Power cuts.
    pub power_cuts: u64,
    /// Flash time: the sum of the costs of all operations, nanoseconds.
    pub flash_ns: u64,
    /// What all operations took, nanojoules; 0 where the profile does not tell.
    pub energy_nj: u64,
}
