//! DFTL: every page mapped, the map on flash, and the part of it that is used in memory (Gupta et al. 2009).
//!
//! Sectors fill one block after another, translation pages another sort of blocks. A write changes an entry in memory; its
//! translation page is written when the entry is put out, with all that changed in it. Invariant: a sector stands in its
//! latest page, unless the translation page of its fragment is newer than that: then where this page says.

mod cache;
mod clean;
mod recover;
#[cfg(test)]
mod tests;
mod translation;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::device::{Layer, Span, visit_pages};
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::pages::{Head, Pages};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found, Outcome, Place};
use crate::look::BlockUse;
use crate::settings::{Format, Options};
use crate::{Error, Result, Scheme};
use cache::MapCache;
use translation::Shape;

/// A sector that stands nowhere: it reads as zeros.
const NOWHERE: u32 = u32::MAX;
/// Free blocks that only cleaning takes: one to copy data to, one for translation pages, and two for others that go bad in it.
const RESERVE_BLOCKS: u32 = 4;
/// One entry of so many is in memory,
const CACHED_SHARE: u32 = 64;
/// and at least so many are.
const CACHED_MIN: u32 = 16;

/// Blocks that the translation pages of so many logical blocks fill, on a chip of so many blocks.
pub(crate) fn blocks_of_map(page_bytes: usize, pages_per_block: u32, blocks: u32, data_blocks: u32) -> u32 {
    let shape = Shape::new(page_bytes, blocks * pages_per_block, data_blocks * pages_per_block);
    shape.fragments().div_ceil(pages_per_block)
}

/// A block device that maps pages, and keeps the map on flash.
#[derive(Clone, Debug)]
pub struct Dftl<N> {
    flash: Flash<N>,
    shape: Shape,
    pages: Pages,
    data_head: Head,
    map_head: Head,
    /// Blocks with translation pages, that of the head included.
    map_blocks: BTreeSet<u32>,
    /// So many of them at most.
    map_limit: u32,
    /// Where the translation page of each fragment stands.
    directory: Vec<u32>,
    cache: MapCache,
    /// The fragment at hand, as a page of its entries.
    page: Vec<u8>,
    has_failed: bool,
}

impl<N: Nand> Dftl<N> {
    /// Makes a volume in which every sector reads as zeros.
    pub fn format(chip: N, format: &Format, options: Options) -> Result<Self> {
        let mut flash = Flash::new(chip, format.volume, options.payload)?;
        let bad = (ANCHOR_BLOCKS..flash.blocks()).filter(|&block| flash.is_bad(block)).count() as u32;
        let data_blocks = (flash.blocks() - bad).saturating_sub(format.extra_blocks);
        // A quarter of the blocks that translation pages do not fill makes room for cleaning them.
        let needed = blocks_of_map(flash.page_bytes(), flash.pages_per_block(), flash.blocks(), data_blocks);
        let left = format.extra_blocks.saturating_sub(ANCHOR_BLOCKS + needed);
        let map_blocks = needed + (left / 4).max(2);
        if format.extra_blocks < ANCHOR_BLOCKS + map_blocks + RESERVE_BLOCKS + 2 || data_blocks == 0 {
            return Err(Error::Unfit("ten extra blocks are needed, and those that translation pages fill"));
        }
        let (volume, scheme) = (format.volume, Scheme::Dftl.code());
        let record = Record { volume, scheme, data_blocks, logs: map_blocks, ..Record::default() };
        Anchors::format(&mut flash)?.write(&mut flash, &record)?;
        let mut device = Self::empty(flash, &record);
        device.pages.adopt(&device.flash);
        Ok(device)
    }

    fn empty(flash: Flash<N>, record: &Record) -> Self {
        let sectors = record.data_blocks * flash.pages_per_block();
        let chip_pages = flash.blocks() * flash.pages_per_block();
        let (shape, pages) = (Shape::new(flash.page_bytes(), chip_pages, sectors), Pages::new(&flash));
        let page = alloc::vec![0; flash.page_bytes()];
        Self {
            flash,
            shape,
            pages,
            data_head: Head::default(),
            map_head: Head::default(),
            map_blocks: BTreeSet::new(),
            map_limit: record.logs,
            directory: alloc::vec![NOWHERE; shape.fragments() as usize],
            cache: MapCache::new((sectors / CACHED_SHARE).max(CACHED_MIN) as usize),
            page,
            has_failed: false,
        }
    }

    /// Gives the chip back.
    pub fn into_chip(self) -> N {
        self.flash.into_chip()
    }

    /// Bytes of memory the scheme takes, one page buffer and the chip left out.
    pub fn ram_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<Flash<N>>()
            + self.flash.ram_bytes()
            + self.pages.ram_bytes()
            + self.directory.capacity() * size_of::<u32>()
            + self.cache.ram_bytes()
            + self.page.capacity()
    }

    /// Programs the data head's next page, `program` doing so: it counts. The page's number.
    fn append(&mut self, program: impl FnMut(&mut Flash<N>, Place) -> Result<Outcome>) -> Result<u32> {
        let packed = self.pages.append(&mut self.flash, &mut self.data_head, program)?;
        self.pages.counts_now(packed);
        Ok(packed)
    }

    /// Writes a sector of a request that goes on to `end`.
    fn write_sector(&mut self, sector: u32, end: u32, data: &[u8]) -> Result<()> {
        self.make_room()?;
        let was = self.look_up(sector, end)?;
        let tag = Tag { kind: Kind::Data, ends: true, logical: sector, stamp: 0, extra: 0 };
        let packed = self.append(|flash, at| flash.program(at, tag, data, Cause::Host))?;
        if was != NOWHERE {
            self.pages.counts_no_more(was);
        }
        self.cache.change(sector, packed, self.flash.next_stamp() - 1, true);
        self.shrink()?;
        self.give_up_failing()
    }

    /// Gives a span up, the part of each translation page at once.
    fn trim_span(&mut self, span: Span) -> Result<()> {
        let (mut sector, end) = (span.first as u32, (span.first + span.count) as u32);
        while sector < end {
            let fragment = sector / self.shape.entries;
            let part = sector..end.min(self.shape.sectors_of(fragment).end);
            sector = part.end;
            self.trim_fragment(fragment, part)?;
            self.give_up_failing()?;
        }
        Ok(())
    }

    /// Does one step of work ahead of need. Whether there was one to do.
    pub fn background(&mut self) -> Result<bool> {
        self.change(|device| {
            if device.pages.pool.free() < device.reserve() + 2 && device.clean_one()? {
                return Ok(true);
            }
            device.pages.pool.erase_ahead(&mut device.flash, Cause::Gc)
        })
    }

    /// Reads everything that counts; a line for whatever is not as it should be.
    pub fn check(&mut self) -> Result<Vec<String>> {
        let mut findings = self.used_twice()?;
        findings.extend(self.unreadable()?);
        let mut pages: Vec<u32> = self.directory.clone();
        for fragment in 0..self.shape.fragments() {
            self.load(fragment)?;
            for sector in self.shape.sectors_of(fragment) {
                let entry = self.shape.entry(&self.page, sector);
                let packed = self.cache.get(sector).unwrap_or(entry);
                pages.push(packed);
                if packed != entry && !self.cache.is_dirty(sector) {
                    findings.push(format!("sector {sector}: its translation page says another place than memory"));
                }
            }
        }
        pages.retain(|&packed| packed != NOWHERE);
        pages.sort_unstable();
        if pages.windows(2).any(|two| matches!(two, [one, other] if one == other)) {
            findings.push("two sectors stand in one page".into());
        }
        findings.extend(self.pages.differences(&pages));
        Ok(findings)
    }
}

impl<N: Nand> Layer for Dftl<N> {
    type Chip = N;

    fn flash(&self) -> &Flash<N> {
        &self.flash
    }

    fn flash_mut(&mut self) -> &mut Flash<N> {
        &mut self.flash
    }

    fn has_failed(&mut self) -> &mut bool {
        &mut self.has_failed
    }

    fn all_sectors(&self) -> u64 {
        u64::from(self.shape.sectors)
    }

    fn write_sectors(&mut self, span: Span, data: &[u8]) -> Result<()> {
        let (first, end) = (span.first as u32, (span.first + span.count) as u32);
        let pages = data.chunks_exact(self.flash.page_bytes());
        (first..).zip(pages).try_for_each(|(sector, data)| self.write_sector(sector, end, data))
    }

    fn trim_sectors(&mut self, span: Span) -> Result<()> {
        self.trim_span(span)
    }

    fn visit_uses(&mut self, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        self.map_blocks.iter().for_each(|&block| visit(block, BlockUse::Map));
        visit_pages(&self.pages, &self.data_head, |block| self.map_blocks.contains(&block), visit);
        Ok(())
    }

    fn read_sector(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        let packed = self.look_up_for_read(sector as u32)?;
        if packed == NOWHERE {
            data.fill(0);
            return Ok(());
        }
        match self.flash.read(self.pages.place(packed), data, Cause::Host)? {
            Found::Page(tag) if tag.kind.is_payload() && u64::from(tag.logical) == sector => Ok(()),
            _ => Err(Error::Unreadable { sector }),
        }
    }
}
