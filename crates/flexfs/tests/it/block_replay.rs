//! `flexfs replay --ftl`: block traces on translation layers.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use ftl::Scheme;
use serde_json::Value;

use crate::common::{self, flexfs, run};

/// Overwrites, reads of what was never written, and requests far apart, in DiskSim's columns.
fn columns() -> String {
    let line = |at: u64| {
        let sector = [0, 8, 4, 1_000_000, 64][at as usize % 5] + at % 3 * 16;
        format!("{} {} {sector} {} {}\n", at * 2_000_000, at % 2, 3 + at % 9, u8::from(at.is_multiple_of(4)))
    };
    (0..60).map(line).collect()
}

fn written(dir: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn replay(trace: &PathBuf, more: &[&str]) -> Command {
    let mut command = flexfs(["replay"]);
    command.arg(trace).args(more);
    command
}

#[test]
fn a_block_trace_is_played_on_every_scheme_and_told_in_words_and_as_json() {
    let dir = tempfile::tempdir().unwrap();
    let trace = written(&dir, "disk.trace", &columns());
    for scheme in Scheme::ALL.map(Scheme::name) {
        let told = run(&mut replay(&trace, &["--ftl", scheme]));
        for row in [
            &format!("scheme                {scheme}\n"),
            "k9f5608u0m, 16 MiB\n",
            "requests              60, which touch 192 KiB\n",
            "reads took            15, half of them within",
            "writes took           45, half",
            "compared              every read, and ",
        ] {
            assert!(told.contains(row), "{row}: {told}");
        }
        let more = ["--ftl", scheme, "--json", "--profile", "k9k8g08u0m", "--size", "32MiB", "--no-pauses"];
        let figures: Value = serde_json::from_str(&run(&mut replay(&trace, &more))).unwrap();
        assert_eq!((&figures["requests"], &figures["chip_bytes"]), (&60.into(), &(32 << 20).into()), "{figures}");
        assert!(figures["partial_sectors"].as_u64() > Some(20) && figures["programs"].as_u64() > Some(45), "{figures}");
        assert!(
            figures["read_responses"]["median_us"].as_f64() > Some(20.0) && figures["steps"].is_null(),
            "{figures}"
        );
    }
    let told = run(&mut replay(&trace, &["--ftl", "log-block", "--requests", "7", "--idle-merges"]));
    assert!(told.contains("requests              7, which") && told.contains("background steps"), "{told}");
}

#[test]
fn a_trace_of_the_other_kind_and_one_that_does_not_fit_are_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |trace: &PathBuf, more: &[&str], said: &str| {
        let output = common::output(&mut replay(trace, more));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains(said), "{said}: {output:?}");
    };
    let blocks = written(&dir, "disk.trace", &columns());
    refused(&blocks, &[], "this is a block trace; name a translation layer with --ftl");
    let files = "{\"flexfs_trace\":1,\"time_unit\":\"us\"}\n{\"at\":5,\"op\":\"make\",\"file\":\"a\"}\n";
    let files = written(&dir, "files.trace", files);
    refused(&files, &["--ftl", "fast"], "not a block trace, which alone is played on a translation layer");
    let broken = written(&dir, "broken.trace", "1 0 0 8 1\n2 0 0 8 7\n");
    refused(&broken, &["--ftl", "fast"], "broken.trace: line 2: the flag is neither");
    let none = written(&dir, "none.trace", "a,b\n");
    refused(&none, &["--ftl", "fast"], "line 1: it begins like no block trace");
    let far: String = (0..2_000).map(|at| format!("{at} 0 {} 8 0\n", at << 20)).collect();
    let far = written(&dir, "far.trace", &far);
    refused(
        &far,
        &["--ftl", "fast", "--size", "16MiB"],
        "it touches 31.2 MiB, and the device holds 15.5 MiB; take --size 32MiB",
    );
}

/// The figures of a replay that do not depend on the machine.
fn counts(command: &mut Command) -> Value {
    let mut figures: Value = serde_json::from_str(&run(command)).unwrap();
    figures.as_object_mut().unwrap().remove("cpu_s");
    figures
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn traces_as_distributed_replay_as_their_plain_form() {
    let dir = tempfile::tempdir().unwrap();
    let layer = ["--ftl", "log-block", "--json"];
    let plain = columns();
    let expected = counts(&mut replay(&written(&dir, "plain", &plain), &layer));
    assert_eq!((&expected["requests"], &expected["empty_requests"]), (&60.into(), &0.into()));
    let file = |name: &str, bytes: &[u8]| {
        fs::write(dir.path().join(name), bytes).unwrap();
        dir.path().join(name)
    };
    // The same times in milliseconds, and flags in hexadecimal.
    let milliseconds: String = plain
        .lines()
        .map(|line| {
            let (at_ns, rest) = line.split_once(' ').unwrap();
            let at_ns: u64 = at_ns.parse().unwrap();
            format!("{}.{:06} {rest}\n", at_ns / 1_000_000, at_ns % 1_000_000)
        })
        .collect();
    let commented = format!("# of a disk\n\n{}", plain.replacen('\n', "\n// and so on\n", 3));
    for (name, bytes) in [
        ("packed.gz", gzip(plain.as_bytes())),
        ("two members.gz", [gzip(&plain.as_bytes()[..100]), gzip(&plain.as_bytes()[100..])].concat()),
        ("with a mark", ["\u{feff}".as_bytes(), plain.as_bytes()].concat()),
        ("with comments", commented.into_bytes()),
        ("of DiskSim", milliseconds.into_bytes()),
    ] {
        assert_eq!(counts(&mut replay(&file(name, &bytes), &layer)), expected, "{name}");
    }
    let unit = ["--time-unit", "ns"];
    assert_eq!(counts(&mut replay(&file("plain", plain.as_bytes()), &[&layer[..], &unit].concat())), expected);
    let input = fs::File::open(file("packed.gz", &gzip(plain.as_bytes()))).unwrap();
    assert_eq!(counts(replay(&PathBuf::from("-"), &layer).stdin(input)), expected, "standard input");
    let nothing = format!("{plain}{} 0 0 0 1\n", 120_000_000);
    let told = counts(&mut replay(&file("nothing", nothing.as_bytes()), &layer));
    assert_eq!((&told["requests"], &told["empty_requests"]), (&60.into(), &1.into()));
}

#[test]
fn quiet_calls_of_a_phone_s_trace_change_no_count() {
    let dir = tempfile::tempdir().unwrap();
    let plain = "1 10 open a.db O_RDWR|O_CREAT 3\n1 20 pwrite 3 0 4096\n1 30 fsync 3 0\n1 40 close 3 0\n";
    let quiet = "1 15 lstat64 a.db 0\n1 16 statfs64 data 0\n1 25 fcntl64 3 0\n1 26 getdents 5 0\n";
    let mut lines: Vec<&str> = plain.lines().chain(quiet.lines()).collect();
    lines.sort_unstable();
    let told = |name: &str, text: &str, more: &[&str]| {
        let output = common::output(&mut replay(&written(&dir, name, text), &[&["--json"], more].concat()));
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let expected = told("plain", plain, &[]);
    assert!(expected.0.contains("\"requests\":") && expected.1.is_empty(), "{expected:?}");
    assert_eq!(told("quiet", &lines.join("\n"), &[]), expected);
    let unknown = format!("{plain}1 50 teleport 3 0\n");
    let (_, said) = told("unknown", &unknown, &[]);
    assert!(said.contains("unknown: line 5:") && said.contains("teleport"), "{said}");
    let (figures, said) = told("unknown", &unknown, &["--skip-unknown"]);
    assert_eq!(figures, expected.0);
    assert!(said.contains("calls that are not known, passed over: 1"), "{said}");
}

#[test]
fn packed_or_coded_traces_that_cannot_be_read_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let packed = gzip(columns().as_bytes());
    let utf16: Vec<u8> = "\u{feff}1 0 0 8 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, bytes, said) in [
        ("cut.gz", packed[..packed.len() - 9].to_vec(), "cut"),
        ("utf16", utf16, "iconv"),
        ("web.xz", b"\xfd7zXZ\0rest".to_vec(), "xz -dc"),
        ("web.zst", b"\x28\xb5\x2f\xfdrest".to_vec(), "zstd -dc"),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let output = common::output(&mut replay(&path, &["--ftl", "fast"]));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && told.contains(said) && told.contains(name), "{told}");
    }
}
