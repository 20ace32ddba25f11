//! Which pages count, a bit each: cleaning reads no other.
//!
//! Invariant: a page's bit is set while a sector, or a sector that was given up, stands there last.

use alloc::vec::Vec;

const WORD_BITS: u32 = u64::BITS;

#[derive(Clone, Debug)]
pub struct Counting(Vec<u64>);

impl Counting {
    /// So many pages, none of which counts.
    pub fn new(pages: usize) -> Self {
        Self(alloc::vec![0; pages.div_ceil(WORD_BITS as usize)])
    }

    /// A page, by its number, counts or does so no longer.
    pub fn set(&mut self, page: u32, counts: bool) {
        if let Some(word) = self.0.get_mut((page / WORD_BITS) as usize) {
            let bit = 1 << (page % WORD_BITS);
            *word = if counts { *word | bit } else { *word & !bit };
        }
    }

    pub fn has(&self, page: u32) -> bool {
        self.0.get((page / WORD_BITS) as usize).is_some_and(|word| word >> (page % WORD_BITS) & 1 != 0)
    }

    /// No page counts.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }
}
