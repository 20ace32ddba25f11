//! Block traces in files as they are distributed: packed, with marks, comments and headers, and in DiskSim's own times.
//! Each reads to the same requests as its plain form.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lab::trace::block::{self, BlockOp, BlockRequest, BlockTraceContents};
use lab::trace::{ReadOptions, TimeUnit, unpacked};

use super::asked;
use super::formats::{EVERY, READS_AND_WRITES};

const MSR: &str =
    "128166385295514663,hm,0,Write,9056014336,2048,2833\n128166385295514878,hm,1,Read,11855351808,512,2617\n";
const SYSTOR: &str =
    "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,899056122368,131072\n";
/// The same requests in ms, as DiskSim has them, and in ns, as MQSim has them.
const DISKSIM: &str = "0.123456 0 303567 8 0\n0.5 1 303575 16 1\n2 0 0 1 40\n1000000.0000019 0 8 1 81\n";
const MQSIM: &str = "123456 0 303567 8 0\n500000 1 303575 16 1\n2000000 0 0 1 0\n1000000000001 0 8 1 1\n";

/// The same requests in every format.
fn texts() -> Vec<(&'static str, String)> {
    let all = EVERY.iter().map(|(name, print)| (*name, print(&asked(true))));
    all.chain(READS_AND_WRITES.iter().map(|(name, print)| (*name, print(&asked(false))))).collect()
}

fn requests(text: &str) -> Vec<BlockRequest> {
    block::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}")).requests
}

fn contents(text: &str, time_unit: Option<TimeUnit>) -> Result<BlockTraceContents, String> {
    let options = ReadOptions { time_unit, ..ReadOptions::default() };
    block::read_with(text.as_bytes(), &options).map_err(|error| error.to_string())
}

#[test]
fn a_file_packed_by_gzip_reads_as_its_plain_form() {
    for (name, text) in texts() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        let bytes = unpacked(encoder.finish().unwrap()).unwrap();
        assert!(block::begins(&bytes), "{name}");
        assert_eq!(block::read(&bytes).unwrap().requests, requests(&text), "{name}");
    }
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    for (name, text) in texts() {
        let marked = format!("\u{feff}{text}");
        assert!(block::begins(marked.as_bytes()), "{name}");
        assert_eq!(requests(&marked), requests(&text), "{name}");
    }
}

#[test]
fn utf_16_is_refused_with_the_command_that_converts() {
    let units = || "\u{feff}".encode_utf16().chain(MSR.encode_utf16());
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    for bytes in [little, big] {
        let refused = block::read(&bytes).unwrap_err().to_string();
        assert!(refused.contains("UTF-16") && refused.contains("iconv -f UTF-16 -t UTF-8"), "{refused}");
    }
}

#[test]
fn comments_are_passed_over_in_every_format() {
    for (name, text) in texts() {
        let commented = format!("# 9 0 128 8 1\r\n\n  // Lines: {}\n{}", text.len(), text.replace('\n', "\n#\n"));
        assert!(block::begins(commented.as_bytes()), "{name}");
        assert_eq!(requests(&commented), requests(&text), "{name}");
    }
    let error = block::read(format!("# A\n\n{MSR}// B\n9\n").as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "line 6: it has 1 columns, and not 7");
}

#[test]
fn headers_are_passed_over_and_so_are_those_of_joined_files() {
    let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    let lower = "timestamp, hostname, disknumber, type, offset, size, responsetime\r\n";
    for header in [header, lower] {
        let headed = format!("# SNIA\n{header}{MSR}");
        assert!(block::begins(headed.as_bytes()));
        assert_eq!(requests(&headed), requests(MSR));
        assert_eq!(requests(&format!("{headed}{headed}")), requests(&MSR.repeat(2)));
    }
    let requests_of_two = requests(&format!("# SNIA\n{SYSTOR}{SYSTOR}"));
    assert_eq!(requests_of_two, [requests(SYSTOR), requests(SYSTOR)].concat());
}

#[test]
fn a_first_time_with_a_point_is_in_ms_as_disksim_has_it() {
    assert_eq!(requests(DISKSIM), requests(MQSIM));
    let moved = "5 0 0 1 0\n7.5 0 0 1 0\n";
    assert_eq!(contents(moved, Some(TimeUnit::Ms)).unwrap().trace.requests[1].at_ns, 2_500_000);
    let refused = contents(moved, None).unwrap_err();
    assert!(refused.starts_with("line 2: ") && refused.contains("--time-unit ms"), "{refused}");
}

#[test]
fn a_unit_that_is_given_goes_before_the_first_time() {
    let ns = |text: &str, unit| contents(text, Some(unit)).unwrap().trace.requests[1].at_ns;
    let units = [TimeUnit::Ns, TimeUnit::Us, TimeUnit::Ms, TimeUnit::S];
    assert_eq!(units.map(|unit| ns("5 0 0 1 0\n7 0 0 1 0\n", unit)), [2, 2_000, 2_000_000, 2_000_000_000]);
    assert_eq!(ns("0.5 0 0 1 0\n2.25 0 0 1 0\n", TimeUnit::S), 1_750_000_000);
}

#[test]
fn a_unit_is_refused_where_the_format_says_its_own() {
    for (name, text) in texts().into_iter().filter(|(name, _)| *name != "disksim") {
        let refused = contents(&text, Some(TimeUnit::Ms)).unwrap_err();
        assert!(refused.contains("says its unit of time itself"), "{name}: {refused}");
    }
}

#[test]
fn requests_of_length_0_are_counted_and_passed_over() {
    let own = "{\"flexfs_block_trace\":1,\"time_unit\":\"us\",\"sector_bytes\":512}\n";
    let read = "{\"at\":5,\"op\":\"read\",\"sector\":0,\"sectors\":8}\n";
    let event = "8,0 3 1 0.000000000 697 Q W 223490 + 8 [kjournald]\n";
    let msps = "BeginHeader\n DiskRead, TimeStamp, ByteOffset, IOSize, ElapsedTime, DiskNum, FileName\nEndHeader\n";
    let disk_read = "DiskRead, 9, 0x0, 0x200, 1, 0, a\n";
    let with_empty = [
        (format!("{own}{read}"), read.replace("\"sectors\":8", "\"sectors\":0")),
        (DISKSIM.to_owned(), "1000000.5 0 303567 0 0\n".to_owned()),
        (MQSIM.to_owned(), "1000000000001 7 303567 0 0\n".to_owned()),
        (MSR.to_owned(), "1,hm,9,Write,100,0,2833\n".to_owned()),
        (SYSTOR.to_owned(), "1.0,,R,9,0,0\n".to_owned()),
        (event.to_owned(), event.replace("+ 8", "+ 0")),
        (format!("{msps}{disk_read}"), disk_read.replace("0x200", "0x0")),
    ];
    for (text, empty) in with_empty {
        let plain = contents(&text, None).unwrap();
        assert!(plain.empty_requests == 0 && !plain.trace.requests.is_empty(), "{text}");
        let counted = contents(&format!("{text}{empty}{empty}"), None).unwrap();
        assert_eq!(counted, BlockTraceContents { empty_requests: 2, ..plain }, "{text}{empty}");
    }
    let flush = format!("{own}{}", "{\"at\":5,\"op\":\"flush\"}\n");
    let flushed = contents(&flush, None).unwrap();
    assert!(flushed.empty_requests == 0 && flushed.trace.requests[0].op == BlockOp::Flush);
}
