//! Replacement blocks (paper §II): a block map, and for a data block that is overwritten a chain of further blocks.
//!
//! A sector always stands at its own place of a block. Where that is programmed already, the write goes to the same place of
//! the next block of the chain. When free blocks run out, the longest chain is merged into one block. A start-up reads the
//! tag of every page, and writes no further in blocks that were being written. Invariant: of a sector's pages the one with
//! the latest stamp counts; a block is erased only when no page of it does.

mod merge;
mod recover;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::block_use::BlockUse;
use crate::device::Span;
use crate::flash::anchor::{Anchors, Record};
use crate::flash::block_map::BlockMap;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Outcome, Place, SectorPlace};
use crate::sector_map::{RESERVE_BLOCKS, SchemeRow, SectorMap};
use crate::settings::Options;
use crate::{Error, Result};

/// The scheme's row of the table.
pub const ROW: SchemeRow = SchemeRow {
    name: "replacement",
    letters: "R",
    code: 5,
    is_atomic: false,
    logs_min: 0,
    limits_map_blocks: false,
    usual: |_, format| format,
};

/// A sector that stands in no block of a chain.
const ABSENT: u8 = u8::MAX;
/// Blocks of a chain at most, for their places to fit a byte.
const LINKS_MAX: usize = 250;

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

/// Where sectors stand in data blocks and their replacement blocks.
#[derive(Clone, Debug)]
pub struct Replacement {
    pages_per_block: u32,
    /// The block of each data block that has one alone.
    map: BlockMap,
    /// The chains of those that have several, or one with a page that is to be passed over.
    chains: BTreeMap<u32, Chain>,
    /// Of blocks that can be written on, the lowest place that can.
    next: BTreeMap<u32, u32>,
}

impl Replacement {
    /// The block that has a sector's latest page; `None` where no block has any.
    fn holder(&self, flash: &Flash<impl Nand>, sector: u32) -> Option<Place> {
        let (owner, page) = flash.split(u64::from(sector));
        let holder = match self.chains.get(&owner) {
            Some(chain) => chain.holder(page),
            None => self.map.get(owner),
        };
        holder.map(|block| Place { block, page })
    }

    /// The first block of a data block's chain whose place `offset` can be programmed, and where it stands in the chain.
    fn writable(&self, owner: u32, offset: u32) -> Option<(usize, u32)> {
        let single = self.map.get(owner);
        let blocks = self.chains.get(&owner).map_or(single.as_slice(), |chain| chain.blocks.as_slice());
        let can = |(_, block): &(usize, &u32)| self.next.get(block).is_some_and(|&next| next <= offset);
        blocks.iter().enumerate().find(can).map(|(at, &block)| (at, block))
    }

    /// The data block with the longest chain.
    fn longest(&self) -> Option<u32> {
        self.chains.iter().max_by_key(|(_, chain)| chain.blocks.len()).map(|(&owner, _)| owner)
    }

    /// Writes a sector, or that it holds nothing.
    fn write_sector(&mut self, flash: &mut Flash<impl Nand>, sector: u32, kind: Kind, data: &[u8]) -> Result<()> {
        let (owner, offset) = flash.split(u64::from(sector));
        let cause = if kind == Kind::Data { Cause::Host } else { Cause::Metadata };
        loop {
            let (at, block) = match self.writable(owner, offset) {
                Some(found) => found,
                None => self.lengthen(flash, owner)?,
            };
            let place = Place { block, page: offset };
            if flash.program(place, Tag::new(kind, sector), data, cause)? == Outcome::Done {
                self.wrote(owner, block, at, offset);
                return Ok(());
            }
            self.next.remove(&block);
            self.merge(flash, owner, Some(block))?;
        }
    }

    fn wrote(&mut self, owner: u32, block: u32, at: usize, offset: u32) {
        self.next.insert(block, offset + 1);
        if offset + 1 == self.pages_per_block {
            self.next.remove(&block);
        }
        if let Some(slot) = self.chains.get_mut(&owner).and_then(|chain| chain.latest.get_mut(offset as usize)) {
            *slot = at as u8;
        }
    }

    /// Adds a block to the chain of a data block, after merges where none is to spare.
    fn lengthen(&mut self, flash: &mut Flash<impl Nand>, owner: u32) -> Result<(usize, u32)> {
        loop {
            let is_full = self.chains.get(&owner).is_some_and(|chain| chain.blocks.len() >= LINKS_MAX);
            if flash.pool.free() > RESERVE_BLOCKS && !is_full {
                break;
            }
            let victim = if is_full { Some(owner) } else { self.longest() };
            self.merge(flash, victim.ok_or(Error::WornOut)?, None)?;
        }
        let block = flash.take(Cause::Gc)?;
        flash.pool.commit(block);
        self.next.insert(block, 0);
        if let Some(chain) = self.chains.get_mut(&owner) {
            chain.blocks.push(block);
            return Ok((chain.blocks.len() - 1, block));
        }
        let Some(first) = self.map.get(owner) else {
            self.map.set(owner, Some(block));
            return Ok((0, block));
        };
        // Every place stands in the first block so far; a page that was never programmed there reads as zeros.
        let latest = alloc::vec![0; self.pages_per_block as usize];
        self.chains.insert(owner, Chain { blocks: alloc::vec![first, block], latest });
        Ok((1, block))
    }
}

impl SectorMap for Replacement {
    const ROWS: &'static [SchemeRow] = &[ROW];

    fn empty(flash: &Flash<impl Nand>, record: &Record, _options: Options) -> Result<Self> {
        let (map, pages_per_block) = (BlockMap::new(record.data_blocks), flash.pages_per_block());
        Ok(Self { pages_per_block, map, chains: BTreeMap::new(), next: BTreeMap::new() })
    }

    fn recover(&mut self, flash: &mut Flash<impl Nand>, _anchors: Anchors, _record: Record) -> Result<()> {
        self.read_all(flash)
    }

    fn sectors(&self) -> u64 {
        u64::from(self.map.data_blocks()) * u64::from(self.pages_per_block)
    }

    fn find(&mut self, flash: &mut Flash<impl Nand>, sector: u32) -> Result<SectorPlace> {
        Ok(SectorPlace::slot(self.holder(flash, sector)))
    }

    fn write(&mut self, flash: &mut Flash<impl Nand>, span: Span, data: &[u8]) -> Result<()> {
        let mut pages = span.pages(data, flash.page_bytes());
        pages.try_for_each(|(sector, data)| self.write_sector(flash, sector, Kind::Data, data))
    }

    fn trim(&mut self, flash: &mut Flash<impl Nand>, span: Span) -> Result<()> {
        let zeros = alloc::vec![0; flash.page_bytes()];
        span.sectors().try_for_each(|sector| match self.holder(flash, sector) {
            None => Ok(()),
            Some(_) => self.write_sector(flash, sector, Kind::Hole, &zeros),
        })
    }

    fn step(&mut self, flash: &mut Flash<impl Nand>) -> Result<bool> {
        match self.longest().filter(|_| flash.pool.free() < RESERVE_BLOCKS + 2) {
            Some(owner) => self.merge(flash, owner, None).map(|()| true),
            None => Ok(false),
        }
    }

    fn visit_uses(&mut self, _flash: &mut Flash<impl Nand>, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        for (owner, block) in self.map.iter() {
            let chain = self.chains.get(&owner).map_or(core::slice::from_ref(&block), |chain| &chain.blocks);
            let mut blocks = chain.iter();
            blocks.next().into_iter().for_each(|&block| visit(block, BlockUse::Data(owner)));
            blocks.for_each(|&block| visit(block, BlockUse::Replacement(owner)));
        }
        Ok(())
    }

    fn ram_bytes(&self) -> usize {
        let chain = |chain: &Chain| size_of::<(u32, Chain)>() + chain.blocks.capacity() * 4 + chain.latest.capacity();
        size_of::<Self>()
            + self.map.ram_bytes()
            + self.chains.values().map(chain).sum::<usize>()
            + self.next.len() * size_of::<(u32, u32)>()
    }
}
