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
use alloc::string::String;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::device::{Layer, Span};
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::pool::Pool;
use crate::flash::tag::Kind;
use crate::flash::{Flash, Found, Place};
use crate::look::BlockUse;
use crate::settings::{Format, Options};
use crate::{Error, Result, Scheme};

/// A data block that has no block.
const NOWHERE: u32 = u32::MAX;
/// Free blocks that only merges take: one to merge to, and two for others that go bad in it.
const RESERVE_BLOCKS: u32 = 3;

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

/// A block device of the FAST scheme.
#[derive(Clone, Debug)]
pub struct Fast<N> {
    flash: Flash<N>,
    logs_max: u32,
    /// The block of each data block.
    map: Vec<u32>,
    /// The oldest first; the last one is being filled.
    logs: Vec<Log>,
    /// Where the sectors stand whose latest page is in a log block.
    index: BTreeMap<u32, Place>,
    stream: Option<Stream>,
    pool: Pool,
    has_failed: bool,
}

impl<N: Nand> Fast<N> {
    /// Makes a volume in which every sector reads as zeros.
    pub fn format(chip: N, format: &Format, options: Options) -> Result<Self> {
        let mut flash = Flash::new(chip, format.volume, options.payload)?;
        let bad = (ANCHOR_BLOCKS..flash.blocks()).filter(|&block| flash.is_bad(block)).count() as u32;
        let data_blocks = (flash.blocks() - bad).saturating_sub(format.extra_blocks);
        // The stream block is one more.
        let kept = format.logs.saturating_add(ANCHOR_BLOCKS + RESERVE_BLOCKS + 2);
        if format.logs < 1 || format.extra_blocks < kept || data_blocks == 0 {
            return Err(Error::Unfit("a log block, a stream block, and four free blocks beside them are needed"));
        }
        let (volume, logs) = (format.volume, format.logs);
        let record = Record { volume, scheme: Scheme::Fast.code(), data_blocks, logs, ..Record::default() };
        Anchors::format(&mut flash)?.write(&mut flash, &record)?;
        let mut device = Self::empty(flash, data_blocks, logs);
        let free = (ANCHOR_BLOCKS..device.flash.blocks()).filter(|&block| !device.flash.is_bad(block));
        free.for_each(|block| device.pool.release(block));
        Ok(device)
    }

    fn empty(flash: Flash<N>, data_blocks: u32, logs_max: u32) -> Self {
        let map = alloc::vec![NOWHERE; data_blocks as usize];
        let (logs, index, pool) = (Vec::new(), BTreeMap::new(), Pool::default());
        Self { flash, logs_max, map, logs, index, stream: None, pool, has_failed: false }
    }

    /// Gives the chip back.
    pub fn into_chip(self) -> N {
        self.flash.into_chip()
    }

    /// Bytes of memory the scheme takes, one page buffer and the chip left out.
    pub fn ram_bytes(&self) -> usize {
        let log = |log: &Log| size_of::<Log>() + log.sectors.capacity() * size_of::<Option<u32>>();
        size_of::<Self>() - size_of::<Flash<N>>()
            + self.flash.ram_bytes()
            + self.map.capacity() * size_of::<u32>()
            + self.logs.iter().map(log).sum::<usize>()
            + self.index.len() * size_of::<(u32, Place)>()
            + self.pool.ram_bytes()
    }

    /// The page that has a sector; `None` where no block has any.
    fn holder(&self, sector: u32) -> Option<Place> {
        let (owner, page) = self.flash.split(u64::from(sector));
        let streamed = self.stream.filter(|stream| stream.owner == owner && page < stream.next);
        let data = self.map.get(owner as usize).copied().filter(|&block| block != NOWHERE);
        let in_log = self.index.get(&sector).copied();
        in_log.or_else(|| streamed.map(|stream| stream.block).or(data).map(|block| Place { block, page }))
    }

    /// Does one step of work ahead of need. Whether there was one to do.
    pub fn background(&mut self) -> Result<bool> {
        self.change(|device| {
            let is_full = device.logs.last().is_some_and(|log| device.room(log) == 0);
            if device.logs.len() as u32 >= device.logs_max && is_full {
                device.reclaim(0)?;
                return Ok(true);
            }
            device.pool.erase_ahead(&mut device.flash, Cause::Gc)
        })
    }

    /// Reads everything that counts; a line for whatever is not as it should be.
    pub fn check(&mut self) -> Result<Vec<String>> {
        let mut findings = self.used_twice()?;
        findings.extend(self.unreadable()?);
        Ok(findings)
    }
}

impl<N: Nand> Layer for Fast<N> {
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
        (span.first as u32..).zip(pages).try_for_each(|(sector, data)| self.write_sector(sector, data))
    }

    fn trim_sectors(&mut self, span: Span) -> Result<()> {
        self.trim_span(span)
    }

    fn visit_uses(&mut self, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        self.pool.listed().for_each(|block| visit(block, BlockUse::Free));
        for log in &self.logs {
            let counting = (0..).zip(&log.sectors).filter(|&(page, sector)| {
                let at = Some(Place { block: log.block, page });
                sector.is_some_and(|sector| self.index.get(&sector).copied() == at)
            });
            visit(log.block, BlockUse::Pages(counting.count() as u32));
        }
        self.stream.iter().for_each(|stream| visit(stream.block, BlockUse::Log(stream.owner)));
        let data = (0..).zip(&self.map).filter(|&(_, &block)| block != NOWHERE);
        data.for_each(|(owner, &block)| visit(block, BlockUse::Data(owner)));
        Ok(())
    }

    fn read_sector(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        let Some(at) = self.holder(sector as u32) else {
            data.fill(0);
            return Ok(());
        };
        match self.flash.read(at, data, Cause::Host)? {
            Found::Erased => data.fill(0),
            Found::Page(tag) if matches!(tag.kind, Kind::Hole | Kind::Trim) => data.fill(0),
            Found::Page(tag) if tag.kind.is_payload() && u64::from(tag.logical) == sector => {}
            Found::Page(_) | Found::Unreadable => return Err(Error::Unreadable { sector }),
        }
        Ok(())
    }
}
