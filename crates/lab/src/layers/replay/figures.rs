//! The figures of a trace that was played. Invariant: processor time alone depends on the machine.

use serde::Serialize;

use super::super::Work;
use super::config::TracePlacement;
use crate::bench::Distribution;

/// How a device answered a trace.
#[derive(Clone, Debug, Serialize)]
pub struct BlocksReplayed {
    pub scheme: &'static str,
    pub chip: String,
    pub chip_bytes: u64,
    pub sectors: u64,
    pub sector_bytes: u64,
    pub extra_blocks: u32,
    pub logs: u32,
    pub map_blocks: u32,
    pub placement: TracePlacement,
    /// Whether every sector was written before the trace.
    pub full: bool,
    /// Whether the trace was played once before it was counted.
    pub warm_up: bool,
    /// Requests of the trace, and what of its disks they touch.
    pub requests: u64,
    pub touched_bytes: u64,
    /// Sectors written before the trace began.
    pub sectors_before: u64,
    pub sectors_read: u64,
    pub sectors_written: u64,
    pub sectors_trimmed: u64,
    /// Sectors read first since a part of them was written.
    pub partial_sectors: u64,
    #[serde(flatten)]
    pub work: Work,
    /// Erases beyond one for each block that the host wrote (the log-block paper's §IV).
    pub extra_erases: f64,
    /// Pages programmed beyond the host's.
    pub extra_writes: f64,
    /// The sum of the prices of all operations.
    pub flash_s: f64,
    /// From the beginning of the counting until the last operation had ended; idle time counts too.
    pub elapsed_s: f64,
    /// Processor time, the emulator's and that of the check included.
    pub cpu_s: f64,
    pub read_responses: Distribution,
    pub write_responses: Distribution,
    /// With merges in idle time: how long background steps took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Distribution>,
    /// Memory the scheme takes, one page buffer left out.
    pub ram_bytes: u64,
    /// Page reads of an opening after it.
    pub open_reads: u64,
    /// Sectors that were compared once more after that opening.
    pub sectors_verified: u64,
}
