//! Pages that are written wherever there is room: which of them count, and how many of a block.
//!
//! Invariant: a block is cleaned only once it is closed; one in which a program failed waits on a list until everything
//! that counts in it was written anew.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use nand::Nand;

use super::anchor::ANCHOR_BLOCKS;
use super::cleaning::{BlockFill, Cleaning};
use super::counting::Counting;
use super::pool::Pool;
use super::{Flash, Place, SectorPlace};
use crate::block_use::BlockUse;

/// The number of no page: where a sector stands that stands nowhere.
pub const NOWHERE: u32 = u32::MAX;

/// The pages of a volume, by their numbers.
#[derive(Clone, Debug)]
pub struct Pages {
    pub(super) pages_per_block: u32,
    /// Of each block how many of its pages count.
    blocks: Vec<BlockFill>,
    counting: Counting,
    /// Blocks in which a program failed, with pages that count still in them.
    pub(super) failing: Vec<u32>,
}

impl Pages {
    /// None counts.
    pub fn new<N: Nand>(flash: &Flash<N>) -> Self {
        let (blocks, pages_per_block) = (flash.blocks() as usize, flash.pages_per_block());
        Self {
            pages_per_block,
            blocks: alloc::vec![BlockFill::UNUSED; blocks],
            counting: Counting::new(blocks * pages_per_block as usize),
            failing: Vec::new(),
        }
    }

    /// The number of a page.
    pub fn pack(&self, at: Place) -> u32 {
        at.pack(self.pages_per_block)
    }

    /// The page of a number.
    pub fn place(&self, packed: u32) -> Place {
        Place::unpack(packed, self.pages_per_block)
    }

    /// Where a sector that stands in the page of that number is to be read.
    pub fn sector_place(&self, packed: u32) -> SectorPlace {
        if packed == NOWHERE { SectorPlace::Nowhere } else { SectorPlace::Page(self.place(packed)) }
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
            block.add();
        }
    }

    pub fn counts_no_more(&mut self, packed: u32) {
        self.counting.set(packed, false);
        let at = self.place(packed);
        if let Some(block) = self.blocks.get_mut(at.block as usize) {
            block.subtract();
        }
    }

    /// Every block, with its number.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, BlockFill)> + '_ {
        (0..).zip(self.blocks.iter().copied())
    }

    /// Numbers of the pages of a block that count.
    pub fn counting_in(&self, block: u32) -> Vec<u32> {
        let first = self.pack(Place { block, page: 0 });
        (first..first + self.pages_per_block).filter(|&packed| self.counts(packed)).collect()
    }

    /// The block that is most worth cleaning, of the closed blocks for which `is_its_kind` holds; `age` says how many
    /// programs ago a block was written.
    pub fn victim(
        &self,
        cleaning: Cleaning,
        is_its_kind: impl Fn(u32) -> bool,
        age: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        cleaning.choose(&self.blocks, self.pages_per_block, is_its_kind, age)
    }

    pub(super) fn set_closed(&mut self, block: u32, is_closed: bool) {
        if let Some(block) = self.blocks.get_mut(block as usize) {
            block.set_closed(is_closed);
        }
    }

    /// Nothing counts in a block any more.
    pub fn emptied(&mut self, block: u32) {
        self.set_closed(block, false);
    }

    /// A block is neither cleaned nor taken.
    pub fn set_aside(&mut self, pool: &mut Pool, block: u32) {
        pool.remove(block);
        self.set_closed(block, false);
    }

    /// A block in which a program failed.
    pub fn next_failing(&mut self) -> Option<u32> {
        self.failing.pop()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.blocks.fill(BlockFill::UNUSED);
        self.counting.clear();
    }

    /// Takes blocks in which a page counts as closed, and all others as free.
    pub fn adopt<N: Nand>(&mut self, flash: &mut Flash<N>) {
        for block in self.blocks.iter_mut().skip(ANCHOR_BLOCKS as usize) {
            block.set_closed(block.valid() > 0);
        }
        flash.pool = Pool::default();
        flash.release_unused(|number| self.blocks.get(number as usize).is_some_and(|block| block.is_closed()));
    }

    /// Names the use of the block `open`, which is being filled, and of each block with pages that count; a block for
    /// which `is_other` holds is left out.
    pub fn visit_uses(&self, open: Option<u32>, is_other: impl Fn(u32) -> bool, visit: &mut dyn FnMut(u32, BlockUse)) {
        for (number, block) in self.blocks().filter(|(number, _)| !is_other(*number)) {
            let valid = u32::from(block.valid());
            if open == Some(number) {
                visit(number, BlockUse::Open(valid));
            } else if valid > 0 || block.is_closed() {
                visit(number, BlockUse::Pages(valid));
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
            if usize::from(block.valid()) != valid {
                findings.push(format!("block {number}: {valid} of its pages count, not {}", block.valid()));
            }
        }
        findings
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<BlockFill>() + self.counting.ram_bytes()
    }
}
