//! Blocks that fail, and chips that do: no block is marked bad without a test that another one passes.

use emulator::{BitErrors, Chip, FaultConfig, Profile};
use nand::Nand;

use super::{file, formatted_as, formatted_of, mounted};
use crate::{Ended, Error, Fs, Ino, Policy, SetAttr};

const CHIPS: [&str; 2] = ["flexfs-mlc", "flexfs-slc"];
const STEP_NS: i64 = 1_000_000;
/// Programs and erases that fail until a mount takes the chip to be at fault, at most.
const TRIES_MAX: u64 = 24;

fn bad_blocks(chip: &Chip) -> usize {
    (0..chip.geometry().blocks).filter(|&block| chip.is_bad(block)).count()
}

fn operations(chip: &Chip) -> u64 {
    chip.counters().programs.total() + chip.counters().erases.total()
}

fn holds(fs: &mut Fs<Chip>, ino: Ino, byte: u8) -> bool {
    let mut bytes = [0; 3 * 4096];
    fs.read(ino, 0, &mut bytes).unwrap() == bytes.len() && bytes.iter().all(|&found| found == byte)
}

fn write(fs: &mut Fs<Chip>, ino: Ino, byte: u8) -> Result<(), Error> {
    fs.write(ino, 0, &[byte; 3 * 4096], 1)?;
    fs.sync()
}

/// Writes and rests until no block waits for its test any more; the steps of more than one program or erase.
fn settled(mut fs: Fs<Chip>, ino: Ino, byte: u8) -> (Fs<Chip>, usize) {
    let mut long_steps = 0;
    for _ in 0..20 {
        // What stood in the block that failed is needed until a checkpoint, and until more was written.
        fs = mounted(fs.unmount(1).0, Policy::default());
        write(&mut fs, ino, byte).unwrap();
        long_steps += rest(&mut fs, STEP_NS);
        if fs.info().unwrap().failing_blocks == 0 {
            break;
        }
    }
    (fs, long_steps)
}

/// Lets a minute pass in which nobody asks for anything. Steps of more than one program or erase.
fn rest(fs: &mut Fs<Chip>, start_ns: i64) -> usize {
    let (mut now_ns, mut long_steps) = (start_ns, 0);
    while now_ns < start_ns + 60_000_000_000 {
        let before = operations(fs.chip());
        match fs.background(now_ns, now_ns) {
            Ok(Some(next_ns)) => now_ns = next_ns.max(now_ns + STEP_NS),
            Ok(None) => break,
            Err(error) => panic!("{error}"),
        }
        long_steps += usize::from(operations(fs.chip()) > before + 1);
    }
    long_steps
}

/// One synced write on a chip that refused everything marked fifteen good blocks bad for good.
#[test]
fn a_chip_that_refuses_every_write_has_no_block_marked() {
    for (kind, written_before) in CHIPS.into_iter().flat_map(|kind| [false, true].map(|written| (kind, written))) {
        let mut fs = mounted(formatted_of(kind), Policy::default());
        let kept = file(&mut fs, b"kept");
        write(&mut fs, kept, 1).unwrap();
        if !written_before {
            fs = mounted(fs.unmount(1).0, Policy::default());
        }
        let before = operations(fs.chip());
        fs.chip_mut().faults_mut().refuse_writes(u64::MAX);
        assert_eq!(write(&mut fs, kept, 2), Err(Error::WriteOutage), "{kind}");
        let tries = operations(fs.chip()) - before;
        assert!(tries <= TRIES_MAX, "{kind}: {tries} programs and erases were tried");
        assert_eq!(write(&mut fs, kept, 2), Err(Error::ReadOnly), "{kind}");
        assert_eq!(fs.info().unwrap().ended, Some(Ended::WriteOutage), "{kind}");
        assert_eq!(fs.background(STEP_NS, STEP_NS), Ok(None), "{kind}");
        assert_eq!(operations(fs.chip()), before + tries, "{kind}: nothing more is tried");
        let mut chip = fs.into_chip();
        assert_eq!(bad_blocks(&chip), 0, "{kind}");
        chip.faults_mut().refuse_writes(0);
        let mut fs = mounted(chip, Policy::default());
        assert!(holds(&mut fs, kept, 1), "{kind}: what was synced is there");
        write(&mut fs, kept, 3).unwrap();
        assert_eq!(fs.info().unwrap().failing_blocks, 0, "{kind}");
    }
}

#[test]
fn a_recovery_that_the_chip_refuses_leaves_a_mount_that_reads() {
    let mut fs = mounted(formatted_of("flexfs-mlc"), Policy::default());
    let kept = file(&mut fs, b"kept");
    write(&mut fs, kept, 1).unwrap();
    let mut chip = fs.into_chip();
    chip.faults_mut().refuse_writes(u64::MAX);
    let mut fs = mounted(chip, Policy::default());
    assert_eq!(fs.info().unwrap().ended, Some(Ended::WriteOutage));
    assert!(holds(&mut fs, kept, 1));
    assert_eq!(bad_blocks(fs.chip()), 0);
}

#[test]
fn a_format_that_the_chip_refuses_marks_nothing() {
    let mut chip = formatted_of("flexfs-mlc");
    chip.faults_mut().refuse_writes(u64::MAX);
    assert_eq!(Fs::format(&mut chip, &super::options(false)), Err(Error::WriteOutage));
    assert_eq!(bad_blocks(&chip), 0);
}

#[test]
fn blocks_that_failed_for_a_moment_are_used_again() {
    for (kind, refused) in CHIPS.into_iter().flat_map(|kind| (1..=3).map(move |refused| (kind, refused))) {
        let mut fs = mounted(formatted_of(kind), Policy::default());
        let kept = file(&mut fs, b"kept");
        write(&mut fs, kept, 1).unwrap();
        fs.chip_mut().faults_mut().refuse_writes(refused);
        write(&mut fs, kept, 2).unwrap();
        let failing = fs.info().unwrap().failing_blocks;
        assert!(failing > 0, "{kind}, {refused} refused");
        let cycles = fs.info().unwrap().cycles;
        let (mut fs, long_steps) = settled(fs, kept, 2);
        assert_eq!(long_steps, 0, "{kind}: steps of idle time were longer than one program or erase");
        let info = fs.info().unwrap();
        assert_eq!((info.failing_blocks, info.blocks.bad, info.ended), (0, 0, None), "{kind}, {refused} refused");
        // The last of two cycles is counted where it begins.
        assert!(
            info.cycles >= cycles + 2 * u64::from(failing) - 1,
            "{kind}: cycles of tests count {refused} {failing} {cycles} {}",
            info.cycles
        );
        assert!(holds(&mut fs, kept, 2), "{kind}");
    }
}

#[test]
fn a_block_that_fails_its_test_is_marked_once_another_passes() {
    for (kind, erases) in CHIPS.into_iter().flat_map(|kind| [false, true].map(|erases| (kind, erases))) {
        let mut fs = mounted(formatted_of(kind), Policy::default());
        let kept = file(&mut fs, b"kept");
        write(&mut fs, kept, 1).unwrap();
        match erases {
            true => fs.chip_mut().faults_mut().fail_erase_at(0),
            false => fs.chip_mut().faults_mut().fail_program_at(0),
        }
        for round in 0..2_000 {
            write(&mut fs, kept, (round % 250) as u8).unwrap();
            if fs.info().unwrap().failing_blocks > 0 {
                break;
            }
        }
        // Of the pair for anchors it is tested at once.
        assert!(erases || bad_blocks(fs.chip()) == 0, "{kind}: marked without a test");
        let (mut fs, _) = settled(fs, kept, 1);
        let info = fs.info().unwrap();
        assert_eq!((info.failing_blocks, info.blocks.bad), (0, 1), "{kind}, erases: {erases}");
        assert_eq!(bad_blocks(fs.chip()), 1, "{kind}");
    }
}

/// The suspect is bad indeed, but as nothing else passes, that cannot be told from a chip at fault.
#[test]
fn a_failing_block_is_not_marked_while_no_other_passes() {
    let mut fs = mounted(formatted_of("flexfs-mlc"), Policy::default());
    let kept = file(&mut fs, b"kept");
    write(&mut fs, kept, 1).unwrap();
    fs.chip_mut().faults_mut().fail_program_at(0);
    write(&mut fs, kept, 2).unwrap();
    let mut fs = mounted(fs.unmount(1).0, Policy::default());
    write(&mut fs, kept, 2).unwrap();
    fs.chip_mut().faults_mut().refuse_writes(u64::MAX);
    let failed = (1..20_000).find_map(|step| fs.background(step * STEP_NS, step * STEP_NS).err());
    assert_eq!(failed, Some(Error::WriteOutage));
    assert_eq!((fs.info().unwrap().ended, bad_blocks(fs.chip())), (Some(Ended::WriteOutage), 0));
}

/// A control is a free block like any other: between two steps of a test a call may take it.
#[test]
fn calls_go_on_between_the_steps_of_a_test_and_lose_nothing() {
    let mut fs = mounted(formatted_of("flexfs-mlc"), Policy::default());
    let files: Vec<Ino> = (0..8u8).map(|n| file(&mut fs, &[b'a' + n])).collect();
    fs.chip_mut().faults_mut().fail_program_at(5);
    for round in 0..2_000u32 {
        let ino = files[round as usize % files.len()];
        write(&mut fs, ino, (round % 251) as u8).unwrap();
        for step in 0..3 {
            let now_ns = i64::from(3 * round + step) * STEP_NS;
            fs.background(now_ns, now_ns).unwrap();
        }
    }
    assert_eq!(fs.info().unwrap().blocks.bad, 1);
    let mut fs = mounted(fs.unmount(1).0, Policy::default());
    for (number, &ino) in files.iter().enumerate() {
        let last = (0..2_000u32).rev().find(|round| *round as usize % files.len() == number).unwrap();
        assert!(holds(&mut fs, ino, (last % 251) as u8));
    }
}

/// A mount took the other block of the pair for erased where anchors had reached the second half of theirs, though that
/// erase had failed, and nothing on the chip said so.
#[test]
fn an_anchor_block_whose_erase_failed_is_not_taken_for_erased() {
    let cases = CHIPS.into_iter().flat_map(|kind| (0..12).map(move |anchors| (kind, anchors)));
    for (kind, anchors) in cases {
        let mut fs = mounted(formatted_of(kind), Policy::default());
        let kept = file(&mut fs, b"kept");
        write(&mut fs, kept, 1).unwrap();
        // Of so many anchors one is the last of the unmount, and the one before it in the first half.
        for _ in 0..anchors {
            fs.store_mut().records_mut().log.flash_mut().rewrite_anchor().unwrap();
        }
        fs.chip_mut().faults_mut().fail_erase_at(0);
        for round in 0..12 {
            let (chip, unmounted) = fs.unmount(1);
            assert_eq!(unmounted, Ok(()), "{kind}, {anchors} more anchors, round {round}");
            fs = mounted(chip, Policy::default());
            assert!(holds(&mut fs, kept, round + 1), "{kind}, {anchors} more anchors, round {round}");
            write(&mut fs, kept, round + 2).unwrap();
        }
    }
}

/// Where every block reads with most of the ECC used up, none passes a whole test and none is free to be the control. A removal
/// ended the volume, though what such blocks hold is right.
#[test]
fn weak_blocks_take_a_removal_where_no_others_are_left() {
    let mut profile = Profile::builtin("flexfs-mlc").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 16);
    let wrong = f64::from(profile.ecc.correctable_bits) / 8192.0;
    (profile.errors.slc.fresh, profile.errors.native.fresh) = (wrong, wrong);
    let mut fs = mounted(formatted_as(&profile), Policy::default());
    let kept = file(&mut fs, b"kept");
    let filled = (0..).take_while(|chunk| fs.write(kept, chunk * 4096, &[0x5a; 4096], 1).is_ok()).count() as u64;
    fs.sync().unwrap();
    fs.chip_mut().faults_mut().set(FaultConfig { bit_errors: BitErrors::Correctable, ..FaultConfig::default() });
    let mut bytes = [0; 4096];
    for round in 0..4 {
        for chunk in 0..filled {
            fs.read(kept, chunk * 4096, &mut bytes).unwrap();
            let _ = fs.write(kept, chunk * 4096, &[round; 4096], 1).and_then(|_| fs.sync());
        }
    }
    assert_eq!(fs.setattr(kept, SetAttr { size: Some(0), ..SetAttr::default() }, 1).map(|attr| attr.size), Ok(0));
    assert_eq!(fs.info().unwrap().ended, None);
    assert_eq!(fs.sync(), Ok(()));
}
