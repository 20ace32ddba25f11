//! `flexfs torture`: cuts the power of emulated volumes everywhere, and says what did not survive it.
//!
//! Invariant: for each kind of violation there is a command that shows it again.

mod sectors;
mod watch;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use torture::files::{
    self, Base, Campaign, Case, Cuts, MEDIA_STEPS, MediaReport, MediaViolation, Report, Script, Setup, Violation,
};

use crate::output::{grouped, table};
use crate::{cli, output};
use watch::watched;

/// Kinds of violations that people are told.
const TOLD_MAX: usize = 10;

pub fn run(args: &cli::Torture) -> Result<ExitCode> {
    if let Some(schemes) = &args.sectors.ftl {
        return sectors::run(args, schemes);
    }
    let start = Instant::now();
    if let Some(runs) = args.media {
        let report = media(runs, args)?;
        let seconds = start.elapsed().as_secs_f64();
        output::say(&if args.json { media_json(&report, args.seed, seconds) } else { media_text(&report, seconds) })?;
        return Ok(status(report.violations.len()));
    }
    let report = match one_case(args)? {
        Some(case) => replay(&case, args),
        None => campaign(args),
    };
    let report = report.map_err(|error| anyhow!("torture: {error}"))?;
    let seconds = start.elapsed().as_secs_f64();
    output::say(&if args.json { to_json(&report, args.seed, seconds).to_string() } else { to_text(&report, seconds) })?;
    Ok(status(report.violations))
}

fn status(violations: usize) -> ExitCode {
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The case that is to be run by itself.
fn one_case(args: &cli::Torture) -> Result<Option<Case>> {
    let replay = &args.replay;
    let script = match (&replay.ops, replay.mix, &replay.keep, replay.format) {
        (Some(_), .., Some(cli::Formatted::New)) => bail!("torture: there is no volume on a new chip to run --ops on"),
        (.., Some(cli::Formatted::New)) => Script::Format { used: None },
        (ops, .., Some(cli::Formatted::Used)) => Script::Format { used: Some(ops.clone().unwrap_or_default()) },
        (Some(ops), ..) => Script::Ops { ops: ops.clone(), quiet: replay.quiet },
        (_, Some(seed), Some(keep), _) => Script::Mix { seed, keep: keep.clone(), failing: replay.failing },
        _ => return Ok(None),
    };
    Ok(args.chip.map(|chip| Case::alone(chip.on(args.over.unwrap_or_default()), replay.ground, script)))
}

fn replay(case: &Case, args: &cli::Torture) -> Result<Report, String> {
    let base = Base::prepare(case.setup, case.ground)?;
    let cuts = if args.replay.cuts.is_empty() { Cuts::Planned } else { Cuts::Only(&args.replay.cuts) };
    let mut findings = case.run(&base, cuts);
    let judged = [findings.cuts, findings.double_cuts, findings.triple_cuts];
    if let Some(missed) = args.replay.cuts.iter().zip(judged).find_map(|(cut, judged)| (judged == 0).then_some(cut)) {
        return Err(format!(
            "there is nothing to cut at {missed}: the script, or the recovery, does not come that far"
        ));
    }
    let found = std::mem::take(&mut findings.violations);
    let told = found.iter().map(|violation| (1, case.clone(), violation.clone())).collect();
    Ok(Report { findings, violations: found.len(), told })
}

fn campaign(args: &cli::Torture) -> Result<Report, String> {
    let over = args.over.unwrap_or_default();
    let setups: Vec<&Setup> =
        args.chip.map_or_else(|| Setup::all_over(over).iter().collect(), |chip| vec![chip.on(over)]);
    let mut cases = files::cases(&setups, args.exhaustive, args.seed)?;
    if args.fail_fast {
        // What a short one shows is shown soon, and easy to follow.
        cases.sort_by_key(Case::len);
    }
    let campaign = Campaign { cases, threads: threads(args), fail_fast: args.fail_fast };
    Ok(watched(|progress| campaign.run(progress)))
}

fn media(runs: u64, args: &cli::Torture) -> Result<MediaReport> {
    let (seeds, keep) = (args.seed..args.seed.saturating_add(runs), args.replay.keep.as_deref());
    if let Some(missing) = keep.unwrap_or_default().iter().find(|&&step| step >= MEDIA_STEPS) {
        bail!("torture: --keep {missing}: the steps of a history are numbered 0 to {}", MEDIA_STEPS - 1);
    }
    let over = args.over.unwrap_or_default();
    Ok(watched(|progress| files::media_runs(over, seeds, keep, threads(args), progress)))
}

fn threads(args: &cli::Torture) -> usize {
    args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into))
}

fn to_json(report: &Report, seed: u64, seconds: f64) -> Value {
    let found = &report.findings;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "sequences": found.cases,
        "points": found.points,
        "cuts": found.cuts,
        "double_cuts": found.double_cuts,
        "triple_cuts": found.triple_cuts,
        "paired_cuts": found.paired_cuts,
        "no_space": found.no_space,
        "longest_recovery": found.longest_recovery,
        "programs": { "migration": found.migrated, "gc": found.collected, "wear_level": found.levelled },
        "failures": found.failures,
        "calls_during": { "checkpoint": found.met_checkpoints, "emptying": found.met_emptyings },
        "violations": report.violations,
        "seconds": seconds,
        "found": report.told.iter().map(violation_json).collect::<Vec<_>>(),
    })
}

fn violation_json((count, case, violation): &(usize, Case, Violation)) -> Value {
    json!({
        "count": count,
        "error": violation.error,
        "step": violation.step,
        "during": violation.during,
        "cuts": violation.cuts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "replay": case.command(violation),
    })
}

fn to_text(report: &Report, seconds: f64) -> String {
    let found = &report.findings;
    let mut text = String::new();
    for (count, case, violation) in report.told.iter().take(TOLD_MAX) {
        text += &format!("{} like this one, {violation}\n  {}\n\n", grouped(*count as u64), case.command(violation));
    }
    if let Some(more) = report.told.len().checked_sub(TOLD_MAX).filter(|&more| more > 0) {
        text += &format!("{} kinds more: --json tells them all\n\n", grouped(more as u64));
    }
    let number = |count: usize| grouped(count as u64);
    let rows = [
        ("sequences", number(found.cases)),
        ("flash operations cut", number(found.points)),
        ("cuts", number(found.cuts)),
        ("again in the recovery", number(found.double_cuts)),
        ("and again", number(found.triple_cuts)),
        ("with the loss of a pair", number(found.paired_cuts)),
        ("calls during a checkpoint", number(found.met_checkpoints)),
        ("while a block was emptied", number(found.met_emptyings)),
        ("longest recovery", format!("{} programs and erases", grouped(found.longest_recovery))),
        ("violations", number(report.violations)),
        ("time", format!("{seconds:.1} s")),
    ];
    text + &table(&rows)
}

fn media_json(report: &MediaReport, seed: u64, seconds: f64) -> String {
    let all = &report.all;
    let violation = |violation: &MediaViolation| json!({ "seed": violation.seed, "error": violation.error, "replay": violation.command() });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "sequences": report.runs,
        "calls": all.tally.calls,
        "cuts": all.tally.cuts + all.tally.mount_cuts,
        "migrated": all.tally.migrated,
        "collected": all.tally.collected,
        "failures": all.failures,
        "outages": all.tally.outages,
        "corrected_bits": all.corrected_bits,
        "refused_reads": all.refused_reads,
        "refused_mounts": all.refused_mounts,
        "written_beside": all.written_beside,
        "violations": report.violations.len(),
        "seconds": seconds,
        "found": report.violations.iter().map(violation).collect::<Vec<_>>(),
    })
    .to_string()
}

fn media_text(report: &MediaReport, seconds: f64) -> String {
    let all = &report.all;
    let violation = |violation: &MediaViolation| format!("{}\n  {}\n\n", violation.error, violation.command());
    let told = report.violations.iter().map(violation);
    let rows = [
        ("histories", grouped(report.runs)),
        ("calls", grouped(all.tally.calls as u64)),
        ("power cuts", grouped((all.tally.cuts + all.tally.mount_cuts) as u64)),
        ("programs that migrated", grouped(all.tally.migrated)),
        ("programs that collected", grouped(all.tally.collected)),
        ("programs and erases failed", grouped(all.failures)),
        ("outages of the chip met", grouped(all.tally.outages as u64)),
        ("bits corrected", grouped(all.corrected_bits)),
        ("looks at damaged pages refused", grouped(all.refused_reads)),
        ("damaged volumes not mounted", grouped(all.refused_mounts)),
        ("damaged volumes that took a file", grouped(all.written_beside)),
        ("violations", grouped(report.violations.len() as u64)),
        ("time", format!("{seconds:.1} s")),
    ];
    told.collect::<String>() + &table(&rows)
}
