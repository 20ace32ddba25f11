//! `flexfs bench`: a workload on a fresh chip in memory, and its figures.
//!
//! Invariant: standard output gets the figures alone; how far it is shows on standard error, on a terminal only.

mod layer;

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use emulator::Profile;
use flexfs_core::Error;
use lab::bench::{self, BenchError, Config, DieLoad, Distribution, DriveLoad, Progress, Report, Workload};

use crate::cli::Benchmark;
use crate::output::{grouped, table};
use crate::{bench_fuse, chips, cli, output, progress, size};

pub fn run(args: &cli::Bench) -> Result<ExitCode> {
    let has_idle = match args.workload {
        Benchmark::Flash(workload) => workload.has_idle(),
        Benchmark::Layer => true,
        Benchmark::Fuse => false,
    };
    if args.idle.is_some() && !has_idle {
        bail!("bench {} has no idle time: --idle goes with seq, small, over, gc and ftl", args.workload.name());
    }
    if args.ftl.is_some() && !matches!(args.workload, Benchmark::Layer) {
        bail!("bench {} is one of the file system: --ftl goes with ftl", args.workload.name());
    }
    let bar = progress::share(args.workload.name());
    let mut progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let result = match args.workload {
        Benchmark::Flash(workload) => count(args, workload, &mut progress),
        Benchmark::Fuse => time(args, &mut progress),
        Benchmark::Layer => layer::measure(args, &mut progress),
    };
    bar.finish_and_clear();
    output::say(&result.with_context(|| format!("bench {}", args.workload.name()))?)?;
    Ok(ExitCode::SUCCESS)
}

/// Flash operations of a workload.
fn count(args: &cli::Bench, workload: Workload, progress: Progress) -> Result<String> {
    let profile = chip(args, workload.default_bytes())?;
    let bytes = Some(profile.capacity_bytes());
    let idle_ns = args.idle.map(|ms| u64::from(ms) * 1_000_000);
    let over = args.over.unwrap_or_default();
    let config = Config { profile, bytes, policy: args.policy, idle_ns, over, lanes: args.lanes, ..Config::default() };
    // What the file system said of it is part of the error's own words.
    let report = bench::run(workload, &config, progress).map_err(|error| match error {
        BenchError::Fs { source: Error::NoSpace, .. } => anyhow!("{error}; it needs a larger --size"),
        error => anyhow!("{error}"),
    })?;
    Ok(if args.json { serde_json::to_string(&report)? } else { figures(&report) })
}

/// Calls through the kernel.
fn time(args: &cli::Bench, progress: Progress) -> Result<String> {
    let profile = chip(args, bench_fuse::DEFAULT_BYTES)?;
    let figures = bench_fuse::run(&profile, args.policy, progress)?;
    Ok(if args.json { bench_fuse::to_json(&figures).to_string() } else { bench_fuse::to_table(&figures) })
}

/// The chip asked for; without a size, of about `usual_bytes`.
fn chip(args: &cli::Bench, usual_bytes: u64) -> Result<Profile> {
    let profile = args.profile.clone().unwrap_or_default();
    let bytes = args.size.unwrap_or_else(|| chips::nearest(&profile, usual_bytes));
    chips::sized(&profile, bytes, "--size").map_err(anyhow::Error::msg)
}

fn drive_text(drive: &DriveLoad) -> String {
    format!(
        "{} of {} blocks; commands: {} reads, {} programs, {} TRIMs; of its own {} programs, {} erases",
        grouped(drive.logical_blocks.into()),
        grouped(drive.physical_blocks.into()),
        grouped(drive.reads),
        grouped(drive.programs),
        grouped(drive.trims),
        grouped(drive.own_programs),
        grouped(drive.own_erases)
    )
}

fn figures(report: &Report) -> String {
    let mut rows = vec![
        ("workload", report.workload.to_owned()),
        ("chip", format!("{}, {}", report.chip, size::human(report.chip_bytes))),
        ("mode", report.mode.to_owned()),
        ("written", size::human(report.host_bytes)),
        ("programs", grouped(report.programs)),
        ("reads", grouped(report.reads)),
        ("erases", grouped(report.erases)),
        ("write amplification", format!("{:.3}", report.write_amplification)),
        ("flash time", format!("{:.3} s", report.flash_s)),
        ("elapsed time", format!("{:.3} s", report.elapsed_s)),
        ("longest call", format!("{} µs", grouped(report.worst_op_us.round() as u64))),
        ("processor time", format!("{:.3} s, of it {:.3} in the kernel", report.cpu_s, report.system_s)),
    ];
    if let Some(DieLoad { least_s, mean_s, greatest_s }) = report.dies {
        rows.push(("dies busy", format!("{mean_s:.3} s on average, {least_s:.3} to {greatest_s:.3}")));
    }
    if !report.free_blocks.is_empty() {
        let blocks: Vec<String> = report.free_blocks.iter().map(|&blocks| grouped(blocks.into())).collect();
        rows.push(("free blocks of the dies", blocks.join(", ")));
    }
    rows.extend(report.drive.as_ref().map(|drive| ("drive", drive_text(drive))));
    let waits = [("operations", "waited", &report.operations), ("background steps", "took", &report.steps)];
    for (name, verb, found) in waits {
        if let Some(found) = found {
            rows.push((name, distribution(verb, found)));
        }
    }
    if let Some(reads) = report.reads_clean {
        rows.push(("reads of a clean mount", grouped(reads)));
    }
    if let Some(reads) = report.reads_after_cut {
        rows.push(("reads after a cut, worst", grouped(reads)));
    }
    let slowest = [
        ("elapsed after a cut, worst", report.elapsed_after_cut_s),
        ("of it reading, at most", report.read_only_after_cut_s),
    ];
    for (name, seconds) in slowest {
        rows.extend(seconds.map(|seconds| (name, format!("{:.1} ms", seconds * 1e3))));
    }
    if let Some(fits) = &report.capacity {
        let share = 100.0 * fits.fraction;
        rows.push(("capacity", format!("{} files of 1 MiB: {share:.2} % of the good blocks", grouped(fits.files))));
    }
    if let Some(found) = &report.directory {
        let operations = [
            ("create among 100,000", found.create),
            ("look-up among 100,000", found.lookup),
            ("unlink among 100,000", found.unlink),
        ];
        for (name, growth) in operations {
            let (flash, cpu) = (growth.flash_ratio, growth.cpu_ratio);
            rows.push((name, format!("{flash:.2} × the flash time among 1,000, {cpu:.2} × the processor time")));
        }
    }
    if let Some(found) = &report.scale {
        let (mean, worst) = (found.stat_reads_mean, found.stat_reads_worst);
        rows.push(("files", grouped(found.files)));
        rows.push(("reads of a clean mount", grouped(found.mount_reads)));
        rows.push(("reads of a cold look-up", format!("{mean:.1}, {worst} at worst")));
        let (flash, cpu) = (found.create_rate, found.create_rate_cpu);
        rows.push(("creates at the end", format!("{flash:.2} × the rate at the start ({cpu:.2} × by processor)")));
    }
    table(&rows)
}

/// How many there were, and how long they took.
fn distribution(verb: &str, found: &Distribution) -> String {
    let us = |us: f64| grouped(us.round() as u64);
    let (count, median, p99) = (grouped(found.count), us(found.median_us), us(found.p99_us));
    let (p999, longest) = (us(found.p999_us), us(found.longest_us));
    format!(
        "{count}, half of them {verb} at most {median} µs, 99 % {p99} µs, 99.9 % {p999} µs, the longest {longest} µs"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_a_workload_has_not_are_not_shown() {
        let report = Report { workload: "small", programs: 4_105, ..Report::default() };
        let text = figures(&report);
        assert!(text.contains("4,105") && !text.contains("mount") && !text.contains("capacity"), "{text}");
        let text = figures(&Report { reads_clean: Some(9), ..report });
        assert!(text.contains("reads of a clean mount  9"), "{text}");
    }
}
