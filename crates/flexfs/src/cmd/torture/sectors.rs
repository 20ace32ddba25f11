//! `flexfs torture --ftl`: translation layers instead of the file system.
//!
//! Invariant: for each violation there is a command that shows it again.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use emulator::InFlightLoss;
use ftl::Scheme;
use serde_json::{Value, json};
use torture::sectors::{self, Campaign, Cut, Found, History, MediaReport, Report, Rig};

use super::{TOLD_MAX, status, threads};
use crate::output::{grouped, table};
use crate::{cli, output, progress};

/// Histories of each scheme on each kind of chip, and steps of each.
const SOME: (u64, usize) = (2, 60);
/// The same with `--exhaustive`.
const ALL: (u64, usize) = (6, 90);

pub fn run(args: &cli::Torture, schemes: &[Scheme]) -> Result<ExitCode> {
    let start = Instant::now();
    if let Some((history, cut)) = one_history(args, schemes)? {
        let outcome = history.replay(&cut);
        let found = outcome.err().map(|error| Found { history, cut, error });
        let report = Report { found: found.into_iter().collect(), ..Report::default() };
        return told(args, &report, &[], start);
    }
    if let Some(runs) = args.media {
        let reports = schemes.iter().map(|&scheme| {
            let seeds = args.seed..args.seed.saturating_add(runs);
            (scheme, sectors::media_runs(scheme, seeds, threads(args)))
        });
        return told(args, &Report::default(), &reports.collect::<Vec<_>>(), start);
    }
    let (histories, steps) = if args.exhaustive { ALL } else { SOME };
    let campaign = Campaign { schemes: schemes.to_vec(), histories, steps, seed: args.seed, threads: threads(args) };
    let bar = progress::share("torture");
    let report = sectors::campaign(&campaign, &|done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    told(args, &report, &[], start)
}

/// The history, and the cut in it, that is to be tried alone.
fn one_history(args: &cli::Torture, schemes: &[Scheme]) -> Result<Option<(History, Cut)>> {
    let asked = &args.sectors;
    let (Some(seed), Some(kind), Some(step)) = (asked.history, asked.rig, asked.step) else { return Ok(None) };
    let &[scheme] = schemes else { bail!("torture: --history is one of one scheme: name it with --ftl") };
    let tears = args.replay.cuts.iter().map(|cut| match cut {
        torture::files::Cut::In(operation, tear, InFlightLoss::Off) => Ok((*operation, tear.kind)),
        after => Err(anyhow!("torture: --cut {after}: a history of a translation layer is cut in an operation")),
    });
    let cut = Cut { step, tears: tears.collect::<Result<_>>()? };
    Ok(Some((History { rig: Rig { scheme, kind }, seed, steps: step + 1 }, cut)))
}

fn told(args: &cli::Torture, report: &Report, media: &[(Scheme, MediaReport)], start: Instant) -> Result<ExitCode> {
    let seconds = start.elapsed().as_secs_f64();
    let violations = report.found.len() + media.iter().map(|(_, report)| report.violations.len()).sum::<usize>();
    output::say(&match args.json {
        true => to_json(args, report, media, seconds).to_string(),
        false => to_text(report, media, violations, seconds),
    })?;
    Ok(status(violations))
}

fn media_command(scheme: Scheme, seed: u64) -> String {
    format!("flexfs torture --ftl {scheme} --media 1 --seed {seed}")
}

fn to_json(args: &cli::Torture, report: &Report, media: &[(Scheme, MediaReport)], seconds: f64) -> Value {
    let all = &report.findings;
    let cut = report.found.iter().map(|found| {
        let replay = found.history.command(&found.cut);
        json!({ "error": found.error, "replay": replay })
    });
    let failed = media.iter().flat_map(|(scheme, report)| {
        let found = report.violations.iter();
        found.map(|(seed, error)| json!({ "error": error, "replay": media_command(*scheme, *seed) }))
    });
    let found: Vec<Value> = cut.chain(failed).collect();
    let media = media.iter().map(|(scheme, report)| {
        json!({
            "scheme": scheme.name(),
            "histories": report.histories,
            "steps": report.steps,
            "failures": report.failures,
            "corrected_bits": report.corrected_bits,
        })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": args.seed,
        "points": all.points,
        "cuts": all.cuts,
        "double_cuts": all.double_cuts,
        "triple_cuts": all.triple_cuts,
        "merges": all.merges,
        "partial_merges": all.partial_merges,
        "switches": all.switches,
        "map_writes": all.map_writes,
        "map_copies": all.map_copies,
        "swaps": all.swaps,
        "media": media.collect::<Vec<_>>(),
        "violations": found.len(),
        "seconds": seconds,
        "found": found,
    })
}

fn to_text(report: &Report, media: &[(Scheme, MediaReport)], violations: usize, seconds: f64) -> String {
    let mut text = String::new();
    for found in report.found.iter().take(TOLD_MAX) {
        text += &format!("{}\n  {}\n\n", found.error, found.history.command(&found.cut));
    }
    let mut rows = Vec::new();
    if media.is_empty() {
        let all = &report.findings;
        let numbers = [
            ("flash operations cut", all.points),
            ("cuts", all.cuts),
            ("again in the recovery", all.double_cuts),
            ("and again", all.triple_cuts),
            ("merges", all.merges),
            ("partial merges", all.partial_merges),
            ("switches", all.switches),
            ("map pages written", all.map_writes),
            ("map pages copied", all.map_copies),
            ("map blocks exchanged", all.swaps),
        ];
        rows.extend(numbers.map(|(name, number)| (name, grouped(number))));
    }
    for (scheme, report) in media {
        for (seed, error) in report.violations.iter().take(TOLD_MAX) {
            text += &format!("{error}\n  {}\n\n", media_command(*scheme, *seed));
        }
        rows.push((scheme.name(), format!("{} histories", grouped(report.histories))));
        rows.push(("requests", grouped(report.steps)));
        rows.push(("programs and erases failed", grouped(report.failures)));
        rows.push(("bits corrected", grouped(report.corrected_bits)));
    }
    rows.push(("violations", grouped(violations as u64)));
    rows.push(("time", format!("{seconds:.1} s")));
    text + &table(&rows)
}
