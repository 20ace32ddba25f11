//! Traces with lines that make no sense, and traces in files as they are distributed.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lab::trace::{self, ReadOptions, TimeUnit, unpacked};

const HEAD: &str = "{\"flexfs_trace\":1,\"time_unit\":\"us\"}\n";
const SYNC: &str = "{\"at\":5,\"op\":\"sync\",\"file\":\"a\"}\n";
const OPEN: &str = "1 0 open /data/x O_RDWR|O_CREAT 36\n";
const CALLED: &str = "7 1700000000.000001 openat(AT_FDCWD, \"/x\", O_RDWR|O_CREAT, 0644) = 3\n";

/// What is wrong, the text, the line that is refused, and a part of the reason.
fn wrong() -> Vec<(&'static str, String, usize, &'static str)> {
    let own = |line: &str| format!("{HEAD}{SYNC}{line}\n");
    let phone = |line: &str| format!("{OPEN}{line}\n");
    let strace = |rest: &str| format!("{CALLED}7 1700000000.000002 {rest}\n");
    vec![
        ("nothing", String::new(), 1, "nothing in it"),
        ("another format", "time,offset,length\n".into(), 1, "begins like no trace"),
        ("another version", HEAD.replace(":1,", ":2,") + SYNC, 1, "version 2"),
        ("no unit of time", "{\"flexfs_trace\":1}\n".into(), 1, "time_unit"),
        ("an unknown unit of time", HEAD.replace("us", "hours") + SYNC, 1, "unknown variant `hours`"),
        ("an end before the last request", HEAD.replace("\"us\"", "\"us\",\"lasts\":3") + SYNC, 1, "lasts less"),
        ("time that goes back", own("{\"at\":4,\"op\":\"sync\",\"file\":\"a\"}"), 3, "before that of the line above"),
        ("an unknown operation", own("{\"at\":6,\"op\":\"erase\",\"file\":\"a\"}"), 3, "unknown variant `erase`"),
        (
            "a write without a length",
            own("{\"at\":6,\"op\":\"write\",\"file\":\"a\",\"offset\":0}"),
            3,
            "offset and bytes",
        ),
        ("an unknown field", own("{\"at\":6,\"op\":\"sync\",\"file\":\"a\",\"disk\":1}"), 3, "unknown field `disk`"),
        (
            "a negative offset",
            own("{\"at\":6,\"op\":\"read\",\"file\":\"a\",\"offset\":-1,\"bytes\":1}"),
            3,
            "integer `-1`",
        ),
        (
            "a range that no file has",
            own("{\"at\":6,\"op\":\"write\",\"file\":\"a\",\"offset\":18446744073709551615,\"bytes\":2}"),
            3,
            "beyond the longest file",
        ),
        (
            "more bytes than a call moves",
            own("{\"at\":6,\"op\":\"read\",\"file\":\"a\",\"offset\":0,\"bytes\":1099511627776}"),
            3,
            "no call moves 1099511627776 bytes",
        ),
        ("a path out of the root", own("{\"at\":6,\"op\":\"sync\",\"file\":\"../a\"}"), 3, ".. in it"),
        ("a line that is cut", own("{\"at\":6,\"op\":\"sy"), 3, "EOF while parsing"),
        ("no number for a time", phone("1 soon write 36 4"), 2, "the time, µs"),
        ("time of a thread that goes back", format!("1 9 close 3 0\n{OPEN}"), 2, "before that of thread 1"),
        ("an unknown call", phone("1 5 splice 36 4"), 2, "no call is called \"splice\""),
        ("too few arguments", phone("1 5 pwrite 36 4"), 2, "pwrite has 3 arguments, and here it has 2"),
        ("a quiet call that is cut", phone("1 5 lstat64 \"/data"), 2, "lstat64 has 2 arguments, and here it has 1"),
        ("a move to a place that is not told", phone("1 5 _llseek 36 0"), 2, "no call is called \"_llseek\""),
        ("an unknown flag", phone("1 5 open /data/y O_FAST 37"), 2, "O_FAST"),
        ("seconds without their fraction", format!("{CALLED}7 1700000000 fsync(3) = 0\n"), 2, "SECONDS.MICROSECONDS"),
        ("more bytes than were asked for", strace("write(3, \"x\"..., 10) = 11"), 2, "more than the 10"),
        ("a call without its result", strace("write(3, \"x\", 1)"), 2, "the line is cut"),
        ("a string that is not closed", strace("unlink(\"/x) = 0"), 2, "a string is not closed"),
        ("a rest without a beginning", strace("<... write resumed>) = 1"), 2, "did not begin"),
    ]
}

#[test]
fn every_kind_of_broken_line_is_refused_with_its_number_and_the_reason() {
    for (what, text, line, said) in wrong() {
        let error = trace::read(text.as_bytes()).expect_err(what);
        assert!(error.line == line && error.reason.contains(said), "{what}: {error}");
    }
    let error = trace::read(&[HEAD.as_bytes(), b"\xff\n"].concat()).unwrap_err();
    assert_eq!((error.line, error.reason.as_str()), (2, "it is not UTF-8"));
}

/// The same requests in every format.
fn texts() -> [String; 3] {
    let phone = "1 1 write 36 4\n1 2 fsync 36 0\n";
    [format!("{HEAD}{SYNC}"), format!("{OPEN}{phone}"), format!("{CALLED}7 1700000000.000002 fsync(3) = 0\n")]
}

#[test]
fn a_file_that_is_packed_marked_or_commented_reads_as_plain() {
    for text in texts() {
        let plain = trace::read(text.as_bytes()).unwrap();
        assert!(!plain.requests.is_empty());
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        let gzip = unpacked(encoder.finish().unwrap()).unwrap();
        let marked = format!("\u{feff}{text}").into_bytes();
        let commented = format!("# 1\n // 2\n{}", text.replace('\n', "\n#\n")).into_bytes();
        for bytes in [gzip, marked, commented] {
            assert!(trace::begins(&bytes), "{text}");
            assert_eq!(trace::read(&bytes).as_ref(), Ok(&plain), "{text}");
        }
    }
    let error = trace::read(b"# A\n1 2 3\n").unwrap_err();
    assert!(error.line == 2 && error.reason.contains("begins like no trace"), "{error}");
    let error = trace::read(b"\xff\xfe1\0 \0").unwrap_err();
    assert!(error.line == 1 && error.reason.contains("iconv -f UTF-16 -t UTF-8"), "{error}");
}

#[test]
fn a_unit_of_time_is_refused_for_a_trace_of_files() {
    let options = ReadOptions { time_unit: Some(TimeUnit::Ms), ..ReadOptions::default() };
    for text in texts() {
        let error = trace::read_with(text.as_bytes(), &options).unwrap_err();
        assert!(error.reason.contains("says its unit of time itself"), "{text}{error}");
    }
}

#[test]
fn calls_of_phones_that_change_nothing_are_passed_over() {
    let plain = "1 0 open /data/data O_WRONLY|O_CREAT 36\n1 1 write 36 4\n1 3 fsync 36 0\n1 6 write 36 4\n";
    let real = "\
1 0 open /data/data O_WRONLY|O_CREAT 36
1 1 lstat64 \"/data/data/com.twitter.android/shared_prefs/77smartEsos.xml.bak\" 0
1 1 write 36 4
1 1 fstat64 36 0
1 2 access \"/data/data/com.twitter.android/databases/global.db-wal\" -1
1 2 stat64 \"/mnt/sdcard/My Files\" 0
1 3 fdatasync 36 0
1 4 statfs64 \"/mnt/sdcard\" 0
1 4 fstatfs64 36 0
1 4 getdents64 37 512
1 5 readlink \"/proc/self/exe\" 23
1 5 fcntl64 36 2
1 6 write 36 4
";
    let contents = trace::read_with(real.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!((Ok(contents.trace), contents.unknown_calls), (trace::read(plain.as_bytes()), 0));
}

#[test]
fn the_recorded_phone_application_unpacks_and_reads() {
    let bytes = unpacked(include_bytes!("../../fixtures/facebook.mobigen.gz").to_vec()).unwrap();
    let summary = trace::read(&bytes).unwrap().summary();
    assert_eq!((summary.requests, summary.read_bytes, summary.written_bytes), (22_180, 3_651_509, 11_907_162));
}
