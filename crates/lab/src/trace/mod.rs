//! Traces: what applications asked a file system for, and when. This is the room of every reader of them.
//!
//! Invariant: a trace says all that its replay needs, by paths and offsets; what files hold follows from the replay. A line
//! that makes no sense is an error with its number and the reason; a call that a caller lets pass over is counted.

pub mod block;
mod calls;
mod lines;
mod mobigen;
mod names;
mod options;
pub mod phone;
mod recorder;
mod strace;
mod text;
mod unpack;

pub use options::{ReadOptions, TimeUnit, TimeUnitError};
pub use recorder::{Done, Recorder};
pub use text::write;
pub use unpack::{UnpackError, unpacked};

use lines::{first_line, lines, text_of};

/// What is asked of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Makes an empty file, if there is none.
    Make,
    MakeDir,
    /// Gives the file another length.
    Truncate {
        bytes: u64,
    },
    Rename {
        to: String,
    },
    /// Lets two names change places.
    Exchange {
        to: String,
    },
    /// Gives a file one more name.
    Link {
        to: String,
    },
    /// Makes a symbolic link.
    Symlink {
        target: String,
    },
    /// Makes a hole.
    Punch {
        offset: u64,
        bytes: u64,
    },
    /// Takes space, and makes the file as long as that.
    Allocate {
        offset: u64,
        bytes: u64,
    },
    /// Changes times, owner, mode or extended attributes.
    Attributes,
    /// Removes a file or an empty directory, if it is there.
    Remove,
}

/// Something that is asked of a file, by its path below the root; a sync may name the root itself, as [`ROOT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Since the trace began, ns.
    pub at_ns: u64,
    pub file: String,
    pub op: Op,
}

/// The root's path.
pub const ROOT: &str = ".";

/// Requests in the order of their times, and what must be there before the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Files and their lengths, bytes.
    pub before: Vec<(String, u64)>,
    pub requests: Vec<Request>,
    /// How long it lasts, ns.
    pub lasts_ns: u64,
}

/// A line of a trace that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TraceError {
    /// From 1 on.
    pub line: usize,
    pub reason: String,
}

/// A trace that was read, and how much of its file is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContents {
    pub trace: Trace,
    /// Calls that are not known, which [`ReadOptions::skip_unknown`] passes over.
    pub unknown_calls: u64,
}

/// Whether it begins like a trace of files, after a byte-order mark and comments.
pub fn begins(bytes: &[u8]) -> bool {
    first_line(bytes).is_some_and(|line| line.starts_with('{') || mobigen::begins(line) || strace::begins(line))
}

/// Reads a trace as [`read_with`] does, without options.
///
/// # Errors
/// Those of [`read_with`].
pub fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
    read_with(bytes, &ReadOptions::default()).map(|contents| contents.trace)
}

/// Reads a trace. Its first line tells the format: that of `flexfs mount --record`, of MobiGen, or of `strace -f -ttt`.
/// Empty lines, comments that begin with `#` or `//`, and a byte-order mark of UTF-8 are passed over.
///
/// # Errors
/// The first line that makes no sense, and why; text that is not UTF-8; a unit of time, which every format says itself.
pub fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<TraceContents, TraceError> {
    let text = text_of(bytes)?;
    let Some((line, first)) = lines(text).next() else {
        return Err(TraceError { line: 1, reason: NOTHING.into() });
    };
    if options.time_unit.is_some() && begins(bytes) {
        return Err(TraceError { line, reason: SAYS_ITS_UNIT.into() });
    }
    let in_full = |trace| TraceContents { trace, unknown_calls: 0 };
    if first.starts_with('{') {
        return text::read(lines(text)).map(in_full);
    }
    if mobigen::begins(first) {
        return mobigen::read(lines(text), options.skip_unknown);
    }
    if strace::begins(first) {
        return strace::read(lines(text)).map(in_full);
    }
    let reason = "it begins like no trace: not like {\"flexfs_trace\":1,…}, MobiGen's THREAD MICROSECONDS CALL, or strace -f \
                  -ttt's PID SECONDS CALL(";
    Err(TraceError { line, reason: reason.into() })
}

/// Why a file without a line that says something is refused.
const NOTHING: &str = "there is nothing in it";
/// Why a unit of time is refused where the format gives it.
const SAYS_ITS_UNIT: &str = "a trace of this format says its unit of time itself: leave --time-unit away";

/// The longest file of a trace, bytes: more is no length but a number of something else.
const FILE_BYTES_MAX: u64 = 1 << 40;

/// Why so many bytes cannot be asked for at that place of a file, if they cannot.
fn wrong_range(offset: u64, bytes: u64) -> Option<String> {
    let end = offset.checked_add(bytes).filter(|&end| end <= FILE_BYTES_MAX);
    end.is_none().then(|| format!("{bytes} bytes at {offset} are beyond the longest file, {FILE_BYTES_MAX} bytes"))
}

/// The most that Linux moves in one call, bytes: a page less than 2 GiB.
const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;

/// Why so many bytes cannot be read or written at once there, if they cannot.
fn wrong_transfer(offset: u64, bytes: u64) -> Option<String> {
    let too_many = || format!("no call moves {bytes} bytes, more than {TRANSFER_BYTES_MAX}");
    wrong_range(offset, bytes).or_else(|| (bytes > TRANSFER_BYTES_MAX).then(too_many))
}

/// Why a path names no file below the root, if it does not.
fn wrong_path(path: &str) -> Option<&'static str> {
    let mut parts = path.split('/');
    match () {
        () if path.is_empty() => Some("a path is empty"),
        () if path.contains('\0') => Some("a path contains a zero byte"),
        () if parts.any(|part| part.is_empty() || part == "." || part == "..") => {
            Some("a path has an empty part, or . or .. in it")
        }
        () => None,
    }
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
            match *op {
                Op::Read { bytes, .. } => read_bytes += bytes,
                Op::Write { bytes, .. } => written_bytes += bytes,
                _ => continue,
            }
            requests += 1;
        }
        let ends = self.requests.iter().map(|request| request.at_ns).chain([self.lasts_ns]);
        let starts = [0].into_iter().chain(self.requests.iter().map(|request| request.at_ns));
        let idle_ns: u64 = ends.zip(starts).map(|(end, start)| end - start).filter(|&pause| pause > WAIT_NS).sum();
        Summary { requests, read_bytes, written_bytes, idle_share: idle_ns as f64 / self.lasts_ns.max(1) as f64 }
    }
}
