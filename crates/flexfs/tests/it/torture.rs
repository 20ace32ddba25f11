//! The torture command: what it prints, and that single cases are run again as they are asked for.

use crate::common::{flexfs, is_one_line, output, run};

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&run(flexfs(["torture", "--json"]).args(arguments))).unwrap()
}

#[test]
fn a_script_is_cut_everywhere_and_its_recoveries_again() {
    let report = json(&["--chip", "native", "--ops", "write foo 0 4096; sync; rename foo B/foo; unmount"]);
    let number = |name: &str| report[name].as_u64().unwrap();
    assert_eq!((number("sequences"), number("violations"), number("seed")), (1, 0, 1), "{report}");
    assert!(number("cuts") > number("points") && number("points") > 5, "{report}");
    assert!(number("double_cuts") > 0 && number("triple_cuts") > 0 && report["seconds"].as_f64().is_some(), "{report}");
}

#[test]
fn of_a_script_only_the_cuts_that_are_named_are_judged() {
    let cuts = ["--chip", "slc", "--ops", "write foo 0 4096; sync", "--cut", "2:garbage", "--cut", "0:old"];
    let report = json(&cuts);
    assert_eq!((report["cuts"].as_u64(), report["double_cuts"].as_u64()), (Some(1), Some(1)), "{report}");
    let mix = json(&["--chip", "lz4", "--ground", "full", "--mix", "5", "--keep", "0-1,9"]);
    assert!(mix["violations"] == 0 && mix["points"].as_u64() > Some(0), "{mix}");
}

#[test]
fn calls_that_meet_work_under_way_are_counted() {
    let ops = "stir checkpoint; create new; sync; stir emptying; unlink new; sync";
    let report = json(&["--chip", "no-cache", "--ground", "busy", "--ops", ops, "--cut", "after:2"]);
    let met = |work: &str| report["calls_during"][work].as_u64();
    assert!(met("checkpoint") >= Some(1) && met("emptying") >= Some(1) && report["violations"] == 0, "{report}");
}

#[test]
fn formatting_is_cut_on_a_used_chip_and_on_a_new_one() {
    // Of a new chip no block is erased.
    for (chip, points) in [("used", 40..400), ("new", 1..10)] {
        let report = json(&["--chip", "tlc", "--format", chip, "--cut", "1:garbage", "--cut", "0:old"]);
        let number = |name: &str| report[name].as_u64();
        assert_eq!(
            (number("cuts"), number("double_cuts"), number("violations")),
            (Some(1), Some(1), Some(0)),
            "{report}"
        );
        assert!(number("points").is_some_and(|count| points.contains(&count)), "{report}");
    }
}

#[test]
fn histories_on_a_failing_medium_are_run_by_seed() {
    let report = json(&["--media", "12", "--seed", "40"]);
    let number = |name: &str| report[name].as_u64().unwrap();
    assert_eq!((number("seed"), number("sequences"), number("violations")), (40, 12, 0), "{report}");
    assert!(number("calls") > 12 * 50 && number("failures") > 0 && number("corrected_bits") > 0, "{report}");
    assert_eq!(report["found"], serde_json::json!([]));
    let again = json(&["--media", "12", "--seed", "40", "--threads", "1"]);
    let counts = ["calls", "cuts", "failures", "corrected_bits", "refused_reads"];
    assert!(counts.iter().all(|&name| report[name] == again[name]), "{report} {again}");
    assert!(run(&mut flexfs(["torture", "--media", "1"])).contains("violations"));
    let part = json(&["--media", "12", "--seed", "40", "--keep", "0-9,50-59"]);
    assert!((1..=12 * 20).contains(&part["calls"].as_u64().unwrap()), "{part}");
    for wrong in ["240", "5-3", "x"] {
        let told = output(&mut flexfs(["torture", "--media", "1", "--keep", wrong]));
        assert!(!told.status.success() && is_one_line(&told.stderr), "{told:?}");
    }
}

#[test]
fn how_far_torture_is_goes_to_standard_error() {
    let told = output(&mut flexfs(["torture", "--media", "3", "--json", "--threads", "2"]));
    let report: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let lines = String::from_utf8(told.stderr).unwrap();
    let cuts = report["cuts"].as_u64().unwrap();
    assert!(lines.lines().count() == 3 && lines.starts_with("torture: 33 %, "), "{lines}");
    assert!(lines.ends_with(&format!("torture: 100 %, {cuts} cuts, 0 violations\n")), "{lines} {report}");
}

#[test]
fn what_has_nothing_to_do_with_a_failing_medium_is_refused_beside_it() {
    let others: [&[&str]; 10] = [
        &["--exhaustive"],
        &["--fail-fast"],
        &["--chip", "slc"],
        &["--ground", "full"],
        &["--chip", "slc", "--ops", "sync"],
        &["--chip", "slc", "--format", "new"],
        &["--cut", "0:old"],
        &["--mix", "1"],
        &["--failing"],
        &["--quiet", "1"],
    ];
    for other in others {
        let told = output(flexfs(["torture", "--media", "3"]).args(other));
        let said = String::from_utf8_lossy(&told.stderr);
        assert!(!told.status.success() && is_one_line(&told.stderr), "{said}");
        assert!(said.contains("cannot be used with"), "{said}");
    }
    assert!(!output(&mut flexfs(["torture", "--media", "0"])).status.success());
}

#[test]
fn what_cannot_be_run_is_named() {
    let wrong = [
        (["--chip", "qlc", "--ops", "sync"], "native"),
        (["--chip", "slc", "--ops", "fly foo"], "no operation is named"),
        (["--chip", "slc", "--cut", "3:ripped"], "no tear is named"),
        (["--chip", "slc", "--mix", "3"], "--keep"),
    ];
    let nowhere = ["--chip", "slc", "--ops", "sync", "--cut", "900:old"];
    let wrong = wrong.iter().map(|(arguments, said)| (&arguments[..], *said));
    for (arguments, said) in wrong.chain([(&nowhere[..], "nothing to cut at 900:old")]) {
        let told = output(flexfs(["torture"]).args(arguments)).stderr;
        assert!(
            is_one_line(&told) && String::from_utf8_lossy(&told).contains(said),
            "{}",
            String::from_utf8_lossy(&told)
        );
    }
}

#[test]
fn a_translation_layer_is_cut_at_every_operation_of_its_histories() {
    let report = json(&["--ftl", "log-block"]);
    let number = |name: &str| report[name].as_u64().unwrap();
    assert!(number("cuts") > 10_000 && number("double_cuts") > 0 && number("triple_cuts") > 0, "{report}");
    assert!(["merges", "switches", "map_copies", "swaps"].iter().all(|&name| number(name) > 0), "{report}");
    assert_eq!(report["found"], serde_json::json!([]));
}

#[test]
fn one_cut_of_a_translation_layer_s_history_is_tried_again() {
    let one = ["--ftl", "log-block-scanned", "--rig", "wide", "--history", "3", "--step", "7", "--cut", "0:garbage"];
    assert_eq!(json(&one)["violations"], 0);
    let wrong = output(flexfs(["torture"]).args(one).args(["--cut", "after:3"]));
    assert!(is_one_line(&wrong.stderr) && String::from_utf8_lossy(&wrong.stderr).contains("after:3"), "{wrong:?}");
}

#[test]
fn translation_layers_are_run_on_a_failing_medium() {
    let report = json(&["--ftl", "all", "--media", "20"]);
    assert!(report["violations"] == 0 && report["media"][0]["failures"].as_u64() > Some(0), "{report}");
}
