//! The free blocks, used in the order in which they became free, so that wear goes round.
//!
//! Invariant: a block that is taken was erased since anything was programmed to it, or since the volume was opened: one
//! whose erase was cut may read as erased and not be so. A block that was taken stays on the list that goes to the map,
//! as free, until what it is for is committed.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::anchor::ANCHOR_BLOCKS;
use super::{Flash, Outcome};
use crate::{Error, Result};

const ERASED: u32 = 1 << 31;

/// The free blocks, and those taken for what is not committed yet.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Block numbers, with [`ERASED`] for one that need not be erased before it is used.
    free: VecDeque<u32>,
    taken: Vec<u32>,
}

impl Pool {
    /// Blocks that can be taken.
    pub fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// A block that holds nothing any more.
    pub fn release(&mut self, block: u32) {
        self.free.push_back(block);
    }

    /// A free block is in use after all.
    pub fn remove(&mut self, block: u32) {
        self.free.retain(|&free| free & !ERASED != block);
    }

    /// Every block that the map is to know as free: those taken are, until a commit says otherwise.
    pub fn listed(&self) -> impl Iterator<Item = u32> + '_ {
        self.free.iter().map(|&block| block & !ERASED).chain(self.taken.iter().copied())
    }

    /// What a taken block is for is committed: it is free no longer.
    pub fn commit(&mut self, block: u32) {
        self.taken.retain(|&taken| taken != block);
    }

    /// A block is free once what replaces it is committed; until then nobody takes it.
    pub fn hold(&mut self, block: u32) {
        self.taken.push(block);
    }

    /// A taken block is not wanted after all; nothing was programmed to it.
    pub fn put_back(&mut self, block: u32) {
        self.commit(block);
        self.free.push_front(block | ERASED);
    }

    /// A taken block is not wanted after all; what was programmed to it counts for nothing.
    pub fn discard(&mut self, block: u32) {
        self.commit(block);
        self.release(block);
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        (self.free.capacity() + self.taken.capacity()) * size_of::<u32>()
    }
}

impl<N: Nand> Flash<N> {
    /// Takes the block that has been free for longest, erased.
    pub fn take(&mut self, cause: Cause) -> Result<u32> {
        while let Some(free) = self.pool.free.pop_front() {
            let block = free & !ERASED;
            if free & ERASED != 0 || self.erase(block, cause)? == Outcome::Done {
                self.pool.taken.push(block);
                return Ok(block);
            }
            self.mark_bad(block)?;
        }
        Err(Error::WornOut)
    }

    /// A taken block has gone bad.
    pub fn give_up(&mut self, block: u32) -> Result<()> {
        self.pool.commit(block);
        self.mark_bad(block)
    }

    /// Erases one free block ahead of need. Whether there was one.
    pub fn erase_ahead(&mut self, cause: Cause) -> Result<bool> {
        let next = self.pool.free.iter().copied().enumerate().find(|&(_, free)| free & ERASED == 0);
        let Some((at, block)) = next else { return Ok(false) };
        if self.erase(block, cause)? == Outcome::Done {
            self.pool.free.get_mut(at).into_iter().for_each(|free| *free |= ERASED);
        } else {
            self.mark_bad(block)?;
            self.pool.free.remove(at);
        }
        Ok(true)
    }

    /// Every good block behind the anchors becomes free, but for blocks for which `is_used` holds.
    pub fn release_unused(&mut self, is_used: impl Fn(u32) -> bool) {
        for block in ANCHOR_BLOCKS..self.blocks() {
            if !is_used(block) && !self.is_bad(block) {
                self.pool.release(block);
            }
        }
    }
}
