//! `flexfs bench`: the shape of its figures, and that one that mounts leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common;
use assert_cmd::Command;
use emulator::Profile;
use serde_json::Value;

fn flexfs(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flexfs"));
    command.args(args);
    command
}

/// Runs a command that must print one JSON object and nothing else.
fn json(command: &mut Command) -> Value {
    let output = command.assert().success().get_output().clone();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_bench_prints_one_json_object_with_the_figures_asked_for() {
    let report = json(&mut flexfs(&["bench", "small", "--size", "64MiB", "--json"]));
    assert_eq!(report["workload"], "small");
    assert_eq!(report["host_bytes"], 2000 * 4096);
    for key in
        ["programs", "reads", "erases", "write_amplification", "flash_s", "worst_op_us", "cpu_s", "user_s", "system_s"]
    {
        assert!(report[key].is_number(), "{key}");
    }
    for key in ["chip", "mode"] {
        assert!(report[key].is_string(), "{key}");
    }
    refused(&["--size", "1000KiB"], "multiple");
}

#[test]
fn a_bench_with_idle_time_tells_of_operations_and_of_background_steps() {
    let bench = |idle: &[&str]| json(flexfs(&["bench", "small", "--size", "64MiB", "--json"]).args(idle));
    let (busy, rested) = (bench(&[]), bench(&["--idle", "20"]));
    assert_eq!(busy["operations"]["count"], 2000);
    assert!(busy["steps"].is_null(), "{busy}");
    assert!(rested["steps"]["count"].as_u64().unwrap() > 0, "{rested}");
    for report in [&busy["operations"], &rested["operations"], &rested["steps"]] {
        let us = |key: &str| report[key].as_f64().unwrap();
        assert!(0.0 < us("median_us") && us("median_us") <= us("p99_us"), "{report}");
        assert!(us("p99_us") <= us("p999_us") && us("p999_us") <= us("longest_us"), "{report}");
    }
    let output = flexfs(&["bench", "mount", "--idle", "20"]).assert().code(1).get_output().clone();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(common::is_one_line(&output.stderr) && said.contains("no idle time"), "{said}");
}

#[test]
fn a_bench_of_a_translation_layer_tells_of_its_operations_memory_and_opening() {
    let bench =
        |more: &[&str]| json(flexfs(&["bench", "ftl", "--ftl", "log-block", "--size", "2MiB", "--json"]).args(more));
    let (busy, cached) = (bench(&[]), bench(&["--cache", "64"]));
    assert_eq!((busy["scheme"].as_str(), busy["writes"].as_u64()), (Some("log-block"), Some(20_000)));
    for key in ["programs", "erases", "merges", "map_writes", "ram_bytes", "open_reads", "writes_per_cpu_s"] {
        assert!(busy[key].as_f64().unwrap() > 0.0, "{key}: {busy}");
    }
    assert!(busy["steps"].is_null() && busy["operations"]["count"] == 20_000, "{busy}");
    assert!(cached["programs"].as_u64() < busy["programs"].as_u64(), "{cached} {busy}");
    assert!(bench(&["--idle", "300"])["steps"]["count"].as_u64().unwrap() > 0);
    let output = flexfs(&["bench", "ftl"]).assert().code(2).get_output().clone();
    assert!(String::from_utf8_lossy(&output.stderr).contains("--ftl"));
    let output = flexfs(&["bench", "gc", "--ftl", "log-block"]).assert().code(1).get_output().clone();
    assert!(common::is_one_line(&output.stderr));
}

/// Runs a bench that must be refused in one line, which says why once.
fn refused(arguments: &[&str], why: &str) {
    let output = flexfs(&["bench", "small"]).args(arguments).assert().code(1).get_output().clone();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(common::is_one_line(&output.stderr) && said.matches(why).count() == 1, "{said}");
}

#[test]
fn a_bench_runs_on_the_chip_asked_for_at_a_size_that_it_has() {
    let report = json(&mut flexfs(&["bench", "small", "--profile", "tlc-3d", "--json"]));
    assert_eq!((report["chip"].as_str(), report["chip_bytes"].as_u64()), (Some("tlc-3d"), Some(516 << 20)));
    refused(&["--size", "4MiB"], "take --size 6MiB");
    refused(&["--size", "6MiB"], "no space left on the chip");
    refused(&["--profile", "k9f5608u0m"], "cannot carry FlexFS");
}

#[test]
fn a_chip_described_in_a_file_is_measured_as_that_chip() {
    let dir = tempfile::tempdir().unwrap();
    let description = dir.path().join("mine.toml");
    let file = description.to_str().unwrap();
    let mut slow = Profile { name: "mine".into(), ..Profile::default() };
    slow.timing.slc.program_ns.iter_mut().for_each(|ns| *ns *= 10);
    fs::write(file, slow.to_toml().unwrap()).unwrap();
    json(&mut flexfs(&["bench", "fuse", "--size", "16MiB", "--json", "--profile", file]));
    let of = |profile: &str| json(&mut flexfs(&["bench", "small", "--size", "64MiB", "--json", "--profile", profile]));
    let (slow, usual) = (of(file), of(Profile::DEFAULT));
    assert_eq!(slow["chip"], "mine");
    assert!(slow["flash_s"].as_f64() > usual["flash_s"].as_f64().map(|usual_s| 3.0 * usual_s), "{slow} {usual}");
}

#[test]
fn a_bench_through_the_kernel_compares_with_a_file_system_that_only_keeps_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let report = json(flexfs(&["bench", "fuse", "--size", "16MiB", "--json"]).env("TMPDIR", dir.path()));
    let figures = report["figures"].as_array().unwrap();
    let named: Vec<_> = figures.iter().map(|figure| figure["name"].as_str().unwrap()).collect();
    let expected = ["write-1MiB", "write-4KiB", "read-1MiB", "read-4KiB", "create", "stat", "unlink", "synced", "list"];
    assert_eq!(named, expected);
    for figure in figures {
        let rate = |of: &str| figure[of].as_f64().unwrap();
        assert!(rate("flexfs") > 0.0 && rate("null") > 0.0, "{figure}");
        assert!((rate("ratio") - rate("flexfs") / rate("null")).abs() < 1e-9, "{figure}");
        assert!(figure["unit"] == "MB/s" || figure["unit"] == "/s", "{figure}");
    }
    assert_eq!(entries(dir.path()), [] as [PathBuf; 0], "no mount point is left behind");
    let mut table = flexfs(&["bench", "fuse", "--size", "16MiB"]);
    let table = String::from_utf8(table.assert().success().get_output().stdout.clone()).unwrap();
    assert_eq!(table.lines().count(), 1 + expected.len(), "{table}");
}

#[test]
fn an_interrupted_bench_through_the_kernel_leaves_no_mount() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = std::process::Command::new(env!("CARGO_BIN_EXE_flexfs"));
    bench.args(["bench", "fuse", "--size", "256MiB"]).env("TMPDIR", dir.path()).stderr(std::process::Stdio::piped());
    let bench = bench.spawn().unwrap();
    let mounted = || entries(dir.path()).first().is_some_and(|path| common::mount_type(path).is_some());
    common::wait_for("the mount", mounted);
    rustix::process::kill_process(rustix::process::Pid::from_child(&bench), rustix::process::Signal::INT).unwrap();
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 2), "as shells count what SIGINT ended");
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"), "{output:?}");
    assert!(!mounted());
    assert_eq!(entries(dir.path()), [] as [PathBuf; 0], "no mount point is left behind");
}
