//! Microsoft's production servers: between `BeginHeader` and `EndHeader` the columns of each kind of event, then events, of
//! which `DiskRead` and `DiskWrite` are requests.
//!
//! An event is written down when it ends, so that it arrived its elapsed time before. Invariant: a column is found by the
//! name that the header gives it, and an event that the header does not declare is an error.

use std::collections::BTreeMap;

use super::super::{TraceError, lines};
use super::columns::{hex, number};
use super::gather::Gathered;
use super::{BlockOp, BlockTraceContents};

const BEGIN: &str = "BeginHeader";
const END: &str = "EndHeader";
/// A line of the tool that printed the events.
const TOOL: &str = "OS Version:";

/// Where the columns of a request are.
struct Columns {
    time: usize,
    offset: usize,
    bytes: usize,
    elapsed: usize,
    disk: usize,
    all: usize,
}

impl Columns {
    fn new(declared: &str) -> Result<Self, String> {
        let names: Vec<&str> = declared.split(',').map(str::trim).collect();
        let at = |name: &str| {
            let found = names.iter().position(|column| *column == name);
            found.ok_or_else(|| format!("the header gives no column {name} to {}", names.first().unwrap_or(&"it")))
        };
        let (time, offset, bytes) = (at("TimeStamp")?, at("ByteOffset")?, at("IOSize")?);
        Ok(Self { time, offset, bytes, elapsed: at("ElapsedTime")?, disk: at("DiskNum")?, all: names.len() })
    }
}

/// The events that a header declares; with columns, those that are requests.
type Declared<'a> = BTreeMap<&'a str, Option<(BlockOp, Columns)>>;

pub fn begins(line: &str) -> bool {
    line.trim() == BEGIN
}

pub fn read(text: &str) -> Result<BlockTraceContents, TraceError> {
    let mut declared = Declared::new();
    let mut last = 1;
    for ((line, text_here), head_lines) in lines(text).skip(1).zip(2..) {
        if text_here.trim() == END {
            return Gathered::default().through(text, head_lines, |gathered, line| event(gathered, &declared, line));
        }
        declare(&mut declared, text_here).map_err(|reason| TraceError { line, reason })?;
        last = line;
    }
    Err(TraceError { line: last, reason: format!("the header does not end: there is no {END} after it") })
}

fn name_of(line: &str) -> &str {
    line.split(',').next().unwrap_or_default().trim()
}

/// A line of the header.
fn declare<'a>(declared: &mut Declared<'a>, line: &'a str) -> Result<(), String> {
    let name = name_of(line);
    let op = match name {
        "DiskRead" => Some(BlockOp::Read),
        "DiskWrite" => Some(BlockOp::Write),
        _ => None,
    };
    let request = op.map(|op| Columns::new(line).map(|columns| (op, columns))).transpose()?;
    declared.insert(name, request);
    Ok(())
}

/// A line after the header.
fn event(gathered: &mut Gathered, declared: &Declared, line: &str) -> Result<(), String> {
    if line.starts_with(TOOL) {
        return Ok(());
    }
    let name = name_of(line);
    let request = declared.get(name).ok_or_else(|| format!("the header declares no event {name:?}"))?;
    let Some((op, columns)) = request else { return Ok(()) };
    // The last column is a name between quotes, which may have commas in it.
    let values: Vec<&str> = line.splitn(columns.all, ',').map(str::trim).collect();
    let last = values.last().copied().unwrap_or_default();
    let is_quoted = last.len() > 1 && last.starts_with('"') && last.ends_with('"');
    if values.len() != columns.all || last.contains(',') && !is_quoted {
        return Err(format!("it has {} columns, and not {}", line.split(',').count(), columns.all));
    }
    let value = |at: usize| values.get(at).copied().unwrap_or_default();
    let ended_us: u64 = number(value(columns.time), "the time, µs,")?;
    let elapsed_us: u64 = number(value(columns.elapsed), "the elapsed time, µs,")?;
    let disk = value(columns.disk);
    let _: u32 = number(disk, "the disk")?;
    let (offset, bytes) = (hex(value(columns.offset), "the offset")?, hex(value(columns.bytes), "the length")?);
    gathered.add((i128::from(ended_us) - i128::from(elapsed_us)) * 1_000, disk, *op, offset, bytes)
}
