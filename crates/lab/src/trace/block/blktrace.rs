//! What blkparse prints: `MAJOR,MINOR CPU SEQUENCE SECONDS.NANOSECONDS PID ACTION RWBS SECTOR + SECTORS [PROCESS]`, and a summary.
//!
//! Of a request's many actions one counts: that it was queued, or, in a trace without such, that it was issued. Invariant: a
//! line of another action is passed over only if its action is known.

use super::super::{TraceError, lines};
use super::columns::{number, seconds_ns, sectors};
use super::gather::Gathered;
use super::{BlockOp, BlockTraceContents};

const QUEUED: &str = "Q";
const ISSUED: &str = "D";
/// All others that blkparse prints.
const OTHERS: [&str; 15] = ["A", "B", "C", "F", "G", "I", "M", "P", "R", "S", "T", "U", "UT", "X", "m"];
/// How the lines of the summary begin that come first.
const SUMMARY: [&str; 2] = ["CPU", "Total"];

pub fn begins(line: &str) -> bool {
    let device = line.split_whitespace().next().and_then(|word| word.split_once(','));
    device.is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok())
        && line.contains(char::is_whitespace)
}

pub fn read(text: &str) -> Result<BlockTraceContents, TraceError> {
    let (mut queued, mut issued) = (None::<Gathered>, Gathered::default());
    let mut is_summary = false;
    for (line, text) in lines(text) {
        let wrong = |reason: String| TraceError { line, reason };
        is_summary = is_summary || SUMMARY.iter().any(|begin| text.starts_with(begin));
        if is_summary {
            if begins(text) {
                return Err(wrong("an event comes after the summary".into()));
            }
            continue;
        }
        let event = Event::new(text).map_err(wrong)?;
        let gathered = match event.action {
            QUEUED => queued.get_or_insert_default(),
            ISSUED => &mut issued,
            _ => continue,
        };
        event.add_to(gathered).map_err(wrong)?;
    }
    Ok(queued.unwrap_or(issued).contents())
}

/// A line.
struct Event<'a> {
    device: &'a str,
    at_ns: i128,
    action: &'a str,
    kind: &'a str,
    rest: Vec<&'a str>,
}

impl<'a> Event<'a> {
    fn new(line: &'a str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let mut next = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
        let device = next("the device")?;
        if !begins(line) {
            return Err(format!("the device is not MAJOR,MINOR: {device:?}"));
        }
        let _: u32 = number(next("the CPU")?, "the CPU")?;
        let _: u64 = number(next("the sequence")?, "the sequence")?;
        let at_ns = seconds_ns(next("the time")?, "the time")?;
        let _: u32 = number(next("the process")?, "the process")?;
        let (action, kind) = (next("the action")?, next("the RWBS")?);
        if ![QUEUED, ISSUED].contains(&action) && !OTHERS.contains(&action) {
            return Err(format!("no action is called {action:?}"));
        }
        Ok(Self { device, at_ns, action, kind, rest: words.collect() })
    }

    fn add_to(&self, gathered: &mut Gathered) -> Result<(), String> {
        let (flushes, op) = kind(self.kind)?;
        if flushes {
            gathered.add(self.at_ns, self.device, BlockOp::Flush, 0, 0)?;
        }
        let has_range = match self.rest[..] {
            // A flush alone is a write of nothing.
            [] => !flushes,
            [process, ..] if process.starts_with('[') => !flushes,
            // A command of its own: its length, and its bytes.
            [_, command, ..] => !command.starts_with('('),
            [_] => true,
        };
        let Some(op) = op.filter(|_| has_range) else { return Ok(()) };
        let (offset, bytes) = self.range()?;
        gathered.add(self.at_ns, self.device, op, offset, bytes)
    }

    fn range(&self) -> Result<(u64, u64), String> {
        let [sector, "+", count, ..] = self.rest[..] else {
            return Err(format!("there is no SECTOR + SECTORS: {:?}", self.rest.join(" ")));
        };
        let offset = sectors(number(sector, "the sector")?, "the sector")?;
        Ok((offset, sectors(number(count, "the length")?, "the length")?))
    }
}

/// Whether a request flushes first, and what it does then, if that is to a range.
fn kind(text: &str) -> Result<(bool, Option<BlockOp>), String> {
    let wrong = || format!("the RWBS is none: {text:?}");
    let (flushes, rest) = text.strip_prefix('F').map_or((false, text), |rest| (true, rest));
    let op = match rest.chars().next() {
        Some('R') => Some(BlockOp::Read),
        Some('W') => Some(BlockOp::Write),
        Some('D') => Some(BlockOp::Trim),
        // A command of its own, or a flush.
        Some('N') => None,
        Some('F' | 'A' | 'S' | 'M') | None if flushes => None,
        _ => return Err(wrong()),
    };
    // It bypasses a cache, reads ahead, is waited for, is of the file system, erases securely, is atomic.
    let rest = if op.is_some() || rest.starts_with('N') { rest.get(1..).unwrap_or_default() } else { rest };
    rest.chars().all(|flag| "FASMEU".contains(flag)).then_some((flushes, op)).ok_or_else(wrong)
}
