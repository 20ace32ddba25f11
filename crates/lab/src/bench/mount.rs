//! `mount`: what it costs to find the state of a volume again, after an unmount and after power cuts at points spread
//! over a `seq` run. Invariant: every mount that is counted succeeded and was given the chip as the cut left it.

use emulator::{Chip, FaultConfig};

use super::volume::{Pool, Volume, report};
use super::workloads::{fresh, run_seq, verify_files};
use super::{BenchError, Config, Progress, Report, Workload};
use torture::crash::{Record, Tap};

/// Power cuts, evenly spread over the run.
const CUTS: usize = 32;

/// Copies of the chip are taken this often in a run that only writes natively; other modes program more.
const COPIES: u64 = 128;

pub fn mount(config: &Config, progress: Progress) -> Result<Report, BenchError> {
    let pool = Pool::new(config.seed);
    let chip: Chip = fresh(Workload::Mount, config)?;
    let pages = u64::from(chip.profile().geometry.blocks) * u64::from(chip.profile().geometry.pages_per_block);
    let mut tap = Tap::new(chip, FaultConfig::power_cuts(config.seed));
    tap.record(Record::Every((pages / COPIES).max(1)));
    let (mut tap, _, files) = run_seq(tap, config, &pool, progress)?;
    let torn = tap.take_torn();
    if torn.len() < CUTS {
        return Err(BenchError::TooSmall(format!("{} points to cut at, {CUTS} wanted", torn.len())));
    }
    let mut chip = tap.into_chip();
    verify_files(chip.snapshot(), config, &pool, files)?;

    chip.reset_counters();
    let volume = Volume::mount(chip, config)?;
    let reads_clean = volume.reads();
    let (mut recovery, mut look) = (MountCost::default(), MountCost::default());
    for index in 0..CUTS {
        let picked = &torn[index * (torn.len() - 1) / (CUTS - 1)].chip;
        recovery = recovery.or_greater(cost_of_mount(picked.snapshot(), config, false)?);
        look = look.or_greater(cost_of_mount(picked.snapshot(), config, true)?);
    }
    let figures = volume.figures();
    Ok(Report {
        reads_clean: Some(reads_clean),
        reads_after_cut: Some(recovery.reads),
        elapsed_after_cut_s: Some(recovery.elapsed_ns as f64 / 1e9),
        read_only_after_cut_s: Some(look.elapsed_ns as f64 / 1e9),
        ..report(Workload::Mount, config, volume.fs.chip(), figures, 0)
    })
}

/// What a mount costs.
#[derive(Clone, Copy, Default)]
struct MountCost {
    reads: u64,
    elapsed_ns: u64,
}

impl MountCost {
    /// The greater of each figure.
    fn or_greater(self, other: Self) -> Self {
        Self { reads: self.reads.max(other.reads), elapsed_ns: self.elapsed_ns.max(other.elapsed_ns) }
    }
}

/// What mounting a chip costs whose power went off.
fn cost_of_mount(mut chip: Chip, config: &Config, read_only: bool) -> Result<MountCost, BenchError> {
    chip.power_on();
    chip.reset_counters();
    let volume = Volume::mount_as(chip, config, read_only)?;
    Ok(MountCost { reads: volume.reads(), elapsed_ns: volume.fs.chip().elapsed_ns() })
}
