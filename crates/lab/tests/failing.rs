//! Programs and erases that fail: no data is lost, and the volume stays usable while good blocks are left.

use emulator::FaultConfig;
use flexfs_core::{Mode, MountOptions};
use lab::crash::{Rig, Run};
use lab::ops::{Step, Supply};

const STEPS: usize = 6_000;
const FAIL_A_PROGRAM_EVERY: usize = 400;
const FAIL_AN_ERASE_EVERY: usize = 700;

fn rig(mode: Mode) -> Rig {
    sized(96, 16, mode)
}

fn sized(blocks: u32, pages: u32, mode: Mode) -> Rig {
    let options = MountOptions { mode, cache_bytes: 128 << 10, ..MountOptions::default() };
    Rig::small("flexfs-mlc", blocks, pages, options).unwrap()
}

/// A random history on a chip whose programs and erases fail now and then; returns how many did.
fn failing_history(rig: Rig, seed: u64, disruptions: usize) -> (u64, u64) {
    let mut run = Run::new(rig, seed, 60, disruptions).unwrap();
    let mut supply = Supply::new(seed);
    let mut failures = (0, 0);
    for step in 1..=STEPS {
        let soon = supply.below(20);
        if let Some(chip) = run.chip_mut() {
            if step.is_multiple_of(FAIL_A_PROGRAM_EVERY) {
                chip.fail_program_at(soon);
            }
            if step.is_multiple_of(FAIL_AN_ERASE_EVERY) {
                chip.fail_erase_at(soon / 4);
            }
            failures = (chip.counters().program_failures, chip.counters().erase_failures);
        }
        run.step(&supply.words()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    run.finish().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert!(failures.0 >= 5 && failures.1 >= 2, "too few failures to prove anything: {failures:?}");
    failures
}

#[test]
fn failing_programs_and_erases_lose_nothing() {
    for (seed, mode) in [(1, Mode::Baseline), (2, Mode::NativeOnly), (3, Mode::Baseline)] {
        let mut rig = rig(mode);
        rig.faults = FaultConfig { fail_at_once: seed == 3, ..FaultConfig::default() };
        println!("seed {seed}: {:?} programs and erases failed", failing_history(rig, seed, 0));
    }
}

#[test]
fn failing_blocks_and_power_cuts_together_lose_nothing() {
    println!("{:?} programs and erases failed", failing_history(rig(Mode::Baseline), 4, 10));
}

/// A mount writes its first anchor to the other block of the pair. Once that block could not be erased, and no other of
/// the first sixteen was free, the volume took the newest anchor's own block and could not be mounted again.
#[test]
fn anchor_blocks_that_fail_at_the_first_change_after_a_mount_are_replaced() {
    // Of the sixteen blocks anchors may stand in.
    const FAILURES: u64 = 4;
    for seed in [5, 34] {
        let mut run = Run::new(sized(32, 64, Mode::Baseline), seed, 90, 10).unwrap();
        let mut supply = Supply::new(seed);
        let mut failures = 0;
        for _ in 0..STEPS {
            let words = supply.words();
            let remounts = matches!(run.peek(&words), Some(Step::Remount));
            run.step(&words).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            if let Some(chip) = run.chip_mut().filter(|_| remounts && failures < FAILURES) {
                failures += 1;
                chip.fail_erase_at(0);
            }
        }
        run.finish().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(failures, FAILURES, "too few remounts to prove anything");
    }
}
