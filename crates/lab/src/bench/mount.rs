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
    let mut worst = 0;
    for index in 0..CUTS {
        let picked = index * (torn.len() - 1) / (CUTS - 1);
        worst = worst.max(reads_of_recovery(torn[picked].chip.snapshot(), config)?);
    }
    let figures = volume.figures();
    Ok(Report {
        reads_clean: Some(reads_clean),
        reads_after_cut: Some(worst),
        ..report(Workload::Mount, config, volume.fs.chip(), figures, 0)
    })
}

/// Page reads of mounting a chip whose power went off.
fn reads_of_recovery(mut chip: Chip, config: &Config) -> Result<u64, BenchError> {
    chip.power_on();
    chip.reset_counters();
    Ok(Volume::mount(chip, config)?.reads())
}
