//! Random histories on a medium that fails: programs and erases fail now and then, and bits flip, as many as the chip's ECC
//! corrects.
//!
//! Invariant: no sector is lost, and none holds anything but what it was given.

use emulator::{BitErrors, FaultConfig};
use ftl::{BlockDevice, Scheme};

use super::cuts::{in_order, take};
use super::rig::{Rig, RigKind};
use super::script::{Step, script};
use super::shadow::Shadow;
use crate::ops::Supply;
use crate::parallel::parallel;

const STEPS: usize = 120;
/// Programs and erases that fail in a history, at most: a block goes bad with each.
const FAILURES_MAX: u64 = 4;

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct MediaReport {
    pub histories: u64,
    pub steps: u64,
    pub failures: u64,
    pub corrected_bits: u64,
    /// Seeds, and what was wrong.
    pub violations: Vec<(u64, String)>,
}

/// Runs histories of a scheme, of these seeds.
pub fn media_runs(scheme: Scheme, seeds: std::ops::Range<u64>, threads: usize) -> MediaReport {
    let seeds: Vec<u64> = seeds.collect();
    let outcomes = parallel(threads, &seeds, |&seed| {
        let mut report = MediaReport { histories: 1, ..MediaReport::default() };
        if let Err(error) = run(scheme, seed, &mut report) {
            report.violations.push((seed, error));
        }
        report
    });
    let mut all = MediaReport::default();
    for report in outcomes {
        all.histories += report.histories;
        all.steps += report.steps;
        all.failures += report.failures;
        all.corrected_bits += report.corrected_bits;
        all.violations.extend(report.violations);
    }
    all
}

fn run(scheme: Scheme, seed: u64, report: &mut MediaReport) -> Result<(), String> {
    let kinds = [RigKind::Small, RigKind::Wide, RigKind::Cached, RigKind::Large];
    let kind = kinds.get((seed % 4) as usize).copied().unwrap_or(RigKind::Small);
    let rig = Rig { scheme, kind };
    let mut dice = Supply::new(seed);
    let mut device = rig.format(rig.chip(seed)?)?;
    let sectors = rig.sectors_used(device.sectors());
    let pages = u64::from(device.device().chip().profile().geometry.pages_per_block);
    device.device_mut().chip_mut().faults_mut().set(FaultConfig {
        bit_errors: BitErrors::Correctable,
        seed,
        ..FaultConfig::default()
    });
    // An old chip: its bits flip often.
    for block in 0..device.device().chip().profile().geometry.blocks {
        let erases = device.device().chip().profile().endurance.slc_erases;
        device
            .device_mut()
            .chip_mut()
            .faults_mut()
            .age_block(block, nand::CellMode::Slc, erases)
            .map_err(|error| error.to_string())?;
    }
    for _ in 0..dice.below(FAILURES_MAX + 1) {
        if dice.below(3) > 0 {
            device.device_mut().chip_mut().faults_mut().fail_program_at(dice.below(1_500));
        } else {
            device.device_mut().chip_mut().faults_mut().fail_erase_at(dice.below(100));
        }
    }
    let mut shadow = Shadow::default();
    for (number, step) in script(seed, STEPS, &sectors, pages, rig.requests()).into_iter().enumerate() {
        let at = |error: &dyn std::fmt::Display| format!("step {number}, {step}: {error}");
        report.steps += 1;
        if step == Step::Remount {
            device = rig.reopen(device).map_err(|error| at(&error))?;
            shadow.did(&step);
        } else if take(&mut device, &step, &shadow).map_err(|error| at(&error))? {
            shadow.did(&step);
        }
        if number % 8 == 0 {
            shadow.judge(&mut device, &sectors).map_err(|error| at(&error))?;
        }
    }
    in_order(&mut device)?;
    shadow.judge(&mut device, &sectors)?;
    let counters = device.device().chip().counters();
    report.failures += counters.program_failures + counters.erase_failures;
    report.corrected_bits += counters.corrected_bits;
    Ok(())
}
