//! `flexfs replay --ftl`: block traces on translation layers.

use std::fs;
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
