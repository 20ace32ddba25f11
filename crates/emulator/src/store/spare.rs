//! Spare bytes in RAM, and no data: for large chips whose users look at nothing but tags.
//!
//! A block is one list of bytes, as many for each page as the longest spare area programmed there; a snapshot shares it
//! until either side programs the block. Invariant: what a list holds for a page is meaningful only where the chip's
//! table says that the page holds bytes, and ends in `0xFF` where the page was programmed with fewer than others.

use std::{iter, sync::Arc};

#[derive(Clone, Debug)]
pub(crate) struct SpareStore {
    blocks: Vec<BlockSpare>,
    pages_per_block: usize,
}

/// A block's spare bytes, page after page.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockSpare {
    /// Bytes of each page; 0 where no page was programmed with any.
    width: usize,
    bytes: Arc<[u8]>,
}

impl SpareStore {
    pub(crate) fn new(blocks: u32, pages_per_block: u32) -> Self {
        Self { blocks: vec![BlockSpare::default(); blocks as usize], pages_per_block: pages_per_block as usize }
    }

    pub(crate) fn put(&mut self, block: u32, page: u32, spare: &[u8]) {
        let held = &mut self.blocks[block as usize];
        if spare.len() > held.width {
            held.widen(spare.len(), self.pages_per_block);
        }
        let start = page as usize * held.width;
        let bytes = &mut Arc::make_mut(&mut held.bytes)[start..start + held.width];
        let (programmed, rest) = bytes.split_at_mut(spare.len());
        programmed.copy_from_slice(spare);
        rest.fill(0xFF);
    }

    /// Gets the first spare bytes of a page, and zeros for its data.
    pub(crate) fn get(&self, block: u32, page: u32, data: &mut [u8], spare: &mut [u8]) {
        data.fill(0);
        let held = &self.blocks[block as usize];
        let (known, rest) = spare.split_at_mut(held.width.min(spare.len()));
        let start = page as usize * held.width;
        known.copy_from_slice(&held.bytes[start..start + known.len()]);
        rest.fill(0xFF);
    }

    pub(crate) fn erase(&mut self, block: u32) -> BlockSpare {
        std::mem::take(&mut self.blocks[block as usize])
    }

    pub(crate) fn bring_back(&mut self, block: u32, spare: BlockSpare) {
        self.blocks[block as usize] = spare;
    }
}

impl BlockSpare {
    /// Makes room for `width` bytes of each of `pages` pages.
    fn widen(&mut self, width: usize, pages: usize) {
        let mut wide: Arc<[u8]> = iter::repeat_n(0xFF, pages * width).collect();
        if self.width > 0 {
            let slots = Arc::make_mut(&mut wide).chunks_exact_mut(width);
            for (slot, known) in slots.zip(self.bytes.chunks_exact(self.width)) {
                slot[..self.width].copy_from_slice(known);
            }
        }
        *self = Self { width, bytes: wide };
    }
}
