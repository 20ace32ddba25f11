//! The 16 bytes that stand in the spare area of every page, behind those of the caller: which logical block the page is of.
//!
//! They stand in every page, since the first one may be torn or destroyed later. Invariant: a tag is believed only if its
//! checksum, begun with the drive's number, is right, so that pages of an earlier drive say nothing.

use alloc::vec;

use nand::{Cause, Nand, NandError};

use crate::flash::tag::checksum;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
const BODY_BYTES: usize = 12;

/// The logical block of pages that hold records of the drive's own.
pub const RECORD: u32 = u32::MAX;
/// The number of a drive that is not known yet: records are found with it.
pub const ANY_DRIVE: u32 = 0;

/// What a tag says of the block that its page stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTag {
    pub logical: u32,
    /// Grows with every block that is taken into use: of two blocks for one logical block the greater counts. 40 bits.
    pub generation: u64,
    /// How often the block was erased when it was taken into use. 24 bits.
    pub erases: u32,
}

/// What stands where a tag is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundTag {
    /// Nothing was programmed.
    Blank,
    /// A tag of this drive.
    Tag(BlockTag),
    /// Something else, or a page that does not read.
    Unreadable,
}

/// The spare bytes of a page, where the tag stands; `None`: the page does not read.
pub type RawTag = Option<[u8; TAG_BYTES]>;

/// The tag's bytes in a page.
pub fn read_tag<N: Nand>(chip: &mut N, block: u32, page: u32) -> Result<RawTag, NandError> {
    let mut spare = vec![0; chip.geometry().spare_bytes as usize];
    match chip.read(block, page, 0, &mut [], &mut spare, Cause::Metadata) {
        Ok(_) => Ok(spare.last_chunk().copied()),
        Err(NandError::Uncorrectable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl BlockTag {
    /// The tag's bytes on a drive.
    pub fn encode(&self, drive: u32) -> [u8; TAG_BYTES] {
        let mut raw = [0; TAG_BYTES];
        let generation = self.generation.to_le_bytes().into_iter().take(5);
        let erases = self.erases.to_le_bytes().into_iter().take(3);
        let bytes = self.logical.to_le_bytes().into_iter().chain(generation).chain(erases);
        let (body, sum) = raw.split_at_mut(BODY_BYTES);
        body.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        sum.copy_from_slice(&checksum(drive, body).to_le_bytes());
        raw
    }
}

impl FoundTag {
    /// What was read of a page, on a drive.
    pub fn of(raw: &RawTag, drive: u32) -> Self {
        raw.as_ref().map_or(Self::Unreadable, |raw| Self::decode(raw, drive))
    }

    /// What these bytes are on a drive.
    pub fn decode(raw: &[u8; TAG_BYTES], drive: u32) -> Self {
        if raw.iter().all(|&byte| byte == 0xff) {
            return Self::Blank;
        }
        let (body, sum) = raw.split_at(BODY_BYTES);
        if checksum(drive, body).to_le_bytes() != sum {
            return Self::Unreadable;
        }
        let number = |from: usize, bytes: usize| {
            body.iter().skip(from).take(bytes).rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        Self::Tag(BlockTag { logical: number(0, 4) as u32, generation: number(4, 5), erases: number(9, 3) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_reads_back_on_its_own_drive_alone() {
        let tag = BlockTag { logical: 70_000, generation: (1 << 39) + 5, erases: (1 << 23) + 3 };
        let raw = tag.encode(7);
        assert_eq!(FoundTag::decode(&raw, 7), FoundTag::Tag(tag));
        assert_eq!(FoundTag::decode(&raw, 8), FoundTag::Unreadable);
        for bit in 0..128 {
            let mut wrong = raw;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FoundTag::decode(&wrong, 7), FoundTag::Unreadable, "bit {bit}");
        }
        assert_eq!(FoundTag::decode(&[0xff; TAG_BYTES], 7), FoundTag::Blank);
    }
}
