//! Page-level remapping: every sector may stand in any page, and the map of all sectors is in memory (paper §II, §IV).
//!
//! Writes fill one open block; when free blocks run out, a block is cleaned by writing anew what still counts in it. A
//! start-up reads the tag of every page. Invariant: of a sector's pages the one with the latest stamp counts; a block is
//! erased only when no page of it does.

mod clean;
mod counting;
mod recover;
mod trims;
pub mod victim;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::device::{Layer, Span};
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::pool::Pool;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found, Outcome, Place};
use crate::look::BlockUse;
use crate::settings::{Format, Options};
use crate::{BlockDevice, Error, Result, Scheme};
use counting::Counting;
use victim::Cleaning;

/// A sector that stands nowhere: it reads as zeros.
const NOWHERE: u32 = u32::MAX;
/// Free blocks that only cleaning takes: one to copy to, and two for others that go bad in it.
const RESERVE_BLOCKS: u32 = 3;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Pages that count.
    valid: u16,
    /// It may be cleaned.
    is_closed: bool,
    /// Stamp of the last page programmed in it.
    written: u64,
}

/// The block that is being written.
#[derive(Clone, Copy, Debug)]
struct Open {
    block: u32,
    next: u32,
}

/// A block device that maps pages.
#[derive(Clone, Debug)]
pub struct PageMap<N> {
    flash: Flash<N>,
    cleaning: Cleaning,
    /// Where each sector stands, as a number of a page.
    map: Vec<u32>,
    blocks: Vec<Block>,
    counting: Counting,
    pool: Pool,
    open: Option<Open>,
    /// Pages that list sectors given up, and how many sectors stand there still.
    trims: BTreeMap<u32, u32>,
    /// Blocks in which a program failed, with pages that count still in them.
    failing: Vec<u32>,
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
        let record = Record { volume: format.volume, scheme: scheme.code(), data_blocks, logs: 0, ring: Vec::new() };
        Anchors::format(&mut flash)?.write(&mut flash, &record)?;
        let mut device = Self::empty(flash, cleaning(scheme)?, data_blocks);
        let free = (ANCHOR_BLOCKS..device.flash.blocks()).filter(|&block| !device.flash.is_bad(block));
        free.for_each(|block| device.pool.release(block));
        Ok(device)
    }

    fn empty(flash: Flash<N>, cleaning: Cleaning, data_blocks: u32) -> Self {
        let sectors = data_blocks as usize * flash.pages_per_block() as usize;
        let blocks = alloc::vec![Block::default(); flash.blocks() as usize];
        let pages = flash.blocks() as usize * flash.pages_per_block() as usize;
        Self {
            flash,
            cleaning,
            map: alloc::vec![NOWHERE; sectors],
            blocks,
            counting: Counting::new(pages),
            pool: Pool::default(),
            open: None,
            trims: BTreeMap::new(),
            failing: Vec::new(),
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
            + self.blocks.capacity() * size_of::<Block>()
            + self.counting.ram_bytes()
            + self.pool.ram_bytes()
            + self.trims.len() * 2 * size_of::<u32>()
    }

    fn pack(&self, at: Place) -> u32 {
        at.block * self.flash.pages_per_block() + at.page
    }

    fn place(&self, packed: u32) -> Place {
        let (block, page) = self.flash.split(u64::from(packed));
        Place { block, page }
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
            self.counting.set(was, false);
            let block = self.place(was).block;
            if let Some(block) = self.blocks.get_mut(block as usize) {
                block.valid = block.valid.saturating_sub(1);
            }
        }
    }

    /// A page that counts was programmed.
    fn counts_now(&mut self, at: Place, stamp: u64) {
        self.counting.set(self.pack(at), true);
        if let Some(block) = self.blocks.get_mut(at.block as usize) {
            block.valid += 1;
            block.written = stamp;
        }
    }

    /// Programs the next page of the open block, `program` doing so, in another block if that fails. Where.
    fn append(&mut self, mut program: impl FnMut(&mut Flash<N>, Place) -> Result<Outcome>) -> Result<Place> {
        loop {
            let open = match self.open.filter(|open| open.next < self.flash.pages_per_block()) {
                Some(open) => open,
                None => {
                    self.close();
                    let block = self.pool.take(&mut self.flash, Cause::Gc)?;
                    self.pool.commit(block);
                    Open { block, next: 0 }
                }
            };
            self.open = Some(Open { next: open.next + 1, ..open });
            let at = Place { block: open.block, page: open.next };
            if program(&mut self.flash, at)? == Outcome::Done {
                return Ok(at);
            }
            self.failing.push(open.block);
            self.open = None;
        }
    }

    fn close(&mut self) {
        if let Some(block) = self.open.take().and_then(|open| self.blocks.get_mut(open.block as usize)) {
            block.is_closed = true;
        }
    }

    fn write_sector(&mut self, sector: u64, data: &[u8]) -> Result<()> {
        self.make_room()?;
        let tag = Tag { kind: Kind::Data, ends: true, logical: sector as u32, stamp: 0, extra: 0 };
        let at = self.append(|flash, at| flash.program(at, tag, data, Cause::Host))?;
        self.counts_now(at, self.flash.next_stamp() - 1);
        self.remap(sector as u32, self.pack(at));
        self.give_up_failing()
    }

    /// Does one step of work ahead of need. Whether there was one to do.
    pub fn background(&mut self) -> Result<bool> {
        self.change(|device| {
            if device.pool.free() < RESERVE_BLOCKS + 2 && device.clean_one()? {
                return Ok(true);
            }
            device.pool.erase_ahead(&mut device.flash, Cause::Gc)
        })
    }

    /// Reads everything that counts; a line for whatever is not as it should be.
    pub fn check(&mut self) -> Result<Vec<String>> {
        let mut findings = self.used_twice()?;
        findings.extend(self.unreadable()?);
        let mut pages: Vec<u32> = self.map.iter().copied().filter(|&packed| packed != NOWHERE).collect();
        pages.sort_unstable();
        pages.dedup();
        for packed in 0..self.flash.blocks() * self.flash.pages_per_block() {
            if self.counting.has(packed) != pages.binary_search(&packed).is_ok() {
                findings.push(format!("page {packed}: memory is wrong on whether it counts"));
            }
        }
        let mut valid = alloc::vec![0; self.blocks.len()];
        for packed in pages {
            if let Some(count) = valid.get_mut(self.place(packed).block as usize) {
                *count += 1;
            }
        }
        for ((number, block), valid) in self.blocks.iter().enumerate().zip(valid) {
            if block.valid != valid {
                findings.push(format!("block {number}: {valid} of its pages count, not {}", block.valid));
            }
        }
        Ok(findings)
    }
}

impl<N: Nand> Layer<N> for PageMap<N> {
    fn flash(&self) -> &Flash<N> {
        &self.flash
    }

    fn flash_mut(&mut self) -> &mut Flash<N> {
        &mut self.flash
    }

    fn has_failed(&mut self) -> &mut bool {
        &mut self.has_failed
    }

    fn visit_uses(&mut self, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        self.pool.listed().for_each(|block| visit(block, BlockUse::Free));
        let open = self.open.map(|open| open.block);
        for (number, block) in (0..).zip(&self.blocks) {
            let valid = u32::from(block.valid);
            if open == Some(number) {
                visit(number, BlockUse::Open(valid));
            } else if valid > 0 || block.is_closed {
                visit(number, BlockUse::Pages(valid));
            }
        }
        Ok(())
    }

    fn read_sector(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        let packed = self.map.get(sector as usize).copied().unwrap_or(NOWHERE);
        if packed == NOWHERE || self.trims.contains_key(&packed) {
            data.fill(0);
            return Ok(());
        }
        match self.flash.read(self.place(packed), data, Cause::Host)? {
            Found::Page(tag) if tag.kind.is_payload() && u64::from(tag.logical) == sector => Ok(()),
            _ => Err(Error::Unreadable { sector }),
        }
    }
}

impl<N: Nand> BlockDevice for PageMap<N> {
    fn sector_bytes(&self) -> usize {
        self.flash.page_bytes()
    }

    fn sectors(&self) -> u64 {
        self.map.len() as u64
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        self.read_sectors(sector, data)
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<()> {
        let span = Span::of_bytes(self, sector, data.len())?;
        self.flash.counts_mut().host_writes += span.count;
        self.change(|device| {
            let sector_bytes = device.flash.page_bytes();
            (sector..)
                .zip(data.chunks_exact(sector_bytes))
                .try_for_each(|(sector, data)| device.write_sector(sector, data))
        })
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<()> {
        let span = Span::new(self, sector, count)?;
        self.flash.counts_mut().host_trims += span.count;
        self.change(|device| device.trim_span(span))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
