//! Volumes on a failing medium: programs and erases that fail, bit errors near to what the ECC corrects, years without
//! power, and, at the end, pages that nothing corrects.
//!
//! Invariant: as long as the ECC's limits are kept and few blocks fail, nothing is lost; past them, what is read is right
//! or an error.

use std::ops::{AddAssign, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use emulator::{Chip, Corruption};
use flexfs_core::{Error, Fs, MountOptions};

use super::campaign::Progress;
use super::panic::caught;
use super::parallel::parallel;
use super::setup::Setup;
use crate::content::mix;
use crate::crash::{History, Run, Tally};
use crate::model::Body;
use crate::ops::Supply;

/// Steps of a run.
const STEPS: usize = 120;
/// Programs and erases that fail in a run, each, at most.
const FAILURES: u64 = 2;
/// How full volumes get, in percent, and unmounts and power cuts per 1,000 steps, each.
const CROWDED_PERCENT: u64 = 60;
const DISRUPTIONS: usize = 20;
/// Raw bit errors in a codeword that every run has on average at most, in parts of what can be corrected.
const WORST_SHARE: f64 = 0.3;
/// Bits of a codeword.
const CODEWORD_BITS: f64 = 8.0 * 1024.0;
/// Pages damaged at the end of a run.
const DAMAGED: u64 = 6;

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaRun {
    pub tally: Tally,
    pub failures: u64,
    pub corrected_bits: u64,
    /// Reads of damaged pages that gave an error.
    pub refused_reads: u64,
}

impl AddAssign for MediaRun {
    fn add_assign(&mut self, other: Self) {
        self.tally += other.tally;
        self.failures += other.failures;
        self.corrected_bits += other.corrected_bits;
        self.refused_reads += other.refused_reads;
    }
}

/// What came of many runs.
pub struct MediaReport {
    pub runs: u64,
    /// Those that went well, together.
    pub all: MediaRun,
    /// The seeds of those that did not, and what went wrong.
    pub violations: Vec<(u64, String)>,
}

/// Runs many, each with a seed of its own.
pub fn media_runs(seeds: Range<u64>, threads: usize, progress: Progress<'_>) -> MediaReport {
    let seeds: Vec<u64> = seeds.collect();
    let (runs, done) = (seeds.len() as u64, AtomicU64::new(0));
    let outcomes = parallel(threads, &seeds, |&seed| {
        let outcome = caught(|| media_run(seed));
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, runs, u64::from(outcome.is_err()));
        outcome
    });
    let mut report = MediaReport { runs, all: MediaRun::default(), violations: Vec::new() };
    for (seed, outcome) in seeds.into_iter().zip(outcomes) {
        match outcome {
            Ok(run) => report.all += run,
            Err(error) => report.violations.push((seed, error)),
        }
    }
    report
}

/// Runs a random history on a failing medium; the setup and everything else follows from the seed.
pub fn media_run(seed: u64) -> Result<MediaRun, String> {
    let setups = Setup::all();
    let setup = &setups[(mix(seed) % setups.len() as u64) as usize];
    run_on(setup, seed).map_err(|error| format!("{}: {error}", setup.name))
}

fn run_on(setup: &Setup, seed: u64) -> Result<MediaRun, String> {
    let mut rig = setup.rig()?;
    let share = WORST_SHARE * (mix(seed ^ 1) % 100) as f64 / 100.0;
    let rate = share * f64::from(rig.profile.ecc.correctable_bits) / CODEWORD_BITS;
    (rig.profile.errors.slc.fresh, rig.profile.errors.native.fresh) = (rate, rate);
    rig.faults = emulator::FaultConfig { bit_errors: true, ..emulator::FaultConfig::power_cuts(seed) };
    let options = rig.options.clone();
    let mut chip = rig.chip(seed)?;
    chip.scatter_bad_blocks(0.02).map_err(|error| error.to_string())?;
    let mut run = Run::on(rig, chip, seed, CROWDED_PERCENT, DISRUPTIONS)?;
    let mut supply = Supply::new(seed);
    let due: Vec<(usize, bool)> =
        (0..2 * FAILURES).map(|n| (supply.below(STEPS as u64) as usize, n % 2 == 0)).collect();
    for step in 0..STEPS {
        if let Some(chip) = run.chip_mut() {
            for &(_, program) in due.iter().filter(|(at, _)| *at == step) {
                let soon = supply.below(6);
                if program { chip.fail_program_at(soon) } else { chip.fail_erase_at(soon) }
            }
        }
        run.step(&supply.words())?;
    }
    let (tally, chip, history, now_ns) = run.end()?;
    let counters = *chip.counters();
    let refused_reads = damage(chip, &history, options, now_ns, seed)?;
    let failures = counters.program_failures + counters.erase_failures;
    Ok(MediaRun { tally, failures, corrected_bits: counters.corrected_bits, refused_reads })
}

/// Damages pages of an unmounted chip, and reads everything: right bytes or an error. Of the pages that say where
/// everything stands one is damaged at most: of a volume at rest there are two.
fn damage(mut chip: Chip, history: &History, options: MountOptions, now_ns: i64, seed: u64) -> Result<u64, String> {
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
        Err((_, Error::Corrupt { .. } | Error::NotFlexfs(_))) => return Ok(1),
        Err((_, error)) => return Err(format!("mount of a damaged chip: {error}")),
    };
    let mut refused = 0;
    for (ino, node) in history.live().nodes() {
        let Body::File(expected) = &node.body else { continue };
        let mut at = 0;
        while at < expected.size() {
            let mut bytes = [0; 4096];
            let wanted = bytes.len().min((expected.size() - at) as usize);
            match fs.read(ino, at, &mut bytes[..wanted]) {
                Ok(count) if bytes[..count] != expected.read(at, count)[..] || count < wanted => {
                    return Err(format!("inode {ino} reads wrong at {at}, of a damaged chip"));
                }
                Ok(_) => {}
                Err(Error::Corrupt { .. }) => refused += 1,
                Err(error) => return Err(format!("inode {ino} at {at}, of a damaged chip: {error}")),
            }
            at += wanted as u64;
        }
    }
    // Whatever the check finds, it comes to an end.
    let _ = fs.check();
    Ok(refused)
}
