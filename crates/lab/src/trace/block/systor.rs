//! SYSTOR '17: a header, then `TIMESTAMP,RESPONSE,R|W,LUN,OFFSET,SIZE`, times in seconds with a fraction, the rest in
//! bytes. Invariant: a line's time is that of its arrival; lines are in the order of their ends. Files that were joined
//! have several headers.

use super::super::TraceError;
use super::columns::{exactly, number, seconds_ns};
use super::gather::Gathered;
use super::{BlockOp, BlockTraceContents};

const HEADER: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

pub fn begins(line: &str) -> bool {
    line == HEADER
}

pub fn read(text: &str) -> Result<BlockTraceContents, TraceError> {
    Gathered::default().through(text, 0, line)
}

fn line(gathered: &mut Gathered, line: &str) -> Result<(), String> {
    if begins(line) {
        return Ok(());
    }
    let [time, response, op, lun, offset, bytes] = exactly(line.split(','))?;
    let at_ns = seconds_ns(time, "the time")?;
    // Not every set has responses.
    if !response.is_empty() {
        seconds_ns(response, "the response")?;
    }
    let _: u32 = number(lun, "the LUN")?;
    let op = match op {
        "R" => BlockOp::Read,
        "W" => BlockOp::Write,
        _ => return Err(format!("the direction is neither R nor W: {op:?}")),
    };
    gathered.add(at_ns, lun, op, number(offset, "the offset")?, number(bytes, "the length")?)
}
