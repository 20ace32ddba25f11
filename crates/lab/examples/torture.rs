//! Tortures one kind of chip until something is found, for `suites/mutants`: the part of the program that it needs, which
//! builds in a fraction of the time.
//!
//! `cargo run --release -p lab --example torture -- --chip CHIP [--format used]` prints how many violations there are, and
//! the first one and how to see it again; a JSON object in a line. Exit status: 0 if there is none, 1 if there are, 2 if
//! it could not run.

use std::process::ExitCode;

use lab::torture::{self, Base, Campaign, Case, Cuts, Ground, Report, Script, Setup};

/// Which chance events of busy histories are played: the ones of the program.
const SEED: u64 = 1;

/// The slice that continuous integration runs, the shortest cases first.
fn slice(setup: &'static Setup) -> Result<Report, String> {
    let mut cases = torture::cases(&[setup], false, SEED)?;
    cases.sort_by_key(Case::len);
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    Ok(Campaign { cases, threads, fail_fast: true }.run(&|_, _, _: &[String]| {}))
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

fn run(arguments: &[String]) -> Result<usize, String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let report = match arguments[..] {
        ["--chip", chip] => slice(Setup::named(chip)?)?,
        ["--chip", chip, "--format", "used"] => format_used(Setup::named(chip)?)?,
        _ => return Err("say --chip CHIP, or --chip CHIP --format used".into()),
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
