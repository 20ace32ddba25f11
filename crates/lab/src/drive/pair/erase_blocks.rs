//! What stands in the pages of a chip. Invariant: the pages of a block are programmed in order, each once until the block is
//! erased.

use crate::drive::DriveError;

/// The stamp of each page, by block.
#[derive(Clone)]
pub struct EraseBlocks {
    pages_per_block: u32,
    stamps: Vec<u64>,
    /// Pages of each block that are programmed.
    programmed: Vec<u32>,
}

impl EraseBlocks {
    pub fn new(blocks: u32, pages_per_block: u32) -> Self {
        let pages = blocks as usize * pages_per_block as usize;
        Self { pages_per_block, stamps: vec![0; pages], programmed: vec![0; blocks as usize] }
    }

    pub fn program(&mut self, block: u32, page: u32, stamp: u64) -> Result<(), DriveError> {
        let next = self.programmed[block as usize];
        if next != page {
            return Err(DriveError::NotInOrder { block, page, next });
        }
        self.programmed[block as usize] += 1;
        self.stamps[(block * self.pages_per_block + page) as usize] = stamp;
        Ok(())
    }

    /// What a page holds, 0 where it is erased.
    pub fn stamp(&self, block: u32, page: u32) -> u64 {
        self.stamps[(block * self.pages_per_block + page) as usize]
    }

    pub fn erase(&mut self, block: u32) {
        self.programmed[block as usize] = 0;
        let first = block as usize * self.pages_per_block as usize;
        self.stamps[first..first + self.pages_per_block as usize].fill(0);
    }
}
