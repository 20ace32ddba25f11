//! Replacement blocks (paper §II): a block map, and for a data block that is overwritten a chain of further blocks.
//!
//! A sector always stands at its own place of a block. Where that is programmed already, the write goes to the same place of
//! the next block of the chain. When free blocks run out, the longest chain is merged into one block. A start-up reads the
//! tag of every page, and writes no further in blocks that were being written. Invariant: of a sector's pages the one with
//! the latest stamp counts; a block is erased only when no page of it does.

mod merge;
mod recover;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::device::{Layer, Span};
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::pool::Pool;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Outcome, Place};
use crate::look::BlockUse;
use crate::settings::{Format, Options};
use crate::{Error, Result, Scheme};

/// A data block that has no block.
const NOWHERE: u32 = u32::MAX;
/// A sector that stands in no block of a chain.
const ABSENT: u8 = u8::MAX;
/// Blocks of a chain at most, for their places to fit a byte.
const LINKS_MAX: usize = 250;
/// Free blocks that only merges take: one to merge to, and two for others that go bad in it.
const RESERVE_BLOCKS: u32 = 3;

/// A data block and its replacement blocks.
#[derive(Clone, Debug)]
struct Chain {
    blocks: Vec<u32>,
    /// For each place of the data block, the block of the chain that has it last.
    latest: Vec<u8>,
}

impl Chain {
    /// The block that a sector stands in.
    fn holder(&self, offset: u32) -> Option<u32> {
        let at = self.latest.get(offset as usize).copied().filter(|&at| at != ABSENT)?;
        self.blocks.get(usize::from(at)).copied()
    }
}

/// A block device with replacement blocks.
#[derive(Clone, Debug)]
pub struct Replacement<N> {
    flash: Flash<N>,
    /// The block of each data block that has one alone.
    map: Vec<u32>,
    /// The chains of those that have several, or one with a page that is to be passed over.
    chains: BTreeMap<u32, Chain>,
    /// Of blocks that can be written on, the lowest place that can.
    next: BTreeMap<u32, u32>,
    pool: Pool,
    has_failed: bool,
}

impl<N: Nand> Replacement<N> {
    /// Makes a volume in which every sector reads as zeros.
    pub fn format(chip: N, format: &Format, options: Options) -> Result<Self> {
        let mut flash = Flash::new(chip, format.volume, options.payload)?;
        let bad = (ANCHOR_BLOCKS..flash.blocks()).filter(|&block| flash.is_bad(block)).count() as u32;
        let data_blocks = (flash.blocks() - bad).saturating_sub(format.extra_blocks);
        if format.extra_blocks < ANCHOR_BLOCKS + RESERVE_BLOCKS + 2 || data_blocks == 0 {
            return Err(Error::Unfit("seven extra blocks are needed"));
        }
        let scheme = Scheme::Replacement.code();
        let record = Record { volume: format.volume, scheme, data_blocks, logs: 0, ..Record::default() };
        Anchors::format(&mut flash)?.write(&mut flash, &record)?;
        let mut device = Self::empty(flash, data_blocks);
        let free = (ANCHOR_BLOCKS..device.flash.blocks()).filter(|&block| !device.flash.is_bad(block));
        free.for_each(|block| device.pool.release(block));
        Ok(device)
    }

    fn empty(flash: Flash<N>, data_blocks: u32) -> Self {
        let map = alloc::vec![NOWHERE; data_blocks as usize];
        let (chains, next) = (BTreeMap::new(), BTreeMap::new());
        Self { flash, map, chains, next, pool: Pool::default(), has_failed: false }
    }

    /// Gives the chip back.
    pub fn into_chip(self) -> N {
        self.flash.into_chip()
    }

    /// Bytes of memory the scheme takes, one page buffer and the chip left out.
    pub fn ram_bytes(&self) -> usize {
        let chain = |chain: &Chain| size_of::<(u32, Chain)>() + chain.blocks.capacity() * 4 + chain.latest.capacity();
        size_of::<Self>() - size_of::<Flash<N>>()
            + self.flash.ram_bytes()
            + self.map.capacity() * size_of::<u32>()
            + self.chains.values().map(chain).sum::<usize>()
            + self.next.len() * size_of::<(u32, u32)>()
            + self.pool.ram_bytes()
    }

    /// The block that has a sector's latest page; `None` where no block has any.
    fn holder(&self, sector: u64) -> Option<Place> {
        let (block, page) = self.flash.split(sector);
        let holder = match self.chains.get(&block) {
            Some(chain) => chain.holder(page),
            None => self.map.get(block as usize).copied().filter(|&block| block != NOWHERE),
        };
        holder.map(|block| Place { block, page })
    }

    /// The first block of a data block's chain whose place `offset` can be programmed, and where it stands in the chain.
    fn writable(&self, block: u32, offset: u32) -> Option<(usize, u32)> {
        let single = self.map.get(block as usize).copied().filter(|&block| block != NOWHERE);
        let blocks = self.chains.get(&block).map_or(single.as_slice(), |chain| chain.blocks.as_slice());
        let can = |(_, block): &(usize, &u32)| self.next.get(block).is_some_and(|&next| next <= offset);
        blocks.iter().enumerate().find(can).map(|(at, &block)| (at, block))
    }

    /// Writes a sector, or that it holds nothing.
    fn write_sector(&mut self, sector: u64, kind: Kind, data: &[u8]) -> Result<()> {
        let (owner, offset) = self.flash.split(sector);
        let tag = Tag { kind, ends: true, logical: sector as u32, stamp: 0, extra: 0 };
        let cause = if kind == Kind::Data { Cause::Host } else { Cause::Metadata };
        loop {
            let (at, block) = match self.writable(owner, offset) {
                Some(found) => found,
                None => self.lengthen(owner)?,
            };
            if self.flash.program(Place { block, page: offset }, tag, data, cause)? == Outcome::Done {
                self.wrote(owner, block, at, offset);
                return Ok(());
            }
            self.next.remove(&block);
            self.merge(owner, Some(block))?;
        }
    }

    fn wrote(&mut self, owner: u32, block: u32, at: usize, offset: u32) {
        self.next.insert(block, offset + 1);
        if offset + 1 == self.flash.pages_per_block() {
            self.next.remove(&block);
        }
        if let Some(slot) = self.chains.get_mut(&owner).and_then(|chain| chain.latest.get_mut(offset as usize)) {
            *slot = at as u8;
        }
    }

    /// Adds a block to the chain of a data block, after merges where none is to spare.
    fn lengthen(&mut self, owner: u32) -> Result<(usize, u32)> {
        while self.pool.free() <= RESERVE_BLOCKS
            || self.chains.get(&owner).is_some_and(|chain| chain.blocks.len() >= LINKS_MAX)
        {
            let full = self.chains.get(&owner).is_some_and(|chain| chain.blocks.len() >= LINKS_MAX);
            let longest = self.chains.iter().max_by_key(|(_, chain)| chain.blocks.len()).map(|(&owner, _)| owner);
            let victim = if full { Some(owner) } else { longest };
            self.merge(victim.ok_or(Error::WornOut)?, None)?;
        }
        let block = self.pool.take(&mut self.flash, Cause::Gc)?;
        self.pool.commit(block);
        self.next.insert(block, 0);
        let pages = self.flash.pages_per_block() as usize;
        if let Some(chain) = self.chains.get_mut(&owner) {
            chain.blocks.push(block);
            return Ok((chain.blocks.len() - 1, block));
        }
        let slot = self.map.get_mut(owner as usize).ok_or(Error::Failed)?;
        if *slot == NOWHERE {
            *slot = block;
            return Ok((0, block));
        }
        // Every place stands in the first block so far; a page that was never programmed there reads as zeros.
        let blocks = alloc::vec![*slot, block];
        self.chains.insert(owner, Chain { blocks, latest: alloc::vec![0; pages] });
        Ok((1, block))
    }

    /// Does one step of work ahead of need. Whether there was one to do.
    pub fn background(&mut self) -> Result<bool> {
        self.change(|device| {
            let longest = device.chains.iter().max_by_key(|(_, chain)| chain.blocks.len()).map(|(&owner, _)| owner);
            match longest.filter(|_| device.pool.free() < RESERVE_BLOCKS + 2) {
                Some(owner) => device.merge(owner, None).map(|()| true),
                None => device.pool.erase_ahead(&mut device.flash, Cause::Gc),
            }
        })
    }

    /// Reads everything that counts; a line for whatever is not as it should be.
    pub fn check(&mut self) -> Result<Vec<String>> {
        let mut findings = self.used_twice()?;
        findings.extend(self.unreadable()?);
        Ok(findings)
    }
}

impl<N: Nand> Layer for Replacement<N> {
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
        self.map.len() as u64 * u64::from(self.flash.pages_per_block())
    }

    fn write_sectors(&mut self, span: Span, data: &[u8]) -> Result<()> {
        let pages = data.chunks_exact(self.flash.page_bytes());
        (span.first..).zip(pages).try_for_each(|(sector, data)| self.write_sector(sector, Kind::Data, data))
    }

    fn trim_sectors(&mut self, span: Span) -> Result<()> {
        let zeros = alloc::vec![0; self.flash.page_bytes()];
        (span.first..span.first + span.count).try_for_each(|sector| match self.holder(sector) {
            None => Ok(()),
            Some(_) => self.write_sector(sector, Kind::Hole, &zeros),
        })
    }

    fn visit_uses(&mut self, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        self.pool.listed().for_each(|block| visit(block, BlockUse::Free));
        for (owner, &block) in (0..).zip(&self.map) {
            let chain = self.chains.get(&owner).map_or(core::slice::from_ref(&block), |chain| &chain.blocks);
            let mut blocks = chain.iter().filter(|&&block| block != NOWHERE);
            blocks.next().into_iter().for_each(|&block| visit(block, BlockUse::Data(owner)));
            blocks.for_each(|&block| visit(block, BlockUse::Replacement(owner)));
        }
        Ok(())
    }

    fn read_sector(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        let Some(at) = self.holder(sector) else {
            data.fill(0);
            return Ok(());
        };
        self.read_at(at, sector, data)
    }
}
