//! Lines of block traces that make no sense.

use lab::trace::block;

const HEAD: &str = "{\"flexfs_block_trace\":1,\"time_unit\":\"us\",\"sector_bytes\":512}\n";
const DEVICE: &str = "{\"sectors\":1,\"sector_bytes\":512,\"scheme\":\"fast\",\"profile\":\"a\",\"chip_bytes\":2,\"extra_blocks\":1,\
                      \"logs\":1,\"map_blocks\":0}";
const READ: &str = "{\"at\":5,\"op\":\"read\",\"sector\":0,\"sectors\":8}\n";
const COLUMNS: &str = "9 0 128 8 1\n";
const MSR: &str = "128166385295514663,hm,0,Write,9056014336,2048,2833\n";
const SYSTOR: &str = "Timestamp,Response,IOType,LUN,Offset,Size\n";
const EVENT: &str = "  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n";
const MSPS: &str = "BeginHeader\n DiskRead, TimeStamp, ByteOffset, IOSize, ElapsedTime, DiskNum, FileName\nEndHeader\n";

/// What is wrong, the text, the line that is refused, and a part of the reason.
type Wrong = (&'static str, String, usize, &'static str);

fn own() -> Vec<Wrong> {
    let own = |line: &str| format!("{HEAD}{READ}{line}\n");
    let unit = HEAD.replace("\"us\"", "\"s\"");
    let device = HEAD.replace("}", &format!(",\"device\":{DEVICE}}}"));
    vec![
        ("another version", HEAD.replace(":1,", ":2,"), 1, "version 2"),
        ("an unknown unit of time", unit, 1, "unknown variant `s`"),
        ("odd sectors", HEAD.replace("512", "500"), 1, "multiple of 512 bytes: 500"),
        ("no sectors", HEAD.replace(",\"sector_bytes\":512", ""), 1, "sector_bytes"),
        ("a device without its scheme", device.replace("\"scheme\":\"fast\",", ""), 1, "missing field `scheme`"),
        ("an unknown field of a device", device.replace("logs", "log"), 1, "unknown field `log`"),
        ("time that goes back", own("{\"at\":4,\"op\":\"flush\"}"), 3, "before that of the line above: 1000 ns"),
        ("a time too large", own("{\"at\":18446744073709551615,\"op\":\"flush\"}"), 3, "time is too large"),
        ("a time of ages", own("{\"at\":9999999999999999,\"op\":\"flush\"}"), 3, "100 years from that of the first"),
        ("an unknown operation", own("{\"at\":5,\"op\":\"erase\"}"), 3, "unknown variant `erase`"),
        ("a flush of a range", own("{\"at\":5,\"op\":\"flush\",\"sector\":1}"), 3, "are of read, write and trim"),
        ("a trim of nothing", own("{\"at\":5,\"op\":\"trim\",\"sector\":1}"), 3, "both must be there"),
        ("an unknown field", own("{\"at\":5,\"op\":\"flush\",\"x\":1}"), 3, "unknown field `x`"),
        (
            "a range beyond every disk",
            own("{\"at\":5,\"op\":\"read\",\"sector\":281474976710655,\"sectors\":2}"),
            3,
            "beyond the longest disk",
        ),
        (
            "a range that overflows",
            own("{\"at\":5,\"op\":\"read\",\"sector\":18446744073709551615,\"sectors\":1}"),
            3,
            "range is too large",
        ),
    ]
}

fn columns() -> Vec<Wrong> {
    let disksim = |line: &str| format!("{COLUMNS}{line}\n");
    let msr = |line: &str| format!("{MSR}{line}\n");
    let systor = |line: &str| format!("{SYSTOR}{line}\n");
    vec![
        ("a column too few", disksim("9 0 128 8"), 2, "4 columns, and not 5"),
        ("another flag", disksim("9 0 128 8 2"), 2, "neither 0, a write, nor 1, a read: \"2\""),
        ("a fraction after a whole time", disksim("9.5 0 128 8 1"), 2, "the time, ns, has a fraction: \"9.5\""),
        ("a unit that may be meant", disksim("9.5 0 128 8 1"), 2, "if times are in ms, say --time-unit ms"),
        ("a time that is none", disksim("9,5 0 128 8 1"), 2, "the time is no number that can be"),
        ("a flag that is not hexadecimal", "0.5 0 128 8 1\n0.6 0 128 8 R\n".into(), 2, "not hexadecimal: \"R\""),
        (
            "a header of other columns",
            MSR.to_owned() + "Timestamp,Hostname,DiskNumber,Type,Size,Offset,ResponseTime",
            2,
            "the time",
        ),
        ("time that goes back", disksim("8 0 128 8 1"), 2, "before that of the line above: 1 ns"),
        ("a sector that overflows", disksim("9 0 99999999999999999 8 1"), 2, "the sector is too large"),
        ("more than a request is for", disksim("9 0 0 99999999 1"), 2, "no request is for"),
        ("a column too many", msr("1,hm,0,Write,512,512,1,1"), 2, "8 columns, and not 7"),
        ("another direction", msr("1,hm,0,write,512,512,1"), 2, "neither Read nor Write: \"write\""),
        ("an offset within a sector", msr("1,hm,0,Write,100,512,1"), 2, "its offset, 100, is no multiple"),
        ("a length within a sector", msr("1,hm,0,Write,512,100,1"), 2, "its length, 100, is no multiple"),
        ("a response that is none", msr("1,hm,0,Write,512,512,?"), 2, "the response, 100 ns,"),
        ("a time without a fraction", systor("1456095145,0.1,R,0,0,512"), 2, "SECONDS.NANOSECONDS: \"1456095145\""),
        ("a time with too long a fraction", systor("1.0123456789,0.1,R,0,0,512"), 2, "SECONDS.NANOSECONDS"),
        ("another letter", systor("1.0,0.1,Read,0,0,512"), 2, "neither R nor W: \"Read\""),
        ("a negative offset", systor("1.0,,R,0,-512,512"), 2, "the offset is no number that can be: \"-512\""),
    ]
}

fn events() -> Vec<Wrong> {
    let event = |rest: &str| format!("{EVENT}  8,0    3        2     0.000000001   697  {rest}\n");
    let msps = |line: &str| format!("{MSPS}{line}\n");
    vec![
        ("an unknown action", event("Y   W 223490 + 8 [kjournald]"), 2, "no action is called \"Y\""),
        ("an unknown letter", event("Q   Q 223490 + 8 [kjournald]"), 2, "the RWBS is none: \"Q\""),
        ("an unknown flag", event("Q   WX 223490 + 8 [kjournald]"), 2, "the RWBS is none: \"WX\""),
        ("a write without a range", event("Q   W [kjournald]"), 2, "no SECTOR + SECTORS"),
        ("a range that is cut", event("Q   W 223490 +"), 2, "no SECTOR + SECTORS"),
        ("a line that is cut", format!("{EVENT}  8,0  3\n"), 2, "the sequence is missing"),
        ("no device", format!("{EVENT}sda  3  1  0.0  697  Q  W 8 + 8\n"), 2, "MAJOR,MINOR: \"sda\""),
        ("an event after the summary", format!("{EVENT}CPU3 (8,0):\n{EVENT}"), 3, "after the summary"),
        ("a header that does not end", "BeginHeader\n  P-End, TimeStamp\n".into(), 2, "there is no EndHeader"),
        ("a header without a column", MSPS.replace("DiskNum", "Disk"), 2, "no column DiskNum to DiskRead"),
        ("an event that is not declared", msps("DiskWrite, 9, 0x0, 0x200, 1, 0, \"\""), 4, "no event \"DiskWrite\""),
        ("an event's column too few", msps("DiskRead, 9, 0x0, 0x200, 1, 0"), 4, "6 columns, and not 7"),
        ("an event's column too many", msps("DiskRead, 9, 0x0, 0x200, 1, 0, a, b"), 4, "8 columns, and not 7"),
        ("no hexadecimal number", msps("DiskRead, 9, 512, 0x200, 1, 0, a"), 4, "the offset does not begin with 0x"),
        ("a wrong digit", msps("DiskRead, 9, 0x0, 0x2g0, 1, 0, a"), 4, "the length is no number"),
    ]
}

#[test]
fn every_kind_of_broken_line_is_refused_with_its_number_and_the_reason() {
    let mut all = vec![
        ("nothing", String::new(), 1, "nothing in it"),
        ("another format", "\ntime,offset,length\n".into(), 2, "begins like no block trace"),
        ("a trace of files", "{\"flexfs_trace\":1,\"time_unit\":\"us\"}\n".into(), 1, "begins like no block trace"),
    ];
    all.extend(own().into_iter().chain(columns()).chain(events()));
    for (what, text, line, said) in all {
        let error = block::read(text.as_bytes()).expect_err(what);
        assert!(error.line == line && error.reason.contains(said), "{what}: {error}");
    }
    let error = block::read(&[HEAD.as_bytes(), b"\xff\n"].concat()).unwrap_err();
    assert_eq!((error.line, error.reason.as_str()), (2, "it is not UTF-8"));
}

#[test]
fn what_is_no_request_is_passed_over() {
    let event = |action: &str| EVENT.replace("Q   W", action);
    let text = [
        event("P   N"),
        event("D   R"),
        event("C   R"),
        event("m   N"),
        EVENT.replace("Q   W 223490 +", "D  R 36 (12"),
    ];
    let trace = block::read(text.concat().as_bytes()).unwrap();
    assert_eq!(trace.requests.len(), 1, "without queued requests those that were issued count");
    let tool = "OS Version: 5.2.3790, Trace Size: 38912KB\nDiskRead, 9, 0x0, 0x200, 1, 0, a\n";
    assert_eq!(block::read(format!("{MSPS}{tool}").as_bytes()).unwrap().requests.len(), 1);
}
