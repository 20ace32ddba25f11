//! Traces of blocks: what a host asked of disks, and when. This is the room of every reader of them.
//!
//! Invariant: requests are in the order of their arrival, the first at 0, and each is of whole sectors of 512 bytes. A line
//! that makes no sense is an error with its number and the reason, never left out.

mod blktrace;
mod columns;
mod disksim;
mod gather;
mod msps;
mod msr;
mod own;
mod systor;

pub use own::write;

use super::{TraceError, first_line, lines, text_of};

/// Bytes of a trace's sector.
pub const SECTOR_BYTES: u64 = 512;

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
}

/// A format: whether a line begins like one, and its reader.
struct Format {
    begins: fn(&str) -> bool,
    read: fn(&str) -> Result<BlockTrace, TraceError>,
}

const FORMATS: [Format; 6] = [
    Format { begins: own::begins, read: own::read },
    Format { begins: systor::begins, read: systor::read },
    Format { begins: msps::begins, read: msps::read },
    Format { begins: msr::begins, read: msr::read },
    Format { begins: blktrace::begins, read: blktrace::read },
    Format { begins: disksim::begins, read: disksim::read },
];

/// Whether it begins like a block trace, after a byte-order mark and comments.
pub fn begins(bytes: &[u8]) -> bool {
    first_line(bytes).is_some_and(|line| FORMATS.iter().any(|format| (format.begins)(line)))
}

/// Reads a block trace, of whichever format its first line says: FlexFS's own, that of SYSTOR '17, of Microsoft's production
/// servers, of MSR Cambridge, what blkparse prints, or DiskSim's columns. Empty lines, comments that begin with `#` or
/// `//`, and a byte-order mark of UTF-8 are passed over.
///
/// # Errors
/// The first line that makes no sense, and why.
pub fn read(bytes: &[u8]) -> Result<BlockTrace, TraceError> {
    let text = text_of(bytes)?;
    let (line, first) = lines(text).next().ok_or(TraceError { line: 1, reason: "there is nothing in it".into() })?;
    let format = FORMATS.iter().find(|format| (format.begins)(first));
    let format = format.ok_or_else(|| TraceError {
        line,
        reason: "it begins like no block trace: not like {\"flexfs_block_trace\":1,…}, SYSTOR '17's header, BeginHeader, the 7 \
                 columns of MSR Cambridge, the device that blkparse prints, or the 5 numbers of DiskSim"
            .into(),
    })?;
    (format.read)(text)
}
