//! A bounded record of what a chip was asked to do.
//!
//! Off unless started. Invariant: never more entries than asked for; what did not fit is counted, not kept.

use nand::{Cause, CellMode};
use serde::Serialize;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceOp {
    /// A page was read.
    Read,
    /// A unit was programmed.
    Program,
    /// A block was erased.
    Erase,
    /// Posted operations were waited for.
    Barrier,
    /// The operation posted to one die was waited for.
    Settle,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When it was accepted, on the virtual clock.
    pub time_ns: u64,
    /// What it was.
    pub op: TraceOp,
    /// The erase block; 0 for a wait.
    pub block: u32,
    /// The page read, the unit programmed, or the die waited for; 0 for others.
    pub index: u32,
    /// The mode it was done in.
    pub mode: CellMode,
    /// Why.
    pub cause: Cause,
}

/// A recorded trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The operations, oldest first.
    pub entries: Vec<TraceEntry>,
    /// Later operations for which there was no room.
    pub dropped: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    trace: Trace,
    capacity: usize,
}

impl Recorder {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { trace: Trace::default(), capacity }
    }

    pub(crate) fn record(&mut self, entry: TraceEntry) {
        if self.trace.entries.len() < self.capacity {
            self.trace.entries.push(entry);
        } else {
            self.trace.dropped += 1;
        }
    }

    pub(crate) fn finish(self) -> Trace {
        self.trace
    }
}
