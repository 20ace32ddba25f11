//! The columns of DiskSim and MQSim: `TIME DEVICE SECTOR SECTORS FLAG`, the time in ns, flag 1 a read and 0 a write. Invariant:
//! times never go back.

use super::super::TraceError;
use super::columns::{exactly, number, sectors};
use super::gather::Gathered;
use super::{BlockOp, BlockTrace};

pub fn begins(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.len() == 5 && words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
}

pub fn read(text: &str) -> Result<BlockTrace, TraceError> {
    Gathered::default().through(text, 0, line)
}

fn line(gathered: &mut Gathered, line: &str) -> Result<(), String> {
    let [at_ns, device, sector, count, flag] = exactly(line.split_whitespace())?;
    let at_ns: u64 = number(at_ns, "the time, ns,")?;
    let _: u32 = number(device, "the device")?;
    let offset = sectors(number(sector, "the sector")?, "the sector")?;
    let bytes = sectors(number(count, "the length")?, "the length")?;
    let op = match flag {
        "0" => BlockOp::Write,
        "1" => BlockOp::Read,
        _ => return Err(format!("the flag is neither 0, a write, nor 1, a read: {flag:?}")),
    };
    gathered.add_next(at_ns.into(), device, op, offset, bytes)
}
