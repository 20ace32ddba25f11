//! A drive whose chip fails in the middle of the drive's own work: each test tells a defect that a review found.

use emulator::{Chip, FaultConfig, TornKind};
use nand::CellMode::Slc;

use super::tests::{holds, is_blank, made, page, profile, program, restarted, settled};
use super::*;

/// Cuts the power in the program or erase of that number from now, and leaves nothing of it, though it looks erased.
fn cut_weakly(drive: &mut BlockMapDrive<Chip>, at: u64) {
    drive.chip_mut().faults_mut().set(FaultConfig { torn: TornKind::Weak, ..FaultConfig::default() });
    drive.chip_mut().faults_mut().cut_power_at(at);
}

/// As if a record kept every free block: none is open to stand in, or to be a control.
fn keep_all(drive: &mut BlockMapDrive<Chip>) {
    for die in 0..drive.geometry.dies() {
        for block in drive.table.on_die(die).collect::<Vec<_>>() {
            if drive.table.used_as(block).is_free() {
                drive.table.set_use(block, PhysicalUse::Kept);
            }
        }
    }
}

/// Records went to the block whose program had failed once more, after the other one was erased.
#[test]
fn a_record_that_cannot_be_written_leaves_the_records_before() {
    for cut_at in 0..6 {
        let mut drive = made(&profile());
        program(&mut drive, 2, 0, Slc, 1).unwrap();
        drive = restarted(drive);
        keep_all(&mut drive);
        drive.chip_mut().faults_mut().fail_program_at(0);
        assert!(drive.mark_bad(6).is_err(), "no block is open to take its place");
        cut_weakly(&mut drive, cut_at);
        let _ = drive.mark_bad(8);
        drive.chip_mut().faults_mut().cancel_cut();
        let mut drive = restarted(drive);
        assert!(holds(&mut drive, 2, 0, Slc, 1), "cut {cut_at}");
    }
}

/// A block was taken from those that the record on the chip kept, since the record that opens some had failed.
#[test]
fn blocks_are_kept_as_long_as_no_record_opens_them() {
    let mut drive = restarted(made(&profile()));
    keep_all(&mut drive);
    drive.chip_mut().faults_mut().fail_erase_at(0);
    assert!(program(&mut drive, 8, 0, Slc, 1).is_err(), "no record can be written");
    cut_weakly(&mut drive, 0);
    let _ = program(&mut drive, 10, 0, Slc, 1);
    let mut drive = restarted(drive);
    drive.chip_mut().faults_mut().set(FaultConfig::default());
    drive.chip_mut().faults_mut().cancel_cut();
    for block in [10, 12, 14, 16] {
        let programmed = program(&mut drive, block, 0, Slc, block);
        assert!(programmed.is_err() || holds(&mut drive, block, 0, Slc, block), "{block}");
    }
}

/// The erase counted as done where no other block was open to be the control, and after a restart the old bytes were back.
#[test]
fn an_erase_that_failed_without_a_control_is_told() {
    let mut drive = made(&profile());
    program(&mut drive, 2, 0, Slc, 1).unwrap();
    keep_all(&mut drive);
    drive.chip_mut().faults_mut().fail_erase_at(0);
    drive.erase(2, Cause::Host).unwrap();
    assert_eq!(settled(&mut drive), Ok(vec![Failure { block: 2, unit: None }]));
    let mut drive = restarted(drive);
    assert!(holds(&mut drive, 2, 0, Slc, 1), "nobody was told that it is erased");
}

/// The block whose erase was under way on the other die was taken as the control, and its own failure went unheard.
#[test]
fn failing_erases_of_two_dies_are_both_made_up_for_or_told() {
    let mut drive = made(&profile());
    for block in [2, 3] {
        program(&mut drive, block, 0, Slc, block).unwrap();
    }
    keep_all(&mut drive);
    drive.chip_mut().faults_mut().fail_erase_at(0);
    drive.chip_mut().faults_mut().fail_erase_at(1);
    for block in [2, 3] {
        drive.erase(block, Cause::Host).unwrap();
    }
    let mut told = vec![];
    for die in [0, 1] {
        drive.settle(die, &mut told).unwrap();
    }
    let mut drive = restarted(drive);
    for block in [2, 3] {
        let is_told = told.contains(&Failure { block, unit: None });
        assert!(is_told || is_blank(&mut drive, block), "block {block}: {told:?}");
    }
}

/// A program that came before the failure of the erase was heard of went to another block, and the old one stayed behind.
#[test]
fn a_program_behind_an_erase_that_fails_is_refused() {
    let mut drive = made(&profile());
    program(&mut drive, 2, 0, Slc, 1).unwrap();
    drive.chip_mut().faults_mut().refuse_writes(12);
    drive.erase(2, Cause::Host).unwrap();
    let programmed = drive.program(2, 0, Slc, &page(77), &[], Cause::Host);
    assert_eq!(programmed, Err(NandError::ProgramFailed { block: 2, unit: 0 }));
    assert_eq!(settled(&mut drive), Ok(vec![Failure { block: 2, unit: None }]));
    drive.chip_mut().faults_mut().refuse_writes(0);
    drive.erase(2, Cause::Host).unwrap();
    assert_eq!(settled(&mut drive), Ok(vec![]));
    let mut drive = restarted(drive);
    assert!(is_blank(&mut drive, 2));
}

/// The block was mapped before its first page stood there, so that later pages were lost at a restart.
#[test]
fn a_first_program_that_is_refused_or_fails_maps_nothing() {
    let mut drive = made(&profile());
    assert!(drive.program(5, 0, Slc, &[1, 2], &[], Cause::Host).is_err());
    program(&mut drive, 5, 3, Slc, 9).unwrap();
    let mut drive = restarted(drive);
    assert!(holds(&mut drive, 5, 3, Slc, 9));
    drive.chip_mut().faults_mut().refuse_writes(1);
    let _ = drive.program(7, 0, Slc, &page(1), &[], Cause::Host).and_then(|()| settled(&mut drive).map(drop));
    match program(&mut drive, 7, 1, Slc, 9) {
        Ok(()) => assert!(holds(&mut restarted(drive), 7, 1, Slc, 9)),
        Err(error) => assert_eq!(error, NandError::ProgramFailed { block: 7, unit: 1 }),
    }
}

/// The records of the drive before stayed in a block that could not be erased, and had the greater generation.
#[test]
fn a_drive_made_anew_is_the_one_that_starts() {
    let mut drive = made(&profile());
    for block in 0..8 {
        program(&mut drive, block, 0, Slc, 100 + block).unwrap();
    }
    let mut chip = drive.into_chip();
    chip.faults_mut().fail_erase_at(0);
    let format = DriveFormat { number: 8, blank: false };
    let mut drive = BlockMapDrive::create(chip, &format).map_err(|(_, error)| error).unwrap();
    program(&mut drive, 2, 0, Slc, 5).unwrap();
    let mut drive = restarted(drive);
    assert!(drive.number == 8 && holds(&mut drive, 2, 0, Slc, 5) && is_blank(&mut drive, 3));
}

/// The older block was freed in memory alone, and came back once the newer one was erased.
#[test]
fn of_two_blocks_for_one_the_newer_counts_and_the_older_goes() {
    let mut drive = made(&profile());
    program(&mut drive, 2, 0, Slc, 1).unwrap();
    program(&mut drive, 4, 0, Slc, 1).unwrap();
    let stale = drive.table.physical(4).unwrap();
    // The block for 4 becomes an older one for 2.
    let tag = super::tag::BlockTag { logical: 2, generation: 0, erases: 1 }.encode(7);
    let spare = [&[0xff; 48][..], &tag].concat();
    drive.chip_mut().erase(stale, Cause::Host).unwrap();
    drive.chip_mut().program(stale, 0, Slc, &page(9), &spare, Cause::Host).unwrap();
    let mut drive = restarted(drive);
    assert!(holds(&mut drive, 2, 0, Slc, 1));
    drive.erase(2, Cause::Host).unwrap();
    assert_eq!(settled(&mut drive), Ok(vec![]));
    let mut drive = restarted(drive);
    assert!(is_blank(&mut drive, 2));
}
