//! `flexfs bench ftl`: a translation layer under random writes.
//!
//! Invariant: processor time alone depends on the machine.

use anyhow::{Context, Result, anyhow};
use emulator::Profile;
use lab::bench::Progress;
use lab::layers::{LayerConfig, LayerReport, bench};

use super::super::layer_figures;
use super::distribution;
use crate::output::{grouped, table};
use crate::{chips, cli, size};

/// The capacity of the paper's prototype.
const USUAL_BYTES: u64 = 16 << 20;

/// Runs the workload; its figures.
pub fn measure(args: &cli::Bench, progress: Progress) -> Result<String> {
    let scheme = args.ftl.context("name a scheme with --ftl")?;
    let profile = match &args.profile {
        Some(profile) => profile.clone(),
        None => Profile::builtin(chips::OF_LAYERS)?,
    };
    let bytes = args.size.unwrap_or_else(|| chips::nearest(&profile, USUAL_BYTES));
    let profile = chips::fitted(&profile, bytes, "--size").map_err(anyhow::Error::msg)?;
    let idle_ns = args.idle.map(|ms| u64::from(ms) * 1_000_000);
    let config = LayerConfig { profile, scheme, cache_sectors: args.cache as usize, idle_ns, seed: 1 };
    let report = bench(&config, progress).map_err(|error| anyhow!("{error}"))?;
    Ok(if args.json { serde_json::to_string(&report)? } else { figures(&report) })
}

fn figures(report: &LayerReport) -> String {
    let sectors = format!("{} of {}", grouped(report.sectors), size::human(report.sector_bytes));
    let mut rows = vec![
        ("scheme", report.scheme.to_owned()),
        ("chip", format!("{}, {}", report.chip, size::human(report.chip_bytes))),
        ("sectors", sectors),
        ("written", format!("{} sectors", grouped(report.writes))),
    ];
    rows.extend(layer_figures::rows(&report.work));
    rows.extend([
        ("flash time", format!("{:.3} s", report.flash_s)),
        ("elapsed time", format!("{:.3} s", report.elapsed_s)),
        ("processor time", format!("{:.3} s", report.cpu_s)),
        ("writes per second of it", grouped(report.writes_per_cpu_s.round() as u64)),
        ("operations", distribution("waited", &report.operations)),
    ]);
    rows.extend(report.steps.iter().map(|steps| ("background steps", distribution("took", steps))));
    rows.push(("memory", format!("{} for the scheme", size::human(report.ram_bytes))));
    rows.push(("opening", format!("{} page reads", grouped(report.open_reads))));
    table(&rows)
}
