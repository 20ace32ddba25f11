//! Chips that keep no host data: spare bytes, the translation layer's own pages, page states and wear are those of any
//! other chip.

use crate::common::{barrier, four_dies, page_contents, pattern, profile, program, program_tagged, read, read_spare};
use emulator::{Chip, Corruption, FaultConfig, Profile, TornKind};
use nand::CellMode::{Native, Slc};
use nand::{Cause, Nand, NandError};

fn chip() -> Chip {
    Chip::without_data(&profile(), 1).unwrap()
}

fn program_spare(chip: &mut Chip, block: u32, unit: u32, spare: &[u8]) {
    chip.program(block, unit, Native, &[0x5A; 4096], spare, Cause::Host).unwrap();
}

/// Programs a page as a translation layer does one of its own.
fn program_own(chip: &mut Chip, block: u32, unit: u32, tag: u32) {
    chip.program(block, unit, Native, &pattern(tag, 4096), &[tag as u8; 16], Cause::Metadata).unwrap();
}

#[test]
fn a_chip_without_data_gives_back_spare_bytes_and_zeros_for_data() {
    let mut chip = chip();
    program_tagged(&mut chip, 3, 0, Slc, 8).unwrap();
    assert_eq!(read(&mut chip, 3, 0).unwrap(), vec![0; 4096]);
    assert_eq!(read_spare(&mut chip, 3, 0).unwrap(), pattern(9, 64));
    let (mut part, mut spare) = ([1; 100], [1; 8]);
    chip.read(3, 0, 4000 - 4, &mut part, &mut spare, Cause::Host).unwrap();
    assert_eq!((part, &spare[..]), ([0; 100], &pattern(9, 64)[..8]));
    assert!(!chip.keeps_data() && four_dies().keeps_data());
}

#[test]
fn erased_pages_of_a_chip_without_data_read_as_ones() {
    let mut chip = chip();
    for unit in 0..4 {
        program(&mut chip, 0, unit, Native).unwrap();
    }
    chip.erase(0, Cause::Gc).unwrap();
    program(&mut chip, 0, 1, Native).unwrap();
    for page in [0, 2, 3] {
        assert_eq!(read(&mut chip, 0, page).unwrap(), vec![0xFF; 4096]);
        assert_eq!(read_spare(&mut chip, 0, page).unwrap(), vec![0xFF; 64]);
    }
    assert_eq!(read_spare(&mut chip, 0, 1).unwrap(), pattern(2, 64));
}

#[test]
fn spare_bytes_of_different_lengths_share_a_block_and_end_in_ones() {
    let mut chip = chip();
    let lengths = [0, 16, 3, 64, 16, 0];
    let spare = |page: usize| pattern(page as u32, lengths[page]);
    for page in 0..lengths.len() {
        program_spare(&mut chip, 0, page as u32, &spare(page));
    }
    for page in 0..lengths.len() {
        let mut expected = spare(page);
        expected.resize(64, 0xFF);
        assert_eq!(read_spare(&mut chip, 0, page as u32).unwrap(), expected, "page {page}");
        assert_eq!(read(&mut chip, 0, page as u32).unwrap(), vec![0; 4096]);
    }
}

#[test]
fn a_word_line_programmed_at_once_has_the_spare_bytes_of_each_of_its_pages() {
    let profile = Profile::builtin("tlc-3d").unwrap().with_capacity(4 * (12 << 20)).unwrap();
    let mut chip = Chip::without_data(&profile, 0).unwrap();
    program_tagged(&mut chip, 0, 1, Native, 6).unwrap();
    let spare = pattern(7, 3 * 128);
    for (page, expected) in (3..6).zip(spare.chunks(128)) {
        assert_eq!(read_spare(&mut chip, 0, page).unwrap(), expected);
    }
}

#[test]
fn a_snapshot_of_a_chip_without_data_changes_apart_from_it() {
    let mut chip = chip();
    program(&mut chip, 0, 0, Native).unwrap();
    program(&mut chip, 1, 0, Native).unwrap();
    let mut copy = chip.snapshot();
    program(&mut chip, 0, 1, Native).unwrap();
    chip.erase(1, Cause::Gc).unwrap();
    program_spare(&mut chip, 1, 0, &[7; 16]);
    program_spare(&mut copy, 0, 1, &[9; 16]);
    assert!(!copy.keeps_data());
    assert_eq!(read_spare(&mut chip, 0, 1).unwrap(), pattern(2, 64));
    assert_eq!(read_spare(&mut chip, 1, 0).unwrap()[..16], [7; 16]);
    assert_eq!(read_spare(&mut copy, 0, 0).unwrap(), pattern(1, 64));
    assert_eq!(read_spare(&mut copy, 0, 1).unwrap()[..16], [9; 16]);
    assert_eq!(read_spare(&mut copy, 1, 0).unwrap(), pattern(1001, 64));
    assert_eq!((chip.erase_count(1), copy.erase_count(1)), (1, 0));
}

#[test]
fn an_erase_that_a_cut_undoes_brings_the_spare_bytes_back() {
    let mut chip = chip();
    chip.faults_mut().set(FaultConfig { torn: TornKind::Old, ..FaultConfig::default() });
    program(&mut chip, 0, 0, Native).unwrap();
    barrier(&mut chip);
    chip.faults_mut().cut_power_at(0);
    assert_eq!(chip.erase(0, Cause::Gc), Err(NandError::PowerOff));
    chip.power_on();
    assert_eq!(read_spare(&mut chip, 0, 0).unwrap(), pattern(1, 64));
    assert_eq!((read(&mut chip, 0, 0).unwrap(), chip.erase_count(0)), (vec![0; 4096], 0));
}

#[test]
fn spare_bytes_of_a_chip_without_data_are_corrupted_bit_by_bit() {
    let mut chip = chip();
    program_spare(&mut chip, 0, 0, &[0; 16]);
    program_spare(&mut chip, 0, 1, &[5; 16]);
    chip.faults_mut().corrupt_page(0, 0, Corruption::FlipSpareBits(40)).unwrap();
    let mut whole = vec![0xFF; 64];
    whole[..16].fill(0);
    let spare = read_spare(&mut chip, 0, 0).unwrap();
    assert_eq!(spare.iter().zip(&whole).map(|(got, programmed)| (got ^ programmed).count_ones()).sum::<u32>(), 40);
    chip.faults_mut().corrupt_page(0, 1, Corruption::FlipBits(9)).unwrap();
    whole[..16].fill(5);
    assert_eq!(read_spare(&mut chip, 0, 1).unwrap(), whole);
    assert_eq!(read(&mut chip, 0, 1).unwrap(), vec![0; 4096]);
}

#[test]
fn pages_programmed_for_metadata_keep_their_data_among_pages_that_do_not() {
    let mut chip = chip();
    for (unit, cause) in (0..).zip([Cause::Host, Cause::Metadata, Cause::Gc, Cause::Migration, Cause::WearLevel]) {
        chip.program(0, unit, Native, &pattern(unit, 4096), &pattern(unit + 1, 16), cause).unwrap();
    }
    for page in 0..5 {
        let expected = if page == 1 { pattern(1, 4096) } else { vec![0; 4096] };
        assert_eq!(read(&mut chip, 0, page).unwrap(), expected, "page {page}");
        assert_eq!(read_spare(&mut chip, 0, page).unwrap()[..16], pattern(page + 1, 16));
    }
    let (mut part, mut spare) = ([0; 100], [0; 8]);
    chip.read(0, 1, 3996, &mut part, &mut spare, Cause::Gc).unwrap();
    assert_eq!((&part[..], &spare[..]), (&pattern(1, 4096)[3996..], &pattern(2, 8)[..]));
    assert_eq!(read(&mut chip, 0, 5).unwrap(), vec![0xFF; 4096]);
    assert!(!chip.keeps_data());
}

#[test]
fn an_erased_block_forgets_which_of_its_pages_kept_their_data() {
    let mut chip = chip();
    program_own(&mut chip, 0, 0, 7);
    program_own(&mut chip, 0, 1, 8);
    chip.erase(0, Cause::Metadata).unwrap();
    assert_eq!(read(&mut chip, 0, 0).unwrap(), vec![0xFF; 4096]);
    program(&mut chip, 0, 0, Native).unwrap();
    program_own(&mut chip, 0, 1, 9);
    assert_eq!(read(&mut chip, 0, 0).unwrap(), vec![0; 4096]);
    assert_eq!(read(&mut chip, 0, 1).unwrap(), pattern(9, 4096));
}

#[test]
fn a_page_programmed_again_after_a_cut_keeps_data_by_its_latest_program() {
    let mut chip = chip();
    chip.faults_mut().set(FaultConfig { torn: TornKind::Old, ..FaultConfig::default() });
    for (unit, first, second) in [(0, Cause::Metadata, Cause::Host), (1, Cause::Host, Cause::Metadata)] {
        chip.faults_mut().cut_power_at(0);
        let torn = chip.program(0, unit, Native, &[0xA5; 4096], &[], first);
        assert_eq!(torn, Err(NandError::PowerOff));
        chip.power_on();
        chip.program(0, unit, Native, &[0x5A; 4096], &[], second).unwrap();
    }
    assert_eq!(read(&mut chip, 0, 0).unwrap(), vec![0; 4096]);
    assert_eq!(read(&mut chip, 0, 1).unwrap(), vec![0x5A; 4096]);
}

#[test]
fn a_word_line_programmed_for_metadata_has_the_data_of_each_of_its_pages() {
    let profile = Profile::builtin("tlc-3d").unwrap().with_capacity(4 * (12 << 20)).unwrap();
    let mut chip = Chip::without_data(&profile, 0).unwrap();
    let page_bytes = chip.geometry().page_bytes as usize;
    let data = pattern(6, 3 * page_bytes);
    chip.program(0, 1, Native, &data, &[1; 3 * 128], Cause::Metadata).unwrap();
    for (page, expected) in (3..6).zip(data.chunks(page_bytes)) {
        assert_eq!(read(&mut chip, 0, page).unwrap(), expected);
    }
}

#[test]
fn a_snapshot_shares_kept_data_until_either_side_changes_it() {
    let mut chip = chip();
    program_own(&mut chip, 0, 0, 1);
    program_own(&mut chip, 1, 0, 2);
    let mut copy = chip.snapshot();
    program_own(&mut chip, 0, 1, 3);
    program_own(&mut copy, 0, 1, 4);
    copy.faults_mut().corrupt_page(0, 0, Corruption::FlipBits(1)).unwrap();
    chip.erase(1, Cause::Metadata).unwrap();
    program_own(&mut chip, 1, 0, 5);
    let tags = [(0, 0, 1), (0, 1, 3), (1, 0, 5)];
    assert!(tags.iter().all(|&(block, page, tag)| read(&mut chip, block, page).unwrap() == pattern(tag, 4096)));
    assert_eq!(read(&mut copy, 0, 1).unwrap(), pattern(4, 4096));
    assert_eq!(read(&mut copy, 1, 0).unwrap(), pattern(2, 4096));
    assert_ne!(read(&mut copy, 0, 0).unwrap(), pattern(1, 4096));
}

#[test]
fn an_erase_that_a_cut_undoes_brings_kept_data_back() {
    let mut chip = chip();
    chip.faults_mut().set(FaultConfig { torn: TornKind::Old, ..FaultConfig::default() });
    program(&mut chip, 0, 0, Native).unwrap();
    program_own(&mut chip, 0, 1, 7);
    barrier(&mut chip);
    chip.faults_mut().cut_power_at(0);
    assert_eq!(chip.erase(0, Cause::Gc), Err(NandError::PowerOff));
    chip.power_on();
    assert_eq!(read(&mut chip, 0, 0).unwrap(), vec![0; 4096]);
    assert_eq!(read(&mut chip, 0, 1).unwrap(), pattern(7, 4096));
}

#[test]
fn kept_data_is_corrupted_and_torn_as_on_any_other_chip() {
    for seed in 0..8 {
        let mut chips = [Chip::new(&profile(), seed).unwrap(), Chip::without_data(&profile(), seed).unwrap()];
        let [full, bare] = chips.each_mut().map(|chip| {
            chip.faults_mut().set(FaultConfig { torn: TornKind::Garbage, ..FaultConfig::power_cuts(seed) });
            program_own(chip, 0, 0, 1);
            chip.faults_mut().corrupt_page(0, 0, Corruption::FlipBits(9)).unwrap();
            chip.faults_mut().corrupt_page(2, 0, Corruption::FlipBits(9)).unwrap();
            chip.faults_mut().cut_power_at(1);
            program_own(chip, 1, 0, 2);
            let torn = chip.program(1, 1, Native, &pattern(3, 4096), &[3; 16], Cause::Metadata);
            assert_eq!(torn, Err(NandError::PowerOff));
            chip.power_on();
            [(0, 0), (1, 0), (1, 1), (2, 0)].map(|(block, page)| page_contents(chip, block, page))
        });
        assert!(full == bare, "seed {seed}");
        let (data, _) = bare[0].as_ref().unwrap();
        assert_eq!(data.iter().zip(pattern(1, 4096)).map(|(got, put)| (got ^ put).count_ones()).sum::<u32>(), 9);
    }
}

#[test]
fn corrupting_a_page_that_keeps_no_data_leaves_its_zeros() {
    let mut chip = chip();
    program_own(&mut chip, 0, 0, 1);
    program_spare(&mut chip, 0, 1, &[5; 16]);
    chip.faults_mut().corrupt_page(0, 1, Corruption::FlipBits(9)).unwrap();
    assert_eq!(read(&mut chip, 0, 1).unwrap(), vec![0; 4096]);
    assert_eq!(read(&mut chip, 0, 0).unwrap(), pattern(1, 4096));
}
