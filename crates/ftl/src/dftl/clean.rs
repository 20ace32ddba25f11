//! Cleaning: of data blocks for the host's sake, of map blocks for that of translation pages.
//!
//! Map blocks are no more than a limit, so that neither kind takes the other's room, and cleaning one kind never calls for the
//! other. Invariant: a page is copied only while it counts, so that the copy's later stamp is right.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::{Dftl, NOWHERE, RESERVE_BLOCKS};
use crate::flash::Found;
use crate::flash::tag::{Kind, Tag};
use crate::page_map::victim::{BlockView, Cleaning};
use crate::{Error, Result};

impl<N: Nand> Dftl<N> {
    /// Free blocks that a host's pages leave to cleaning and to translation pages.
    pub(super) fn reserve(&self) -> u32 {
        RESERVE_BLOCKS + self.map_limit.saturating_sub(self.map_blocks.len() as u32)
    }

    /// Cleans data blocks until one can be taken for a request.
    pub(super) fn make_room(&mut self) -> Result<()> {
        if self.data_head.room(self.flash.pages_per_block()) > 0 {
            return Ok(());
        }
        while self.pages.pool.free() <= self.reserve() {
            if !self.clean_one()? {
                return Err(Error::WornOut);
            }
        }
        self.catch_up()
    }

    /// Writes the translation pages of entries that changed long ago: an opening reads every page programmed since.
    fn catch_up(&mut self) -> Result<()> {
        let lag = 2 * self.cache.capacity() as u64 + 8 * u64::from(self.flash.pages_per_block());
        while let Some((stamp, sector)) = self.cache.oldest_dirty(&(0..0)) {
            if stamp + lag >= self.flash.next_stamp() {
                break;
            }
            self.write_fragment(sector / self.shape.entries)?;
        }
        Ok(())
    }

    /// Makes sure that a translation page can be programmed with no more map blocks than there may be.
    pub(super) fn make_map_room(&mut self) -> Result<()> {
        loop {
            let (blocks, limit) = (self.map_blocks.len() as u32, self.map_limit);
            let has_room = self.map_head.room(self.flash.pages_per_block()) > 0;
            if has_room && blocks <= limit || blocks < limit {
                return Ok(());
            }
            let Some(victim) = self.victim(|device, block| device.map_blocks.contains(&block)) else { return Ok(()) };
            self.flash.counts_mut().merges += 1;
            self.empty_block(victim)?;
            self.map_blocks.remove(&victim);
            self.pages.pool.release(victim);
        }
    }

    /// Cleans the data block with the fewest pages that count. Whether there was one.
    pub(super) fn clean_one(&mut self) -> Result<bool> {
        let Some(victim) = self.victim(|device, block| !device.map_blocks.contains(&block)) else { return Ok(false) };
        self.flash.counts_mut().merges += 1;
        self.empty_block(victim)?;
        self.pages.pool.release(victim);
        self.give_up_failing()?;
        self.shrink()?;
        Ok(true)
    }

    fn victim(&self, is_its_kind: impl Fn(&Self, u32) -> bool) -> Option<u32> {
        let closed = self.pages.closed().filter(|(number, _)| is_its_kind(self, *number));
        let views = closed.map(|(block, its)| BlockView { block, valid: u32::from(its.valid), age: 0 });
        Cleaning::Greedy.choose(views, self.flash.pages_per_block())
    }

    /// Writes anew whatever counts in blocks in which programs failed, and gives those up.
    pub(super) fn give_up_failing(&mut self) -> Result<()> {
        while let Some(block) = self.pages.next_failing() {
            self.empty_block(block)?;
            self.map_blocks.remove(&block);
            self.flash.mark_bad(block)?;
        }
        Ok(())
    }

    /// Writes anew whatever counts in a block.
    pub(super) fn empty_block(&mut self, block: u32) -> Result<()> {
        let counting = self.pages.counting_in(block);
        if self.map_blocks.contains(&block) {
            let fragments = (0..).zip(&self.directory).filter(|(_, packed)| counting.contains(packed));
            for fragment in fragments.map(|(fragment, _)| fragment).collect::<Vec<u32>>() {
                self.move_fragment(fragment)?;
            }
        } else {
            counting.into_iter().try_for_each(|packed| self.move_page(packed))?;
        }
        self.pages.emptied(block);
        Ok(())
    }

    /// Copies a page that counts to the data head.
    pub(super) fn move_page(&mut self, packed: u32) -> Result<()> {
        let found = self.flash.read(self.pages.place(packed), &mut [], Cause::Gc)?;
        let tag = found.tag().filter(|tag| tag.kind.is_payload() || tag.kind == Kind::Lost);
        let sector = match tag {
            Some(tag) => Some(tag.logical),
            None => self.sector_at(packed)?,
        };
        let Some(sector) = sector else { return Ok(()) };
        let tag = Tag { kind: Kind::Merged, ends: true, logical: sector, stamp: 0, extra: 0 };
        let to = if matches!(found, Found::Page(tag) if tag.kind.is_payload()) {
            self.append(|flash, at| flash.program_buffer(at, tag, Cause::Gc))?
        } else {
            let tag = Tag { kind: Kind::Lost, ..tag };
            self.append(|flash, at| flash.program_filled(at, tag, Cause::Gc, |_| {}))?
        };
        self.pages.counts_no_more(packed);
        self.cache.change(sector, to, self.flash.next_stamp() - 1, false);
        Ok(())
    }

    /// The sector that stands in a page which cannot be read.
    fn sector_at(&mut self, packed: u32) -> Result<Option<u32>> {
        if let Some((sector, _)) = self.cache.all().find(|&(_, other)| other == packed) {
            return Ok(Some(sector));
        }
        for fragment in 0..self.shape.fragments() {
            if self.directory.get(fragment as usize).is_none_or(|&at| at == NOWHERE) {
                continue;
            }
            self.load(fragment)?;
            let mut sectors = self.shape.sectors_of(fragment);
            let found = sectors.find(|&sector| self.shape.entry(&self.page, sector) == packed);
            if found.is_some_and(|sector| !self.cache.is_dirty(sector)) {
                return Ok(found);
            }
        }
        Ok(None)
    }
}
