//! An ext2 volume as Linux writes it back: blocks of 1 KiB, one group of blocks for 8 MiB, dirty blocks merged into long requests.
//!
//! Invariant: a flush writes every dirty block once, in ascending order.

use std::collections::BTreeSet;

use super::{Requests, SECTORS};

const BLOCK_SECTORS: u64 = 2;
/// Blocks of a group: as many as one block of bitmap has bits.
const GROUP_BLOCKS: u64 = 8192;
/// Superblock, group descriptors, two bitmaps, then the inodes: 128 bytes each.
const INODES_AT: u64 = 5;
const INODES_PER_BLOCK: u64 = 8;
const INODE_BLOCKS: u64 = 128;
/// Sectors of a request at most.
const REQUEST_SECTORS: u64 = 128;

/// The dirty blocks of a volume, and what is given out.
pub struct Ext2 {
    dirty: BTreeSet<u64>,
    next_inode: u64,
    next_block: u64,
}

impl Ext2 {
    pub fn new() -> Self {
        Self { dirty: BTreeSet::new(), next_inode: 12, next_block: INODES_AT + INODE_BLOCKS }
    }

    /// A new file or directory of so many KiB: its blocks, its inode, its entry in a directory, both bitmaps. Its first block.
    pub fn create(&mut self, kib: u64, directory: u64) -> u64 {
        let (inode, first) = (self.next_inode, self.next_block);
        self.next_inode += 1;
        for _ in 0..kib {
            self.next_block = next_data_block(self.next_block);
            self.dirty.insert(self.next_block);
            self.dirty.insert(self.next_block / GROUP_BLOCKS * GROUP_BLOCKS + 3);
        }
        self.dirty.extend([1, 2, 4, INODES_AT + inode / INODES_PER_BLOCK % INODE_BLOCKS, directory]);
        first
    }

    /// A file's inode changes: it was read, or its time was set.
    pub fn touch(&mut self, inode: u64) {
        self.dirty.insert(INODES_AT + inode / INODES_PER_BLOCK % INODE_BLOCKS);
    }

    /// Inodes given out.
    pub fn inodes(&self) -> u64 {
        self.next_inode
    }

    /// Writes the dirty blocks back, neighbours in one request.
    pub fn flush(&mut self, out: &mut Requests) {
        let blocks: Vec<u64> = std::mem::take(&mut self.dirty).into_iter().collect();
        for run in blocks.chunk_by(|one, other| one + 1 == *other) {
            let (first, sectors) =
                (run.first().copied().unwrap_or(0) * BLOCK_SECTORS, run.len() as u64 * BLOCK_SECTORS);
            for at in (0..sectors).step_by(REQUEST_SECTORS as usize) {
                out.write(first + at, REQUEST_SECTORS.min(sectors - at));
            }
        }
    }
}

/// The data block after this one; the volume begins anew where it ends, as if files had been removed.
fn next_data_block(block: u64) -> u64 {
    let next = block + 1;
    let begins = |block: u64| block % GROUP_BLOCKS < INODES_AT + INODE_BLOCKS;
    match next * BLOCK_SECTORS + BLOCK_SECTORS {
        end if end > SECTORS => INODES_AT + INODE_BLOCKS,
        _ if begins(next) => next / GROUP_BLOCKS * GROUP_BLOCKS + INODES_AT + INODE_BLOCKS,
        _ => next,
    }
}
