//! Changes of an image: those that its checksums do not give away, as somebody with bad intentions would make them, and
//! pages that its chip gives up.
//!
//! Invariant: a forged slot of nodes is one of a volume whose id is zero, so that its checksum is known; that of an
//! anchor starts from nothing.

use std::fs;
use std::path::Path;

use emulator::{Chip, Corruption};
use nand::{Cause, Nand};

/// The checksum that slots of a volume whose id is zero start from (docs/FORMAT.md).
const SEED_OF_ZERO: u32 = 0x5E16_5390;
/// What an anchor begins with.
pub const ANCHOR_MAGIC: &[u8] = b"FlexFS\r\n";
const PAGE_BYTES: usize = 4096;
const TAG_BYTES: usize = 32;

/// The id of such a volume, as `mkfs` takes it.
pub const ZERO_ID: &str = "00000000-0000-0000-0000-000000000000";

/// Everywhere that `wanted` stands in an image.
pub fn places(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    let found: Vec<usize> = (0..bytes.len() - wanted.len()).filter(|&at| bytes[at..].starts_with(wanted)).collect();
    assert!(!found.is_empty(), "stored as it is");
    found
}

/// Changes an image wherever `wanted` stands, and makes the checks of those slots hold again.
pub fn forge(image: &Path, wanted: &[u8], change: impl Fn(&mut [u8], usize)) {
    let mut bytes = fs::read(image).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (data_at, slot_bytes, block_bytes) = (word(48), word(56), word(64));
    for at in places(&bytes, wanted) {
        change(&mut bytes, at);
        let page = at - (at - data_at) % block_bytes % slot_bytes;
        seal(&mut bytes[page..], SEED_OF_ZERO);
    }
    fs::write(image, bytes).unwrap();
}

/// Changes every anchor of a volume, whatever its id, and makes the checks of those pages hold again.
pub fn forge_anchors(image: &Path, change: impl Fn(&mut [u8])) {
    let mut bytes = fs::read(image).unwrap();
    for at in places(&bytes, ANCHOR_MAGIC) {
        change(&mut bytes[at..at + PAGE_BYTES]);
        seal(&mut bytes[at..], 0);
    }
    fs::write(image, bytes).unwrap();
}

/// Has the chip damage every page with `wanted` in it.
pub fn corrupt(image: &Path, wanted: &[u8], corruption: Corruption) {
    let mut chip = Chip::open_image(image, false).unwrap();
    let (mut found, mut page) = (0, vec![0; chip.geometry().page_bytes as usize]);
    for (block, number) in chip.written_pages() {
        chip.read(block, number, 0, &mut page, &mut [], Cause::Host).unwrap();
        if page.windows(wanted.len()).any(|bytes| bytes == wanted) {
            chip.faults_mut().corrupt_page(block, number, corruption).unwrap();
            found += 1;
        }
    }
    assert!(found > 0, "stored as it is");
    chip.sync_image().unwrap();
}

/// Makes the check of the page that `bytes` begins with hold: its tag, behind it, begins with the checksum of both.
fn seal(bytes: &mut [u8], seed: u32) {
    let (data, tag) = bytes[..PAGE_BYTES + TAG_BYTES].split_at_mut(PAGE_BYTES);
    tag[..4].copy_from_slice(&seed.to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(tag), data);
    tag[..4].copy_from_slice(&sum.to_le_bytes());
}
