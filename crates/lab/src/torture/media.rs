//! Volumes on a failing medium: programs and erases that fail, bit errors up to what the ECC corrects, months
//! that pass, and, at the end, pages that nothing corrects.
//!
//! Invariant: as long as the ECC's limits are kept and few blocks fail, nothing is lost; past them, what is read is right
//! or an error.

use std::ops::{AddAssign, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use emulator::{BitErrors, Chip, Corruption, FaultConfig};
use flexfs_core::{Ended, Error, Fs, Ino, MountOptions, ROOT_INO};

use super::campaign::{Progress, SHRUNK_MAX, in_ranges};
use super::panic::caught;
use super::parallel::parallel;
use super::setup::Setup;
use super::shrink::fewer;
use crate::content::mix;
use crate::crash::{History, Run, Tally};
use crate::model::{Body, Node};
use crate::ops::{Call, Name, Supply, call_fs};

/// Steps of a run.
pub const MEDIA_STEPS: usize = 120;
/// Programs and erases that fail in a run, each, at most.
const FAILURES: u64 = 2;
/// How full volumes get, in percent, and unmounts and power cuts per 1,000 steps, each.
const CROWDED_PERCENT: u64 = 60;
const DISRUPTIONS: usize = 20;
/// Bits of a codeword.
const CODEWORD_BITS: f64 = 8.0 * 1024.0;
/// How often much time passes at once in a run, and how much, in days.
const PAUSES: u64 = 3;
const PAUSE_DAYS: u64 = 120;
const DAY_NS: u64 = 86_400_000_000_000;
/// Pages damaged at the end of a run.
const DAMAGED: u64 = 6;
/// Bytes read at a time.
const LOOK_BYTES: usize = 4096;

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaRun {
    pub tally: Tally,
    pub failures: u64,
    pub corrected_bits: u64,
    /// Looks at what damaged pages hold that gave an error, and damaged volumes that were not mounted.
    pub refused_reads: u64,
    pub refused_mounts: u64,
}

impl AddAssign for MediaRun {
    fn add_assign(&mut self, other: Self) {
        self.tally += other.tally;
        self.failures += other.failures;
        self.corrected_bits += other.corrected_bits;
        self.refused_reads += other.refused_reads;
        self.refused_mounts += other.refused_mounts;
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
        format!("flexfs torture --media 1 --seed {}{keep}", self.seed)
    }
}

/// Runs many, each with a seed of its own: all their steps, unless it is said which. The first that fail are made
/// smaller.
pub fn media_runs(seeds: Range<u64>, keep: Option<&[usize]>, threads: usize, progress: Progress<'_>) -> MediaReport {
    let every: Vec<usize> = (0..MEDIA_STEPS).collect();
    let (seeds, keep): (Vec<u64>, _) = (seeds.collect(), keep.unwrap_or(&every));
    let (runs, done) = (seeds.len() as u64, AtomicU64::new(0));
    let outcomes = parallel(threads, &seeds, |&seed| {
        let outcome = caught(|| run_of(seed, keep));
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, runs, u64::from(outcome.is_err()));
        outcome
    });
    let mut report = MediaReport { runs, all: MediaRun::default(), violations: Vec::new() };
    for (seed, outcome) in seeds.into_iter().zip(outcomes) {
        match outcome {
            Ok(run) => report.all += run,
            Err(error) => report.violations.push(MediaViolation { seed, keep: keep.to_vec(), error }),
        }
    }
    let found = std::mem::take(&mut report.violations);
    let (told, rest) = found.split_at(SHRUNK_MAX.min(found.len()));
    report.violations = parallel(threads, told, |violation| {
        let (keep, error) = (violation.keep.clone(), violation.error.clone());
        let (keep, error) = fewer(keep, error, |keep| caught(|| run_of(violation.seed, keep)).err());
        MediaViolation { seed: violation.seed, keep, error }
    });
    report.violations.extend_from_slice(rest);
    report
}

/// Runs a random history on a failing medium; the setup and everything else follows from the seed.
pub fn media_run(seed: u64) -> Result<MediaRun, String> {
    run_of(seed, &(0..MEDIA_STEPS).collect::<Vec<_>>())
}

/// The same with some of its steps; time passes and the medium fails as if all were taken.
fn run_of(seed: u64, keep: &[usize]) -> Result<MediaRun, String> {
    let setups = Setup::all();
    let setup = &setups[(mix(seed) % setups.len() as u64) as usize];
    run_on(setup, seed, keep).map_err(|error| format!("{}: {error}", setup.name))
}

fn run_on(setup: &Setup, seed: u64, keep: &[usize]) -> Result<MediaRun, String> {
    let mut rig = setup.rig()?;
    // Of what can be corrected in a codeword, what is wrong in one of a fresh page on average.
    let share = (mix(seed ^ 1) % 100) as f64 / 100.0;
    let rate = share * f64::from(rig.profile.ecc.correctable_bits) / CODEWORD_BITS;
    (rig.profile.errors.slc.fresh, rig.profile.errors.native.fresh) = (rate, rate);
    rig.faults = FaultConfig { bit_errors: BitErrors::Correctable, ..FaultConfig::power_cuts(seed) };
    let options = rig.options.clone();
    let mut chip = rig.chip(seed)?;
    chip.scatter_bad_blocks(0.02).map_err(|error| error.to_string())?;
    let mut run = Run::on(rig, chip, seed, CROWDED_PERCENT, DISRUPTIONS)?;
    let mut supply = Supply::new(seed);
    let due: Vec<(usize, bool)> =
        (0..2 * FAILURES).map(|n| (supply.below(MEDIA_STEPS as u64) as usize, n % 2 == 0)).collect();
    let pauses: Vec<usize> = (0..PAUSES).map(|_| supply.below(MEDIA_STEPS as u64) as usize).collect();
    for step in 0..MEDIA_STEPS {
        if let Some(chip) = run.chip_mut() {
            for _ in pauses.iter().filter(|at| **at == step) {
                chip.advance_to_ns(chip.now_ns() + PAUSE_DAYS * DAY_NS);
            }
            for &(_, program) in due.iter().filter(|(at, _)| *at == step) {
                let soon = supply.below(6);
                if program { chip.fail_program_at(soon) } else { chip.fail_erase_at(soon) }
            }
        }
        let words = supply.words();
        if keep.contains(&step) {
            run.step(&words).map_err(|error| format!("{error} (of all, it is number {step})"))?;
        }
    }
    let (tally, chip, history, now_ns) = run.end()?;
    let counters = *chip.counters();
    let refused = damage(chip, &history, options, now_ns, seed)?;
    let failures = counters.program_failures + counters.erase_failures;
    let (refused_reads, refused_mounts) = (refused.unwrap_or(0), u64::from(refused.is_none()));
    Ok(MediaRun { tally, failures, corrected_bits: counters.corrected_bits, refused_reads, refused_mounts })
}

/// Damages pages of an unmounted chip, and looks at everything: it is right or an error. Says how many are, unless the
/// mount is one. Of the pages that say where everything stands one is damaged at most: of a volume at rest there are two.
fn damage(
    mut chip: Chip,
    history: &History,
    options: MountOptions,
    now_ns: i64,
    seed: u64,
) -> Result<Option<u64>, String> {
    let options = MountOptions { now_ns, ..options };
    let look = Fs::mount(chip.snapshot(), MountOptions { read_only: true, ..options.clone() });
    let pair = look.map_err(|(_, error)| format!("last look: {error}"))?.anchor().map_or([0; 2], |anchor| anchor.pair);
    let (written, mut anchors) = (chip.written_pages(), 0);
    for number in 0..DAMAGED {
        let draw = mix(seed ^ mix(number));
        let (block, page) = written[(draw % written.len() as u64) as usize];
        anchors += u32::from(pair.contains(&block));
        if anchors > 1 && pair.contains(&block) {
            continue;
        }
        let kinds =
            [Corruption::FlipBits(40), Corruption::FlipSpareBits(3), Corruption::Uncorrectable, Corruption::Unstable];
        let kind = kinds[(draw >> 32) as usize % kinds.len()];
        chip.corrupt_page(block, page, kind).map_err(|error| error.to_string())?;
    }
    let mut fs = match Fs::mount(chip, options) {
        Ok(fs) => fs,
        Err((_, Error::Corrupt { .. } | Error::NotFlexfs(_))) => return Ok(None),
        Err((_, error)) => return Err(format!("mount of a damaged chip: {error}")),
    };
    let (mut refused, mut model) = (0, history.live().clone());
    let calls: Vec<Call> = model.nodes().flat_map(|(ino, node)| looks(ino, node)).collect();
    // Where the root's own inode cannot be read there is a stand-in for it, and the volume says that it is damaged.
    let stands_in = fs.info().map_err(|error| format!("info: {error}"))?.ended == Some(Ended::Damaged);
    for call in &calls {
        match (call_fs(&mut fs, call, now_ns), model.apply(call, 0, now_ns)) {
            (Ok(found), Ok(expected)) if found == expected => {}
            (Ok(_), _) if stands_in && matches!(call, Call::Getattr { ino: ROOT_INO }) => refused += 1,
            (Err(Error::Corrupt { .. }), _) => refused += 1,
            (found, expected) => {
                return Err(format!("{call:?}, of a damaged chip: {found:?}, the model says {expected:?}"));
            }
        }
    }
    // Whatever the check finds, it comes to an end.
    let _ = fs.check();
    Ok(Some(refused))
}

/// Calls that together see all of an inode.
fn looks(ino: Ino, node: &Node) -> Vec<Call> {
    let mut calls = vec![Call::Getattr { ino }, Call::Listxattr { ino }];
    calls.extend(node.xattrs.keys().map(|name| Call::Getxattr { ino, name: Name(name.clone()) }));
    match &node.body {
        // The last one begins at the end, or past it.
        Body::File(bytes) => {
            let offsets = (0..=bytes.size()).step_by(LOOK_BYTES);
            calls.extend(offsets.map(|offset| Call::Read { ino, offset, len: LOOK_BYTES }));
        }
        Body::Dir { entries, .. } => {
            calls.extend([Call::Readdir { dir: ino }, Call::ParentOf { dir: ino }]);
            calls.extend(entries.keys().map(|name| Call::Lookup { parent: ino, name: Name(name.clone()) }));
        }
        Body::Symlink(_) => calls.push(Call::Readlink { ino }),
        Body::Special => {}
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_replayed_with_the_steps_it_takes() {
        let command = |keep| MediaViolation { seed: 7, keep, error: String::new() }.command();
        assert_eq!(command((0..MEDIA_STEPS).collect()), "flexfs torture --media 1 --seed 7");
        assert_eq!(command((1..=MEDIA_STEPS).collect()), "flexfs torture --media 1 --seed 7 --keep 1-120");
        assert_eq!(command(vec![3, 5]), "flexfs torture --media 1 --seed 7 --keep 3,5");
        assert_eq!(command(Vec::new()), "flexfs torture --media 1 --seed 7 --keep ''");
    }
}
