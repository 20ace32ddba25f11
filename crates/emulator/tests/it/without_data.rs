//! Chips that keep no data: spare bytes, page states and wear are those of any other chip.

use crate::common::{barrier, four_dies, pattern, profile, program, program_tagged, read, read_spare};
use emulator::{Chip, Corruption, FaultConfig, Profile, TornKind};
use nand::CellMode::{Native, Slc};
use nand::{Cause, Nand, NandError};

fn chip() -> Chip {
    Chip::without_data(&profile(), 1).unwrap()
}

fn program_spare(chip: &mut Chip, block: u32, unit: u32, spare: &[u8]) {
    chip.program(block, unit, Native, &[0x5A; 4096], spare, Cause::Host).unwrap();
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
    chip.set_faults(FaultConfig { torn: TornKind::Old, ..FaultConfig::default() });
    program(&mut chip, 0, 0, Native).unwrap();
    barrier(&mut chip);
    chip.cut_power_at(0);
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
    chip.corrupt_page(0, 0, Corruption::FlipSpareBits(40)).unwrap();
    let mut whole = vec![0xFF; 64];
    whole[..16].fill(0);
    let spare = read_spare(&mut chip, 0, 0).unwrap();
    assert_eq!(spare.iter().zip(&whole).map(|(got, programmed)| (got ^ programmed).count_ones()).sum::<u32>(), 40);
    chip.corrupt_page(0, 1, Corruption::FlipBits(9)).unwrap();
    whole[..16].fill(5);
    assert_eq!(read_spare(&mut chip, 0, 1).unwrap(), whole);
    assert_eq!(read(&mut chip, 0, 1).unwrap(), vec![0; 4096]);
}
