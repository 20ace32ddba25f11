//! A record: the erases of some physical blocks, and what no tag of theirs says.
//!
//! Invariant: a record is believed only whole, by its checksum.

use alloc::vec::Vec;

use super::table::{DriveSize, DriveTable, ERASES_MAX, PhysicalUse};
use crate::flash::tag::checksum;

const MAGIC: [u8; 8] = *b"FlexBMD1";
/// Bytes before the entries.
const HEAD_BYTES: usize = 48;
const ENTRY_BYTES: usize = 4;
/// Bits of an entry above the erases.
const KEPT: u32 = 1 << 24;
const MARKED: u32 = 1 << 25;

/// What a record says of one place in the lists of a drive: of the physical block there, and of the logical one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordEntry {
    pub erases: u32,
    /// The physical block is erased, and is not taken before another record.
    pub kept: bool,
    /// The caller has marked the logical block bad.
    pub marked: bool,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRecord {
    /// The drive's number.
    pub drive: u32,
    pub size: DriveSize,
    pub segment: u32,
    /// The two blocks that records are written to.
    pub pair: [u32; 2],
    pub entries: Vec<RecordEntry>,
}

/// How the blocks of a drive are divided among records.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    size: DriveSize,
    /// Entries of one record.
    each: u32,
}

impl Segments {
    /// With records of pages of so many bytes.
    pub fn of(size: DriveSize, page_bytes: u32) -> Self {
        Self { size, each: ((page_bytes as usize).saturating_sub(HEAD_BYTES) / ENTRY_BYTES).max(1) as u32 }
    }

    pub fn count(&self) -> u32 {
        self.size.physical_blocks().div_ceil(self.each)
    }

    /// The segment that has a physical block.
    pub fn of_physical(&self, block: u32) -> u32 {
        self.size.at(block) as u32 / self.each
    }

    /// The segment that has the mark of a logical block.
    pub fn of_logical(&self, block: u32) -> u32 {
        self.size.logical_at(block) as u32 / self.each
    }

    /// The places of a segment: those of physical blocks, and as many of logical blocks.
    pub fn places(&self, segment: u32) -> core::ops::Range<usize> {
        let first = segment.saturating_mul(self.each);
        first as usize..first.saturating_add(self.each).min(self.size.physical_blocks()) as usize
    }

    /// The physical blocks of a segment.
    pub fn blocks(&self, segment: u32) -> impl Iterator<Item = u32> + use<> {
        let size = self.size;
        self.places(segment).map(move |at| size.block(at))
    }
}

impl SegmentRecord {
    /// What is to be recorded of a segment.
    pub fn of(table: &DriveTable, segments: Segments, drive: u32, pair: [u32; 2], segment: u32) -> Self {
        let size = table.size();
        let entry = |at: usize| {
            let (block, logical) = (size.block(at), size.logical_block(at));
            let kept = table.used_as(block) == PhysicalUse::Kept;
            RecordEntry {
                erases: table.erases(block),
                kept,
                marked: logical.is_some_and(|block| table.is_marked(block)),
            }
        };
        Self { drive, size, segment, pair, entries: segments.places(segment).map(entry).collect() }
    }

    /// Its bytes, a page of them.
    pub fn encode(&self, page_bytes: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(page_bytes);
        bytes.extend(MAGIC);
        let DriveSize { dies, physical, logical } = self.size;
        let [first, second] = self.pair;
        let numbers = [self.drive, dies, physical, logical, self.segment, self.entries.len() as u32, first, second];
        numbers.into_iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes.resize(HEAD_BYTES, 0);
        for entry in &self.entries {
            let flags = if entry.kept { KEPT } else { 0 } | if entry.marked { MARKED } else { 0 };
            bytes.extend((entry.erases & ERASES_MAX | flags).to_le_bytes());
        }
        bytes.resize(page_bytes, 0);
        let sum = checksum(0, &bytes).to_le_bytes();
        bytes.iter_mut().skip(HEAD_BYTES - 4).zip(sum).for_each(|(to, from)| *to = from);
        bytes
    }

    /// The record in these bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut without_sum = bytes.to_vec();
        let sum = without_sum.get_mut(HEAD_BYTES - 4..HEAD_BYTES)?;
        let told = u32::from_le_bytes(sum.try_into().ok()?);
        sum.fill(0);
        if bytes.get(..8)? != MAGIC || checksum(0, &without_sum) != told {
            return None;
        }
        let number = |at: usize| {
            let from = 8 + 4 * at;
            bytes.get(from..from + 4).and_then(|raw| raw.try_into().ok()).map(u32::from_le_bytes)
        };
        let size = DriveSize { dies: number(1)?, physical: number(2)?, logical: number(3)? };
        let entries = bytes.get(HEAD_BYTES..)?.chunks_exact(ENTRY_BYTES).take(number(5)? as usize);
        let entry = |raw: &[u8]| {
            let word = raw.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
            RecordEntry { erases: word & ERASES_MAX, kept: word & KEPT != 0, marked: word & MARKED != 0 }
        };
        let pair = [number(6)?, number(7)?];
        Some(Self { drive: number(0)?, size, segment: number(4)?, pair, entries: entries.map(entry).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DriveSize = DriveSize { dies: 2, physical: 300, logical: 290 };

    #[test]
    fn every_block_has_its_place_in_one_segment() {
        let segments = Segments::of(SIZE, 512);
        assert_eq!(segments.count(), 6, "116 entries each");
        let mut seen = Vec::new();
        for segment in 0..segments.count() {
            for block in segments.blocks(segment) {
                assert_eq!(segments.of_physical(block), segment);
                seen.push(block);
            }
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..600));
    }

    #[test]
    fn a_record_reads_back_whole_or_not_at_all() {
        let mut table = DriveTable::new(SIZE);
        table.set(6, PhysicalUse::Kept, 12);
        table.set(8, PhysicalUse::InUse, ERASES_MAX);
        table.mark(8);
        let segments = Segments::of(SIZE, 512);
        assert_eq!((segments.of_physical(6), segments.of_logical(8)), (0, 0));
        let record = SegmentRecord::of(&table, segments, 77, [4, 5], 0);
        assert_eq!(record.entries[3], RecordEntry { erases: 12, kept: true, marked: false });
        assert_eq!(record.entries[4], RecordEntry { erases: ERASES_MAX, kept: false, marked: true });
        let bytes = record.encode(512);
        assert_eq!(SegmentRecord::decode(&bytes), Some(record));
        for at in [0, 9, 30, 44, 100, 511] {
            let mut wrong = bytes.clone();
            wrong[at] ^= 4;
            assert_eq!(SegmentRecord::decode(&wrong), None, "byte {at}");
        }
    }
}
