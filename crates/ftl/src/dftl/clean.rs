//! Cleaning: of data blocks for the host's sake, of map blocks for that of translation pages.
//!
//! Map blocks are no more than a limit, so that neither kind takes the other's room, and cleaning one kind never calls for the
//! other. Invariant: a page is copied only while it counts, so that the copy's later stamp is right.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::recover::is_sector;
use super::{Dftl, NOWHERE, RESERVE_BLOCKS};
use crate::flash::cleaning::Cleaning;
use crate::flash::{Flash, Found};
use crate::{Error, Result};

impl Dftl {
    /// Free blocks that a host's pages leave to cleaning and to translation pages.
    pub(super) fn reserve(&self) -> u32 {
        RESERVE_BLOCKS + self.map_limit.saturating_sub(self.map_blocks.len() as u32)
    }

    /// Cleans data blocks until one can be taken for a request.
    pub(super) fn make_room(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        if self.data_head.room(flash.pages_per_block()) > 0 {
            return Ok(());
        }
        while flash.pool.free() <= self.reserve() {
            if !self.clean_one(flash)? {
                return Err(Error::WornOut);
            }
        }
        self.catch_up(flash)
    }

    /// Writes the translation pages of entries that changed long ago: an opening reads every page programmed since.
    fn catch_up(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        let lag = 2 * self.cache.capacity() as u64 + 8 * u64::from(flash.pages_per_block());
        while let Some((stamp, sector)) = self.cache.oldest_dirty(&(0..0)) {
            if stamp + lag >= flash.next_stamp() {
                break;
            }
            self.write_fragment(flash, sector / self.shape.entries)?;
        }
        Ok(())
    }

    /// Makes sure that a translation page can be programmed with no more map blocks than there may be.
    pub(super) fn make_map_room(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        loop {
            let (blocks, limit) = (self.map_blocks.len() as u32, self.map_limit);
            let has_room = self.map_head.room(flash.pages_per_block()) > 0;
            if has_room && blocks <= limit || blocks < limit {
                return Ok(());
            }
            let Some(victim) = self.victim(true) else { return Ok(()) };
            flash.counts_mut().merges += 1;
            self.empty_block(flash, victim)?;
            self.map_blocks.remove(&victim);
            flash.pool.release(victim);
        }
    }

    /// Cleans the data block with the fewest pages that count. Whether there was one.
    pub(super) fn clean_one(&mut self, flash: &mut Flash<impl Nand>) -> Result<bool> {
        let Some(victim) = self.victim(false) else { return Ok(false) };
        flash.counts_mut().merges += 1;
        self.empty_block(flash, victim)?;
        flash.pool.release(victim);
        self.give_up_failing(flash)?;
        self.shrink(flash)?;
        Ok(true)
    }

    /// The block to clean, among map blocks or among the others.
    fn victim(&self, is_map: bool) -> Option<u32> {
        self.pages.victim(Cleaning::Greedy, |block| self.map_blocks.contains(&block) == is_map, |_| 0)
    }

    /// Writes anew whatever counts in blocks in which programs failed, and gives those up.
    pub(super) fn give_up_failing(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        while let Some(block) = self.pages.next_failing() {
            self.empty_block(flash, block)?;
            self.map_blocks.remove(&block);
            flash.mark_bad(block)?;
        }
        Ok(())
    }

    /// Writes anew whatever counts in a block.
    pub(super) fn empty_block(&mut self, flash: &mut Flash<impl Nand>, block: u32) -> Result<()> {
        let counting = self.pages.counting_in(block);
        if self.map_blocks.contains(&block) {
            let fragments = (0..).zip(&self.directory).filter(|(_, packed)| counting.contains(packed));
            for fragment in fragments.map(|(fragment, _)| fragment).collect::<Vec<u32>>() {
                self.move_fragment(flash, fragment)?;
            }
        } else {
            counting.into_iter().try_for_each(|packed| self.move_page(flash, packed))?;
        }
        self.pages.emptied(block);
        Ok(())
    }

    /// Copies a page that counts to the data head.
    pub(super) fn move_page(&mut self, flash: &mut Flash<impl Nand>, packed: u32) -> Result<()> {
        let found = flash.read(self.pages.place(packed), &mut [], Cause::Gc)?;
        let tag = found.tag().filter(|&tag| is_sector(tag) && tag.logical < self.shape.sectors);
        // A page that says nothing of a sector of the volume has lost the one that the map has here.
        let (sector, found) = match tag {
            Some(tag) => (Some(tag.logical), found),
            None => (self.sector_at(flash, packed)?, Found::Unreadable),
        };
        let Some(sector) = sector else { return Ok(()) };
        let to = self.pages.append_copy(flash, &mut self.data_head, sector, found)?;
        self.pages.counts_no_more(packed);
        self.cache.change(sector, to, flash.next_stamp() - 1, false);
        Ok(())
    }

    /// The sector that stands in a page which cannot be read.
    fn sector_at(&mut self, flash: &mut Flash<impl Nand>, packed: u32) -> Result<Option<u32>> {
        if let Some((sector, _)) = self.cache.all().find(|&(_, other)| other == packed) {
            return Ok(Some(sector));
        }
        for fragment in 0..self.shape.fragments() {
            if self.directory.get(fragment as usize).is_none_or(|&at| at == NOWHERE) {
                continue;
            }
            self.load(flash, fragment)?;
            let mut sectors = self.shape.sectors_of(fragment);
            let found = sectors.find(|&sector| self.shape.entry(&self.page, sector) == packed);
            if found.is_some_and(|sector| !self.cache.is_dirty(sector)) {
                return Ok(found);
            }
        }
        Ok(None)
    }
}
