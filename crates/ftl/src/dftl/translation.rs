//! Translation pages: the page map on flash, a fragment of it a page.
//!
//! A page begins with a stamp: whatever was programmed before that stands in translation pages. Then come the entries, a page's
//! number each. Invariant: a translation page has every entry of its fragment that changed before it was programmed.

use alloc::vec::Vec;
use core::ops::Range;

use nand::{Cause, Nand};

use super::{Dftl, NOWHERE};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found};
use crate::{Error, Result};

/// Bytes of the stamp.
const HEAD_BYTES: usize = 8;

/// How entries lie in a page.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// 2 where that is enough for every page of the chip, else 4.
    entry_bytes: usize,
    /// Entries of a page.
    pub entries: u32,
    /// Sectors of the volume.
    pub sectors: u32,
}

impl Shape {
    /// For so many sectors on a chip of so many pages.
    pub fn new(page_bytes: usize, pages: u32, sectors: u32) -> Self {
        let entry_bytes = if pages <= u32::from(u16::MAX) { 2 } else { 4 };
        Self { entry_bytes, entries: (page_bytes.saturating_sub(HEAD_BYTES) / entry_bytes).max(1) as u32, sectors }
    }

    /// Translation pages of the volume.
    pub fn fragments(&self) -> u32 {
        self.sectors.div_ceil(self.entries)
    }

    /// The sectors of a fragment.
    pub fn sectors_of(&self, fragment: u32) -> Range<u32> {
        let first = fragment * self.entries;
        first..(first + self.entries).min(self.sectors)
    }

    /// The stamp at a page's beginning.
    pub fn head(page: &[u8]) -> u64 {
        page.first_chunk::<HEAD_BYTES>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn set_head(page: &mut [u8], stamp: u64) {
        if let Some(bytes) = page.first_chunk_mut::<HEAD_BYTES>() {
            *bytes = stamp.to_le_bytes();
        }
    }

    fn bytes_of(&self, sector: u32) -> Range<usize> {
        let at = HEAD_BYTES + (sector % self.entries) as usize * self.entry_bytes;
        at..at + self.entry_bytes
    }

    /// The entry of a sector in the page of its fragment.
    pub fn entry(&self, page: &[u8], sector: u32) -> u32 {
        match page.get(self.bytes_of(sector)) {
            Some(&[low, high]) if [low, high] == [0xff; 2] => NOWHERE,
            Some(bytes) => bytes.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte)),
            None => NOWHERE,
        }
    }

    fn set_entry(&self, page: &mut [u8], sector: u32, packed: u32) {
        if let Some(bytes) = page.get_mut(self.bytes_of(sector)) {
            bytes.iter_mut().zip(packed.to_le_bytes()).for_each(|(slot, byte)| *slot = byte);
        }
    }
}

impl Dftl {
    /// Where a sector stands. Entries up to `end` that are read with it are kept, and may put others out of the cache.
    pub(super) fn look_up(&mut self, flash: &mut Flash<impl Nand>, sector: u32, end: u32) -> Result<u32> {
        if let Some(packed) = self.cache.get(sector) {
            return Ok(packed);
        }
        let fragment = sector / self.shape.entries;
        self.load(flash, fragment)?;
        let packed = self.shape.entry(&self.page, sector);
        let kept = sector..end.min(self.shape.sectors_of(fragment).end).min(sector + self.cache.capacity() as u32 / 2);
        kept.for_each(|sector| self.cache.learn(sector, self.shape.entry(&self.page, sector)));
        self.shrink(flash)?;
        Ok(packed)
    }

    /// Where a sector to be read stands. Its entry is kept where that makes no translation page necessary: a read programs
    /// nothing.
    pub(super) fn look_up_for_read(&mut self, flash: &mut Flash<impl Nand>, sector: u32) -> Result<u32> {
        if let Some(packed) = self.cache.get(sector) {
            return Ok(packed);
        }
        self.load(flash, sector / self.shape.entries)?;
        let packed = self.shape.entry(&self.page, sector);
        if self.cache.is_full() {
            match self.cache.victim() {
                Some(victim) if !victim.is_dirty => self.cache.forget(victim.sector),
                _ => return Ok(packed),
            }
        }
        self.cache.learn(sector, packed);
        Ok(packed)
    }

    /// Puts entries out of the cache until it is as large as it may be.
    pub(super) fn shrink(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        while self.cache.is_over() {
            let Some(victim) = self.cache.victim() else { break };
            if victim.is_dirty {
                self.write_fragment(flash, victim.sector / self.shape.entries)?;
            }
            self.cache.forget(victim.sector);
        }
        Ok(())
    }

    /// Reads a fragment as its translation page has it.
    pub(super) fn load(&mut self, flash: &mut Flash<impl Nand>, fragment: u32) -> Result<()> {
        let Some(&packed) = self.directory.get(fragment as usize).filter(|&&packed| packed != NOWHERE) else {
            self.page.fill(0xff);
            return Ok(());
        };
        let found = flash.read(self.pages.place(packed), &mut self.page, Cause::Metadata)?;
        match found {
            Found::Page(tag) if tag.kind == Kind::Map && tag.logical == fragment => Ok(()),
            _ => self.rebuild(flash, fragment),
        }
    }

    /// Makes a fragment anew whose translation page is lost: each page that counts has its sector in its tag.
    fn rebuild(&mut self, flash: &mut Flash<impl Nand>, fragment: u32) -> Result<()> {
        self.page.fill(0xff);
        let sectors = self.shape.sectors_of(fragment);
        let blocks =
            self.pages.blocks().filter(|(number, block)| block.valid() > 0 && !self.map_blocks.contains(number));
        for block in blocks.map(|(number, _)| number).collect::<Vec<_>>() {
            for packed in self.pages.counting_in(block) {
                let found = flash.read(self.pages.place(packed), &mut [], Cause::Metadata)?;
                if let Some(tag) = found.tag().filter(|tag| sectors.contains(&tag.logical)) {
                    self.shape.set_entry(&mut self.page, tag.logical, packed);
                }
            }
        }
        Ok(())
    }

    /// Writes a fragment's translation page with all that changed in it.
    pub(super) fn write_fragment(&mut self, flash: &mut Flash<impl Nand>, fragment: u32) -> Result<()> {
        self.make_map_room(flash)?;
        flash.counts_mut().map_writes += 1;
        self.load(flash, fragment)?;
        self.put_fragment(flash, fragment)
    }

    /// Copies a fragment's translation page, with all that changed in it.
    pub(super) fn move_fragment(&mut self, flash: &mut Flash<impl Nand>, fragment: u32) -> Result<()> {
        flash.counts_mut().map_copies += 1;
        self.load(flash, fragment)?;
        self.put_fragment(flash, fragment)
    }

    /// Gives up the sectors of one fragment.
    pub(super) fn trim_fragment(
        &mut self,
        flash: &mut Flash<impl Nand>,
        fragment: u32,
        sectors: Range<u32>,
    ) -> Result<()> {
        self.make_map_room(flash)?;
        self.load(flash, fragment)?;
        self.apply_dirty(fragment);
        let entries = sectors.clone().map(|sector| self.shape.entry(&self.page, sector));
        let freed: Vec<u32> = entries.filter(|&packed| packed != NOWHERE).collect();
        if freed.is_empty() {
            return Ok(());
        }
        flash.counts_mut().map_writes += 1;
        // The entries are written as they will be, and then memory follows.
        sectors.clone().for_each(|sector| self.shape.set_entry(&mut self.page, sector, NOWHERE));
        self.program(flash, fragment)?;
        sectors.for_each(|sector| self.cache.forget(sector));
        freed.into_iter().for_each(|packed| self.pages.counts_no_more(packed));
        Ok(())
    }

    /// The buffer has what changed in its fragment.
    fn apply_dirty(&mut self, fragment: u32) {
        for (sector, packed) in self.cache.dirty_in(self.shape.sectors_of(fragment)) {
            self.shape.set_entry(&mut self.page, sector, packed);
        }
    }

    fn put_fragment(&mut self, flash: &mut Flash<impl Nand>, fragment: u32) -> Result<()> {
        self.apply_dirty(fragment);
        self.program(flash, fragment)
    }

    /// Programs the buffer as a fragment's translation page.
    fn program(&mut self, flash: &mut Flash<impl Nand>, fragment: u32) -> Result<()> {
        let sectors = self.shape.sectors_of(fragment);
        let all_before = self.cache.oldest_dirty(&sectors).map_or(flash.next_stamp(), |(stamp, _)| stamp);
        Shape::set_head(&mut self.page, all_before);
        let (tag, page) = (Tag::new(Kind::Map, fragment), &self.page);
        let program = |flash: &mut Flash<_>, at| flash.program(at, tag, page, Cause::Metadata);
        let packed = self.pages.append(flash, &mut self.map_head, program)?;
        self.map_blocks.insert(self.pages.place(packed).block);
        let slot = self.directory.get_mut(fragment as usize).ok_or(Error::Failed)?;
        let was = core::mem::replace(slot, packed);
        if was != NOWHERE {
            self.pages.counts_no_more(was);
        }
        self.cache.clean(sectors);
        Ok(())
    }
}
