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

use crate::Result;
use crate::block_use::BlockUse;
use crate::device::Span;
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::head::Head;
use crate::flash::pages::{NOWHERE, Pages};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{ChipSize, Flash, SectorPlace};
use crate::sector_map::{Demand, SchemeRow, SectorMap};
use crate::settings::{Format, Options};
use cache::MapCache;
use translation::Shape;

/// The scheme's row of the table.
pub const ROW: SchemeRow =
    SchemeRow { name: "dftl", letters: "DFTL", code: 7, is_atomic: false, logs_min: 0, limits_map_blocks: true, usual };

/// Free blocks that only cleaning takes: one to copy data to, one for translation pages, and two for others that go bad in it.
const RESERVE_BLOCKS: u32 = 4;
/// Extra blocks of a usual volume: as many as its translation pages fill, as many again, and so many.
const EXTRA_BESIDE_MAP: u32 = 16;
/// One entry of so many is in memory,
const CACHED_SHARE: u32 = 64;
/// and at least so many are.
const CACHED_MIN: u32 = 16;

/// Blocks that the translation pages of so many logical blocks fill.
fn blocks_of_map(size: ChipSize, data_blocks: u32) -> u32 {
    let ChipSize { blocks, pages_per_block, page_bytes } = size;
    let shape = Shape::new(page_bytes, blocks * pages_per_block, data_blocks * pages_per_block);
    shape.fragments().div_ceil(pages_per_block)
}

/// The usual format, with the extra blocks that translation pages take.
fn usual(size: ChipSize, format: Format) -> Format {
    let of_map = blocks_of_map(size, size.blocks);
    Format::with_extra(format.extra_blocks.max(EXTRA_BESIDE_MAP + 2 * of_map), format.volume)
}

/// Where sectors stand in pages, as far as memory has it, and where the translation pages are that have the rest.
#[derive(Clone, Debug)]
pub struct Dftl {
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
}

impl Dftl {
    /// Writes a sector of a request that goes on to `end`.
    fn write_sector(&mut self, flash: &mut Flash<impl Nand>, sector: u32, end: u32, data: &[u8]) -> Result<()> {
        self.make_room(flash)?;
        let was = self.look_up(flash, sector, end)?;
        let tag = Tag::new(Kind::Data, sector);
        let program = |flash: &mut Flash<_>, at| flash.program(at, tag, data, Cause::Host);
        let packed = self.pages.append(flash, &mut self.data_head, program)?;
        if was != NOWHERE {
            self.pages.counts_no_more(was);
        }
        self.cache.change(sector, packed, flash.next_stamp() - 1, true);
        self.shrink(flash)?;
        self.give_up_failing(flash)
    }
}

impl SectorMap for Dftl {
    const ROWS: &'static [SchemeRow] = &[ROW];

    fn demand(record: &Record, flash: &Flash<impl Nand>, format: &Format) -> Result<Demand> {
        // A quarter of the blocks that translation pages do not fill makes room for cleaning them.
        let needed = blocks_of_map(flash.size(), record.data_blocks);
        let left = format.extra_blocks.saturating_sub(ANCHOR_BLOCKS + needed);
        let map_blocks = needed + (left / 4).max(2);
        let extra_blocks = ANCHOR_BLOCKS + map_blocks + RESERVE_BLOCKS + 2;
        let refusal = "ten extra blocks are needed, and those that translation pages fill";
        Ok(Demand { extra_blocks, logs: map_blocks, refusal })
    }

    fn empty(flash: &Flash<impl Nand>, record: &Record, _options: Options) -> Result<Self> {
        let ChipSize { blocks, pages_per_block, page_bytes } = flash.size();
        let sectors = record.data_blocks * pages_per_block;
        let shape = Shape::new(page_bytes, blocks * pages_per_block, sectors);
        Ok(Self {
            shape,
            pages: Pages::new(flash),
            data_head: Head::default(),
            map_head: Head::default(),
            map_blocks: BTreeSet::new(),
            map_limit: record.logs,
            directory: alloc::vec![NOWHERE; shape.fragments() as usize],
            cache: MapCache::new((sectors / CACHED_SHARE).max(CACHED_MIN) as usize),
            page: alloc::vec![0; page_bytes],
        })
    }

    fn recover(&mut self, flash: &mut Flash<impl Nand>, _anchors: Anchors, _record: Record) -> Result<()> {
        self.read_settled(flash)
    }

    fn sectors(&self) -> u64 {
        u64::from(self.shape.sectors)
    }

    fn find(&mut self, flash: &mut Flash<impl Nand>, sector: u32) -> Result<SectorPlace> {
        let packed = self.look_up_for_read(flash, sector)?;
        Ok(self.pages.sector_place(packed))
    }

    fn write(&mut self, flash: &mut Flash<impl Nand>, span: Span, data: &[u8]) -> Result<()> {
        let (end, mut pages) = (span.sectors().end, span.pages(data, flash.page_bytes()));
        pages.try_for_each(|(sector, data)| self.write_sector(flash, sector, end, data))
    }

    /// Gives a span up, the part of each translation page at once.
    fn trim(&mut self, flash: &mut Flash<impl Nand>, span: Span) -> Result<()> {
        let mut rest = span.sectors();
        while !rest.is_empty() {
            let fragment = rest.start / self.shape.entries;
            let part = rest.start..rest.end.min(self.shape.sectors_of(fragment).end);
            rest.start = part.end;
            self.trim_fragment(flash, fragment, part)?;
            self.give_up_failing(flash)?;
        }
        Ok(())
    }

    fn step(&mut self, flash: &mut Flash<impl Nand>) -> Result<bool> {
        Ok(flash.pool.free() < self.reserve() + 2 && self.clean_one(flash)?)
    }

    fn differences(&mut self, flash: &mut Flash<impl Nand>) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        let mut pages: Vec<u32> = self.directory.clone();
        for fragment in 0..self.shape.fragments() {
            self.load(flash, fragment)?;
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

    fn visit_uses(&mut self, _flash: &mut Flash<impl Nand>, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        self.map_blocks.iter().for_each(|&block| visit(block, BlockUse::Map));
        self.pages.visit_uses(self.data_head.block(), |block| self.map_blocks.contains(&block), visit);
        Ok(())
    }

    fn ram_bytes(&self) -> usize {
        size_of::<Self>()
            + self.pages.ram_bytes()
            + self.directory.capacity() * size_of::<u32>()
            + self.cache.ram_bytes()
            + self.page.capacity()
    }
}
