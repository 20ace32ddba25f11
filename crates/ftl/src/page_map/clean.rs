//! Cleaning: the pages of a block that count are written anew, and the block is free.
//!
//! Invariant: a page is copied only while it counts, so that the copy's later stamp is right.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::victim::BlockView;
use super::{PageMap, RESERVE_BLOCKS};
use crate::flash::Found;
use crate::flash::tag::{Kind, Tag};
use crate::{Error, Result};

impl<N: Nand> PageMap<N> {
    /// Cleans blocks until one can be taken for a request.
    pub(super) fn make_room(&mut self) -> Result<()> {
        if self.head.room(self.flash.pages_per_block()) > 0 {
            return Ok(());
        }
        while self.pages.pool.free() <= RESERVE_BLOCKS {
            if !self.clean_one()? {
                return Err(Error::WornOut);
            }
        }
        Ok(())
    }

    /// Cleans the block that is worth it most. Whether there was one.
    pub(super) fn clean_one(&mut self) -> Result<bool> {
        let now = self.flash.next_stamp();
        let views = self.pages.closed().map(|(number, its)| BlockView {
            block: number,
            valid: u32::from(its.valid),
            age: now.saturating_sub(self.written.get(number as usize).copied().unwrap_or(0)),
        });
        let Some(victim) = self.cleaning.choose(views, self.flash.pages_per_block()) else { return Ok(false) };
        self.flash.counts_mut().merges += 1;
        self.empty_block(victim)?;
        self.pages.pool.release(victim);
        self.give_up_failing()?;
        Ok(true)
    }

    /// Writes anew whatever counts in blocks in which programs failed, and gives those up.
    pub(super) fn give_up_failing(&mut self) -> Result<()> {
        while let Some(block) = self.pages.next_failing() {
            self.empty_block(block)?;
            self.flash.mark_bad(block)?;
        }
        Ok(())
    }

    /// Writes anew whatever counts in a block.
    fn empty_block(&mut self, block: u32) -> Result<()> {
        self.pages.counting_in(block).into_iter().try_for_each(|packed| self.move_page(packed))?;
        self.pages.emptied(block);
        Ok(())
    }

    fn move_page(&mut self, packed: u32) -> Result<()> {
        if self.trims.contains_key(&packed) {
            return self.move_trim(packed);
        }
        let found = self.flash.read(self.pages.place(packed), &mut [], Cause::Gc)?;
        let Some(sector) = found.tag().map(|tag| tag.logical).or_else(|| self.sector_at(packed)) else { return Ok(()) };
        if self.map.get(sector as usize) != Some(&packed) {
            return Ok(());
        }
        let tag = Tag { kind: Kind::Merged, ends: true, logical: sector, stamp: 0, extra: 0 };
        let is_readable = matches!(found, Found::Page(tag) if tag.kind.is_payload());
        let to = if is_readable {
            self.append(|flash, at| flash.program_buffer(at, tag, Cause::Gc))?
        } else {
            let tag = Tag { kind: Kind::Lost, ..tag };
            self.append(|flash, at| flash.program_filled(at, tag, Cause::Gc, |_| {}))?
        };
        self.remap(sector, to);
        Ok(())
    }

    /// The sector that stands in a page which cannot be read.
    fn sector_at(&self, packed: u32) -> Option<u32> {
        self.map.iter().position(|&other| other == packed).map(|sector| sector as u32)
    }

    /// Writes anew which sectors a page has given up, as far as they have not been written since.
    fn move_trim(&mut self, packed: u32) -> Result<()> {
        let sectors = self.map.iter().zip(0..).filter(|(other, _)| **other == packed).map(|(_, sector)| sector);
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for sector in sectors {
            match ranges.last_mut() {
                Some((first, count)) if *first + *count == sector => *count += 1,
                _ => ranges.push((sector, 1)),
            }
        }
        ranges.chunks(self.ranges_max()).try_for_each(|ranges| self.write_trim(ranges))
    }
}
