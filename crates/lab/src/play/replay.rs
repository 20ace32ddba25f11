//! A trace played on a new volume, and how long what it asks for took. Invariant: every request of the trace is asked at its
//! time, and counted once.

use serde::{Deserialize, Serialize};

use super::{PlayError, Setting, Traced};
use crate::bench::{Distribution, Waits};
use crate::trace::{Op, Trace};

/// How the requests of a trace were answered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answered {
    pub requests: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Responses of reads, of writes, of syncs, and of what changes names, lengths and attributes.
    pub reads: Distribution,
    pub writes: Distribution,
    pub syncs: Distribution,
    pub names: Distribution,
    /// Mean response of all, µs.
    pub mean_us: f64,
}

/// Answers as they come.
#[derive(Default)]
pub struct Answers {
    reads: Waits,
    writes: Waits,
    syncs: Waits,
    names: Waits,
    read_bytes: u64,
    written_bytes: u64,
    total_ns: u64,
}

impl Answers {
    /// Counts a request that was answered after that time.
    pub fn add(&mut self, op: &Op, response_ns: u64) {
        let waits = match *op {
            Op::Read { bytes, .. } => {
                self.read_bytes += bytes;
                &mut self.reads
            }
            Op::Write { bytes, .. } => {
                self.written_bytes += bytes;
                &mut self.writes
            }
            Op::Sync => &mut self.syncs,
            _ => &mut self.names,
        };
        waits.add(response_ns);
        self.total_ns += response_ns;
    }

    pub fn told(&self) -> Answered {
        let all = [&self.reads, &self.writes, &self.syncs, &self.names];
        let requests = all.iter().map(|waits| waits.count()).sum();
        let [reads, writes, syncs, names] = all.map(Waits::distribution);
        let mean_us = self.total_ns as f64 / 1e3 / (requests as f64).max(1.0);
        let (read_bytes, written_bytes) = (self.read_bytes, self.written_bytes);
        Answered { requests, read_bytes, written_bytes, reads, writes, syncs, names, mean_us }
    }
}

/// How a new volume answered a trace, and what that took of its chip.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Replayed {
    #[serde(flatten)]
    pub answered: Answered,
    /// Pages programmed for callers, in SLC and natively, and for everything else.
    pub slc_pages: u64,
    pub native_pages: u64,
    pub internal_pages: u64,
    pub erases: u64,
    /// The sum of the prices of all operations, s.
    pub flash_s: f64,
    /// From the arrival of the first request until the end of the trace, or of the last answer, s.
    pub elapsed_s: f64,
    /// What all operations took, mJ; 0 where the profile does not tell.
    pub energy_mj: f64,
}

/// Plays a trace on a new volume; `progress` hears how many requests are answered.
///
/// # Errors
/// What the volume refuses, and what it does not give back as it was written.
pub fn replay(setting: &Setting, trace: &Trace, progress: &dyn Fn(u64)) -> Result<Replayed, PlayError> {
    let mut traced = Traced::new(setting)?;
    traced.prepare(trace)?;
    let start_ns = traced.player.now_ns();
    let before = *traced.player.look().chip().counters();
    let mut answers = Answers::default();
    for (request, done) in trace.requests.iter().zip(1..) {
        answers.add(&request.op, traced.request(start_ns, request)?.time_ns());
        progress(done);
    }
    let lasted_ns = (start_ns + trace.lasts_ns).max(traced.player.now_ns());
    traced.player.rest_until(lasted_ns)?;
    let after = *traced.player.look().chip().counters();
    let elapsed_ns = traced.player.now_ns() - start_ns;
    traced.verify()?;
    let (programs, earlier) = (after.programs, before.programs);
    let all = |counts: &emulator::OpCounts| counts.slc.total() + counts.native.total();
    let slc_pages = programs.slc.host - earlier.slc.host;
    let native_pages = programs.native.host - earlier.native.host;
    Ok(Replayed {
        answered: answers.told(),
        slc_pages,
        native_pages,
        internal_pages: all(&programs) - all(&earlier) - slc_pages - native_pages,
        erases: all(&after.erases) - all(&before.erases),
        flash_s: (after.flash_ns - before.flash_ns) as f64 / 1e9,
        elapsed_s: elapsed_ns as f64 / 1e9,
        energy_mj: (after.energy_nj - before.energy_nj) as f64 / 1e6,
    })
}
