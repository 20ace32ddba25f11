//! The bytes of an anchor's record: a volume's parameters and the places of its map blocks.
//!
//! Invariant: what is decoded was encoded.

use alloc::vec::Vec;

use nand::Nand;

use super::Flash;
use crate::{Error, Result};

const MAGIC: [u8; 8] = *b"FlexFTL2";
/// Records of one page each, without the reserve and the blocks that left the round.
const MAGIC_BEFORE: [u8; 8] = *b"FlexFTL1";
/// Bytes before the blocks that a record lists.
const HEAD_BYTES: usize = 8 + 7 * 4;
/// Bytes of a block's number.
const NUMBER_BYTES: usize = 4;
/// A block has room for so many records at least, so that few of them take an erase.
const RECORDS_MIN: usize = 2;

/// What a record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The volume's number, under which all its other pages are checked.
    pub volume: u32,
    /// The scheme's code.
    pub scheme: u8,
    /// Logical blocks of the device.
    pub data_blocks: u32,
    /// Log blocks, or the most of another kind that a scheme keeps.
    pub logs: u32,
    /// Blocks in reserve when the volume was made.
    pub reserve: u32,
    /// The map blocks in their round; empty where a scheme has none.
    pub ring: Vec<u32>,
    /// Blocks that left the round since the last page of the map was written: free, and on no list of that page.
    pub dropped: Vec<u32>,
}

impl Record {
    /// Whether records with so many map blocks fit the anchor's blocks.
    pub fn fits<N: Nand>(flash: &Flash<N>, map_blocks: usize) -> bool {
        let bytes = HEAD_BYTES.saturating_add(map_blocks.saturating_mul(NUMBER_BYTES));
        bytes.div_ceil(flash.page_bytes()).saturating_mul(RECORDS_MIN) < flash.pages_per_block() as usize
    }

    /// The record's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let counts = [self.ring.len(), self.dropped.len()].map(|count| count as u32);
        let numbers = [self.volume, u32::from(self.scheme), self.data_blocks, self.logs, self.reserve];
        let numbers = numbers.iter().chain(&counts).chain(&self.ring).chain(&self.dropped);
        MAGIC.into_iter().chain(numbers.flat_map(|number| number.to_le_bytes())).collect()
    }

    /// The record in `bytes`, which may go on behind it; `None` where there is none.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>> {
        if bytes.starts_with(&MAGIC_BEFORE) {
            return Err(Error::NoVolume("an earlier version of FlexFS made it: make it anew"));
        }
        Ok(Self::numbers(bytes))
    }

    fn numbers(bytes: &[u8]) -> Option<Self> {
        let mut numbers = bytes.strip_prefix(&MAGIC)?.chunks_exact(NUMBER_BYTES).map(|bytes| {
            let number = bytes.try_into().map(u32::from_le_bytes);
            number.unwrap_or_default()
        });
        let mut next = || numbers.next();
        let (volume, scheme, data_blocks, logs, reserve) = (next()?, next()?, next()?, next()?, next()?);
        let (in_ring, dropped) = (next()? as usize, next()? as usize);
        if in_ring.checked_add(dropped)? > numbers.len() {
            return None;
        }
        let ring = numbers.by_ref().take(in_ring).collect();
        let dropped = numbers.take(dropped).collect();
        Some(Self { volume, scheme: u8::try_from(scheme).ok()?, data_blocks, logs, reserve, ring, dropped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_it_was_encoded_and_a_part_of_it_does_not() {
        let (ring, dropped) = (alloc::vec![3, 4, u32::MAX], alloc::vec![9]);
        let record = Record { volume: 5, scheme: 1, data_blocks: 3, logs: 8, reserve: 77, ring, dropped };
        let bytes = record.encode();
        assert_eq!(bytes.len(), HEAD_BYTES + 4 * NUMBER_BYTES);
        let longer: Vec<u8> = bytes.iter().copied().chain([0; 99]).collect();
        assert_eq!(Record::decode(&longer), Ok(Some(record)));
        assert_eq!(Record::decode(&bytes[..bytes.len() - 1]), Ok(None));
        assert_eq!(Record::decode(b"FlexFTL3"), Ok(None));
        assert!(matches!(Record::decode(b"FlexFTL1 and so on"), Err(Error::NoVolume(_))));
    }
}
