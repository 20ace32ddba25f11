//! A trace played on a new volume, and how long what it asks for took. Invariant: every request of the trace is asked at its
//! time, and counted once.

use serde::{Deserialize, Serialize};

use super::{PlayError, Setting, Traced};
use crate::bench::{Distribution, Waits};
use crate::trace::{Op, Trace};

/// How a trace was answered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Replayed {
    pub requests: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Responses of reads, of writes, of syncs, and of what changes names and lengths.
    pub reads: Distribution,
    pub writes: Distribution,
    pub syncs: Distribution,
    pub names: Distribution,
    /// Mean response of all, µs.
    pub mean_us: f64,
    /// Pages programmed for callers, in SLC and natively, and for everything else.
    pub slc_pages: u64,
    pub native_pages: u64,
    pub internal_pages: u64,
    pub erases: u64,
    /// Time the chip was busy, s.
    pub flash_s: f64,
}

/// Plays a trace on a new volume.
///
/// # Errors
/// What the volume refuses, and what it does not give back as it was written.
pub fn replay(setting: &Setting, trace: &Trace) -> Result<Replayed, PlayError> {
    let mut traced = Traced::new(setting)?;
    traced.prepare(trace)?;
    let start_ns = traced.player.now_ns();
    let before = *traced.player.look().chip().counters();
    let [mut reads, mut writes, mut syncs, mut names] = [(); 4].map(|()| Waits::default());
    let (mut replayed, mut total_ns) = (Replayed::default(), 0);
    for request in &trace.requests {
        let response_ns = traced.request(start_ns, request)?.time_ns();
        total_ns += response_ns;
        let waits = match request.op {
            Op::Read { bytes, .. } => {
                replayed.read_bytes += bytes;
                &mut reads
            }
            Op::Write { bytes, .. } => {
                replayed.written_bytes += bytes;
                &mut writes
            }
            Op::Sync => &mut syncs,
            _ => &mut names,
        };
        waits.add(response_ns);
    }
    let lasted_ns = (start_ns + trace.lasts_ns).max(traced.player.now_ns());
    traced.player.rest_until(lasted_ns)?;
    let after = *traced.player.look().chip().counters();
    traced.verify()?;
    let (programs, earlier) = (after.programs, before.programs);
    let all = |counts: &emulator::OpCounts| counts.slc.total() + counts.native.total();
    let slc_pages = programs.slc.host - earlier.slc.host;
    let native_pages = programs.native.host - earlier.native.host;
    Ok(Replayed {
        requests: trace.requests.len() as u64,
        reads: reads.distribution(),
        writes: writes.distribution(),
        syncs: syncs.distribution(),
        names: names.distribution(),
        mean_us: total_ns as f64 / 1e3 / trace.requests.len().max(1) as f64,
        slc_pages,
        native_pages,
        internal_pages: all(&programs) - all(&earlier) - slc_pages - native_pages,
        erases: all(&after.erases) - all(&before.erases),
        flash_s: (after.flash_ns - before.flash_ns) as f64 / 1e9,
        ..replayed
    })
}
