//! The head of an image: who it is, and where its parts lie.
//!
//! Invariant: every offset follows from the geometry and the profile's length; a header read from a file is used only
//! if it equals the one its own profile would be given.

use crc::{CRC_32_ISCSI, Crc};
use nand::Geometry;

/// How an image begins.
pub const MAGIC: [u8; 8] = *b"FLXCHIP\0";
pub(super) const VERSION: u32 = 1;
/// Bytes before the profile's text.
pub(super) const FIXED_BYTES: usize = 96;
/// Bytes before a block record's page states.
pub(super) const RECORD_HEAD_BYTES: usize = 64;
/// A header longer than this was not written by us.
pub(super) const MOST_HEADER_BYTES: u64 = 1 << 20;
const ALIGN: u64 = 4096;

pub(super) const CRC: Crc<u32, crc::Table<16>> = Crc::<u32, crc::Table<16>>::new(&CRC_32_ISCSI);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) seed: u64,
    pub(super) header_bytes: u64,
    pub(super) record_bytes: u64,
    pub(super) records_at: u64,
    pub(super) data_at: u64,
    pub(super) slot_bytes: u64,
    pub(super) block_bytes: u64,
    pub(super) file_bytes: u64,
}

impl Header {
    pub(super) fn new(shape: &Geometry, seed: u64, toml: &str) -> Self {
        let header_bytes = ((FIXED_BYTES + toml.len()) as u64).next_multiple_of(ALIGN);
        let record_bytes = (RECORD_HEAD_BYTES as u64 + u64::from(shape.pages_per_block)).next_power_of_two();
        let records_at = header_bytes + ALIGN;
        let data_at = (records_at + u64::from(shape.blocks) * record_bytes).next_multiple_of(ALIGN);
        let slot_bytes = u64::from(shape.page_bytes) + u64::from(shape.spare_bytes);
        let block_bytes = (u64::from(shape.pages_per_block) * slot_bytes).next_multiple_of(ALIGN);
        let file_bytes = data_at + u64::from(shape.blocks) * block_bytes;
        Self { seed, header_bytes, record_bytes, records_at, data_at, slot_bytes, block_bytes, file_bytes }
    }

    /// Where a page's data begin; its spare bytes follow them.
    pub(super) fn slot(&self, block: u32, page: u32) -> u64 {
        self.data_at + u64::from(block) * self.block_bytes + u64::from(page) * self.slot_bytes
    }

    /// Where a block's record stands.
    pub(super) fn record(&self, block: u32) -> u64 {
        self.records_at + u64::from(block) * self.record_bytes
    }

    /// The header as bytes, magic included.
    pub(super) fn encode(&self, toml: &str) -> Vec<u8> {
        let mut bytes = vec![0; FIXED_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let words = [
            self.header_bytes,
            self.seed,
            self.record_bytes,
            self.records_at,
            self.data_at,
            self.slot_bytes,
            self.block_bytes,
            self.file_bytes,
        ];
        for (field, word) in bytes[16..80].chunks_exact_mut(8).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        bytes[80..84].copy_from_slice(&(toml.len() as u32).to_le_bytes());
        bytes.extend_from_slice(toml.as_bytes());
        let crc = CRC.checksum(&bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// The little-endian integer at `offset`; 0 past the end.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..offset + 4).and_then(|field| field.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The little-endian integer at `offset`; 0 past the end.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..offset + 8).and_then(|field| field.try_into().ok()).map_or(0, u64::from_le_bytes)
}
