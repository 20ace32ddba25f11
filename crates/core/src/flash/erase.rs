//! Erasing blocks, and marking them bad.
//!
//! Invariant: no block is erased before it is known whether anything stands in it, and what was erased is in no cache.

use nand::{Cause, CellMode, Nand};

use super::blocks::{self, Found};
use super::newest;
use super::outage::Operation;
use super::slots::Slots;
use crate::error::{Error, Result};
use crate::format::table::{BlockEntry, Use};
use crate::format::tag;

impl<N: Nand> Slots<N> {
    /// Whether a mount could come across an anchor in a block.
    pub fn holds_anchor(&mut self, block: u32) -> Result<bool> {
        newest::holds_anchor(&mut self.nand, &self.shape, block)
    }

    /// Whether it is known of a block what it holds. If not, that is looked up now: nothing, if nothing is on its first page.
    pub fn look_for_pages(&mut self, block: u32, cause: Cause) -> Result<bool> {
        if self.blocks.get(block).found != Found::Unknown {
            return Ok(true);
        }
        let first = self.read_raw(self.shape.slot(block, 0), CellMode::Slc, &mut [], cause);
        let found = match first {
            Ok(raw) if tag::is_blank(&raw) => Found::Nothing,
            Ok(_) | Err(Error::Corrupt { .. }) => Found::Pages,
            Err(error) => return Err(error),
        };
        self.blocks.note_found(block, found);
        Ok(false)
    }

    /// Erases a block. `false`: it failed, and waits for its test.
    pub fn erase(&mut self, block: u32, cause: Cause) -> Result<bool> {
        self.look_for_pages(block, cause)?;
        let from = self.shape.slot(block, 0);
        self.cache.forget(from, from + self.shape.stride);
        let outcome = self.nand.erase(block, cause);
        let erased = self.outcome_of(Operation::Erase, block, outcome)?;
        if let Some(mut found) = self.blocks.get_mut(block) {
            let ended = erased && found.found != Found::Nothing;
            *found = blocks::Block::erased(found.entry.erases + u32::from(ended));
            (found.entry.erased, found.entry.failing) = (erased, !erased);
        }
        Ok(erased)
    }

    /// Marks a block bad for good.
    pub fn retire(&mut self, block: u32) -> Result<()> {
        if let Some(mut found) = self.blocks.get_mut(block) {
            let erases = found.entry.erases;
            found.entry = BlockEntry { used_as: Use::Bad, erases, ..BlockEntry::default() };
            found.open = false;
        }
        self.blocks.recount();
        Ok(self.nand.mark_bad(block)?)
    }
}
