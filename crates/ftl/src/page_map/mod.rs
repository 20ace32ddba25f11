//! Page-level remapping: every sector may stand in any page, and the map of all sectors is in memory (paper §II, §IV).
//!
//! Writes fill one open block; when free blocks run out, a block is cleaned by writing anew what still counts in it. A
//! start-up reads the tag of every page. Invariant: of a sector's pages the one with the latest stamp counts; a block is
//! erased only when no page of it does.

mod clean;
mod recover;
mod trims;
pub mod victim;

use alloc::collections::BTreeMap;
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
use victim::Cleaning;

/// A sector that stands nowhere: it reads as zeros.
const NOWHERE: u32 = u32::MAX;
/// Free blocks that only cleaning takes: one to copy to, and two for others that go bad in it.
const RESERVE_BLOCKS: u32 = 3;

/// A block device that maps pages.
#[derive(Clone, Debug)]
pub struct PageMap<N> {
    flash: Flash<N>,
    cleaning: Cleaning,
    /// Where each sector stands, as a number of a page.
    map: Vec<u32>,
    pages: Pages,
    /// Stamp of the last page programmed in each block.
    written: Vec<u64>,
    head: Head,
    /// Pages that list sectors given up, and how many sectors stand there still.
    trims: BTreeMap<u32, u32>,
    has_failed: bool,
}

/// The way in which a scheme of this kind cleans.
fn cleaning(scheme: Scheme) -> Result<Cleaning> {
    match scheme {
        Scheme::PageGreedy => Ok(Cleaning::Greedy),
        Scheme::PageCostBenefit => Ok(Cleaning::CostBenefit),
        _ => Err(Error::NoVolume("it is of another scheme")),
    }
}

impl<N: Nand> PageMap<N> {
    /// Makes a volume in which every sector reads as zeros.
    pub fn format(chip: N, scheme: Scheme, format: &Format, options: Options) -> Result<Self> {
        let mut flash = Flash::new(chip, format.volume, options.payload)?;
        let bad = (ANCHOR_BLOCKS..flash.blocks()).filter(|&block| flash.is_bad(block)).count() as u32;
        let data_blocks = (flash.blocks() - bad).saturating_sub(format.extra_blocks);
        if format.extra_blocks < ANCHOR_BLOCKS + RESERVE_BLOCKS + 2 || data_blocks == 0 {
            return Err(Error::Unfit("seven extra blocks are needed"));
        }
        let record = Record { volume: format.volume, scheme: scheme.code(), data_blocks, logs: 0, ..Record::default() };
        Anchors::format(&mut flash)?.write(&mut flash, &record)?;
        let mut device = Self::empty(flash, cleaning(scheme)?, data_blocks);
        let free = (ANCHOR_BLOCKS..device.flash.blocks()).filter(|&block| !device.flash.is_bad(block));
        free.for_each(|block| device.pages.pool.release(block));
        Ok(device)
    }

    fn empty(flash: Flash<N>, cleaning: Cleaning, data_blocks: u32) -> Self {
        let sectors = data_blocks as usize * flash.pages_per_block() as usize;
        let (pages, written) = (Pages::new(&flash), alloc::vec![0; flash.blocks() as usize]);
        Self {
            flash,
            cleaning,
            map: alloc::vec![NOWHERE; sectors],
            pages,
            written,
            head: Head::default(),
            trims: BTreeMap::new(),
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
            + self.map.capacity() * size_of::<u32>()
            + self.pages.ram_bytes()
            + self.written.capacity() * size_of::<u64>()
            + self.trims.len() * 2 * size_of::<u32>()
    }

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
    fn append(&mut self, program: impl FnMut(&mut Flash<N>, Place) -> Result<Outcome>) -> Result<u32> {
        let packed = self.pages.append(&mut self.flash, &mut self.head, program)?;
        self.pages.counts_now(packed);
        self.written_at(packed, self.flash.next_stamp() - 1);
        Ok(packed)
    }

    /// A page was programmed with that stamp.
    fn written_at(&mut self, packed: u32, stamp: u64) {
        let block = self.pages.place(packed).block;
        if let Some(written) = self.written.get_mut(block as usize) {
            *written = stamp.max(*written);
        }
    }

    fn write_sector(&mut self, sector: u64, data: &[u8]) -> Result<()> {
        self.make_room()?;
        let tag = Tag { kind: Kind::Data, ends: true, logical: sector as u32, stamp: 0, extra: 0 };
        let packed = self.append(|flash, at| flash.program(at, tag, data, Cause::Host))?;
        self.remap(sector as u32, packed);
        self.give_up_failing()
    }

    /// Does one step of work ahead of need. Whether there was one to do.
    pub fn background(&mut self) -> Result<bool> {
        self.change(|device| {
            if device.pages.pool.free() < RESERVE_BLOCKS + 2 && device.clean_one()? {
                return Ok(true);
            }
            device.pages.pool.erase_ahead(&mut device.flash, Cause::Gc)
        })
    }

    /// Reads everything that counts; a line for whatever is not as it should be.
    pub fn check(&mut self) -> Result<Vec<String>> {
        let mut findings = self.used_twice()?;
        findings.extend(self.unreadable()?);
        let mut pages: Vec<u32> = self.map.iter().copied().filter(|&packed| packed != NOWHERE).collect();
        pages.sort_unstable();
        pages.dedup();
        findings.extend(self.pages.differences(&pages));
        Ok(findings)
    }
}

impl<N: Nand> Layer for PageMap<N> {
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
        self.map.len() as u64
    }

    fn write_sectors(&mut self, span: Span, data: &[u8]) -> Result<()> {
        let pages = data.chunks_exact(self.flash.page_bytes());
        (span.first..).zip(pages).try_for_each(|(sector, data)| self.write_sector(sector, data))
    }

    fn trim_sectors(&mut self, span: Span) -> Result<()> {
        self.trim_span(span)
    }

    fn visit_uses(&mut self, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        visit_pages(&self.pages, &self.head, |_| false, visit);
        Ok(())
    }

    fn read_sector(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        let packed = self.map.get(sector as usize).copied().unwrap_or(NOWHERE);
        if packed == NOWHERE || self.trims.contains_key(&packed) {
            data.fill(0);
            return Ok(());
        }
        match self.flash.read(self.pages.place(packed), data, Cause::Host)? {
            Found::Page(tag) if tag.kind.is_payload() && u64::from(tag.logical) == sector => Ok(()),
            _ => Err(Error::Unreadable { sector }),
        }
    }
}
