//! Programs and erases that fail: no data is lost, and the volume stays usable while good blocks are left.

use emulator::{Chip, FaultConfig};
use flexfs_core::{Fs, Mode, MountOptions, NewNode, ROOT_INO, kind};
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

/// The unit that failed was programmed again empty, or its slots counted as safe while they were in memory only.
#[test]
fn failing_programs_of_several_pages_lose_nothing() {
    let options = MountOptions { cache_bytes: 128 << 10, ..MountOptions::default() };
    for (seed, disruptions) in [(1, 0), (2, 10), (3, 10)] {
        let rig = Rig::small("tlc-3d", 64, 24, options.clone()).unwrap();
        println!("seed {seed}: {:?} programs and erases failed", failing_history(rig, seed, disruptions));
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

/// As above on a full volume, of which copies are taken in every state that random overwrites leave it in: often none of
/// the first sixteen blocks is free, and anchors go on in the block they are in until one has been emptied.
#[test]
fn a_volume_makes_do_with_one_anchor_block_until_another_is_emptied() {
    let rig = sized(64, 64, Mode::Baseline);
    let mut chip = rig.chip(3).unwrap();
    chip = filled(chip, &rig);
    let mut supply = Supply::new(3);
    for round in 0..40 {
        let mut fs = mount(chip.snapshot(), &rig);
        fs.chip_mut().fail_erase_at(0);
        overwrite(&mut fs, &mut supply, round, 60);
        let mut fs = mount(fs.into_chip(), &rig);
        assert_eq!(fs.check().unwrap().findings, Vec::<String>::new(), "round {round}");
        assert_eq!(fs.info().unwrap().blocks.bad, 1, "round {round}");
        overwrite(&mut fs, &mut supply, round, 60);
        let (_, outcome) = fs.unmount(0);
        outcome.unwrap_or_else(|error| panic!("round {round}: {error}"));

        let mut fs = mount(chip, &rig);
        overwrite(&mut fs, &mut supply, round, 150);
        chip = fs.unmount(0).0;
    }
}

const CHUNK_BYTES: usize = 4096;

fn mount(chip: Chip, rig: &Rig) -> Fs<Chip> {
    Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error).unwrap()
}

/// A volume with one file that takes nearly all of it.
fn filled(chip: Chip, rig: &Rig) -> Chip {
    let mut fs = rig.format(chip, 3).unwrap().fs;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let ino = fs.create(ROOT_INO, b"file", node, 0).unwrap().ino;
    let bytes = fs.statfs().unwrap().free_bytes * 95 / 100;
    for chunk in 0..bytes / CHUNK_BYTES as u64 {
        fs.write(ino, chunk * CHUNK_BYTES as u64, &[1; CHUNK_BYTES], 0).unwrap();
    }
    fs.unmount(0).0
}

/// Overwrites chunks at random, syncs each, and reads it back.
fn overwrite(fs: &mut Fs<Chip>, supply: &mut Supply, round: u64, writes: usize) {
    let attr = fs.lookup(ROOT_INO, b"file").unwrap();
    for _ in 0..writes {
        let chunk = supply.below(attr.size / CHUNK_BYTES as u64);
        let data = [chunk as u8 ^ round as u8; CHUNK_BYTES];
        fs.write(attr.ino, chunk * CHUNK_BYTES as u64, &data, 0).unwrap_or_else(|e| panic!("round {round}: {e}"));
        fs.sync(0).unwrap_or_else(|e| panic!("round {round}: {e}"));
        let mut found = [0; CHUNK_BYTES];
        fs.read(attr.ino, chunk * CHUNK_BYTES as u64, &mut found).unwrap();
        assert!(found == data, "round {round}, chunk {chunk}");
    }
}
