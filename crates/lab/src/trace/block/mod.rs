//! Traces of blocks: what a host asked of disks, and when. This is the room of every reader of them.
//!
//! Invariant: requests are in the order of their arrival, the first at 0, and each is of whole sectors of 512 bytes. A line
//! that makes no sense is an error with its number and the reason; a request for nothing is counted.

mod blktrace;
mod columns;
mod disksim;
mod gather;
mod msps;
mod msr;
mod own;
mod systor;

pub use own::write;

use card::record::{RecordedDevice, TRACE_SECTOR_BYTES};

use super::{NOTHING, ReadOptions, SAYS_ITS_UNIT, TimeUnit, TraceError, first_line, lines, text_of};

/// Bytes of a trace's sector.
pub const SECTOR_BYTES: u64 = TRACE_SECTOR_BYTES;

/// What is asked of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOp {
    Read,
    Write,
    /// What the range holds is no longer needed.
    Trim,
    /// Makes what was written before durable; has no range.
    Flush,
}

/// Something that is asked of a range of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// Since the first request, ns.
    pub at_ns: u64,
    /// Disks are numbered in the order in which they are asked first.
    pub disk: u32,
    pub op: BlockOp,
    pub offset: u64,
    pub bytes: u64,
}

/// Requests in the order of their arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockTrace {
    pub requests: Vec<BlockRequest>,
    /// The device of a recording, of which the addresses are.
    pub device: Option<RecordedDevice>,
}

/// A trace that was read, and how much of its file is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockTraceContents {
    pub trace: BlockTrace,
    /// Requests of length 0, which are passed over.
    pub empty_requests: u64,
}

/// How the lines of a format are read.
enum FormatReader {
    /// The format says the unit of its times.
    OfOwnUnit(fn(&str) -> Result<BlockTraceContents, TraceError>),
    /// A caller may say the unit.
    OfGivenUnit(fn(&str, Option<TimeUnit>) -> Result<BlockTraceContents, TraceError>),
}

/// A format: whether a line begins like one, and its reader.
struct Format {
    begins: fn(&str) -> bool,
    reader: FormatReader,
}

const FORMATS: [Format; 6] = [
    Format { begins: own::begins, reader: FormatReader::OfOwnUnit(own::read) },
    Format { begins: systor::begins, reader: FormatReader::OfOwnUnit(systor::read) },
    Format { begins: msps::begins, reader: FormatReader::OfOwnUnit(msps::read) },
    Format { begins: msr::begins, reader: FormatReader::OfOwnUnit(msr::read) },
    Format { begins: blktrace::begins, reader: FormatReader::OfOwnUnit(blktrace::read) },
    Format { begins: disksim::begins, reader: FormatReader::OfGivenUnit(disksim::read) },
];

/// Whether it begins like a block trace, after a byte-order mark and comments.
pub fn begins(bytes: &[u8]) -> bool {
    first_line(bytes).is_some_and(|line| FORMATS.iter().any(|format| (format.begins)(line)))
}

/// Reads a block trace as [`read_with`] does, without options.
///
/// # Errors
/// Those of [`read_with`].
pub fn read(bytes: &[u8]) -> Result<BlockTrace, TraceError> {
    read_with(bytes, &ReadOptions::default()).map(|contents| contents.trace)
}

/// Reads a block trace. Its first line tells the format: FlexFS's own, that of SYSTOR '17, of Microsoft's production
/// servers, of MSR Cambridge, of blkparse, or DiskSim's columns. Empty lines, comments that begin with `#` or `//`, and
/// a byte-order mark of UTF-8 are passed over.
///
/// # Errors
/// The first line that makes no sense, and why; text that is not UTF-8; a unit of time for a format that says its unit
/// itself.
pub fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<BlockTraceContents, TraceError> {
    let text = text_of(bytes)?;
    let (line, first) = lines(text).next().ok_or(TraceError { line: 1, reason: NOTHING.into() })?;
    let format = FORMATS.iter().find(|format| (format.begins)(first));
    let format = format.ok_or_else(|| TraceError {
        line,
        reason: "it begins like no block trace: not like {\"flexfs_block_trace\":1,…}, SYSTOR '17's header, BeginHeader, the 7 \
                 columns of MSR Cambridge, the device that blkparse prints, or the 5 numbers of DiskSim"
            .into(),
    })?;
    match (&format.reader, options.time_unit) {
        (FormatReader::OfOwnUnit(read), None) => read(text),
        (FormatReader::OfOwnUnit(_), Some(_)) => Err(TraceError { line, reason: SAYS_ITS_UNIT.into() }),
        (FormatReader::OfGivenUnit(read), unit) => read(text, unit),
    }
}
