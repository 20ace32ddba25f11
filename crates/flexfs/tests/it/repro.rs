//! The repro command: what it prints and writes, and that work which is shared comes to the same.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::common::{flexfs, is_one_line, output, run};

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&run(flexfs(["repro", "--json"]).args(arguments))).unwrap()
}

/// One that must fail with one line.
fn refused(arguments: &[&str], status: i32) -> String {
    let Output { stderr, status: found, .. } = output(flexfs(["repro"]).args(arguments));
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert!(found.code() == Some(status) && is_one_line(&stderr), "{arguments:?}: {found} {said}");
    said
}

#[test]
fn every_row_has_the_papers_figure_ours_and_a_bar_and_says_what_it_was_run_with() {
    let all = json(&["table1", "fig4"]);
    let ids: Vec<_> = all.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["table1", "fig4"]);
    for row in all.as_array().unwrap().iter().flat_map(|one| one["rows"].as_array().unwrap()) {
        assert!(row["name"].is_string() && row["unit"].is_string() && row["ours"].is_number(), "{row}");
        assert!(row["ok"] == true && row["parameters"]["chip"].is_string(), "{row}");
        assert!(row.get("paper").is_some() && row.get("bar").is_some(), "{row}");
    }
    let table = &all[0]["rows"];
    assert_eq!((&table[0]["paper"], &table[0]["ours"]), (&Value::from(399.0), &Value::from(399.0)));
    assert_eq!(json(&["table1"]), all[0], "one is an object");
    assert!(run(&mut flexfs(["repro", "fig4"])).contains("SLC blocks emptied"));
}

#[test]
fn all_experiments_and_their_jobs_are_listed() {
    let list = run(&mut flexfs(["repro", "--list"]));
    for line in ["table1  Table 1", "\n  fig10.64MiB.bm\n", "\n  fig10.512MiB.bm  (--long)\n", "\n  fig13.none.01\n"] {
        assert!(list.contains(line), "{list}");
    }
    let listed = json(&["--list", "fig4"]);
    assert_eq!(listed[0]["jobs"][0]["name"], "fig4.migration");
}

#[test]
fn jobs_run_apart_and_merged_give_the_rows_of_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let (results, report) = (dir.path().join("results"), dir.path().join("report"));
    let results = results.to_str().unwrap();
    let whole = json(&["table1", "--jobs", "1"]);
    let listed = json(&["--list", "table1"]);
    let names: Vec<_> = listed[0]["jobs"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap()).collect();
    for name in names.iter().rev() {
        let told = run(&mut flexfs(["repro", "--only", name, "--out", results]));
        assert!(fs::exists(told.trim_end()).unwrap(), "{told}");
    }
    let merged = json(&["table1", "--merge", results, "--out", report.to_str().unwrap()]);
    assert_eq!(merged, whole);
    // To the last digit, which a reader of JSON may round.
    let text = |args: &[&str]| run(flexfs(["repro", "--json", "table1"]).args(args));
    assert_eq!(text(&["--merge", results]), text(&["--jobs", "2"]));
    let page = fs::read_to_string(report.join("index.html")).unwrap();
    assert!(page.contains("Table 1") && page.contains("1809") && report.join("table1-times.csv").exists());

    fs::remove_file(dir.path().join("results").join("table1.lsb.json")).unwrap();
    let said = refused(&["table1", "--merge", results], 1);
    assert!(said.contains("table1.lsb") && !said.contains("table1.both"), "{said}");
    let wrong = dir.path().join("results").join("table1.lsb.json");
    fs::copy(dir.path().join("results").join("table1.both.json"), wrong).unwrap();
    assert!(refused(&["table1", "--merge", results], 1).contains("table1.lsb.json: not a result of table1.lsb"));
}

#[test]
fn what_there_is_not_is_named() {
    let said = refused(&["fig99"], 2);
    assert!(said.contains("fig99") && said.contains("fig10"), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    assert!(refused(&["--only", "fig10.1TiB", "--out", out], 2).contains("--list"));
    assert!(refused(&["--only", "table1.slc"], 2).contains("--out"));
    assert!(refused(&["table1", "--merge", "/nowhere"], 1).contains("/nowhere"));
}
