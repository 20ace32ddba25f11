//! A drive on an emulated chip: what is programmed is found again, whatever is cut or fails.

use alloc::collections::BTreeMap;

use emulator::{Chip, FaultConfig, Profile};
use nand::CellMode::{Native, Slc};

use super::*;

pub(super) fn profile() -> Profile {
    let mut profile = Profile::builtin("flexfs-mlc").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (24, 32);
    (profile.geometry.channels, profile.geometry.page_bytes, profile.ecc.codeword_bytes) = (2, 512, 512);
    profile
}

pub(super) fn made(profile: &Profile) -> BlockMapDrive<Chip> {
    let chip = Chip::new(profile, 1).unwrap();
    BlockMapDrive::create(chip, &DriveFormat { number: 7, blank: true }).map_err(|(_, error)| error).unwrap()
}

pub(super) fn restarted(drive: BlockMapDrive<Chip>) -> BlockMapDrive<Chip> {
    let mut chip = drive.into_chip();
    chip.power_on();
    BlockMapDrive::start(chip).map_err(|(_, error)| error).unwrap()
}

pub(super) fn page(seed: u32) -> Vec<u8> {
    (0..512).map(|at| (seed.wrapping_mul(2_654_435_761) >> (at % 24)) as u8).collect()
}

pub(super) fn settled(drive: &mut BlockMapDrive<Chip>) -> Result<Vec<Failure>, NandError> {
    let mut failures = Vec::new();
    drive.barrier(&mut failures).map(|()| failures)
}

pub(super) fn program(
    drive: &mut BlockMapDrive<Chip>,
    block: u32,
    unit: u32,
    mode: CellMode,
    seed: u32,
) -> Result<(), NandError> {
    let mut data = page(seed);
    data.resize(drive.geometry().page_bytes as usize, 0x5a);
    drive.program(block, unit, mode, &data, &seed.to_le_bytes(), Cause::Host)?;
    settled(drive).map(drop)
}

/// A page's bytes and the first of its spare bytes.
fn read(drive: &mut BlockMapDrive<Chip>, block: u32, unit: u32, mode: CellMode) -> Option<(Vec<u8>, [u8; 4])> {
    let page = drive.layout(mode).page(unit).unwrap();
    let (mut data, mut spare) = (vec![0; 512], [0; 4]);
    drive.read(block, page, 0, &mut data, &mut spare, Cause::Host).ok().map(|_| (data, spare))
}

pub(super) fn holds(drive: &mut BlockMapDrive<Chip>, block: u32, unit: u32, mode: CellMode, seed: u32) -> bool {
    read(drive, block, unit, mode) == Some((page(seed), seed.to_le_bytes()))
}

pub(super) fn is_blank(drive: &mut BlockMapDrive<Chip>, block: u32) -> bool {
    (0..8).all(|unit| read(drive, block, unit, Slc) == Some((vec![0xff; 512], [0xff; 4])))
}

#[test]
fn blocks_of_both_modes_are_found_again_by_their_tags() {
    let mut drive = made(&profile());
    assert_eq!((drive.geometry().blocks, drive.geometry().spare_bytes), (20, 64 - 16));
    for (block, mode) in [(0, Slc), (3, Native), (17, Slc)] {
        for unit in 0..5 {
            program(&mut drive, block, unit, mode, block * 100 + unit).unwrap();
        }
    }
    for round in 0..3 {
        for (block, mode) in [(0, Slc), (3, Native), (17, Slc)] {
            assert!((0..5).all(|unit| holds(&mut drive, block, unit, mode, block * 100 + unit)), "{block}, {round}");
            assert_eq!(drive.erases(block), Some(0));
        }
        assert!(is_blank(&mut drive, 1) && drive.erases(1).is_none());
        drive = restarted(drive);
        assert!(drive.counts().start_reads <= 24 + 8, "{:?}", drive.counts());
    }
}

#[test]
fn a_block_begun_at_a_later_unit_is_found_again() {
    let mut drive = made(&profile());
    program(&mut drive, 5, 3, Slc, 9).unwrap();
    let mut drive = restarted(drive);
    assert!(holds(&mut drive, 5, 3, Slc, 9));
    assert_eq!(read(&mut drive, 5, 0, Slc), Some((vec![0xff; 512], [0xff; 4])), "it has a tag alone");
}

#[test]
fn an_erase_gives_the_block_back_and_blocks_wear_evenly() {
    let mut drive = made(&profile());
    for round in 0..200 {
        program(&mut drive, 4, 0, Slc, round).unwrap();
        drive.erase(4, Cause::Host).unwrap();
        settled(&mut drive).unwrap();
        assert!(is_blank(&mut drive, 4));
    }
    let erases: Vec<u32> = drive.chip().erase_counts().step_by(2).collect();
    let (least, most) = (erases.iter().min().unwrap(), erases.iter().max().unwrap());
    assert!(*most <= least + 20, "{erases:?}");
    let mut drive = restarted(drive);
    assert!(is_blank(&mut drive, 4));
}

#[test]
fn what_the_caller_marks_bad_stays_bad() {
    let mut drive = made(&profile());
    program(&mut drive, 6, 0, Slc, 1).unwrap();
    drive.mark_bad(6).unwrap();
    for _ in 0..2 {
        assert!(drive.is_bad(6) && !drive.is_bad(7) && drive.is_bad(20));
        assert!(holds(&mut drive, 6, 0, Slc, 1), "a bad block can be read");
        assert!(matches!(program(&mut drive, 6, 1, Slc, 1), Err(NandError::Misuse { block: 6, .. })));
        drive = restarted(drive);
    }
}

/// The first record after a start left a page blank, since that might have been torn; the search for the newest record took
/// the blank page for the end.
#[test]
fn records_of_many_starts_are_all_found() {
    let mut drive = made(&profile());
    for block in 0..20 {
        drive.mark_bad(block).unwrap();
        drive = restarted(drive);
        assert!((0..20).all(|other| drive.is_bad(other) == (other <= block)), "after {block}");
    }
}

#[test]
fn a_spare_makes_up_for_a_failed_erase_and_old_bytes_stay_away() {
    let mut drive = made(&profile());
    program(&mut drive, 2, 0, Slc, 1).unwrap();
    // One of the die is free without a record, to be the control.
    program(&mut drive, 4, 0, Slc, 1).unwrap();
    drive.erase(4, Cause::Host).unwrap();
    settled(&mut drive).unwrap();
    drive.chip_mut().faults_mut().fail_erase_at(0);
    drive.erase(2, Cause::Host).unwrap();
    assert_eq!(settled(&mut drive), Ok(vec![]), "the caller hears nothing");
    assert_eq!((drive.counts().retired, drive.chip().bad_blocks().count()), (1, 1));
    for _ in 0..2 {
        assert!(is_blank(&mut drive, 2));
        drive = restarted(drive);
    }
    program(&mut drive, 2, 0, Slc, 5).unwrap();
    let mut drive = restarted(drive);
    assert!(holds(&mut drive, 2, 0, Slc, 5));
}

#[test]
fn a_block_that_failed_a_program_is_not_used_after_its_erase() {
    let mut drive = made(&profile());
    program(&mut drive, 4, 0, Slc, 1).unwrap();
    drive.erase(4, Cause::Host).unwrap();
    settled(&mut drive).unwrap();
    program(&mut drive, 2, 0, Slc, 1).unwrap();
    drive.chip_mut().faults_mut().fail_program_at(0);
    drive.program(2, 1, Slc, &page(2), &[], Cause::Host).unwrap();
    assert_eq!(settled(&mut drive), Ok(vec![Failure { block: 2, unit: Some(1) }]));
    assert!(holds(&mut drive, 2, 0, Slc, 1));
    let failed = drive.table.physical(2).unwrap();
    for round in 0..3 {
        drive.erase(2, Cause::Host).unwrap();
        assert_eq!(settled(&mut drive), Ok(vec![]));
        program(&mut drive, 2, 0, Slc, 10 + round).unwrap();
        assert_ne!(drive.table.physical(2), Some(failed));
        drive = restarted(drive);
        assert!(holds(&mut drive, 2, 0, Slc, 10 + round));
    }
    assert_eq!(drive.chip().bad_blocks().collect::<Vec<_>>(), [failed]);
}

#[test]
fn a_chip_that_refuses_everything_has_no_block_retired() {
    let mut drive = made(&profile());
    for block in [0, 2, 4, 6] {
        program(&mut drive, block, 0, Slc, block).unwrap();
    }
    drive.erase(6, Cause::Host).unwrap();
    settled(&mut drive).unwrap();
    drive.chip_mut().faults_mut().refuse_writes(u64::MAX);
    for block in [0, 2, 4] {
        drive.erase(block, Cause::Host).unwrap();
        assert_eq!(settled(&mut drive), Ok(vec![Failure { block, unit: None }]), "the failure is the caller's");
    }
    assert_eq!((drive.counts().retired, drive.chip().bad_blocks().count()), (0, 0));
    drive.chip_mut().faults_mut().refuse_writes(0);
    let mut drive = restarted(drive);
    for block in [0, 2, 4] {
        assert!(holds(&mut drive, block, 0, Slc, block), "an erase that failed has erased nothing");
        drive.erase(block, Cause::Host).unwrap();
        settled(&mut drive).unwrap();
        assert!(is_blank(&mut drive, block));
    }
}

/// What a logical block holds: its mode, and the seed of each unit that was programmed.
type DriveContent = BTreeMap<u32, (CellMode, Vec<u32>)>;

/// Random programs and erases, each waited for, until the power goes. The content before, and the block being changed.
fn work(drive: &mut BlockMapDrive<Chip>, seed: u32) -> (DriveContent, Option<u32>) {
    let mut content = DriveContent::new();
    let mut dice = seed;
    for step in 0..400 {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let block = dice >> 8 & 7;
        let (mode, seeds) =
            content.get(&block).cloned().unwrap_or((if dice >> 20 & 1 == 0 { Slc } else { Native }, vec![]));
        let full = seeds.len() as u32 == drive.layout(mode).units();
        let done = if full || dice >> 24 & 15 == 0 {
            drive.erase(block, Cause::Host).and_then(|()| settled(drive)).map(|_| None)
        } else {
            let programmed = program(drive, block, seeds.len() as u32, mode, step);
            programmed.map(|()| Some((mode, [seeds, vec![step]].concat())))
        };
        match done {
            Ok(Some(now)) => drop(content.insert(block, now)),
            Ok(None) => drop(content.remove(&block)),
            Err(NandError::PowerOff) => return (content, Some(block)),
            Err(error) => panic!("step {step}: {error}"),
        }
    }
    (content, None)
}

/// A cut in any operation, the drive's own among them: what was waited for is there, what was erased is blank.
#[test]
fn a_cut_anywhere_loses_nothing_that_was_waited_for() {
    let mut cuts = 0;
    for at in 0..380 {
        let mut drive = made(&profile());
        drive.chip_mut().faults_mut().set(FaultConfig::power_cuts(at));
        drive.chip_mut().faults_mut().cut_power_at(at);
        let (content, under_way) = work(&mut drive, 5 + at as u32 % 3);
        cuts += u32::from(under_way.is_some());
        drive.chip_mut().faults_mut().cancel_cut();
        let mut drive = restarted(drive);
        for block in (0..8).filter(|&block| Some(block) != under_way) {
            let Some((mode, seeds)) = content.get(&block) else {
                assert!(is_blank(&mut drive, block), "cut {at}: block {block} was erased");
                continue;
            };
            for (unit, &seed) in (0..).zip(seeds) {
                assert!(holds(&mut drive, block, unit, *mode, seed), "cut {at}: block {block} unit {unit}");
            }
        }
        // The block of the cut can be erased and used.
        for block in 0..8 {
            drive.erase(block, Cause::Host).unwrap();
            settled(&mut drive).unwrap();
            program(&mut drive, block, 0, Slc, 1_000 + block).unwrap();
        }
        let mut drive = restarted(drive);
        assert!((0..8).all(|block| holds(&mut drive, block, 0, Slc, 1_000 + block)), "cut {at}");
    }
    assert_eq!(cuts, 380);
}

#[test]
fn a_chip_with_too_few_spare_bytes_is_refused() {
    let mut profile = profile();
    profile.geometry.spare_bytes = 8;
    let chip = Chip::new(&profile, 1).unwrap();
    let refused = BlockMapDrive::create(chip, &DriveFormat { number: 7, blank: true });
    assert!(matches!(refused, Err((_, crate::Error::Unfit(_)))));
    let blank = Chip::new(&Profile::default(), 1).unwrap();
    assert!(matches!(BlockMapDrive::start(blank), Err((_, crate::Error::NoVolume(_)))));
}

/// A chip of many blocks, and of pages as large as usual.
fn large(channels: u16) -> Profile {
    let mut profile = profile();
    profile.geometry.page_bytes = 4096;
    (profile.geometry.channels, profile.geometry.blocks, profile.geometry.pages_per_block) = (channels, 1024, 64);
    profile
}

/// Starts a drive anew: its page reads for each physical block, and how long it took against the share of a die.
fn start_costs(drive: BlockMapDrive<Chip>) -> (BlockMapDrive<Chip>, f64, f64) {
    let mut chip = drive.into_chip();
    chip.power_on();
    chip.reset_counters();
    let begun_ns = chip.now_ns();
    let drive = BlockMapDrive::start(chip).map_err(|(_, error)| error).unwrap();
    let (blocks, chip) = (f64::from(drive.chip().geometry().blocks), drive.chip());
    let (reads, dies) = (chip.counters().reads.total(), f64::from(chip.geometry().dies()));
    assert_eq!(reads, drive.counts().start_reads);
    let share_ns = chip.counters().flash_ns as f64 / reads as f64 * blocks / dies;
    let taken_ns = (chip.now_ns() - begun_ns) as f64;
    (drive, reads as f64 / blocks, taken_ns / share_ns)
}

/// The blocks in use, each with its erases as the drive knows them.
fn known_erases(drive: &BlockMapDrive<Chip>) -> Vec<(u32, u32)> {
    let in_use = (0..drive.geometry().blocks).filter_map(|logical| drive.table.physical(logical));
    in_use.map(|physical| (physical, drive.table.erases(physical))).collect()
}

#[test]
fn a_start_reads_a_page_of_each_block_on_all_dies_at_once() {
    for channels in [1, 8] {
        let mut drive = made(&large(channels));
        let logical = drive.geometry().blocks;
        for (what, upto) in [("empty", 0), ("half full", logical / 2), ("full", logical)] {
            let first = (0..logical).find(|&block| drive.table.physical(block).is_none()).unwrap_or(0);
            for block in first..upto {
                program(&mut drive, block, 0, Slc, block).unwrap();
            }
            let (started, reads, time) = start_costs(drive);
            assert!(
                reads <= 1.1 && time <= 1.2,
                "{channels} channels, {what}: {reads:.3} reads, {time:.3} of the time"
            );
            assert!((0..upto).all(|block| started.table.physical(block).is_some()));
            assert!(known_erases(&started).iter().all(|&(block, erases)| started.chip().erase_count(block) == erases));
            drive = started;
        }
    }
}

#[test]
fn a_start_after_a_cut_costs_no_more_and_knows_the_erases() {
    for channels in [1, 8] {
        let mut drive = made(&large(channels));
        for number in 0..100 {
            drive.chip_mut().faults_mut().set(FaultConfig::power_cuts(number));
            drive.chip_mut().faults_mut().cut_power_at(number * 7 % 150);
            assert!(power_goes(&mut drive, number as u32), "cut {number}");
            let before = known_erases(&drive);
            let (started, reads, time) = start_costs(drive);
            assert!(reads <= 1.1 && time <= 1.2, "cut {number}: {reads:.3} reads, {time:.3} of the time");
            let other = known_erases(&started).into_iter().filter(|block| !before.contains(block)).count();
            assert!(other <= 1, "cut {number}: only the block of the cut may be another");
            drive = started;
        }
    }
}

/// Erases and programs blocks until the power goes, if it does.
fn power_goes(drive: &mut BlockMapDrive<Chip>, seed: u32) -> bool {
    for step in 0..200 {
        let block = (seed * 31 + step * 7) % 40;
        let erased = drive.erase(block, Cause::Host).and_then(|()| settled(drive));
        let done = erased.and_then(|_| program(drive, block, 0, if step % 2 == 0 { Slc } else { Native }, step));
        match done {
            Ok(()) => {}
            Err(NandError::PowerOff) => return true,
            Err(error) => panic!("step {step}: {error}"),
        }
    }
    false
}
