//! Recording: a line for each request as it was accepted, in FlexFS's own format of block traces.
//!
//! Invariant: the lines are in the order in which the device was asked; a range that begins or ends within 512 bytes is
//! told rounded outwards. After a line that could not be written no other is, and the end of the recording says so.

use std::io::{self, Write};
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// The version of the format.
pub const TRACE_VERSION: u32 = 1;
/// Bytes of a sector of the format.
pub const TRACE_SECTOR_BYTES: u64 = 512;

/// The device that requests were made to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedDevice {
    /// Its own sectors.
    pub sectors: u64,
    /// Bytes of each.
    pub sector_bytes: u64,
    /// The name of the scheme.
    pub scheme: String,
    /// The name of the chip's profile.
    pub profile: String,
    pub chip_bytes: u64,
    pub extra_blocks: u32,
    pub logs: u32,
    pub map_blocks: u32,
}

/// The first line.
#[derive(Serialize)]
struct RecordingHead<'a> {
    flexfs_block_trace: u32,
    time_unit: &'static str,
    sector_bytes: u64,
    device: &'a RecordedDevice,
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordedOp {
    Read,
    Write,
    Trim,
    Flush,
}

/// A request.
#[derive(Serialize)]
struct RecordingLine {
    at: u64,
    op: RecordedOp,
    #[serde(skip_serializing_if = "Option::is_none")]
    sector: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sectors: Option<u64>,
}

/// Writes requests down.
pub struct RequestRecorder {
    out: Box<dyn Write + Send>,
    /// When the first request came.
    began: Option<Instant>,
    failed: Option<io::Error>,
}

impl RequestRecorder {
    /// Begins a recording of requests to that device.
    ///
    /// # Errors
    /// The first line could not be written.
    pub fn new(mut out: Box<dyn Write + Send>, device: &RecordedDevice) -> io::Result<Self> {
        let head = RecordingHead {
            flexfs_block_trace: TRACE_VERSION,
            time_unit: "ns",
            sector_bytes: TRACE_SECTOR_BYTES,
            device,
        };
        writeln!(out, "{}", serde_json::to_string(&head)?)?;
        Ok(Self { out, began: None, failed: None })
    }

    /// A request for so many bytes from an offset on; one for nothing leaves no line, unless it is a flush.
    pub fn record(&mut self, op: RecordedOp, offset: u64, length: u64) {
        if self.failed.is_some() || length == 0 && op != RecordedOp::Flush {
            return;
        }
        let at = u64::try_from(self.began.get_or_insert_with(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX);
        let first = offset / TRACE_SECTOR_BYTES;
        let sectors = (offset + length).div_ceil(TRACE_SECTOR_BYTES) - first;
        let range = (op != RecordedOp::Flush).then_some((first, sectors));
        let line = RecordingLine { at, op, sector: range.map(|range| range.0), sectors: range.map(|range| range.1) };
        let written = serde_json::to_string(&line).map_err(io::Error::from);
        self.failed = written.and_then(|line| writeln!(self.out, "{line}")).err();
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// A line could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)?;
        self.out.flush()
    }
}
