//! A wrong bit in spare bytes, which the ECC of a real chip may not cover, costs the slot of that tag alone, and is counted.

use emulator::{Chip, Corruption};

use super::{file, formatted, mounted};
use crate::{Ino, Policy};

const CHUNKS: usize = 8;

/// Reads a file's chunks one by one on a chip with one damaged page: chunks that are errors, reads that could not be used, and
/// those of them that the chip read well.
fn read_damaged(mut chip: Chip, ino: Ino, (block, page): (u32, u32), corruption: Corruption) -> (usize, u64, u64) {
    chip.faults_mut().corrupt_page(block, page, corruption).unwrap();
    let mut fs = mounted(chip, Policy::default());
    let mut chunk = [0; 4096];
    let errors = (0..CHUNKS).filter(|&at| fs.read(ino, at as u64 * 4096, &mut chunk).is_err()).count();
    let info = fs.info().unwrap();
    (errors, info.corrupt_reads, info.wrong_checksums)
}

#[test]
fn a_wrong_tag_is_told_from_a_page_that_cannot_be_corrected() {
    let mut fs = mounted(formatted(), Policy::default());
    let ino = file(&mut fs, b"file");
    fs.write(ino, 0, &[7; CHUNKS * 4096], 1).unwrap();
    fs.sync().unwrap();
    let chip = fs.unmount(1).0;
    let (mut wrong, mut unreadable) = (0, 0);
    for page in chip.written_pages() {
        let (errors, corrupt, counted) = read_damaged(chip.snapshot(), ino, page, Corruption::FlipSpareBits(64));
        assert_eq!(corrupt, counted, "page {page:?} was read well");
        wrong += usize::from(errors == 1 && counted > 0);
        let (errors, corrupt, counted) = read_damaged(chip.snapshot(), ino, page, Corruption::Uncorrectable);
        assert_eq!(counted, 0, "page {page:?} was not read");
        unreadable += usize::from(errors == 1 && corrupt > 0);
    }
    assert_eq!((wrong, unreadable), (CHUNKS, CHUNKS));
}
