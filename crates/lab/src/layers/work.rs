//! What a translation layer did, of its counts. Invariant: all of it was done between two moments, by whatever cause.

use ftl::Counts;
use serde::{Deserialize, Serialize};

/// Flash operations, and what they were done for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Work {
    pub programs: u64,
    pub reads: u64,
    pub erases: u64,
    /// Pages programmed for each sector written.
    pub write_amplification: f64,
    pub switches: u64,
    pub partial_merges: u64,
    /// Merges, or blocks cleaned.
    pub merges: u64,
    pub map_writes: u64,
    pub map_copies: u64,
    pub map_swaps: u64,
}

impl Work {
    /// What was done until `after`, since `before`, for so many sectors written.
    pub fn between(before: &Counts, after: &Counts, sectors_written: u64) -> Self {
        let programs = after.all_programs() - before.all_programs();
        Self {
            programs,
            reads: after.all_reads() - before.all_reads(),
            erases: after.all_erases() - before.all_erases(),
            write_amplification: programs as f64 / (sectors_written as f64).max(1.0),
            switches: after.switches - before.switches,
            partial_merges: after.partial_merges - before.partial_merges,
            merges: after.merges - before.merges,
            map_writes: after.map_writes - before.map_writes,
            map_copies: after.map_copies - before.map_copies,
            map_swaps: after.swaps - before.swaps,
        }
    }

    /// Erases beyond one for each block of so many pages that the host wrote (the log-block paper's §IV).
    pub fn extra_erases(&self, sectors_written: u64, block_pages: u32) -> f64 {
        self.erases as f64 - sectors_written as f64 / f64::from(block_pages)
    }

    /// Pages programmed beyond those that the host wrote (the log-block paper's §IV).
    pub fn extra_writes(&self, sectors_written: u64) -> f64 {
        self.programs as f64 - sectors_written as f64
    }
}
