//! Tortures one kind of chip, or one translation layer, until something is found, for `suites/mutants`: the part of the program that it needs, which
//! builds in a fraction of the time.
//!
//! `cargo run --release -p torture --example torture -- [--over codesign] --chip CHIP | --chip CHIP --exhaustive |
//! --chip CHIP --format used | --over codesign --media N | --ftl SCHEME` prints how many violations there are, and
//! the first one and how to see it again; a JSON object in a line. Exit status: 0 if there is none, 1 if there are, 2 if
//! it could not run.

use std::process::ExitCode;

use torture::crash::VolumeOver;
use torture::files::{self, Base, Campaign, Case, Cuts, Ground, Report, Script, Setup};
use torture::sectors;

/// Which chance events of busy histories are played: the ones of the program.
const SEED: u64 = 1;

/// The slice that continuous integration runs, or all cases, the shortest first.
fn cases(setup: &'static Setup, exhaustive: bool) -> Result<Report, String> {
    let mut cases = files::cases(&[setup], exhaustive, SEED)?;
    cases.sort_by_key(Case::len);
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    Ok(Campaign { cases, threads, fail_fast: true }.run(&|_| {}))
}

/// A format over a volume, cut everywhere.
fn format_used(setup: &'static Setup) -> Result<Report, String> {
    let case = Case::alone(setup, Ground::Tree, Script::Format { used: Some(Default::default()) });
    let base = Base::prepare(case.setup, case.ground)?;
    let mut findings = case.run(&base, Cuts::Planned);
    let found = std::mem::take(&mut findings.violations);
    let told = found.iter().map(|violation| (1, case.clone(), violation.clone())).collect();
    Ok(Report { findings, violations: found.len(), told })
}

/// Random histories over a drive on a failing medium.
fn failing_media(runs: &str) -> Result<usize, String> {
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let runs: u64 = runs.parse().map_err(|_| format!("{runs} is no number"))?;
    let report = files::media_runs(VolumeOver::Codesign, SEED..SEED + runs, None, threads, &|_| {});
    let first = report.violations.first();
    let object = serde_json::json!({
        "violations": report.violations.len(),
        "error": first.map(|violation| violation.error.clone()),
        "replay": first.map(files::MediaViolation::command),
    });
    println!("{object}");
    Ok(report.violations.len())
}

/// The histories of a translation layer that the program runs.
fn translation_layer(scheme: &str) -> Result<usize, String> {
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let (schemes, seed) = (vec![scheme.parse()?], SEED);
    let campaign = sectors::Campaign { schemes, histories: 2, steps: 60, seed, threads };
    let report = sectors::campaign(&campaign, &|_, _| {});
    let first = report.found.first();
    let object = serde_json::json!({
        "violations": report.found.len(),
        "error": first.map(|found| found.error.clone()),
        "replay": first.map(|found| found.history.command(&found.cut)),
    });
    println!("{object}");
    Ok(report.found.len())
}

fn run(arguments: &[String]) -> Result<usize, String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let report = match arguments[..] {
        ["--ftl", scheme] => return translation_layer(scheme),
        ["--over", "codesign", "--media", runs] => return failing_media(runs),
        ["--over", "codesign", "--chip", chip] => cases(Setup::named(chip)?.on(VolumeOver::Codesign), false)?,
        ["--chip", chip] => cases(Setup::named(chip)?, false)?,
        ["--chip", chip, "--exhaustive"] => cases(Setup::named(chip)?, true)?,
        ["--chip", chip, "--format", "used"] => format_used(Setup::named(chip)?)?,
        _ => {
            return Err("say [--over codesign] --chip CHIP, --chip CHIP --exhaustive, --chip CHIP --format used, --over codesign --media N, or \
                        --ftl SCHEME"
                .into());
        }
    };
    let first = report.told.first();
    let object = serde_json::json!({
        "violations": report.violations,
        "error": first.map(|(_, _, violation)| violation.error.clone()),
        "replay": first.map(|(_, case, violation)| case.command(violation)),
    });
    println!("{object}");
    Ok(report.violations)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::from(2)
        }
    }
}
