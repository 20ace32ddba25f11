//! Traces: what applications asked a file system for, and when.
//!
//! Invariant: a trace says all that its replay needs, by paths and offsets; what files hold follows from the replay.

pub mod phone;

/// What is asked of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Read {
        offset: u64,
        bytes: u64,
    },
    /// Makes the file, if there is none.
    Write {
        offset: u64,
        bytes: u64,
    },
    /// Makes what was written before durable.
    Sync,
    Remove,
}

/// Something that is asked of a file of the root directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Since the trace began, ns.
    pub at_ns: u64,
    pub file: String,
    pub op: Op,
}

/// Requests in the order of their times, and what must be there before the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Files and their lengths, bytes.
    pub before: Vec<(String, u64)>,
    pub requests: Vec<Request>,
    /// How long it lasts, ns.
    pub lasts_ns: u64,
}

/// Pauses up to this are no idle time, ns: FlexFS's T_wait.
const WAIT_NS: u64 = 1_000_000_000;

/// A trace in figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Reads and writes.
    pub requests: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// The part of its time that lies in pauses longer than a second.
    pub idle_share: f64,
}

impl Trace {
    pub fn summary(&self) -> Summary {
        let (mut requests, mut read_bytes, mut written_bytes) = (0, 0, 0);
        for Request { op, .. } in &self.requests {
            match op {
                Op::Read { bytes, .. } => read_bytes += bytes,
                Op::Write { bytes, .. } => written_bytes += bytes,
                Op::Sync | Op::Remove => continue,
            }
            requests += 1;
        }
        let ends = self.requests.iter().map(|request| request.at_ns).chain([self.lasts_ns]);
        let starts = [0].into_iter().chain(self.requests.iter().map(|request| request.at_ns));
        let idle_ns: u64 = ends.zip(starts).map(|(end, start)| end - start).filter(|&pause| pause > WAIT_NS).sum();
        Summary { requests, read_bytes, written_bytes, idle_share: idle_ns as f64 / self.lasts_ns.max(1) as f64 }
    }
}
