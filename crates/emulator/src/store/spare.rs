//! Spare bytes in RAM, and the data of chosen pages alone: for large chips whose users look at nothing but tags and
//! their own structures.
//!
//! A block is one list of spare bytes, as many for each page as the longest spare area programmed there, and, where any
//! page keeps its data, a list of shared pages; a snapshot shares both until either side programs the block. Invariant:
//! what a list holds for a page is meaningful only where the chip's table says that the page holds bytes, and ends in
//! `0xFF` where the page was programmed with fewer than others.

use std::{iter, sync::Arc};

#[derive(Clone, Debug)]
pub(crate) struct SpareStore {
    blocks: Vec<BlockSpare>,
    pages_per_block: usize,
}

/// The data of a block's pages, of those that keep it.
type KeptData = Arc<Box<[Option<Arc<[u8]>>]>>;

/// A block's spare bytes, page after page, and what is kept of its data.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockSpare {
    /// Spare bytes of each page; 0 where no page was programmed with any.
    width: usize,
    bytes: Arc<[u8]>,
    /// Absent where no page keeps its data.
    data: Option<KeptData>,
}

impl SpareStore {
    pub(crate) fn new(blocks: u32, pages_per_block: u32) -> Self {
        Self { blocks: vec![BlockSpare::default(); blocks as usize], pages_per_block: pages_per_block as usize }
    }

    /// Puts spare bytes into a page, and data where it is to keep some.
    pub(crate) fn put(&mut self, block: u32, page: u32, data: Option<&[u8]>, spare: &[u8]) {
        let held = &mut self.blocks[block as usize];
        if data.is_some() || held.data.is_some() {
            held.put_data(page, data, self.pages_per_block);
        }
        if spare.len() > held.width {
            held.widen(spare.len(), self.pages_per_block);
        }
        let start = page as usize * held.width;
        let bytes = &mut Arc::make_mut(&mut held.bytes)[start..start + held.width];
        let (programmed, rest) = bytes.split_at_mut(spare.len());
        programmed.copy_from_slice(spare);
        rest.fill(0xFF);
    }

    /// Gets the first spare bytes of a page, and its data from `column` on, or zeros where it keeps none.
    pub(crate) fn get(&self, block: u32, page: u32, column: usize, data: &mut [u8], spare: &mut [u8]) {
        let held = &self.blocks[block as usize];
        if !data.is_empty() {
            match held.data_of(page) {
                Some(bytes) => data.copy_from_slice(&bytes[column..column + data.len()]),
                None => data.fill(0),
            }
        }
        let (known, rest) = spare.split_at_mut(held.width.min(spare.len()));
        let start = page as usize * held.width;
        known.copy_from_slice(&held.bytes[start..start + known.len()]);
        rest.fill(0xFF);
    }

    /// Whether the page was put with data.
    pub(crate) fn holds_data(&self, block: u32, page: u32) -> bool {
        self.blocks[block as usize].data_of(page).is_some()
    }

    pub(crate) fn erase(&mut self, block: u32) -> BlockSpare {
        std::mem::take(&mut self.blocks[block as usize])
    }

    pub(crate) fn bring_back(&mut self, block: u32, spare: BlockSpare) {
        self.blocks[block as usize] = spare;
    }
}

impl BlockSpare {
    fn data_of(&self, page: u32) -> Option<&[u8]> {
        self.data.as_ref()?[page as usize].as_deref()
    }

    /// Apart from the rest, which for most pages is all there is to do.
    #[inline(never)]
    fn put_data(&mut self, page: u32, data: Option<&[u8]>, pages: usize) {
        let list = self.data.get_or_insert_with(|| Arc::new(vec![None; pages].into_boxed_slice()));
        Arc::make_mut(list)[page as usize] = data.map(Arc::from);
    }

    /// Makes room for `width` bytes of each of `pages` pages.
    fn widen(&mut self, width: usize, pages: usize) {
        let mut wide: Arc<[u8]> = iter::repeat_n(0xFF, pages * width).collect();
        if self.width > 0 {
            let slots = Arc::make_mut(&mut wide).chunks_exact_mut(width);
            for (slot, known) in slots.zip(self.bytes.chunks_exact(self.width)) {
                slot[..self.width].copy_from_slice(known);
            }
        }
        (self.width, self.bytes) = (width, wide);
    }
}
