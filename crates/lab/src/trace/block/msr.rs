//! MSR Cambridge: `FILETIME,HOST,DISK,Read|Write,OFFSET,SIZE,RESPONSE`, times in units of 100 ns, the rest in bytes.
//! Invariant: a line's time is that of its arrival; lines may be in another order. A file may have a header, and files
//! that were joined several.

use super::super::TraceError;
use super::columns::{exactly, number};
use super::gather::Gathered;
use super::{BlockOp, BlockTraceContents};

const HEADER: [&str; 7] = ["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"];
/// The unit of times, ns.
const TICK_NS: i128 = 100;

pub fn begins(line: &str) -> bool {
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    is_header(&columns) || columns.len() == 7 && columns.get(3).is_some_and(|op| direction(op).is_ok())
}

fn is_header(columns: &[&str]) -> bool {
    let is_name = |(column, name): (&&str, &&str)| column.eq_ignore_ascii_case(name);
    columns.len() == HEADER.len() && columns.iter().zip(&HEADER).all(is_name)
}

pub fn read(text: &str) -> Result<BlockTraceContents, TraceError> {
    Gathered::default().through(text, 0, line)
}

fn direction(text: &str) -> Result<BlockOp, String> {
    match text {
        "Read" => Ok(BlockOp::Read),
        "Write" => Ok(BlockOp::Write),
        _ => Err(format!("the direction is neither Read nor Write: {text:?}")),
    }
}

fn line(gathered: &mut Gathered, line: &str) -> Result<(), String> {
    let columns @ [time, host, disk, op, offset, bytes, response] = exactly(line.split(','))?;
    if is_header(&columns) {
        return Ok(());
    }
    let ticks: u64 = number(time, "the time, 100 ns,")?;
    let _: u32 = number(disk, "the disk")?;
    let _: u64 = number(response, "the response, 100 ns,")?;
    let (offset, bytes) = (number(offset, "the offset")?, number(bytes, "the length")?);
    gathered.add(i128::from(ticks) * TICK_NS, &format!("{host} {disk}"), direction(op)?, offset, bytes)
}
