//! Block traces in files as they are distributed: packed, with marks, comments and headers, and in DiskSim's own times.
//! Each reads to the same requests as its plain form.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lab::trace::block::{self, BlockRequest};
use lab::trace::unpacked;

use super::asked;
use super::formats::{EVERY, READS_AND_WRITES};

const MSR: &str =
    "128166385295514663,hm,0,Write,9056014336,2048,2833\n128166385295514878,hm,1,Read,11855351808,512,2617\n";
const SYSTOR: &str =
    "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,899056122368,131072\n";

/// The same requests in every format.
fn texts() -> Vec<(&'static str, String)> {
    let all = EVERY.iter().map(|(name, print)| (*name, print(&asked(true))));
    all.chain(READS_AND_WRITES.iter().map(|(name, print)| (*name, print(&asked(false))))).collect()
}

fn requests(text: &str) -> Vec<BlockRequest> {
    block::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}")).requests
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
