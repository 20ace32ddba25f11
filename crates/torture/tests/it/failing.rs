//! Programs and erases that fail: no data is lost, and the volume stays usable while good blocks are left.

use emulator::{Chip, FaultConfig, TornKind};
use flexfs_core::{Error, Fs, MountOptions, NewNode, Policy, ROOT_INO, kind};
use nand::Nand;
use torture::crash::{Rig, Run};
use torture::ops::{Step, Supply};

const STEPS: usize = 6_000;
const FAIL_A_PROGRAM_EVERY: usize = 400;
const FAIL_AN_ERASE_EVERY: usize = 700;

fn rig(policy: Policy) -> Rig {
    sized(96, 16, policy)
}

fn sized(blocks: u32, pages: u32, policy: Policy) -> Rig {
    let options = MountOptions { policy, cache_bytes: 128 << 10, ..MountOptions::default() };
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
                chip.faults_mut().fail_program_at(soon);
            }
            if step.is_multiple_of(FAIL_AN_ERASE_EVERY) {
                chip.faults_mut().fail_erase_at(soon / 4);
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
    for (seed, policy) in [(1, Policy::BASELINE), (2, Policy::NATIVE_ONLY), (3, Policy::BASELINE)] {
        let mut rig = rig(policy);
        rig.faults = FaultConfig { fail_at_once: seed == 3, ..FaultConfig::default() };
        println!("seed {seed}: {:?} programs and erases failed", failing_history(rig, seed, 0));
    }
}

/// The unit that failed was programmed again empty, or its slots counted as safe while they were in memory only.
#[test]
fn failing_programs_of_several_pages_lose_nothing() {
    let options = MountOptions { cache_bytes: 128 << 10, ..MountOptions::default() };
    for (seed, disruptions) in [(1, 0), (2, 10), (3, 10), (4, 10), (5, 10), (6, 0)] {
        // With fewer pages a block has so few units that anchors run out before a block that failed is replaced.
        let rig = Rig::small("tlc-3d", 64, 48, options.clone()).unwrap();
        println!("seed {seed}: {:?} programs and erases failed", failing_history(rig, seed, disruptions));
    }
}

/// Index pages of several levels could share a unit: where its program failed all moved, and the pages above still said
/// where those below had stood.
#[test]
fn index_pages_that_move_together_are_found_again() {
    let options = MountOptions { cache_bytes: 128 << 10, ..MountOptions::default() };
    let rig = Rig::small("tlc-3d", 64, 24, options).unwrap();
    let start = filled(rig.chip(5).unwrap(), &rig);
    let mut failed = 0;
    for round in 0..24 {
        let mut supply = Supply::new(round);
        let mut fs = mount(start.snapshot(), &rig);
        overwrite(&mut fs, &mut supply, round, 40);
        fs.sync().unwrap();
        fs.chip_mut().faults_mut().fail_program_at(round);
        let (chip, unmounted) = fs.unmount(1);
        unmounted.unwrap();
        failed += chip.counters().program_failures;
        let mut fs = mount(chip, &rig);
        assert_eq!(fs.check().unwrap().findings, Vec::<String>::new(), "round {round}");
    }
    assert!(failed >= 4, "too few programs failed to prove anything: {failed}");
}

/// The anchor that names the next block of one head may program, and fail, the unit of another.
#[test]
fn units_of_two_heads_that_fail_together_lose_nothing() {
    // Chunks that wait in memory would be programmed by the sync, and blocks full of them fail: too many for a chip as full.
    let policy = Policy::LA.collecting_both("la");
    let options = MountOptions { policy, cache_bytes: 128 << 10, ..MountOptions::default() };
    let rig = Rig::small("tlc-3d", 80, 24, options).unwrap();
    let start = filled(rig.chip(5).unwrap(), &rig);
    let mut both = 0;
    for round in 0..150 {
        let mut supply = Supply::new(round);
        let mut fs = mount(start.snapshot(), &rig);
        let settled = 100 + supply.below(100) as usize;
        overwrite(&mut fs, &mut supply, round, settled);
        let attr = fs.lookup(ROOT_INO, b"file").unwrap();
        let mut written = Vec::new();
        for _ in 0..=supply.below(12) {
            let chunk = supply.below(attr.size / CHUNK_BYTES as u64);
            fs.write(attr.ino, chunk * CHUNK_BYTES as u64, &[round as u8 ^ 0x55; CHUNK_BYTES], 0).unwrap();
            written.push(chunk);
        }
        for _ in 0..supply.below(6) {
            fs.background(0, 0).unwrap();
        }
        let failed = fs.chip().counters().program_failures;
        fs.chip_mut().faults_mut().fail_program_at(0);
        fs.chip_mut().faults_mut().fail_program_at(1 + supply.below(2));
        fs.sync().unwrap();
        both += u32::from(fs.chip().counters().program_failures == failed + 2);
        let more = supply.below(40) as usize;
        overwrite(&mut fs, &mut supply, round, more);
        let mut chip = fs.into_chip();
        chip.cut_power().unwrap();
        chip.power_on();
        let mut fs = mount(chip, &rig);
        assert_eq!(fs.check().unwrap().findings, Vec::<String>::new(), "round {round}");
        for chunk in written {
            let mut found = [0; CHUNK_BYTES];
            fs.read(attr.ino, chunk * CHUNK_BYTES as u64, &mut found).unwrap();
            let newest = [[round as u8 ^ 0x55; CHUNK_BYTES], [chunk as u8 ^ round as u8; CHUNK_BYTES]];
            assert!(newest.contains(&found), "round {round}, chunk {chunk}");
        }
    }
    assert!(both > 50, "too few of {both} rounds to prove anything");
}

/// Writes whose programs fail, until one of them is a record's.
const WRITES: usize = 24;

/// A record whose program failed had its number, but where no other block could be taken no place: replay ends the log at
/// such a gap, whatever was synced after it.
#[test]
fn a_volume_that_can_place_a_record_nowhere_writes_no_more() {
    for (profile, pages) in [("flexfs-mlc", 16), ("tlc-3d", 24)] {
        let options = MountOptions { cache_bytes: 128 << 10, ..MountOptions::default() };
        let rig = Rig::small(profile, 80, pages, options).unwrap();
        let mut supply = Supply::new(6);
        let mut fs = mount(filled(rig.chip(6).unwrap(), &rig), &rig);
        overwrite(&mut fs, &mut supply, 1, 50);
        // After a recovery no block is known to be erased.
        let mut fs = mount(fs.into_chip(), &rig);
        overwrite(&mut fs, &mut supply, 2, 1);
        (0..1000).for_each(|erase| fs.chip_mut().faults_mut().fail_erase_at(erase));
        let attr = fs.lookup(ROOT_INO, b"file").unwrap();
        // What is written to make room may fail before, for which there is no space: a record fails in the end.
        let refused = (0..WRITES).any(|_| {
            fs.chip_mut().faults_mut().fail_program_at(0);
            fs.write(attr.ino, 0, &[9; CHUNK_BYTES], 0).and_then(|_| fs.sync()) == Err(Error::ReadOnly)
        });
        assert!(refused, "{profile}");
        assert_eq!(fs.write(attr.ino, 0, &[9; CHUNK_BYTES], 0), Err(Error::ReadOnly), "{profile}");
        assert_eq!(fs.sync(), Err(Error::ReadOnly), "{profile}");
        let mut found = [0; CHUNK_BYTES];
        fs.read(attr.ino, CHUNK_BYTES as u64, &mut found).unwrap();
    }
}

#[test]
fn failing_blocks_and_power_cuts_together_lose_nothing() {
    println!("{:?} programs and erases failed", failing_history(rig(Policy::BASELINE), 4, 10));
}

/// A mount writes its first anchor to the other block of the pair. Once that block could not be erased, and no other of
/// the first sixteen was free, the volume took the newest anchor's own block and could not be mounted again.
#[test]
fn anchor_blocks_that_fail_at_the_first_change_after_a_mount_are_replaced() {
    // Of the sixteen blocks anchors may stand in.
    const FAILURES: u64 = 4;
    for seed in [5, 34] {
        let mut run = Run::new(sized(32, 64, Policy::BASELINE), seed, 90, 10).unwrap();
        let mut supply = Supply::new(seed);
        let mut failures = 0;
        for _ in 0..STEPS {
            let words = supply.words();
            let remounts = matches!(run.peek(&words), Some(Step::Remount));
            run.step(&words).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            if let Some(chip) = run.chip_mut().filter(|_| remounts && failures < FAILURES) {
                failures += 1;
                chip.faults_mut().fail_erase_at(0);
            }
        }
        run.finish().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(failures, FAILURES, "too few remounts to prove anything");
    }
}

/// A block of anchors that failed stayed in its pair until its turn came, and the block that then took its place was often
/// the last of the first sixteen that was free. Where the other of the pair and that one failed soon after, anchors went
/// on in the only block left, and after two power cuts there was no page in it for another.
#[test]
fn an_anchor_block_that_fails_is_replaced_at_once_and_one_more_kept_free() {
    let rig = sized(64, 16, Policy::BASELINE);
    let chip = filled(rig.chip(3).unwrap(), &rig);
    let mut supply = Supply::new(7);
    let mut failed = 0;
    for program in 0..1000 {
        let mut fs = mount(chip.snapshot(), &rig);
        // So that the anchors of this mount have gone on to the second page at least.
        overwrite(&mut fs, &mut supply, program, 20);
        let pair: Vec<u32> = anchor_blocks(&fs);
        fs.chip_mut().faults_mut().fail_program_at(program);
        while fs.chip_mut().faults_mut().failure_is_armed() {
            overwrite(&mut fs, &mut supply, program, 1);
        }
        overwrite(&mut fs, &mut supply, program, 1);
        let bad: Vec<u32> = fs.blocks().filter(|block| block.used_as == "bad").map(|block| block.number).collect();
        if !bad.iter().any(|block| pair.contains(block)) {
            assert!(fs.blocks().all(|block| !(block.failing && pair.contains(&block.number))), "program {program}");
            continue;
        }
        failed += 1;
        assert_eq!(anchor_blocks(&fs).len(), 2, "program {program}: the pair is not whole");
        let spare = fs.blocks().take(16).any(|block| {
            matches!(block.used_as, "free" | "log" | "index") && block.live_bytes == 0 && block.head.is_none()
        });
        assert!(spare, "program {program}: none is free for the next that fails");
        assert_eq!(fs.check().unwrap().findings, Vec::<String>::new(), "program {program}");
    }
    assert!(failed >= 5, "only {failed} blocks of anchors failed");
}

/// The block that took the place of a bad one is erased and written to while the newest anchor still says that the volume
/// is at rest and the block erased. A cut there left a torn page, and the next mount programmed the page once more.
#[test]
fn a_cut_while_an_anchor_block_is_replaced_leaves_no_block_that_looks_erased() {
    let rig = sized(64, 16, Policy::BASELINE);
    // Nearly empty, so that its blocks count as erased.
    let chip = holding(rig.chip(3).unwrap(), &rig, 20);
    for (cut, seed) in (0..6).flat_map(|cut| (0..6).map(move |seed| (cut, seed))) {
        let mut hurt = chip.snapshot();
        hurt.faults_mut().fail_erase_at(0);
        hurt.faults_mut().set(FaultConfig::power_cuts(seed));
        hurt.faults_mut().cut_power_at(cut);
        let mut fs = mount(hurt, &rig);
        let attr = fs.lookup(ROOT_INO, b"file").unwrap();
        let _cut_short = fs.write(attr.ino, 0, &[9; CHUNK_BYTES], 0).and_then(|_| fs.sync());
        let mut hurt = fs.into_chip();
        hurt.faults_mut().cancel_cut();
        hurt.power_on();
        let mut fs = mount(hurt, &rig);
        overwrite(&mut fs, &mut Supply::new(cut), cut, 40);
        assert_eq!(fs.check().unwrap().findings, Vec::<String>::new(), "cut {cut}");
    }
}

/// A driver may mark a block bad that a log head stood in when the power failed. The mark was forgotten in the replay, the
/// head went on in the block, and the chip refused every mount.
#[test]
fn a_block_marked_bad_under_a_log_head_is_left() {
    let rig = sized(64, 16, Policy::BASELINE);
    let chip = filled(rig.chip(3).unwrap(), &rig);
    for writes in 1..30 {
        let mut fs = mount(chip.snapshot(), &rig);
        overwrite(&mut fs, &mut Supply::new(9), 9, writes);
        let heads: Vec<u32> = fs.blocks().filter(|block| block.head.is_some()).map(|block| block.number).collect();
        let mut hurt = fs.into_chip();
        heads.into_iter().for_each(|block| hurt.mark_bad(block).unwrap());
        let mut fs = mount(hurt, &rig);
        overwrite(&mut fs, &mut Supply::new(10), 10, 20);
        assert_eq!(fs.check().unwrap().findings, Vec::<String>::new(), "after {writes} writes");
    }
}

/// As above on a full volume, of which copies are taken in every state that random overwrites leave it in: often none of
/// the first sixteen blocks is free, and anchors go on in the block they are in until one has been emptied.
#[test]
fn a_volume_makes_do_with_one_anchor_block_until_another_is_emptied() {
    let rig = sized(64, 64, Policy::BASELINE);
    let mut chip = rig.chip(3).unwrap();
    chip = filled(chip, &rig);
    let (mut supply, mut of_pair) = (Supply::new(3), 0);
    for round in 0..40 {
        let mut fs = mount(chip.snapshot(), &rig);
        fs.chip_mut().faults_mut().fail_erase_at(0);
        overwrite(&mut fs, &mut supply, round, 60);
        let mut fs = mount(fs.into_chip(), &rig);
        assert_eq!(fs.check().unwrap().findings, Vec::<String>::new(), "round {round}");
        let failed: Vec<u32> = (0..64).filter(|&block| fs.chip().has_failed(block)).collect();
        assert_eq!(failed.len(), 1, "round {round}");
        overwrite(&mut fs, &mut supply, round, 60);
        let info = fs.info().unwrap();
        assert_eq!(info.blocks.bad + info.failing_blocks, 1, "round {round}");
        // Of the pair for anchors it is tested at once, others are where nobody waits.
        of_pair += info.blocks.bad;
        let (_, outcome) = fs.unmount(0);
        outcome.unwrap_or_else(|error| panic!("round {round}: {error}"));

        let mut fs = mount(chip, &rig);
        overwrite(&mut fs, &mut supply, round, 150);
        let (left, outcome) = fs.unmount(0);
        outcome.unwrap();
        chip = left;
    }
    println!("{of_pair} times a block of the pair");
    assert!(of_pair > 2, "{of_pair} times a block of the pair");
}

/// Each mount that recovers uses up some of the room kept for a volume with one anchor block. Mounts between which
/// nothing was changed had used all of it, and no mount succeeded any more.
#[test]
fn a_volume_that_lost_an_anchor_block_can_be_mounted_again_and_again() {
    let rig = sized(64, 64, Policy::BASELINE);
    let mut chip = filled(rig.chip(3).unwrap(), &rig);
    let mut supply = Supply::new(4);
    for round in 0..30 {
        let mut fs = mount(chip, &rig);
        overwrite(&mut fs, &mut supply, round, 100);
        chip = fs.into_chip();
        let mut hurt = chip.snapshot();
        hurt.faults_mut().fail_erase_at(0);
        for again in 0..12 {
            // The power fails in the recovery, or right after it.
            if again % 4 != 3 {
                hurt.faults_mut().cut_power_at(1 + supply.below(4));
            }
            hurt = match Fs::mount(hurt, rig.options.clone()) {
                Ok(fs) => fs.into_chip(),
                Err((chip, _)) if !chip.is_powered() => chip,
                Err((_, error)) => panic!("round {round}, mount {again}: {error}"),
            };
            hurt.faults_mut().cancel_cut();
            hurt.power_on();
        }
        let mut fs = mount(hurt, &rig);
        assert_eq!(fs.check().unwrap().findings, Vec::<String>::new(), "round {round}");
        overwrite(&mut fs, &mut supply, round, 20);
    }
}

/// Free blocks beside those that anchors may stand in, of which a recovery and one that fails on the way take no more.
const LEFT: usize = 5;

/// One page more is left alone after a cut, but not where a block has so few that none would be left for a checkpoint: the
/// power failed in the first anchor of a recovery, and the next mount could write nothing any more.
#[test]
fn a_volume_of_short_blocks_that_lost_an_anchor_block_survives_a_cut_in_its_recovery() {
    let rig = sized(64, 16, Policy::BASELINE);
    let mut chip = filled(rig.chip(3).unwrap(), &rig);
    let mut supply = Supply::new(5);
    let mut hurt_rounds = 0;
    for round in 0..60 {
        let mut fs = mount(chip, &rig);
        overwrite(&mut fs, &mut supply, round, 30);
        let unused = fs.blocks().filter(|b| b.used_as != "anchor" && b.live_bytes == 0 && b.head.is_none());
        let (free, left): (Vec<u32>, Vec<u32>) = unused.map(|b| b.number).partition(|&number| number < 16);
        chip = fs.into_chip();
        if left.len() < LEFT {
            continue;
        }
        hurt_rounds += 1;
        let mut hurt = chip.snapshot();
        free.into_iter().for_each(|block| hurt.mark_bad(block).unwrap());
        // The other block of the pair, and then the anchor in the one that is left.
        hurt.faults_mut().fail_erase_at(0);
        hurt.faults_mut().set(FaultConfig { torn: TornKind::Garbage, ..FaultConfig::power_cuts(round) });
        hurt.faults_mut().cut_power_at(1);
        let (mut hurt, _) = Fs::mount(hurt, rig.options.clone()).map(|_| ()).unwrap_err();
        hurt.power_on();
        let mut fs = mount(hurt, &rig);
        // So many blocks are bad now that little may be written, but what gives space back.
        fs.unlink(ROOT_INO, b"file", 0).and_then(|_| fs.sync()).unwrap_or_else(|e| panic!("round {round}: {e}"));
        assert_eq!(fs.check().unwrap().findings, Vec::<String>::new(), "round {round}");
    }
    assert!(hurt_rounds >= 20, "{hurt_rounds} rounds");
}

const CHUNK_BYTES: usize = 4096;

fn mount(chip: Chip, rig: &Rig) -> Fs<Chip> {
    Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error).unwrap()
}

/// The blocks that anchors are written to.
fn anchor_blocks(fs: &Fs<Chip>) -> Vec<u32> {
    fs.blocks().filter(|block| block.used_as == "anchor" && !block.failing).map(|block| block.number).collect()
}

/// A volume with one file that takes nearly all of it.
fn filled(chip: Chip, rig: &Rig) -> Chip {
    let mut probe = rig.format(chip.snapshot(), 3).unwrap().fs;
    let chunks = probe.statfs().unwrap().free_bytes * 95 / 100 / CHUNK_BYTES as u64;
    holding(chip, rig, chunks)
}

/// A volume with one file of so many chunks.
fn holding(chip: Chip, rig: &Rig, chunks: u64) -> Chip {
    let mut fs = rig.format(chip, 3).unwrap().fs;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let ino = fs.create(ROOT_INO, b"file", node, 0).unwrap().ino;
    for chunk in 0..chunks {
        fs.write(ino, chunk * CHUNK_BYTES as u64, &[1; CHUNK_BYTES], 0).unwrap();
    }
    let (chip, outcome) = fs.unmount(0);
    outcome.unwrap();
    chip
}

/// Overwrites chunks at random, syncs each, and reads it back.
fn overwrite(fs: &mut Fs<Chip>, supply: &mut Supply, round: u64, writes: usize) {
    let attr = fs.lookup(ROOT_INO, b"file").unwrap();
    for _ in 0..writes {
        let chunk = supply.below(attr.size / CHUNK_BYTES as u64);
        let data = [chunk as u8 ^ round as u8; CHUNK_BYTES];
        fs.write(attr.ino, chunk * CHUNK_BYTES as u64, &data, 0).unwrap_or_else(|e| panic!("round {round}: {e}"));
        fs.sync().unwrap_or_else(|e| panic!("round {round}: {e}"));
        let mut found = [0; CHUNK_BYTES];
        fs.read(attr.ino, chunk * CHUNK_BYTES as u64, &mut found).unwrap();
        assert!(found == data, "round {round}, chunk {chunk}");
    }
}
