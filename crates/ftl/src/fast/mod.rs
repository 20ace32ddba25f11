//! FAST: log blocks that any data block's sectors may go to, and one for a stream (Lee et al. 2007, *A Log Buffer-Based Flash
//! Translation Layer Using Fully-Associative Sector Translation*).
//!
//! A write to a data block's first place begins a stream block, which later writes go on in as long as they come in order; all
//! others go to the log block that is being filled. Where that takes one too many, the oldest is reclaimed, by a merge of every
//! data block that has a sector in it. Invariant: of a sector's pages the one with the latest stamp counts; a block is erased
//! only when no page of it does.

mod merge;
mod recover;
mod write;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use nand::Nand;

use crate::Result;
use crate::block_use::BlockUse;
use crate::device::Span;
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::block_map::BlockMap;
use crate::flash::{Flash, Place, SectorPlace};
use crate::sector_map::{Demand, RESERVE_BLOCKS, SchemeRow, SectorMap};
use crate::settings::{Format, Options};

/// The scheme's row of the table.
pub const ROW: SchemeRow = SchemeRow {
    name: "fast",
    letters: "FAST",
    code: 6,
    is_atomic: false,
    logs_min: 1,
    limits_map_blocks: false,
    usual: |_, format| format,
};

/// A log block, and the sectors of its pages in the order in which they were programmed.
#[derive(Clone, Debug)]
struct Log {
    block: u32,
    /// `None`: the page holds none.
    sectors: Vec<Option<u32>>,
}

/// A block that a data block is written to from its first place on.
#[derive(Clone, Copy, Debug)]
struct Stream {
    block: u32,
    owner: u32,
    next: u32,
}

/// Where sectors stand in data blocks, log blocks and the stream block.
#[derive(Clone, Debug)]
pub struct Fast {
    pages_per_block: u32,
    logs_max: u32,
    /// The block of each data block.
    map: BlockMap,
    /// The oldest first; the last one is being filled.
    logs: Vec<Log>,
    /// Where the sectors stand whose latest page is in a log block.
    index: BTreeMap<u32, Place>,
    stream: Option<Stream>,
}

impl Fast {
    /// The page that has a sector; `None` where no block has any.
    fn holder(&self, flash: &Flash<impl Nand>, sector: u32) -> Option<Place> {
        let (owner, page) = flash.split(u64::from(sector));
        let streamed = self.stream.filter(|stream| stream.owner == owner && page < stream.next);
        let in_log = self.index.get(&sector).copied();
        let block = streamed.map(|stream| stream.block).or(self.map.get(owner));
        in_log.or(block.map(|block| Place { block, page }))
    }
}

impl SectorMap for Fast {
    const ROWS: &'static [SchemeRow] = &[ROW];

    fn demand(_record: &Record, _flash: &Flash<impl Nand>, format: &Format) -> Result<Demand> {
        // The stream block is one more.
        let extra_blocks = format.logs.saturating_add(ANCHOR_BLOCKS + RESERVE_BLOCKS + 2);
        let refusal = "a log block, a stream block, and four free blocks beside them are needed";
        Ok(Demand { extra_blocks, logs: format.logs, refusal })
    }

    fn empty(flash: &Flash<impl Nand>, record: &Record, _options: Options) -> Result<Self> {
        let (pages_per_block, map) = (flash.pages_per_block(), BlockMap::new(record.data_blocks));
        let (logs, index) = (Vec::new(), BTreeMap::new());
        Ok(Self { pages_per_block, logs_max: record.logs, map, logs, index, stream: None })
    }

    fn recover(&mut self, flash: &mut Flash<impl Nand>, _anchors: Anchors, _record: Record) -> Result<()> {
        self.read_all(flash)
    }

    fn sectors(&self) -> u64 {
        u64::from(self.map.data_blocks()) * u64::from(self.pages_per_block)
    }

    fn find(&mut self, flash: &mut Flash<impl Nand>, sector: u32) -> Result<SectorPlace> {
        Ok(SectorPlace::trim_slot(self.holder(flash, sector)))
    }

    fn write(&mut self, flash: &mut Flash<impl Nand>, span: Span, data: &[u8]) -> Result<()> {
        let mut pages = span.pages(data, flash.page_bytes());
        pages.try_for_each(|(sector, data)| self.write_sector(flash, sector, data))
    }

    fn trim(&mut self, flash: &mut Flash<impl Nand>, span: Span) -> Result<()> {
        let zeros = alloc::vec![0; flash.page_bytes()];
        span.sectors().try_for_each(|sector| match self.holder(flash, sector) {
            None => Ok(()),
            Some(_) => self.trim_sector(flash, sector, &zeros),
        })
    }

    fn step(&mut self, flash: &mut Flash<impl Nand>) -> Result<bool> {
        let is_full = self.logs.last().is_some_and(|log| self.room(log) == 0);
        if self.logs_max > self.logs.len() as u32 || !is_full {
            return Ok(false);
        }
        self.reclaim(flash, 0).map(|()| true)
    }

    fn visit_uses(&mut self, _flash: &mut Flash<impl Nand>, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        for log in &self.logs {
            let counting = (0..).zip(&log.sectors).filter(|&(page, sector)| {
                let at = Some(Place { block: log.block, page });
                sector.is_some_and(|sector| self.index.get(&sector).copied() == at)
            });
            visit(log.block, BlockUse::Pages(counting.count() as u32));
        }
        self.stream.iter().for_each(|stream| visit(stream.block, BlockUse::Log(stream.owner)));
        self.map.iter().for_each(|(owner, block)| visit(block, BlockUse::Data(owner)));
        Ok(())
    }

    fn ram_bytes(&self) -> usize {
        let log = |log: &Log| size_of::<Log>() + log.sectors.capacity() * size_of::<Option<u32>>();
        size_of::<Self>()
            + self.map.ram_bytes()
            + self.logs.iter().map(log).sum::<usize>()
            + self.index.len() * size_of::<(u32, Place)>()
    }
}
