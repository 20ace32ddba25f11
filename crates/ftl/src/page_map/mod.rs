//! Page-level remapping: every sector may stand in any page, and the map of all sectors is in memory (paper §II, §IV).
//!
//! Writes fill one open block; when free blocks run out, a block is cleaned by writing anew what still counts in it. A
//! start-up reads the tag of every page. Invariant: of a sector's pages the one with the latest stamp counts; a block is
//! erased only when no page of it does.

mod clean;
mod recover;
mod trims;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::Result;
use crate::block_use::BlockUse;
use crate::device::Span;
use crate::flash::anchor::{Anchors, Record};
use crate::flash::cleaning::Cleaning;
use crate::flash::head::Head;
use crate::flash::pages::{NOWHERE, Pages};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Outcome, Place, SectorPlace};
use crate::sector_map::{RESERVE_BLOCKS, SchemeRow, SectorMap};
use crate::settings::Options;

/// The row of the scheme that cleans the block with the fewest pages that count.
pub const GREEDY: SchemeRow = SchemeRow {
    name: "page-greedy",
    letters: "P/G",
    code: 3,
    is_atomic: false,
    logs_min: 0,
    limits_map_blocks: false,
    usual: |_, format| format,
};

/// The row of the scheme that cleans blocks by cost and benefit.
pub const COST_BENEFIT: SchemeRow = SchemeRow { name: "page-cost-benefit", letters: "P/C", code: 4, ..GREEDY };

/// Where sectors stand in pages.
#[derive(Clone, Debug)]
pub struct PageMap {
    cleaning: Cleaning,
    /// Where each sector stands, as a number of a page.
    map: Vec<u32>,
    pages: Pages,
    /// Stamp of the last page programmed in each block.
    written: Vec<u64>,
    head: Head,
    /// Pages that list sectors given up, and how many sectors stand there still.
    trims: BTreeMap<u32, u32>,
}

impl PageMap {
    /// A sector stands in another page now.
    fn remap(&mut self, sector: u32, packed: u32) {
        let Some(slot) = self.map.get_mut(sector as usize) else { return };
        let was = core::mem::replace(slot, packed);
        if was == NOWHERE || was == packed {
            return;
        }
        let counts_no_more = match self.trims.get_mut(&was) {
            None => true,
            Some(left) => {
                *left -= 1;
                *left == 0
            }
        };
        if counts_no_more {
            self.trims.remove(&was);
            self.pages.counts_no_more(was);
        }
    }

    /// Programs the head's next page, `program` doing so: it counts. The page's number.
    fn append<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        program: impl FnMut(&mut Flash<N>, Place) -> Result<Outcome>,
    ) -> Result<u32> {
        let packed = self.pages.append(flash, &mut self.head, program)?;
        self.written_at(packed, flash.next_stamp() - 1);
        Ok(packed)
    }

    /// A page was programmed with that stamp.
    fn written_at(&mut self, packed: u32, stamp: u64) {
        let block = self.pages.place(packed).block;
        if let Some(written) = self.written.get_mut(block as usize) {
            *written = stamp.max(*written);
        }
    }

    fn write_sector(&mut self, flash: &mut Flash<impl Nand>, sector: u32, data: &[u8]) -> Result<()> {
        self.make_room(flash)?;
        let tag = Tag::new(Kind::Data, sector);
        let packed = self.append(flash, |flash, at| flash.program(at, tag, data, Cause::Host))?;
        self.remap(sector, packed);
        self.give_up_failing(flash)
    }
}

impl SectorMap for PageMap {
    const ROWS: &'static [SchemeRow] = &[GREEDY, COST_BENEFIT];

    fn empty(flash: &Flash<impl Nand>, record: &Record, _options: Options) -> Result<Self> {
        let sectors = record.data_blocks as usize * flash.pages_per_block() as usize;
        let is_greedy = record.scheme == GREEDY.code;
        Ok(Self {
            cleaning: if is_greedy { Cleaning::Greedy } else { Cleaning::CostBenefit },
            map: alloc::vec![NOWHERE; sectors],
            pages: Pages::new(flash),
            written: alloc::vec![0; flash.blocks() as usize],
            head: Head::default(),
            trims: BTreeMap::new(),
        })
    }

    fn recover(&mut self, flash: &mut Flash<impl Nand>, _anchors: Anchors, _record: Record) -> Result<()> {
        self.read_settled(flash)
    }

    fn sectors(&self) -> u64 {
        self.map.len() as u64
    }

    fn find(&mut self, _flash: &mut Flash<impl Nand>, sector: u32) -> Result<SectorPlace> {
        let packed = self.map.get(sector as usize).copied().unwrap_or(NOWHERE);
        let is_trimmed = self.trims.contains_key(&packed);
        Ok(if is_trimmed { SectorPlace::Nowhere } else { self.pages.sector_place(packed) })
    }

    fn write(&mut self, flash: &mut Flash<impl Nand>, span: Span, data: &[u8]) -> Result<()> {
        let mut pages = span.pages(data, flash.page_bytes());
        pages.try_for_each(|(sector, data)| self.write_sector(flash, sector, data))
    }

    fn trim(&mut self, flash: &mut Flash<impl Nand>, span: Span) -> Result<()> {
        self.trim_span(flash, span)
    }

    fn step(&mut self, flash: &mut Flash<impl Nand>) -> Result<bool> {
        Ok(flash.pool.free() < RESERVE_BLOCKS + 2 && self.clean_one(flash)?)
    }

    fn differences(&mut self, _flash: &mut Flash<impl Nand>) -> Result<Vec<String>> {
        let mut pages: Vec<u32> = self.map.iter().copied().filter(|&packed| packed != NOWHERE).collect();
        pages.sort_unstable();
        pages.dedup();
        Ok(self.pages.differences(&pages))
    }

    fn visit_uses(&mut self, _flash: &mut Flash<impl Nand>, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        self.pages.visit_uses(self.head.block(), |_| false, visit);
        Ok(())
    }

    fn ram_bytes(&self) -> usize {
        size_of::<Self>()
            + self.map.capacity() * size_of::<u32>()
            + self.pages.ram_bytes()
            + self.written.capacity() * size_of::<u64>()
            + self.trims.len() * 2 * size_of::<u32>()
    }
}
