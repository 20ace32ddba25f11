//! Small chips and shorthands that the tests share.

use emulator::{Chip, Profile};
use nand::{Cause, CellMode, Failure, Nand, NandError, ReadInfo};

/// The FlexFS chip with 8 blocks.
pub fn profile() -> Profile {
    Profile::default().with_capacity(8 * (512 << 10)).unwrap()
}

pub fn chip() -> Chip {
    Chip::new(&profile(), 1).unwrap()
}

/// The same kind of chip with four dies on two channels.
pub fn four_dies() -> Chip {
    let mut profile = profile();
    profile.geometry.channels = 2;
    profile.geometry.dies_per_chip = 2;
    Chip::new(&profile, 1).unwrap()
}

/// A page's worth of bytes that differ from page to page and are never all `0xFF`.
pub fn pattern(tag: u32, bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(31).wrapping_add(tag.wrapping_mul(97)) >> 2) as u8).collect()
}

pub fn program(chip: &mut Chip, block: u32, unit: u32, mode: CellMode) -> Result<(), NandError> {
    program_tagged(chip, block, unit, mode, block * 1000 + unit)
}

pub fn program_tagged(chip: &mut Chip, block: u32, unit: u32, mode: CellMode, tag: u32) -> Result<(), NandError> {
    let pages = chip.layout(mode).pages_per_unit() as usize;
    let data = pattern(tag, pages * chip.geometry().page_bytes as usize);
    let spare = pattern(tag + 1, pages * chip.geometry().spare_bytes as usize);
    chip.program(block, unit, mode, &data, &spare, Cause::Host)
}

pub fn read(chip: &mut Chip, block: u32, page: u32) -> Result<Vec<u8>, NandError> {
    let mut data = vec![0; chip.geometry().page_bytes as usize];
    chip.read(block, page, 0, &mut data, &mut [], Cause::Host).map(|_: ReadInfo| data)
}

pub fn read_spare(chip: &mut Chip, block: u32, page: u32) -> Result<Vec<u8>, NandError> {
    let mut spare = vec![0; chip.geometry().spare_bytes as usize];
    chip.read(block, page, 0, &mut [], &mut spare, Cause::Host).map(|_: ReadInfo| spare)
}

pub fn barrier(chip: &mut Chip) -> Vec<Failure> {
    let mut failures = Vec::new();
    chip.barrier(&mut failures).unwrap();
    failures
}

/// A page's data and spare bytes, or why they cannot be read.
pub type PageContents = Result<(Vec<u8>, Vec<u8>), NandError>;

pub fn page_contents(chip: &mut Chip, block: u32, page: u32) -> PageContents {
    let mut data = vec![0; chip.geometry().page_bytes as usize];
    let mut spare = vec![0; chip.geometry().spare_bytes as usize];
    chip.read(block, page, 0, &mut data, &mut spare, Cause::Host).map(|_| (data, spare))
}

/// What every page of the chip reads as; the virtual time that takes is part of the chip's life.
pub fn contents(chip: &mut Chip) -> Vec<PageContents> {
    let (blocks, pages) = (chip.geometry().blocks, chip.geometry().pages_per_block);
    let mut all = Vec::new();
    for block in 0..blocks {
        for page in 0..pages {
            all.push(page_contents(chip, block, page));
        }
    }
    all
}
