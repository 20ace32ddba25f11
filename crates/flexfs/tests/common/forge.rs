//! Changes of an image that its checksums do not give away, as somebody with bad intentions would make them.
//!
//! Invariant: the volume's id is zero, so that the checksums are known; every change falls into a slot of nodes.

use std::fs;
use std::path::Path;

/// The checksum that slots of a volume whose id is zero start from (docs/FORMAT.md).
const SEED_OF_ZERO: u32 = 0x5E16_5390;
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
        let (data, tag) = bytes[page..page + PAGE_BYTES + TAG_BYTES].split_at_mut(PAGE_BYTES);
        tag[..4].copy_from_slice(&SEED_OF_ZERO.to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(tag), data);
        tag[..4].copy_from_slice(&sum.to_le_bytes());
    }
    fs::write(image, bytes).unwrap();
}
