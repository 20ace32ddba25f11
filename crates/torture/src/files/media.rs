//! Volumes on a failing medium: programs and erases that fail, a chip that refuses all of them for a while, bit errors up to
//! what the ECC corrects, months that pass, and, at the end, pages that nothing corrects.
//!
//! Invariant: as long as the ECC's limits are kept and few blocks fail, nothing is lost; past them, what is read is right
//! or an error.

use std::ops::{AddAssign, Range};

use emulator::{BitErrors, FaultConfig};

use super::base::{DAY_NS, FILE_CHUNKS, fill};
use super::campaign::{Headway, Progress, SHRUNK_MAX, in_option, in_ranges};
use super::damage::damage;
use super::panic::caught;
use super::setup::Setup;
use super::shrink::fewer;
use crate::content::mix;
use crate::crash::{Run, Tally, VolumeOver};
use crate::ops::Supply;
use crate::parallel::parallel;

/// Steps of a run.
pub const MEDIA_STEPS: usize = 240;
/// Programs and erases that fail in a run, each, at most.
const FAILURES: u64 = 2;
/// Of what can be corrected in a codeword, what is wrong in one of a fresh page on average, at most, in percent: on a young
/// chip, and on one where blocks are given up because of it. How full the former is when a run begins, at most, and how
/// full volumes get on either: where blocks are given up, space for moving things runs short.
const YOUNG: Age = Age { wrong_percent: 20, filled_percent: 75, crowded_percent: 85 };
const OLD: Age = Age { wrong_percent: 99, filled_percent: 0, crowded_percent: 60 };
/// Unmounts and power cuts per 1,000 steps, each.
const DISRUPTIONS: usize = 20;
/// Bits of a codeword.
const CODEWORD_BITS: f64 = 8.0 * 1024.0;
/// Programs and erases that a chip refuses for a moment, at most: it goes on, or takes it for the end of all writing.
const REFUSED_MAX: u64 = 6;
/// How often much time passes at once in a run, and how much, in days.
const PAUSES: u64 = 3;
const PAUSE_DAYS: u64 = 120;

/// What bit errors leave of a chip.
struct Age {
    wrong_percent: u64,
    filled_percent: u64,
    crowded_percent: u64,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaRun {
    pub tally: Tally,
    pub failures: u64,
    pub corrected_bits: u64,
    /// Looks at what damaged pages hold that gave an error, and damaged volumes that were not mounted.
    pub refused_reads: u64,
    pub refused_mounts: u64,
    /// Damaged volumes that took a file.
    pub written_beside: u64,
}

impl AddAssign for MediaRun {
    fn add_assign(&mut self, other: Self) {
        self.tally += other.tally;
        self.failures += other.failures;
        self.corrected_bits += other.corrected_bits;
        self.refused_reads += other.refused_reads;
        self.refused_mounts += other.refused_mounts;
        self.written_beside += other.written_beside;
    }
}

/// What came of many runs.
pub struct MediaReport {
    pub runs: u64,
    /// Those that went well, together.
    pub all: MediaRun,
    /// Those that did not.
    pub violations: Vec<MediaViolation>,
}

/// A run that lost something, or showed what was never there.
#[derive(Clone, Debug)]
pub struct MediaViolation {
    /// What the volume was over.
    pub over: VolumeOver,
    pub seed: u64,
    /// The numbers of the steps that it takes.
    pub keep: Vec<usize>,
    pub error: String,
}

impl MediaViolation {
    /// The command that runs this history again.
    pub fn command(&self) -> String {
        let all = self.keep.iter().copied().eq(0..MEDIA_STEPS);
        let keep = if all { String::new() } else { format!(" --keep {}", in_ranges(&self.keep)) };
        format!("flexfs torture{} --media 1 --seed {}{keep}", in_option(self.over), self.seed)
    }
}

/// Runs many over a chip or a drive, each with a seed of its own: all their steps, unless it is said which. The first that
/// fail are made smaller.
pub fn media_runs(
    over: VolumeOver,
    seeds: Range<u64>,
    keep: Option<&[usize]>,
    threads: usize,
    progress: Progress<'_>,
) -> MediaReport {
    let every: Vec<usize> = (0..MEDIA_STEPS).collect();
    let (seeds, keep): (Vec<u64>, _) = (seeds.collect(), keep.unwrap_or(&every));
    let runs = seeds.len() as u64;
    let outcomes = parallel(threads, &seeds, |&seed| {
        let outcome = caught(|| run_of(over, seed, keep));
        let told = outcome.as_ref().err().map(|error| {
            let violation = MediaViolation { over, seed, keep: keep.to_vec(), error: error.clone() };
            format!("{error}\n  {}", violation.command())
        });
        let cuts = outcome.as_ref().map_or(0, |run| run.tally.cuts + run.tally.mount_cuts) as u64;
        progress(Headway { chip: None, done: 1, total: runs, cuts, violations: told.as_slice() });
        outcome
    });
    let mut report = MediaReport { runs, all: MediaRun::default(), violations: Vec::new() };
    for (seed, outcome) in seeds.into_iter().zip(outcomes) {
        match outcome {
            Ok(run) => report.all += run,
            Err(error) => report.violations.push(MediaViolation { over, seed, keep: keep.to_vec(), error }),
        }
    }
    let found = std::mem::take(&mut report.violations);
    let (told, rest) = found.split_at(SHRUNK_MAX.min(found.len()));
    report.violations = parallel(threads, told, |violation| {
        let (keep, error) = (violation.keep.clone(), violation.error.clone());
        let (keep, error) = fewer(keep, error, |keep| caught(|| run_of(over, violation.seed, keep)).err());
        MediaViolation { over, seed: violation.seed, keep, error }
    });
    report.violations.extend_from_slice(rest);
    report
}

/// Runs a random history on a failing medium; the setup and everything else follows from the seed.
pub fn media_run(over: VolumeOver, seed: u64) -> Result<MediaRun, String> {
    run_of(over, seed, &(0..MEDIA_STEPS).collect::<Vec<_>>())
}

/// The same with some of its steps; time passes and the medium fails as if all were taken.
fn run_of(over: VolumeOver, seed: u64, keep: &[usize]) -> Result<MediaRun, String> {
    let setups = Setup::all_over(over);
    let setup = &setups[(mix(seed) % setups.len() as u64) as usize];
    run_on(setup, seed, keep).map_err(|error| format!("{}: {error}", setup.name))
}

fn run_on(setup: &Setup, seed: u64, keep: &[usize]) -> Result<MediaRun, String> {
    let mut rig = setup.rig()?;
    let is_young = mix(seed ^ 3).is_multiple_of(2);
    let age = if is_young { YOUNG } else { OLD };
    let share = (mix(seed ^ 1) % (age.wrong_percent + 1)) as f64 / 100.0;
    let rate = share * f64::from(rig.profile.ecc.correctable_bits) / CODEWORD_BITS;
    (rig.profile.errors.slc.fresh, rig.profile.errors.native.fresh) = (rate, rate);
    rig.faults = FaultConfig { bit_errors: BitErrors::Correctable, ..FaultConfig::power_cuts(seed) };
    let options = rig.options.clone();
    let mut chip = rig.chip(seed)?;
    let factory_bad = chip.faults_mut().scatter_bad_blocks(0.02).map_err(|error| error.to_string())?;
    let mut run = Run::on(rig, chip, seed, age.crowded_percent, DISRUPTIONS)?;
    if let Some(twin) = run.twin_mut() {
        fill(twin, mix(seed ^ 2) % (age.filled_percent + 1), FILE_CHUNKS)?;
    }
    let mut supply = Supply::new(seed);
    let due: Vec<(usize, bool)> =
        (0..2 * FAILURES).map(|n| (supply.below(MEDIA_STEPS as u64) as usize, n % 2 == 0)).collect();
    let pauses: Vec<usize> = (0..PAUSES).map(|_| supply.below(MEDIA_STEPS as u64) as usize).collect();
    let mut outage = Supply::new(mix(seed ^ 4));
    // A moment leaves blocks that wait for their test: a chip that gives up others for their bit errors may have none left then.
    let outage_lasts = outage.below(2) == 0 || !is_young || setup.has_few_cycles();
    let outage_step = outage.below(MEDIA_STEPS as u64) as usize;
    for step in 0..MEDIA_STEPS {
        if step == outage_step {
            run.refuse_writes(if outage_lasts { u64::MAX } else { 1 + outage.below(REFUSED_MAX) });
        }
        if let Some(chip) = run.chip_mut() {
            for _ in pauses.iter().filter(|at| **at == step) {
                chip.advance_to_ns(chip.now_ns() + PAUSE_DAYS * DAY_NS);
            }
            for &(_, program) in due.iter().filter(|(at, _)| *at == step) {
                let soon = supply.below(6);
                if program { chip.faults_mut().fail_program_at(soon) } else { chip.faults_mut().fail_erase_at(soon) }
            }
        }
        let words = supply.words();
        if keep.contains(&step) {
            run.step(&words).map_err(|error| format!("{error} (of all, it is number {step})"))?;
        }
    }
    let (tally, chip, history, now_ns) = run.end()?;
    let counters = *chip.counters();
    // On an old chip, and on one of few cycles, blocks are given up for their bit errors, too.
    let unjust = chip.bad_blocks().find(|&block| !chip.has_failed(block) && !factory_bad.contains(&block));
    if let Some(block) = unjust.filter(|_| is_young && !setup.has_few_cycles()) {
        return Err(format!("block {block} never failed but while the chip refused everything, and was marked bad"));
    }
    let seen = damage(chip, setup.over, &history, options, now_ns, seed)?;
    Ok(MediaRun {
        tally,
        failures: counters.program_failures + counters.erase_failures,
        corrected_bits: counters.corrected_bits,
        refused_reads: seen.refused,
        refused_mounts: seen.unmounted.into(),
        written_beside: seen.written.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_replayed_with_the_steps_it_takes() {
        let command = |keep| MediaViolation { over: VolumeOver::Chip, seed: 7, keep, error: String::new() }.command();
        assert_eq!(command((0..MEDIA_STEPS).collect()), "flexfs torture --media 1 --seed 7");
        assert_eq!(command((1..=MEDIA_STEPS).collect()), "flexfs torture --media 1 --seed 7 --keep 1-240");
        assert_eq!(command(vec![3, 5]), "flexfs torture --media 1 --seed 7 --keep 3,5");
        assert_eq!(command(Vec::new()), "flexfs torture --media 1 --seed 7 --keep ''");
    }
}
