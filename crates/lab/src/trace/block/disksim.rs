//! The columns of DiskSim and MQSim: `TIME DEVICE SECTOR SECTORS FLAG`.
//!
//! MQSim's times are whole ns, and its flag is 1 for a read and 0 for a write. DiskSim's own times are ms with a
//! fraction, and bit 0 of its flag, a number in the system of 16, is set for a read. Invariant: the caller says the
//! unit of time, or the first time does, for the whole file; times never go back.

use super::super::{TimeUnit, TraceError, lines};
use super::columns::{decimal_ns, exactly, is_digits, number, sectors};
use super::gather::Gathered;
use super::{BlockOp, BlockTraceContents};

/// The bit of DiskSim's flag that a read has.
const READ_BIT: u32 = 1;

pub fn begins(line: &str) -> bool {
    let Ok([time, device, sector, count, flag]) = exactly(line.split_whitespace()) else { return false };
    let is_time = decimal_ns(time, TimeUnit::Ms, "the time").is_ok();
    is_time && [device, sector, count].into_iter().all(is_digits) && flag.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub fn read(text: &str, unit: Option<TimeUnit>) -> Result<BlockTraceContents, TraceError> {
    let first_time = lines(text).next().and_then(|(_, first)| first.split_whitespace().next());
    let has_point = first_time.is_some_and(|time| time.contains('.'));
    let unit = unit.unwrap_or(if has_point { TimeUnit::Ms } else { TimeUnit::Ns });
    Gathered::default().through(text, 0, |gathered, text| line(gathered, unit, text))
}

fn line(gathered: &mut Gathered, unit: TimeUnit, line: &str) -> Result<(), String> {
    let [time, device, sector, count, flag] = exactly(line.split_whitespace())?;
    if unit == TimeUnit::Ns && time.contains('.') {
        return Err(format!("the time, ns, has a fraction: {time:?}; if times are in ms, say --time-unit ms"));
    }
    let at_ns = decimal_ns(time, unit, "the time")?;
    let _: u32 = number(device, "the device")?;
    let offset = sectors(number(sector, "the sector")?, "the sector")?;
    let bytes = sectors(number(count, "the length")?, "the length")?;
    gathered.add_next(at_ns, device, direction(flag, unit)?, offset, bytes)
}

fn direction(flag: &str, unit: TimeUnit) -> Result<BlockOp, String> {
    let of = |is_read| if is_read { BlockOp::Read } else { BlockOp::Write };
    match (unit, flag) {
        (TimeUnit::Ms, _) => {
            let bits = u32::from_str_radix(flag, 16).map_err(|_| format!("the flag is not hexadecimal: {flag:?}"))?;
            Ok(of(bits & READ_BIT != 0))
        }
        (_, "0" | "1") => Ok(of(flag == "1")),
        _ => Err(format!("the flag is neither 0, a write, nor 1, a read: {flag:?}")),
    }
}
