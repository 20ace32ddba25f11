//! `flexfs repro`: the paper's experiments on emulated chips, and whether their figures are good enough.
//!
//! Invariant: what is printed and written follows from the jobs' results alone, wherever and in whatever order they ran,
//! and a result that is missing is named.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lab::experiment::{self, Experiment, Job, Results, Row};
use lab::report::{self, Finding};
use serde_json::{Value, json};

use super::watched;
use crate::cli::{self, Asked};
use crate::destination::Destinations;
use crate::host::At;
use crate::{output, progress};

pub fn run(args: &cli::Repro) -> Result<ExitCode> {
    let chosen = chosen(&args.ids);
    if args.list {
        output::say(&list(&chosen, args.json))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let (Some(name), Some(dir)) = (&args.only, &args.out) {
        return only(name, dir, args.json);
    }
    let findings = findings(&chosen, args)?;
    if let Some(dir) = &args.out {
        write_report(dir, &findings)?;
    }
    output::say(&if args.json { to_json(&findings, is_one(&args.ids)) } else { to_text(&findings) })?;
    for Finding { experiment, missing, .. } in &findings {
        if !missing.is_empty() {
            output::complain(&format!("{}: these jobs have no result: {}", experiment.id, missing.join(", ")));
        }
    }
    Ok(if findings.iter().all(Finding::is_ok) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes a report into a directory: made beside it first, so that nothing is written over that must stay.
fn write_report(dir: &Path, findings: &[Finding]) -> Result<()> {
    fs::create_dir_all(dir).at(dir)?;
    let draft = tempfile::Builder::new().prefix(".flexfs-repro-").tempdir_in(dir).at(dir)?;
    report::write(draft.path(), findings)?;
    Destinations::default().move_all(draft.path(), dir)
}

/// The experiments that are asked for, each once, in the paper's order.
fn chosen(ids: &[Asked]) -> Vec<Experiment> {
    let is_chosen = |experiment: &Experiment| {
        ids.is_empty() || ids.iter().any(|asked| matches!(asked, Asked::All) || is(asked, experiment.id))
    };
    experiment::ALL.into_iter().filter(is_chosen).collect()
}

fn is(asked: &Asked, id: &str) -> bool {
    matches!(asked, Asked::One(one) if one.id == id)
}

/// Whether one experiment is asked for by its id.
fn is_one(ids: &[Asked]) -> bool {
    matches!(ids, [Asked::One(_)])
}

/// The jobs of an experiment, those that take long left out unless they are asked for.
fn jobs(experiment: &Experiment, long: bool) -> Vec<Job> {
    (experiment.jobs)().into_iter().filter(|job| long || !job.is_long).collect()
}

fn list(chosen: &[Experiment], as_json: bool) -> String {
    let job_json = |job: &Job| json!({ "name": job.name, "long": job.is_long });
    if as_json {
        let each = |experiment: &Experiment| {
            let jobs = jobs(experiment, true).iter().map(job_json).collect::<Vec<_>>();
            json!({ "id": experiment.id, "title": experiment.title, "jobs": jobs })
        };
        return Value::from(chosen.iter().map(each).collect::<Vec<_>>()).to_string();
    }
    let mut lines = Vec::new();
    for experiment in chosen {
        lines.push(format!("{}  {}", experiment.id, experiment.title));
        let name = |job: Job| format!("  {}{}", job.name, if job.is_long { "  (--long)" } else { "" });
        lines.extend(jobs(experiment, true).into_iter().map(name));
    }
    lines.join("\n")
}

/// Where the result of a job stands in a directory of results.
fn result_name(job: &str) -> String {
    format!("{job}.json")
}

/// Runs one job and writes its result.
fn only(name: &str, dir: &Path, as_json: bool) -> Result<ExitCode> {
    let mut all = experiment::ALL.iter().flat_map(|experiment| (experiment.jobs)());
    let Some(job) = all.find(|job| job.name == name) else {
        output::complain(&format!("repro: there is no job \"{name}\"; `flexfs repro --list` names all"));
        return Ok(ExitCode::from(cli::WRONG_USAGE));
    };
    fs::create_dir_all(dir).at(dir)?;
    let result = (job.run)().with_context(|| name.to_owned())?;
    let path = dir.join(result_name(name));
    let text = json!({ "version": env!("CARGO_PKG_VERSION"), "job": name, "result": result }).to_string();
    Destinations::default().write(&path, text.as_bytes())?;
    output::say(&if as_json { text } else { path.display().to_string() })?;
    Ok(ExitCode::SUCCESS)
}

/// What the experiments found, by running them or by what others found.
fn findings(chosen: &[Experiment], args: &cli::Repro) -> Result<Vec<Finding>> {
    let all: Vec<Job> = chosen.iter().flat_map(|experiment| jobs(experiment, args.long)).collect();
    let results = match &args.merge {
        Some(dir) => merged(chosen, dir)?,
        None if args.top => watched::run(all)?,
        None => run_all(&all, args)?,
    };
    let finding = |&experiment: &Experiment| {
        let outcome = (experiment.finish)(&results).with_context(|| experiment.id)?;
        let names = jobs(&experiment, args.long).into_iter().map(|job| job.name);
        Ok(Finding { experiment, outcome, missing: names.filter(|name| !results.has(name)).collect() })
    };
    chosen.iter().map(finding).collect()
}

fn run_all(all: &[Job], args: &cli::Repro) -> Result<Results> {
    let threads = args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from);
    let bar = progress::share("repro");
    bar.set_length(all.len() as u64);
    let results = experiment::run(all, threads, &|done| bar.set_position(done));
    bar.finish_and_clear();
    results.map_err(|(job, error)| anyhow::Error::new(error).context(job))
}

/// The results that a directory holds, those of long jobs included.
fn merged(chosen: &[Experiment], dir: &Path) -> Result<Results> {
    fs::read_dir(dir).at(dir)?;
    let mut results = Results::default();
    for Job { name, .. } in chosen.iter().flat_map(|experiment| jobs(experiment, true)) {
        let path = dir.join(result_name(&name));
        if !path.exists() {
            continue;
        }
        let text = fs::read_to_string(&path).at(&path)?;
        let mut file: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        if file["job"] != name.as_str() || file["version"] != env!("CARGO_PKG_VERSION") {
            bail!("{}: not a result of {name} by this version of flexfs", path.display());
        }
        results.insert(name, file["result"].take());
    }
    Ok(results)
}

fn to_json(findings: &[Finding], one: bool) -> String {
    let each = |finding: &Finding| {
        let mut object = json!({ "id": finding.experiment.id, "rows": finding.outcome.rows });
        if !finding.missing.is_empty() {
            object["missing"] = json!(finding.missing);
        }
        object
    };
    let mut all: Vec<Value> = findings.iter().map(each).collect();
    if one { all.remove(0) } else { Value::from(all) }.to_string()
}

fn to_text(findings: &[Finding]) -> String {
    findings.iter().map(section).collect::<Vec<_>>().join("\n\n")
}

/// An experiment's rows below each other.
fn section(finding: &Finding) -> String {
    let header = ["", "paper", "ours", "", "bar", ""].map(str::to_owned);
    let lines: Vec<[String; 6]> = std::iter::once(header).chain(finding.outcome.rows.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(width);
    let mut text = finding.experiment.title.to_owned();
    let reasons = std::iter::once("").chain(finding.outcome.rows.iter().map(|row| row.reason));
    for ([name, paper, ours, unit, bar, verdict], reason) in lines.iter().zip(reasons) {
        let [a, b, c, d, e] = widths;
        let line = format!("{name:a$}  {paper:>b$}  {ours:>c$}  {unit:d$}  {bar:e$}  {verdict}");
        text += &format!("\n  {}", line.trim_end());
        if !reason.is_empty() {
            text += &format!("\n    ({reason})");
        }
    }
    text
}

fn cells(row: &Row) -> [String; 6] {
    let figure = |value: f64| format!("{value:.*}", if value.fract() == 0.0 { 0 } else { 3 });
    let (paper, bar) = (row.paper.map(figure).unwrap_or_default(), row.bar.to_string());
    [row.name.clone(), paper, figure(row.ours), row.unit.to_owned(), bar, row.verdict().to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::experiment::{Bar, Outcome, Parameters};

    #[test]
    fn rows_stand_below_each_other_and_what_is_not_ok_is_seen() {
        let row = |name: &str, ours, bar| Row::shown(name, ours, "µs", &Parameters::default()).bar(bar);
        let open = row("open", 1.5, Bar::AtMost(1.0)).open("no card yet");
        let rows = vec![row("short", 1.5, Bar::AtMost(1.0)), row("much longer", 20.0, Bar::Shown), open];
        let outcome = Outcome { rows, ..Outcome::default() };
        let experiment = experiment::ALL[0];
        let text = section(&Finding { experiment, outcome, missing: Vec::new() });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "  short               1.500  µs  ≤ 1  NOT OK", "{text}");
        assert_eq!(lines[3], "  much longer            20  µs", "{text}");
        assert_eq!(lines[4..], ["  open                1.500  µs  ≤ 1  open", "    (no card yet)"], "{text}");
    }
}
