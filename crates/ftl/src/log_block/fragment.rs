//! The bytes of a map page: half of it is the pool's fragment, the other half a fragment of the block map.
//!
//! A merge changes three entries, of a data block, a log block and a free block; since every map page carries the pool's
//! fragment, one program changes all three (paper §III.C, Fig. 3). Invariant: what is decoded was encoded.

use alloc::vec::Vec;

/// The sizes of fragments on one chip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Bytes of a fragment: half a page.
    pub bytes: usize,
    /// Bytes of an entry.
    entry_bytes: usize,
    /// Fragments of the block map.
    pub count: u32,
    /// Fragments of the reserve, which come after those.
    pub reserve: u32,
    /// Whether the directory fits the pool's fragment.
    pub holds_directory: bool,
}

/// Bytes before the entries of the pool's fragment: how many there are of each kind, and the stamp.
const COUNT_BYTES: usize = 6;
const HEAD_BYTES: usize = COUNT_BYTES + 8;
const DIRECTORY_ENTRY_BYTES: usize = 4;
/// Entries of the pool's fragment that are kept for a map block that leaves the round.
const SPARE_ENTRIES: u32 = 1;

/// Pages of the map blocks for each fragment of the map, one map block left out: with fewer, cleaning would go in circles.
const MAP_SHARE: u32 = 2;
/// Pages beyond those.
const MAP_PAGES_MIN: u32 = 4;

/// Bytes of an entry: a block's number, and a bit.
fn entry_bytes(blocks: u32) -> usize {
    match blocks {
        0..0x8000 => 2,
        0x8000..0x80_0000 => 3,
        _ => 4,
    }
}

impl Shape {
    /// The fragments of a chip with so many data blocks, and so many log blocks and free blocks beside them. Of these the pool's
    /// fragment lists what it has room for; the others are the reserve.
    pub fn new(page_bytes: usize, blocks: u32, data_blocks: u32, others: u32) -> Self {
        let listed = Self::listed_max(page_bytes, blocks);
        Self::with_reserve(page_bytes, blocks, data_blocks, others.min(listed), others.saturating_sub(listed))
    }

    /// The fragments of a chip whose pool's fragment lists so many blocks, and that has so many in reserve.
    pub fn with_reserve(page_bytes: usize, blocks: u32, data_blocks: u32, listed: u32, reserve: u32) -> Self {
        let bytes = page_bytes / 2;
        let entry_bytes = entry_bytes(blocks);
        let entries = ((bytes / entry_bytes) as u32).max(1);
        let (count, reserve) = (data_blocks.div_ceil(entries), reserve.div_ceil(entries));
        let pool_bytes = HEAD_BYTES + (listed + SPARE_ENTRIES) as usize * entry_bytes;
        // With a reserve the pool's fragment is full again whenever a block has gone bad.
        let holds_directory = reserve == 0 && pool_bytes + count as usize * DIRECTORY_ENTRY_BYTES <= bytes;
        Self { bytes, entry_bytes, count, reserve, holds_directory }
    }

    /// Log blocks and free blocks that the pool's fragment lists at most, one left out that may leave the round of map blocks.
    pub fn listed_max(page_bytes: usize, blocks: u32) -> u32 {
        (((page_bytes / 2).saturating_sub(HEAD_BYTES) / entry_bytes(blocks)) as u32).saturating_sub(SPARE_ENTRIES)
    }

    /// All fragments.
    pub fn fragments(&self) -> u32 {
        self.count + self.reserve
    }

    /// The fewest map blocks in which the map can be turned over.
    pub fn map_blocks_min(&self, pages_per_block: u32) -> u32 {
        1 + (MAP_SHARE * self.fragments() + MAP_PAGES_MIN).div_ceil(pages_per_block)
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

    /// Whether the pool's fragment has room for these lists.
    pub fn has_room(&self, pool: &Listed) -> bool {
        let entries = (pool.logs.len() + pool.free.len()) * self.entry_bytes;
        HEAD_BYTES + entries + pool.directory.len() * DIRECTORY_ENTRY_BYTES <= self.bytes
    }

    /// Puts the pool's fragment into `bytes`.
    pub fn encode(&self, pool: &Listed, bytes: &mut [u8]) {
        let counts = [pool.logs.len(), pool.free.len(), pool.directory.len()];
        let head = counts.into_iter().flat_map(|count| (count as u16).to_le_bytes());
        let blocks = pool.logs.iter().chain(&pool.free);
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
        let (logs, free) = (blocks(counts.next()?)?, blocks(counts.next()?)?);
        let places = rest.get(..counts.next()? * DIRECTORY_ENTRY_BYTES)?.chunks_exact(DIRECTORY_ENTRY_BYTES);
        let directory =
            places.map(|bytes| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte))).collect();
        Some(Listed { logs, free, directory, resolved })
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
        let shape = Shape::new(512, 1024, 1008, 16);
        assert_eq!((shape.entries(), shape.count, shape.reserve, shape.holds_directory), (128, 8, 0, true));
        let pool = Listed {
            logs: alloc::vec![5, 9],
            free: alloc::vec![1000, 7, 8],
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
        let shape = Shape::new(2048, 8192, 8128, 64);
        let mut fragment = alloc::vec![0; shape.bytes];
        assert_eq!(shape.split(1300), (2, 276));
        for (blocks, block) in [(8192, 8000), (0x8000, 0x7fff), (0x8_0000, 0x7_fff0), (0x200_0000, 0x1ff_fff0)] {
            let shape = Shape::new(2048, blocks, blocks - 64, 64);
            for standing in [true, false].map(|is_empty| Standing { block, is_empty }) {
                shape.set_entry(&mut fragment, 3, standing);
                assert_eq!(shape.entry(&fragment, 3), Some(standing));
            }
        }
    }

    #[test]
    fn blocks_that_the_pool_s_fragment_has_no_room_for_are_in_reserve() {
        let shape = Shape::new(512, 1024, 768, 256);
        assert_eq!((Shape::listed_max(512, 1024), shape.count, shape.reserve), (120, 6, 2));
        let most = Listed { free: alloc::vec![7; 121], ..Listed::default() };
        let mut bytes = [0; 256];
        shape.encode(&most, &mut bytes);
        assert_eq!(shape.decode(&bytes), Some(most));
    }
}
