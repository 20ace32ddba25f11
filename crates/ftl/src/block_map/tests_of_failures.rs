//! A drive whose chip fails in the middle of the drive's own work: each test tells a defect that a review found.

use emulator::{BitErrors, Chip, Corruption, FaultConfig, Profile, TornKind};
use nand::CellMode::Slc;

use super::record_log::RecordsDue;
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
        assert!(drive.record(0).is_err(), "no block is open to take its place");
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

/// Spoils the page of the record that was written last.
fn spoil_newest_record(drive: &mut BlockMapDrive<Chip>) {
    let (block, unit) = (drive.records.pair[drive.records.current], drive.records.unit - 1);
    let page = drive.layout(Slc).page(unit).unwrap();
    drive.chip_mut().faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
}

/// The mark went with the page of the newest record, and the caller took another block for the newest of its own.
#[test]
fn a_mark_of_the_caller_is_not_lost_with_a_page() {
    let mut drive = made(&profile());
    program(&mut drive, 2, 0, Slc, 1).unwrap();
    drive.mark_bad(6).unwrap();
    spoil_newest_record(&mut drive);
    assert!(restarted(drive).is_bad(6));
}

/// After the newest record was lost, one before it kept blocks that had been taken since, and one of them was not erased before
/// it was used.
#[test]
fn what_an_outdated_record_keeps_is_erased_before_use() {
    let mut drive = made(&profile());
    spoil_newest_record(&mut drive);
    let mut drive = restarted(drive);
    let kept =
        |drive: &BlockMapDrive<Chip>| (0..24).filter(|&block| drive.table.used_as(block) == PhysicalUse::Kept).count();
    assert_eq!((kept(&drive), drive.records.due), (0, RecordsDue::Outdated));
    program(&mut drive, 2, 0, Slc, 1).unwrap();
    let drive = restarted(drive);
    assert_eq!((kept(&drive), drive.records.due), (0, RecordsDue::No), "the chip says so, too");
}

/// There was one record on a new drive, and its page was all that the drive hung on.
#[test]
fn no_page_of_a_new_drive_is_the_only_record() {
    let pages = |drive: &BlockMapDrive<Chip>| drive.layout(Slc).page(0).unwrap();
    for lost in 0..2 {
        let mut drive = made(&profile());
        program(&mut drive, 2, 0, Slc, 1).unwrap();
        let (block, page) = (drive.record_blocks()[lost], pages(&drive));
        drive.chip_mut().faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
        assert!(holds(&mut restarted(drive), 2, 0, Slc, 1), "record {lost}");
    }
}

#[test]
fn records_that_fade_are_written_anew() {
    const DAY_NS: u64 = 86_400_000_000_000;
    let mut profile = profile();
    let ecc = &profile.ecc;
    let wrong_bits_a_day = 0.8 * f64::from(ecc.correctable_bits) / 100.0;
    profile.errors.slc.retention_per_day = wrong_bits_a_day / (8 * ecc.codeword_bytes) as f64;
    let mut drive = made(&profile);
    drive.chip_mut().faults_mut().set(FaultConfig { bit_errors: BitErrors::Correctable, ..FaultConfig::default() });
    let later_ns = drive.chip().now_ns() + 100 * DAY_NS;
    drive.chip_mut().advance_to_ns(later_ns);
    let mut drive = restarted(drive);
    let before = drive.counts().own_programs;
    assert_eq!(drive.records.due, RecordsDue::Fading);
    program(&mut drive, 2, 0, Slc, 1).unwrap();
    assert!(drive.counts().own_programs > before && restarted(drive).records.due == RecordsDue::No);
}

/// A start erased torn blocks, so that looking at a drive changed it.
#[test]
fn the_first_change_and_not_the_start_erases_torn_blocks() {
    let mut drive = made(&profile());
    for block in 0..6 {
        program(&mut drive, block, 0, Slc, block).unwrap();
    }
    let torn = drive.physical(4).unwrap();
    drive.chip_mut().faults_mut().set(FaultConfig { torn: TornKind::Uncorrectable, ..FaultConfig::default() });
    drive.chip_mut().faults_mut().cut_power_at(0);
    assert_eq!(drive.erase(4, Cause::Host).and_then(|()| settled(&mut drive)), Err(NandError::PowerOff));
    let mut chip = drive.into_chip();
    chip.power_on();
    chip.faults_mut().cancel_cut();
    chip.reset_counters();
    let mut drive = BlockMapDrive::start(chip).map_err(|(_, error)| error).unwrap();
    let done = |drive: &BlockMapDrive<Chip>| {
        let counters = drive.chip().counters();
        (counters.programs.total(), counters.erases.total())
    };
    assert!(is_blank(&mut drive, 4) && holds(&mut drive, 2, 0, Slc, 2));
    assert_eq!(done(&drive), (0, 0));
    drive.erase(19, Cause::Host).unwrap();
    assert_eq!((done(&drive), drive.table.used_as(torn)), ((0, 1), PhysicalUse::Erased));
}

/// A chip with more bad blocks from the factory than there are blocks to spare was refused.
#[test]
fn many_bad_blocks_from_the_factory_make_the_drive_smaller() {
    let mut chip = Chip::new(&profile(), 1).unwrap();
    for (bad, logical) in [(4, 18), (6, 16), (8, 14)] {
        chip.mark_bad(bad).unwrap();
        let format = DriveFormat { number: 7, blank: true };
        let mut drive = BlockMapDrive::create(chip.snapshot(), &format).map_err(|(_, error)| error).unwrap();
        assert_eq!(drive.geometry().blocks, logical, "of either die as many");
        for block in 0..logical {
            program(&mut drive, block, 0, Slc, block).unwrap();
        }
        let mut drive = restarted(drive);
        assert!((0..logical).all(|block| holds(&mut drive, block, 0, Slc, block)));
    }
}

/// Once the spares were used up the last logical block failed, when no other was left to pass the caller's test.
#[test]
fn a_block_without_a_physical_one_fails_until_it_is_marked() {
    let mut drive = made(&profile());
    for round in 0..3 {
        program(&mut drive, 2, 0, Slc, round).unwrap();
        program(&mut drive, 4, 0, Slc, round).unwrap();
        drive.erase(4, Cause::Host).unwrap();
        settled(&mut drive).unwrap();
        drive.chip_mut().faults_mut().fail_erase_at(0);
        drive.erase(2, Cause::Host).unwrap();
        let told = settled(&mut drive).unwrap();
        assert_eq!(told.is_empty(), round < 1, "one of the two spares of the die holds records");
        if !told.is_empty() {
            assert_eq!(told, [Failure { block: 2, unit: None }]);
            break;
        }
    }
    // The caller's test: it fails, and another block passes.
    assert_eq!(drive.erase(2, Cause::Host), Err(NandError::EraseFailed { block: 2 }));
    assert_eq!(program(&mut drive, 2, 0, Slc, 5), Err(NandError::ProgramFailed { block: 2, unit: 0 }));
    program(&mut drive, 4, 0, Slc, 5).unwrap();
    drive.mark_bad(2).unwrap();
    let mut drive = restarted(drive);
    assert!(drive.is_bad(2));
    for block in (0..20).step_by(2).filter(|block| ![2, 4].contains(block)) {
        program(&mut drive, block, 0, Slc, block).unwrap();
    }
}

/// Nothing could be changed any more where the block of records had failed and all others were in use: the records were to be
/// written first, and an erase that gives a block back came after that.
#[test]
fn an_erase_gives_room_for_records_on_a_full_drive() {
    let mut drive = made(&profile());
    for block in 0..20 {
        program(&mut drive, block, 0, Slc, block).unwrap();
    }
    for block in 0..24 {
        if drive.table.used_as(block).is_free() {
            drive.chip_mut().mark_bad(block).unwrap();
        }
    }
    spoil_newest_record(&mut drive);
    let mut drive = restarted(drive);
    drive.records.due = RecordsDue::Outdated;
    drive.chip_mut().faults_mut().fail_erase_at(0);
    drive.mark_bad(7).unwrap();
    assert!(drive.record(0).is_err(), "there is no block for records");
    drive.erase(3, Cause::Host).unwrap();
    assert_eq!(settled(&mut drive), Ok(vec![]));
    drive.mark_bad(9).unwrap();
    let drive = restarted(drive);
    assert!(drive.is_bad(7) && drive.is_bad(9));
}

/// The drive refused what comes behind a failed program in its block, where the chip would have taken it: a volume with one
/// block left for its anchors ended.
#[test]
fn the_chip_says_whether_a_failed_block_is_programmed_on() {
    let mut drive = made(&profile());
    program(&mut drive, 2, 0, Slc, 1).unwrap();
    drive.chip_mut().faults_mut().refuse_writes(1);
    let told = drive.program(2, 1, Slc, &page(2), &[], Cause::Host).and_then(|()| settled(&mut drive));
    assert!(told != Ok(vec![]));
    program(&mut drive, 2, 2, Slc, 3).unwrap();
    assert!(holds(&mut drive, 2, 2, Slc, 3) && holds(&mut drive, 2, 0, Slc, 1));
}

/// One torn block that could not be erased, and no good one to hold it against, kept the caller from every change.
#[test]
fn torn_blocks_that_fail_keep_the_caller_from_nothing() {
    let mut drive = made(&profile());
    for block in [2, 4] {
        program(&mut drive, block, 0, Slc, block).unwrap();
    }
    let mut drive = restarted(drive);
    let torn = (0..24).step_by(2).find(|&block| drive.table.used_as(block).is_free()).unwrap();
    drive.table.set_use(torn, PhysicalUse::Suspect);
    drive.leftovers = vec![Leftover { block: torn, older_of: None }];
    keep_all(&mut drive);
    drive.chip_mut().faults_mut().fail_erase_at(0);
    drive.erase(2, Cause::Host).unwrap();
    assert_eq!(settled(&mut drive), Ok(vec![]));
    assert!(is_blank(&mut drive, 2) && drive.leftovers.is_empty());
}

/// Of one-shot TLC the first page of a unit was lost, and with it the block, though two other pages of the unit had its tag.
#[test]
fn a_block_is_found_by_another_page_of_its_first_unit() {
    let mut profile = Profile::builtin("tlc-3d").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (16, 24);
    let mut drive = made(&profile);
    let bytes = vec![0x5a; 3 * drive.geometry().page_bytes as usize];
    let spare = vec![0x5a; 3 * drive.geometry().spare_bytes as usize];
    drive.program(2, 0, CellMode::Native, &bytes, &spare, Cause::Host).unwrap();
    settled(&mut drive).unwrap();
    let (physical, pages) = (drive.physical(2), drive.layout(CellMode::Native).unit_pages(0).to_vec());
    drive.chip_mut().faults_mut().corrupt_page(physical.unwrap(), pages[0], Corruption::Uncorrectable).unwrap();
    assert_eq!(restarted(drive).physical(2), physical);
}

/// The first program was refused, a later one was not, and after a restart its page was gone with the block.
#[test]
fn nothing_is_programmed_behind_a_first_page_that_failed() {
    let mut drive = made(&profile());
    program(&mut drive, 2, 0, Slc, 1).unwrap();
    drive.chip_mut().faults_mut().refuse_writes(1);
    let refused = drive.program(4, 0, Slc, &page(2), &[], Cause::Host).and_then(|()| settled(&mut drive));
    assert!(refused != Ok(vec![]));
    assert_eq!(program(&mut drive, 4, 1, Slc, 3), Err(NandError::ProgramFailed { block: 4, unit: 1 }));
    drive.erase(4, Cause::Host).unwrap();
    program(&mut drive, 4, 0, Slc, 4).unwrap();
    assert!(holds(&mut restarted(drive), 4, 0, Slc, 4));
}

/// A torn block was the least worn one where a block of records had failed: it took the records, and was erased with them.
#[test]
fn records_go_to_no_block_that_is_still_to_be_erased() {
    let mut drive = made(&profile());
    for block in [2, 4] {
        program(&mut drive, block, 0, Slc, block).unwrap();
    }
    let mut drive = restarted(drive);
    let torn = (0..24).find(|&block| drive.table.used_as(block).is_free()).unwrap();
    drive.table.set_use(torn, PhysicalUse::Suspect);
    drive.leftovers = vec![Leftover { block: torn, older_of: None }];
    drive.records.unit = u32::MAX;
    drive.chip_mut().faults_mut().fail_erase_at(0);
    drive.mark_bad(6).unwrap();
    assert!(!drive.record_blocks().contains(&torn));
    program(&mut drive, 8, 0, Slc, 8).unwrap();
    let mut drive = restarted(drive);
    assert!(drive.is_bad(6) && holds(&mut drive, 8, 0, Slc, 8));
}

/// Both records of a mark stood in a block whose first page was lost, by which it was found.
#[test]
fn records_behind_a_first_page_that_is_lost_are_found() {
    for corruption in [Corruption::Uncorrectable, Corruption::FlipSpareBits(40)] {
        let mut drive = made(&profile());
        drive.mark_bad(6).unwrap();
        let (block, page) = (drive.records.pair[drive.records.current], drive.layout(Slc).page(0).unwrap());
        drive.chip_mut().faults_mut().corrupt_page(block, page, corruption).unwrap();
        let mut drive = restarted(drive);
        assert!(drive.is_bad(6) && !drive.is_bad(4), "{corruption:?}");
        program(&mut drive, 2, 0, Slc, 2).unwrap();
        assert!(holds(&mut restarted(drive), 2, 0, Slc, 2));
    }
}

/// The bytes from before came back where their block could not be erased, and the one behind it was.
#[test]
fn a_block_is_not_erased_while_older_bytes_of_it_stand() {
    let mut drive = made(&profile());
    for block in [2, 4] {
        program(&mut drive, block, 0, Slc, block).unwrap();
    }
    let mut drive = restarted(drive);
    let older = (0..24).step_by(2).find(|&block| drive.table.used_as(block).is_free()).unwrap();
    drive.table.set_use(older, PhysicalUse::Suspect);
    drive.leftovers = vec![Leftover { block: older, older_of: Some(2) }];
    keep_all(&mut drive);
    drive.chip_mut().faults_mut().refuse_writes(u64::MAX);
    assert_eq!(drive.erase(2, Cause::Host), Err(NandError::EraseFailed { block: 2 }));
    drive.chip_mut().faults_mut().refuse_writes(0);
    drive.erase(4, Cause::Host).unwrap();
    drive.erase(2, Cause::Host).unwrap();
    assert_eq!(settled(&mut drive), Ok(vec![]));
    assert!(is_blank(&mut drive, 2) && is_blank(&mut drive, 4) && drive.leftovers.is_empty());
}
