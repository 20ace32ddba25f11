//! FlexFS's own block traces: a line of JSON that says its version, its unit of time, its sectors, and of a recording the
//! device; then a line for each request. Invariant: a trace that is written reads back as the same trace.

use std::io::{self, Write};

use card::record::{RecordedDevice, RecordedOp, TRACE_VERSION};
use serde::{Deserialize, Serialize};

use super::super::text::json_reason;
use super::super::{TimeUnit, TraceError, lines};
use super::gather::Gathered;
use super::{BlockOp, BlockRequest, BlockTrace, BlockTraceContents, SECTOR_BYTES};

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    flexfs_block_trace: u32,
    time_unit: TimeUnit,
    sector_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<RecordedDevice>,
}

/// A request.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at: u64,
    #[serde(default, skip_serializing_if = "is_first")]
    disk: u32,
    op: RecordedOp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sector: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sectors: Option<u64>,
}

fn is_first(disk: &u32) -> bool {
    *disk == 0
}

impl Line {
    fn of(request: &BlockRequest) -> Self {
        let BlockRequest { at_ns: at, disk, op, offset, bytes } = *request;
        let range = (Some(offset / SECTOR_BYTES), Some(bytes / SECTOR_BYTES));
        let (op, (sector, sectors)) = match op {
            BlockOp::Read => (RecordedOp::Read, range),
            BlockOp::Write => (RecordedOp::Write, range),
            BlockOp::Trim => (RecordedOp::Trim, range),
            BlockOp::Flush => (RecordedOp::Flush, (None, None)),
        };
        Self { at, disk, op, sector, sectors }
    }

    fn add_to(&self, gathered: &mut Gathered, head: &Head) -> Result<(), String> {
        let at_ns = i128::from(self.at) * i128::from(head.time_unit.ns());
        u64::try_from(at_ns).map_err(|_| "its time is too large")?;
        let op = match self.op {
            RecordedOp::Read => BlockOp::Read,
            RecordedOp::Write => BlockOp::Write,
            RecordedOp::Trim => BlockOp::Trim,
            RecordedOp::Flush => BlockOp::Flush,
        };
        let (sector, sectors) = match (op, self.sector, self.sectors) {
            (BlockOp::Flush, None, None) => (0, 0),
            (BlockOp::Read | BlockOp::Write | BlockOp::Trim, Some(sector), Some(sectors)) => (sector, sectors),
            _ => return Err("sector and sectors are of read, write and trim, and both must be there".into()),
        };
        let bytes = |sectors: u64| sectors.checked_mul(head.sector_bytes).ok_or("its range is too large");
        gathered.add_next(at_ns, &self.disk.to_string(), op, bytes(sector)?, bytes(sectors)?)
    }
}

/// Writes a trace.
///
/// # Errors
/// What the writer gives.
pub fn write(trace: &BlockTrace, to: &mut impl Write) -> io::Result<()> {
    let head = Head {
        flexfs_block_trace: TRACE_VERSION,
        time_unit: TimeUnit::Ns,
        sector_bytes: SECTOR_BYTES,
        device: trace.device.clone(),
    };
    writeln!(to, "{}", serde_json::to_string(&head)?)?;
    let mut lines = trace.requests.iter().map(Line::of);
    lines.try_for_each(|line| writeln!(to, "{}", serde_json::to_string(&line)?))
}

pub fn begins(line: &str) -> bool {
    line.starts_with('{') && line.contains("\"flexfs_block_trace\"")
}

pub fn read(text: &str) -> Result<BlockTraceContents, TraceError> {
    let Some((line, first)) = lines(text).next() else { return Ok(BlockTraceContents::default()) };
    let head = head(first).map_err(|reason| TraceError { line, reason })?;
    let mut contents = Gathered::default().through(text, 1, |gathered, text| {
        let line: Line = serde_json::from_str(text).map_err(json_reason)?;
        line.add_to(gathered, &head)
    })?;
    contents.trace.device = head.device;
    Ok(contents)
}

fn head(line: &str) -> Result<Head, String> {
    let head: Head = serde_json::from_str(line).map_err(json_reason)?;
    if head.flexfs_block_trace != TRACE_VERSION {
        return Err(format!("version {} of block traces, and not {TRACE_VERSION}", head.flexfs_block_trace));
    }
    if head.sector_bytes == 0 || !head.sector_bytes.is_multiple_of(SECTOR_BYTES) {
        return Err(format!("sectors are no multiple of {SECTOR_BYTES} bytes: {}", head.sector_bytes));
    }
    Ok(head)
}
