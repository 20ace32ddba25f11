//! The requests of a trace as its lines are gone through.
//!
//! Invariant: a request that no disk takes is refused where it is met, and a request for nothing is counted; in the end
//! all others are in the order of their arrival.

use std::collections::BTreeMap;

use super::super::{TraceError, lines};
use super::{BlockOp, BlockRequest, BlockTrace, BlockTraceContents, SECTOR_BYTES};

/// The longest disk, bytes: as many sectors as 48 bits can name.
const DISK_BYTES_MAX: u64 = SECTOR_BYTES << 48;
/// The most that a request is for, bytes.
const REQUEST_BYTES_MAX: u64 = 4 << 30;

/// No trace lasts longer, ns: 100 years.
const LASTS_NS_MAX: i128 = 100 * 365 * 86_400 * 1_000_000_000;

/// A request with its time by the trace's own clock.
struct Timed {
    at_ns: i128,
    request: BlockRequest,
}

/// What was met so far.
#[derive(Default)]
pub struct Gathered {
    disks: BTreeMap<String, u32>,
    all: Vec<Timed>,
    empty_requests: u64,
}

impl Gathered {
    /// A request to a disk of that name, or why no disk takes it.
    pub fn add(&mut self, at_ns: i128, disk: &str, op: BlockOp, offset: u64, bytes: u64) -> Result<(), String> {
        if bytes == 0 && op != BlockOp::Flush {
            self.empty_requests += 1;
            return Ok(());
        }
        wrong_range(op, offset, bytes).map_or(Ok(()), Err)?;
        let first_ns = self.all.first().map_or(at_ns, |first| first.at_ns);
        if (at_ns - first_ns).abs() > LASTS_NS_MAX {
            return Err("its time is more than 100 years from that of the first".into());
        }
        let next = self.disks.len() as u32;
        let disk = match self.disks.get(disk) {
            Some(&known) => known,
            None => *self.disks.entry(disk.to_owned()).or_insert(next),
        };
        self.all.push(Timed { at_ns, request: BlockRequest { at_ns: 0, disk, op, offset, bytes } });
        Ok(())
    }

    /// The same, of a format whose lines are in the order of their times.
    pub fn add_next(&mut self, at_ns: i128, disk: &str, op: BlockOp, offset: u64, bytes: u64) -> Result<(), String> {
        let last_ns = self.all.last().map_or(at_ns, |last| last.at_ns);
        if at_ns < last_ns {
            return Err(format!("its time is before that of the line above: {} ns", last_ns - at_ns));
        }
        self.add(at_ns, disk, op, offset, bytes)
    }

    /// Goes through lines, and then gives the trace of all.
    pub fn through(
        mut self,
        text: &str,
        skipped: usize,
        mut line: impl FnMut(&mut Self, &str) -> Result<(), String>,
    ) -> Result<BlockTraceContents, TraceError> {
        for (number, text) in lines(text).skip(skipped) {
            line(&mut self, text).map_err(|reason| TraceError { line: number, reason })?;
        }
        Ok(self.contents())
    }

    /// All of them, those of one time in the order in which they were met.
    pub fn contents(mut self) -> BlockTraceContents {
        self.all.sort_by_key(|timed| timed.at_ns);
        let first_ns = self.all.first().map_or(0, |first| first.at_ns);
        let mut numbers = BTreeMap::new();
        let numbered = |Timed { at_ns, request }: Timed| {
            let next = numbers.len() as u32;
            let disk = *numbers.entry(request.disk).or_insert(next);
            // No two are further apart than twice the longest trace.
            BlockRequest { at_ns: u64::try_from(at_ns - first_ns).unwrap_or(u64::MAX), disk, ..request }
        };
        let requests = self.all.into_iter().map(numbered).collect();
        BlockTraceContents { trace: BlockTrace { requests, device: None }, empty_requests: self.empty_requests }
    }
}

/// Why a range of a disk cannot be asked for, if it cannot.
fn wrong_range(op: BlockOp, offset: u64, bytes: u64) -> Option<String> {
    let part = |value: u64| !value.is_multiple_of(SECTOR_BYTES);
    let ends = offset.checked_add(bytes).filter(|&end| end <= DISK_BYTES_MAX);
    match () {
        () if op == BlockOp::Flush => None,
        () if part(offset) => Some(format!("its offset, {offset}, is no multiple of {SECTOR_BYTES} bytes")),
        () if part(bytes) => Some(format!("its length, {bytes}, is no multiple of {SECTOR_BYTES} bytes")),
        () if bytes > REQUEST_BYTES_MAX => {
            Some(format!("no request is for {bytes} bytes, more than {REQUEST_BYTES_MAX}"))
        }
        () if ends.is_none() => {
            Some(format!("{bytes} bytes at {offset} are beyond the longest disk, {DISK_BYTES_MAX}"))
        }
        () => None,
    }
}
