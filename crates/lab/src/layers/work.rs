//! What a translation layer did, of its counts. Invariant: all of it was done between two moments, by whatever cause.

use ftl::Counts;
use serde::Serialize;

/// Flash operations, and what they were done for.
#[derive(Clone, Copy, Debug, Default, Serialize)]
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
}
