//! The bytes of a map page: half of it is the pool's fragment, the other half a fragment of the block map.
//!
//! A merge changes three entries, of a data block, a log block and a free block; since every map page carries the pool's
//! fragment, one program changes all three (paper §III.C, Fig. 3). Invariant: what is decoded was encoded.

use alloc::vec::Vec;

use crate::{Error, Result};

/// The sizes of fragments on one chip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Bytes of a fragment: half a page.
    pub bytes: usize,
    /// Bytes of an entry.
    entry_bytes: usize,
    /// Fragments of the block map.
    pub count: u32,
    /// Whether the directory fits the pool's fragment.
    pub holds_directory: bool,
}

/// Bytes before the entries of the pool's fragment: how many there are of each kind, and the stamp.
const COUNT_BYTES: usize = 8;
const HEAD_BYTES: usize = COUNT_BYTES + 8;
const DIRECTORY_ENTRY_BYTES: usize = 4;

/// Pages of the map blocks for each fragment of the map, one map block left out: with fewer, cleaning would go in circles.
const MAP_SHARE: u32 = 2;
/// Pages beyond those.
const MAP_PAGES_MIN: u32 = 4;

/// Bytes of an entry: a block's number, and a bit.
fn entry_bytes(blocks: u32) -> usize {
    if blocks <= u32::from(u16::MAX >> 1) { 2 } else { 4 }
}

impl Shape {
    /// The fragments of a chip, of whose blocks `extra_blocks` are no data blocks.
    pub fn new(page_bytes: usize, blocks: u32, data_blocks: u32, extra_blocks: u32) -> Result<Self> {
        let bytes = page_bytes / 2;
        let entry_bytes = entry_bytes(blocks);
        let count = data_blocks.div_ceil((bytes / entry_bytes) as u32);
        // The round of map blocks grows by one when one of them fails.
        let pool_bytes = HEAD_BYTES + (extra_blocks as usize + 1) * entry_bytes;
        if pool_bytes > bytes {
            return Err(Error::Unfit("the log blocks and free blocks do not fit one fragment of the map"));
        }
        let holds_directory = pool_bytes + count as usize * DIRECTORY_ENTRY_BYTES <= bytes;
        Ok(Self { bytes, entry_bytes, count, holds_directory })
    }

    /// Extra blocks that fit the pool's fragment.
    pub fn extra_blocks_max(page_bytes: usize, blocks: u32) -> u32 {
        ((page_bytes / 2).saturating_sub(HEAD_BYTES) / entry_bytes(blocks)).saturating_sub(1) as u32
    }

    /// The fewest map blocks in which the map can be turned over.
    pub fn map_blocks_min(&self, pages_per_block: u32) -> u32 {
        1 + (MAP_SHARE * self.count + MAP_PAGES_MIN).div_ceil(pages_per_block)
    }

    /// Entries of a fragment.
    pub fn entries(&self) -> u32 {
        (self.bytes / self.entry_bytes) as u32
    }

    /// The fragment of a data block, and its place there.
    pub fn split(&self, block: u32) -> (u32, usize) {
        (block / self.entries(), (block % self.entries()) as usize)
    }

    /// An entry of a fragment of the block map.
    pub fn entry(&self, fragment: &[u8], at: usize) -> Option<Standing> {
        let number = self.number(fragment.get(at * self.entry_bytes..(at + 1) * self.entry_bytes)?);
        Some(Standing { block: number & !self.empty(), is_empty: number & self.empty() != 0 })
    }

    /// Changes an entry of a fragment of the block map.
    pub fn set_entry(&self, fragment: &mut [u8], at: usize, standing: Standing) {
        let number = standing.block | if standing.is_empty { self.empty() } else { 0 };
        let entry = fragment.iter_mut().skip(at * self.entry_bytes).take(self.entry_bytes);
        entry.zip(number.to_le_bytes()).for_each(|(slot, byte)| *slot = byte);
    }

    /// The bit of an entry that says that its block holds nothing.
    fn empty(&self) -> u32 {
        1 << (8 * self.entry_bytes - 1)
    }

    fn number(&self, bytes: &[u8]) -> u32 {
        bytes.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte))
    }

    /// Puts the pool's fragment into `bytes`.
    pub fn encode(&self, pool: &Listed, bytes: &mut [u8]) {
        let counts = [pool.logs.len(), pool.free.len(), pool.ring.len(), pool.directory.len()];
        let head = counts.into_iter().flat_map(|count| (count as u16).to_le_bytes());
        let blocks = pool.logs.iter().chain(&pool.free).chain(&pool.ring);
        let blocks = blocks.flat_map(|block| block.to_le_bytes().into_iter().take(self.entry_bytes));
        let places = pool.directory.iter().flat_map(|place| place.to_le_bytes());
        let head = head.chain(pool.resolved.to_le_bytes());
        bytes.iter_mut().zip(head.chain(blocks).chain(places)).for_each(|(slot, byte)| *slot = byte);
    }

    /// The pool's fragment in `bytes`; `None` where the counts do not fit.
    pub fn decode(&self, bytes: &[u8]) -> Option<Listed> {
        let (head, rest) = bytes.split_at_checked(COUNT_BYTES)?;
        let (resolved, rest) = rest.split_first_chunk()?;
        let resolved = u64::from_le_bytes(*resolved);
        let mut counts =
            head.chunks_exact(2).map(|pair| pair.iter().rev().fold(0, |all, &byte| all << 8 | usize::from(byte)));
        let mut rest = rest;
        let mut blocks = |count: usize| {
            let (these, after) = rest.split_at_checked(count * self.entry_bytes)?;
            rest = after;
            Some(these.chunks_exact(self.entry_bytes).map(|entry| self.number(entry)).collect::<Vec<u32>>())
        };
        let (logs, free, ring) = (blocks(counts.next()?)?, blocks(counts.next()?)?, blocks(counts.next()?)?);
        let places = rest.get(..counts.next()? * DIRECTORY_ENTRY_BYTES)?.chunks_exact(DIRECTORY_ENTRY_BYTES);
        let directory =
            places.map(|bytes| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte))).collect();
        Some(Listed { logs, free, ring, directory, resolved })
    }
}

/// The block of a data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub block: u32,
    /// It holds nothing, whatever is programmed there: its sectors read as zeros.
    pub is_empty: bool,
}

/// What the pool's fragment lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub logs: Vec<u32>,
    pub free: Vec<u32>,
    /// The map blocks in their round.
    pub ring: Vec<u32>,
    /// Where the newest page of each fragment stands; empty where it does not fit.
    pub directory: Vec<u32>,
    /// Every request whose pages have stamps up to this one is whole, or left nothing.
    pub resolved: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_s_fragment_reads_as_it_was_written() {
        let shape = Shape::new(512, 1024, 1008, 16).unwrap();
        assert_eq!((shape.entries(), shape.count, shape.holds_directory), (128, 8, true));
        let pool = Listed {
            logs: alloc::vec![5, 9],
            free: alloc::vec![1000, 7, 8],
            ring: alloc::vec![2, 3],
            directory: alloc::vec![u32::MAX, 77],
            resolved: 1 << 39,
        };
        let mut bytes = [0; 256];
        shape.encode(&pool, &mut bytes);
        assert_eq!(shape.decode(&bytes), Some(pool));
        assert_eq!(shape.decode(&[0xee; 256]), None);
    }

    #[test]
    fn a_map_entry_reads_as_it_was_set() {
        let shape = Shape::new(2048, 8192, 8128, 64).unwrap();
        let mut fragment = alloc::vec![0; shape.bytes];
        for is_empty in [true, false] {
            let standing = Standing { block: 8000, is_empty };
            shape.set_entry(&mut fragment, 3, standing);
            assert_eq!(shape.entry(&fragment, 3), Some(standing));
        }
        assert_eq!(shape.split(1300), (2, 276));
    }

    #[test]
    fn more_blocks_than_a_fragment_has_entries_for_are_refused() {
        assert!(Shape::new(512, 1024, 800, 224).is_err());
    }
}
