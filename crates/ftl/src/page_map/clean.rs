//! Cleaning: the pages of a block that count are written anew, and the block is free.
//!
//! Invariant: a page is copied only while it counts, so that the copy's later stamp is right.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::PageMap;
use super::trims::ranges_max;
use crate::flash::Flash;
use crate::sector_map::RESERVE_BLOCKS;
use crate::{Error, Result};

impl PageMap {
    /// Cleans blocks until one can be taken for a request.
    pub(super) fn make_room(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        if self.head.room(flash.pages_per_block()) > 0 {
            return Ok(());
        }
        while flash.pool.free() <= RESERVE_BLOCKS {
            if !self.clean_one(flash)? {
                return Err(Error::WornOut);
            }
        }
        Ok(())
    }

    /// Cleans the block that is worth it most. Whether there was one.
    pub(super) fn clean_one(&mut self, flash: &mut Flash<impl Nand>) -> Result<bool> {
        let now = flash.next_stamp();
        let age = |block: u32| now.saturating_sub(self.written.get(block as usize).copied().unwrap_or(0));
        let Some(victim) = self.pages.victim(self.cleaning, |_| true, age) else { return Ok(false) };
        flash.counts_mut().merges += 1;
        self.empty_block(flash, victim)?;
        flash.pool.release(victim);
        self.give_up_failing(flash)?;
        Ok(true)
    }

    /// Writes anew whatever counts in blocks in which programs failed, and gives those up.
    pub(super) fn give_up_failing(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        while let Some(block) = self.pages.next_failing() {
            self.empty_block(flash, block)?;
            flash.mark_bad(block)?;
        }
        Ok(())
    }

    /// Writes anew whatever counts in a block.
    fn empty_block(&mut self, flash: &mut Flash<impl Nand>, block: u32) -> Result<()> {
        self.pages.counting_in(block).into_iter().try_for_each(|packed| self.move_page(flash, packed))?;
        self.pages.emptied(block);
        Ok(())
    }

    fn move_page(&mut self, flash: &mut Flash<impl Nand>, packed: u32) -> Result<()> {
        if self.trims.contains_key(&packed) {
            return self.move_trim(flash, packed);
        }
        let found = flash.read(self.pages.place(packed), &mut [], Cause::Gc)?;
        let Some(sector) = found.tag().map(|tag| tag.logical).or_else(|| self.sector_at(packed)) else { return Ok(()) };
        if self.map.get(sector as usize) != Some(&packed) {
            return Ok(());
        }
        let to = self.pages.append_copy(flash, &mut self.head, sector, found)?;
        self.written_at(to, flash.next_stamp() - 1);
        self.remap(sector, to);
        Ok(())
    }

    /// The sector that stands in a page which cannot be read.
    fn sector_at(&self, packed: u32) -> Option<u32> {
        self.map.iter().position(|&other| other == packed).map(|sector| sector as u32)
    }

    /// Writes anew which sectors a page has given up, as far as they have not been written since.
    fn move_trim(&mut self, flash: &mut Flash<impl Nand>, packed: u32) -> Result<()> {
        let sectors = self.map.iter().zip(0..).filter(|(other, _)| **other == packed).map(|(_, sector)| sector);
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for sector in sectors {
            match ranges.last_mut() {
                Some((first, count)) if *first + *count == sector => *count += 1,
                _ => ranges.push((sector, 1)),
            }
        }
        let most = ranges_max(flash.page_bytes());
        ranges.chunks(most).try_for_each(|ranges| self.write_trim(flash, ranges))
    }
}
