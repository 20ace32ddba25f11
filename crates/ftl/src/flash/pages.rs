//! Pages that are written wherever there is room: which of them count, how many of a block, and the heads that fill blocks.
//!
//! Invariant: a block is closed once no head fills it, and is cleaned only then; one in which a program failed waits on a list
//! until everything that counts in it was written anew.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::anchor::ANCHOR_BLOCKS;
use super::counting::Counting;
use super::pool::Pool;
use super::{Flash, Found, Outcome, Place};
use crate::Result;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    /// Pages that count.
    pub valid: u16,
    /// It may be cleaned.
    pub is_closed: bool,
}

/// The block that is being filled, and its next page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head(Option<Place>);

impl Head {
    pub fn block(&self) -> Option<u32> {
        self.0.map(|next| next.block)
    }

    /// Pages of the block that can still be programmed.
    pub fn room(&self, pages_per_block: u32) -> u32 {
        self.0.map_or(0, |next| pages_per_block.saturating_sub(next.page))
    }
}

/// The pages of a volume, by their numbers.
#[derive(Clone, Debug)]
pub struct Pages {
    pages_per_block: u32,
    blocks: Vec<Block>,
    counting: Counting,
    pub pool: Pool,
    /// Blocks in which a program failed, with pages that count still in them.
    failing: Vec<u32>,
}

impl Pages {
    /// None counts, and no block is free.
    pub fn new<N: Nand>(flash: &Flash<N>) -> Self {
        let (blocks, pages_per_block) = (flash.blocks() as usize, flash.pages_per_block());
        Self {
            pages_per_block,
            blocks: alloc::vec![Block::default(); blocks],
            counting: Counting::new(blocks * pages_per_block as usize),
            pool: Pool::default(),
            failing: Vec::new(),
        }
    }

    /// The number of a page.
    pub fn pack(&self, at: Place) -> u32 {
        at.block * self.pages_per_block + at.page
    }

    /// The page of a number.
    pub fn place(&self, packed: u32) -> Place {
        Place { block: packed / self.pages_per_block, page: packed % self.pages_per_block }
    }

    /// Whether a page counts.
    pub fn counts(&self, packed: u32) -> bool {
        self.counting.has(packed)
    }

    /// A page that counts was programmed.
    pub fn counts_now(&mut self, packed: u32) {
        self.counting.set(packed, true);
        let at = self.place(packed);
        if let Some(block) = self.blocks.get_mut(at.block as usize) {
            block.valid += 1;
        }
    }

    pub fn counts_no_more(&mut self, packed: u32) {
        self.counting.set(packed, false);
        let at = self.place(packed);
        if let Some(block) = self.blocks.get_mut(at.block as usize) {
            block.valid = block.valid.saturating_sub(1);
        }
    }

    /// Every block, with its number.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, Block)> + '_ {
        (0..).zip(self.blocks.iter().copied())
    }

    /// Every block that may be cleaned.
    pub fn closed(&self) -> impl Iterator<Item = (u32, Block)> + '_ {
        self.blocks().filter(|(_, block)| block.is_closed)
    }

    /// Numbers of the pages of a block that count.
    pub fn counting_in(&self, block: u32) -> Vec<u32> {
        let first = self.pack(Place { block, page: 0 });
        (first..first + self.pages_per_block).filter(|&packed| self.counts(packed)).collect()
    }

    /// Programs the next page of a head, `program` doing so, in another block if that fails. The page's number.
    pub fn append<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        head: &mut Head,
        mut program: impl FnMut(&mut Flash<N>, Place) -> Result<Outcome>,
    ) -> Result<u32> {
        loop {
            let at = match head.0.filter(|next| next.page < self.pages_per_block) {
                Some(next) => next,
                None => {
                    self.close(head);
                    let block = self.pool.take(flash, Cause::Gc)?;
                    self.pool.commit(block);
                    Place { block, page: 0 }
                }
            };
            head.0 = Some(Place { page: at.page + 1, ..at });
            if program(flash, at)? == Outcome::Done {
                return Ok(self.pack(at));
            }
            self.failing.push(at.block);
            head.0 = None;
        }
    }

    /// A head goes on in the block that it was filling when the volume was last used.
    pub fn reopen<N: Nand>(&mut self, flash: &mut Flash<N>, head: &mut Head, block: u32) -> Result<()> {
        let mut page = self.pages_per_block;
        while page > 0 && flash.read(Place { block, page: page - 1 }, &mut [], Cause::Metadata)? == Found::Erased {
            page -= 1;
        }
        self.set_aside(block);
        while page < self.pages_per_block {
            // The page after the last may have been half programmed when the power went. Where it shows, one more is used up,
            // so that a page which cannot be read is followed by one that holds nothing.
            flash.use_up(Place { block, page })?;
            page += 1;
            if flash.read(Place { block, page: page - 1 }, &mut [], Cause::Metadata)? != Found::Unreadable {
                break;
            }
        }
        head.0 = Some(Place { block, page });
        Ok(())
    }

    fn close(&mut self, head: &mut Head) {
        if let Some(next) = head.0.take() {
            self.set_closed(next.block, true);
        }
    }

    fn set_closed(&mut self, block: u32, is_closed: bool) {
        if let Some(block) = self.blocks.get_mut(block as usize) {
            block.is_closed = is_closed;
        }
    }

    /// Nothing counts in a block any more.
    pub fn emptied(&mut self, block: u32) {
        self.set_closed(block, false);
    }

    /// A block is neither cleaned nor taken.
    pub fn set_aside(&mut self, block: u32) {
        self.pool.remove(block);
        self.set_closed(block, false);
    }

    /// A block in which a program failed.
    pub fn next_failing(&mut self) -> Option<u32> {
        self.failing.pop()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.blocks.fill(Block::default());
        self.counting.clear();
        self.pool = Pool::default();
    }

    /// Takes blocks in which a page counts as closed, and all others as free.
    pub fn adopt<N: Nand>(&mut self, flash: &Flash<N>) {
        for (number, block) in (0..).zip(&mut self.blocks).skip(ANCHOR_BLOCKS as usize) {
            block.is_closed = block.valid > 0;
            if !block.is_closed && !flash.is_bad(number) {
                self.pool.release(number);
            }
        }
    }

    /// A line for each difference from the pages that count, which are given in ascending order.
    pub fn differences(&self, counting: &[u32]) -> Vec<String> {
        let mut findings = Vec::new();
        for packed in 0..self.blocks.len() as u32 * self.pages_per_block {
            if self.counts(packed) != counting.binary_search(&packed).is_ok() {
                findings.push(format!("page {packed}: memory is wrong on whether it counts"));
            }
        }
        for (number, block) in self.blocks() {
            let valid = self.counting_in(number).len();
            if usize::from(block.valid) != valid {
                findings.push(format!("block {number}: {valid} of its pages count, not {}", block.valid));
            }
        }
        findings
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.counting.ram_bytes() + self.pool.ram_bytes()
    }
}
