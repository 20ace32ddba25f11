//! Requests printed in every format that is read.

use std::collections::BTreeMap;

use lab::trace::block::{self, BlockOp, BlockRequest, BlockTrace};

/// A request to a disk of any number.
pub struct Ask {
    pub at_ns: u64,
    pub disk: u32,
    pub op: BlockOp,
    pub sector: u64,
    pub sectors: u64,
}

/// Requests with their disks numbered as they come.
pub fn numbered(asked: Vec<Ask>) -> Vec<BlockRequest> {
    let mut numbers = BTreeMap::new();
    let number = |ask: Ask| {
        let next = numbers.len() as u32;
        let disk = *numbers.entry(ask.disk).or_insert(next);
        BlockRequest { at_ns: ask.at_ns, disk, op: ask.op, offset: ask.sector * 512, bytes: ask.sectors * 512 }
    };
    asked.into_iter().map(number).collect()
}

/// The name of a format, and how requests are printed in it.
pub type Printed = (&'static str, fn(&[BlockRequest]) -> String);

pub const EVERY: [Printed; 2] = [("own", own), ("blktrace", blktrace)];
/// Formats without trims and flushes.
pub const READS_AND_WRITES: [Printed; 6] =
    [("own", own), ("blktrace", blktrace), ("disksim", disksim), ("msr", msr), ("systor", systor), ("msps", msps)];

fn own(requests: &[BlockRequest]) -> String {
    let mut text = Vec::new();
    block::write(&BlockTrace { requests: requests.to_vec(), device: None }, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn disksim(requests: &[BlockRequest]) -> String {
    let line = |request: &BlockRequest| {
        let BlockRequest { at_ns, disk, op, offset, bytes } = *request;
        format!("{} {} {} {} {}\n", at_ns + 77, disk + 4, offset / 512, bytes / 512, u8::from(op == BlockOp::Read))
    };
    requests.iter().map(line).collect()
}

fn msr(requests: &[BlockRequest]) -> String {
    let line = |request: &BlockRequest| {
        let BlockRequest { at_ns, disk, op, offset, bytes } = *request;
        format!("{},hm,{},{op:?},{offset},{bytes},2833\n", 128_166_385_295_514_663 + at_ns / 100, 9 - disk)
    };
    requests.iter().map(line).collect()
}

/// Lines of requests in the order of their ends: every third takes longer than it is until the next.
fn ended(requests: &[BlockRequest], line: impl Fn(&BlockRequest, u64) -> String) -> String {
    let takes_us = |at: usize| if at.is_multiple_of(3) { 60_000 } else { 5 };
    let mut all: Vec<(u64, String)> = (0..)
        .zip(requests)
        .map(|(at, request)| (request.at_ns + takes_us(at) * 1_000, line(request, takes_us(at))))
        .collect();
    all.sort_by_key(|(end_ns, _)| *end_ns);
    all.into_iter().map(|(_, line)| line).collect()
}

fn systor(requests: &[BlockRequest]) -> String {
    let line = |request: &BlockRequest, takes_us: u64| {
        let BlockRequest { at_ns, disk, op, offset, bytes } = *request;
        let response = if takes_us == 5 { String::new() } else { format!("0.{takes_us:06}000") };
        let letter = if op == BlockOp::Read { 'R' } else { 'W' };
        let (seconds, ns) = (1_456_095_145 + at_ns / 1_000_000_000, at_ns % 1_000_000_000);
        format!("{seconds}.{ns:09},{response},{letter},{disk},{offset},{bytes}\n")
    };
    format!("Timestamp,Response,IOType,LUN,Offset,Size\n{}", ended(requests, line))
}

/// With a column for the processor, as newer files have it.
fn msps(requests: &[BlockRequest]) -> String {
    let columns = "TimeStamp, Process Name ( PID), ThreadID, CPU, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags, \
                   DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName";
    let head = format!(
        "BeginHeader\r\n  DiskRead, {columns}\r\n  DiskWrite, {columns}\r\n  DiskReadInit, TimeStamp, IrpPtr\r\nEndHeader\r\n"
    );
    let line = |request: &BlockRequest, takes_us: u64| {
        let BlockRequest { at_ns, disk, op, offset, bytes } = *request;
        let end_us = at_ns / 1_000 + 260_959 + takes_us;
        format!(
            "  DiskReadInit, 5, 0xf\r\n  Disk{op:?}, {end_us}, p0 (2004), 9700, 3, 0xfffffadf39860010, {offset:#012x}, \
             {bytes:#010x}, {takes_us}, {}, 0x000901, 7, 0, Unknown, 0xfffffadf3b71e8f0, \"Disk8:\\s0,a\"\r\n",
            disk + 4
        )
    };
    head + &ended(requests, line)
}

fn blktrace(requests: &[BlockRequest]) -> String {
    let line = |request: &BlockRequest| {
        let BlockRequest { at_ns, disk, op, offset, bytes } = *request;
        let event = |action: &str| {
            let (seconds, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
            let range = format!("{} + {} ", offset / 512, bytes / 512);
            let (letters, range) = match op {
                BlockOp::Read => ("RA", range),
                BlockOp::Write => ("WFS", range),
                BlockOp::Trim => ("DS", range),
                BlockOp::Flush => ("FWS", String::new()),
            };
            format!("  8,{}  1  17  {seconds:5}.{ns:09}  697  {action}  {letters} {range}[kworker/u8:1 a]\n", 16 * disk)
        };
        let plug = format!("  8,{}  1  18      0.000000000  697  P   N [kjournald]\n", 16 * disk);
        event("Q") + &event("D") + &plug
    };
    let events: String = requests.iter().map(line).collect();
    events
        + "CPU1 (8,0):\n Reads Queued:  4,  16KiB\nTotal (8,0):\n\nThroughput (R/W): 3KiB/s / 1KiB/s\nEvents (8,0): 9 entries\n"
}
