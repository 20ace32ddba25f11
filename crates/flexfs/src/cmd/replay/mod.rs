//! `flexfs replay`: what was recorded, asked again. Its first line says whether it is a trace of files, one of blocks or
//! decisions.

mod blocks;
mod source;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use flexfs_core::Wanted;
use lab::bench::Distribution;
use lab::play::{self, Answered, Replayed, Setting};
use lab::trace::{self, ReadOptions, Trace, block};
use serde_json::json;
use torture::record;

use crate::output::{grouped, table};
use crate::play_in::{self, Pace};
use crate::{chips, cli, image, output, progress, size};
use source::RecordingSource;

/// Decides the chance events of a new chip.
const SEED: u64 = 1;
/// The size that a new chip is to have.
const USUAL_BYTES: u64 = 512 << 20;

pub fn run(args: &cli::Replay) -> Result<ExitCode> {
    let source = RecordingSource::read(&args.recording)?;
    let RecordingSource { shown, bytes } = &source;
    if let Some(scheme) = args.ftl {
        output::say(&blocks::on_layer(args, &source, scheme)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if block::begins(bytes) {
        bail!("{shown}: this is a block trace; name a translation layer with --ftl");
    }
    if record::begins(bytes) {
        let Some(image) = &args.target else {
            bail!("{shown}: these are decisions; name a copy of the image as it was when they were recorded");
        };
        output::say(&decisions(args, &source, image)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let read = trace::read_with(bytes, &read_options(args)).map_err(|error| anyhow!("{shown}: {error}"))?;
    if read.unknown_calls > 0 {
        output::complain(&format!("{shown}: calls that are not known, passed over: {}", grouped(read.unknown_calls)));
    }
    let mut trace = read.trace;
    if args.no_pauses {
        trace.requests.iter_mut().for_each(|request| request.at_ns = 0);
        trace.lasts_ns = 0;
    }
    output::say(&match &args.target {
        Some(dir) => in_directory(args, &trace, dir, shown)?,
        None => on_new_chip(args, &trace, shown)?,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The options of those who read traces.
fn read_options(args: &cli::Replay) -> ReadOptions {
    ReadOptions { time_unit: args.time_unit, skip_unknown: args.skip_unknown }
}

/// Whether they are decisions or begin like a trace of files.
fn is_of_files(bytes: &[u8]) -> bool {
    record::begins(bytes) || trace::begins(bytes)
}

/// Decisions, made again on a copy of their image.
fn decisions(args: &cli::Replay, source: &RecordingSource, image: &Path) -> Result<String> {
    let RecordingSource { shown, bytes } = source;
    let chip = image::open_emulated(image, true)?.snapshot();
    let replayed = record::replay(bytes.as_slice(), chip).map_err(|error| anyhow!("{shown}: {error}"))?;
    let record::Replayed { events, programs, erases, jobs } = replayed;
    Ok(match args.json {
        true => json!({ "events": events, "programs": programs, "erases": erases, "jobs": jobs }).to_string(),
        false => format!(
            "{} events, {} programs, {} erases, {} background steps: all as recorded",
            grouped(events),
            grouped(programs),
            grouped(erases),
            grouped(jobs)
        ),
    })
}

/// A trace, on a new chip in virtual time.
fn on_new_chip(args: &cli::Replay, trace: &Trace, shown: &str) -> Result<String> {
    let profile = args.profile.clone().unwrap_or_default();
    let bytes = args.size.unwrap_or_else(|| chips::nearest(&profile, USUAL_BYTES));
    let profile = chips::sized(&profile, bytes, "--size").map_err(anyhow::Error::msg)?;
    let life = Wanted { goal: args.lifetime, ..Wanted::default() };
    let setting = Setting { profile, host: args.host, policy: args.policy, life, seed: SEED };
    let bar = progress::share("replay");
    bar.set_length(trace.requests.len() as u64);
    let replayed = play::replay(&setting, trace, &|done| bar.set_position(done));
    bar.finish_and_clear();
    let replayed = replayed.with_context(|| shown.to_owned())?;
    if args.json {
        return Ok(serde_json::to_string(&replayed)?);
    }
    let Replayed { answered, slc_pages, native_pages, internal_pages, erases, flash_s, elapsed_s, energy_mj } =
        replayed;
    let chip = format!("{}, {}, policy {}", setting.profile.name, size::human(bytes), args.policy);
    let pages = format!(
        "{} in SLC, {} natively, and {} of the volume's own",
        grouped(slc_pages),
        grouped(native_pages),
        grouped(internal_pages)
    );
    let mut rows = vec![("chip", chip)];
    rows.extend(responses(&answered));
    let seconds = |seconds: f64| format!("{seconds:.3} s");
    rows.extend([("pages written", pages), ("erases", grouped(erases))]);
    rows.extend([("flash time", seconds(flash_s)), ("elapsed time", seconds(elapsed_s))]);
    if energy_mj > 0.0 {
        rows.push(("energy", format!("{energy_mj:.1} mJ")));
    }
    Ok(table(&rows))
}

/// A trace, in a directory in real time.
fn in_directory(args: &cli::Replay, trace: &Trace, dir: &Path, shown: &str) -> Result<String> {
    if !dir.is_dir() {
        bail!("{}: not a directory; a trace is replayed in one, or without it on a new chip", dir.display());
    }
    let pace = if args.no_pauses { Pace::AtOnce } else { Pace::AsRecorded };
    let bar = progress::share("replay");
    bar.set_length(trace.requests.len() as u64);
    let answered = play_in::play(trace, dir, pace, &|done| bar.set_position(done));
    bar.finish_and_clear();
    let answered = answered.with_context(|| shown.to_owned())?;
    Ok(if args.json { serde_json::to_string(&answered)? } else { table(&responses(&answered)) })
}

fn responses(answered: &Answered) -> Vec<(&'static str, String)> {
    let Answered { requests, read_bytes, written_bytes, reads, writes, syncs, names, mean_us } = answered;
    let (read, written) = (size::human(*read_bytes), size::human(*written_bytes));
    let asked = format!("{}, {read} read, {written} written", grouped(*requests));
    vec![
        ("requests", asked),
        ("mean response", format!("{mean_us:.1} µs")),
        ("reads", distribution(reads)),
        ("writes", distribution(writes)),
        ("syncs", distribution(syncs)),
        ("names, lengths", distribution(names)),
    ]
}

fn distribution(found: &Distribution) -> String {
    let us = |us: f64| grouped(us.round() as u64);
    let (count, median, p99, longest) =
        (grouped(found.count), us(found.median_us), us(found.p99_us), us(found.longest_us));
    format!("{count}, half of them within {median} µs, 99 % within {p99} µs, the longest {longest} µs")
}
