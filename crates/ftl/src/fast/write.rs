//! Writing: to the stream block where a request goes on in it or begins one, else to the log block that is being filled.
//!
//! Invariant: a page that counts is found through the index, the stream or the map as soon as it is programmed, and not before.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::{Fast, Log, RESERVE_BLOCKS, Stream};
use crate::device::Span;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Outcome, Place};
use crate::{Error, Result};

impl<N: Nand> Fast<N> {
    pub(super) fn write_sector(&mut self, sector: u32, data: &[u8]) -> Result<()> {
        let (owner, page) = self.flash.split(u64::from(sector));
        if page == 0 {
            self.begin_stream(owner)?;
        }
        match self.stream.filter(|stream| stream.owner == owner) {
            Some(stream) if stream.next == page => self.append_to_stream(stream, sector, data),
            Some(_) => {
                self.end_stream()?;
                self.append_to_log(sector, Kind::Log, data)
            }
            None => self.append_to_log(sector, Kind::Log, data),
        }
    }

    /// Gives sectors up: those that stand anywhere get a page that says that they hold nothing.
    pub(super) fn trim_span(&mut self, span: Span) -> Result<()> {
        let zeros = alloc::vec![0; self.flash.page_bytes()];
        for sector in span.first as u32..(span.first + span.count) as u32 {
            if self.holder(sector).is_none() {
                continue;
            }
            let owner = self.flash.split(u64::from(sector)).0;
            if self.stream.is_some_and(|stream| stream.owner == owner) {
                self.end_stream()?;
            }
            self.append_to_log(sector, Kind::Trim, &zeros)?;
        }
        Ok(())
    }

    fn begin_stream(&mut self, owner: u32) -> Result<()> {
        self.end_stream()?;
        let block = self.take_block()?;
        self.stream = Some(Stream { block, owner, next: 0 });
        Ok(())
    }

    fn append_to_stream(&mut self, stream: Stream, sector: u32, data: &[u8]) -> Result<()> {
        let tag = Tag { kind: Kind::Data, ends: true, logical: sector, stamp: 0, extra: 0 };
        let at = Place { block: stream.block, page: stream.next };
        if self.flash.program(at, tag, data, Cause::Host)? == Outcome::Failed {
            // What it holds is merged, and the block is given up with it.
            self.merge(stream.owner)?;
            self.flash.mark_bad(stream.block)?;
            self.pool.remove(stream.block);
            return self.append_to_log(sector, Kind::Log, data);
        }
        self.stream = Some(Stream { next: stream.next + 1, ..stream });
        self.index.remove(&sector);
        if stream.next + 1 == self.flash.pages_per_block() {
            self.end_stream()?;
        }
        Ok(())
    }

    /// Programs the next page of the log block that is being filled.
    pub(super) fn append_to_log(&mut self, sector: u32, kind: Kind, data: &[u8]) -> Result<()> {
        let cause = if kind == Kind::Log { Cause::Host } else { Cause::Metadata };
        let tag = Tag { kind, ends: true, logical: sector, stamp: 0, extra: 0 };
        loop {
            let at = self.next_in_log()?;
            if self.flash.program(at, tag, data, cause)? == Outcome::Done {
                self.logs.last_mut().into_iter().for_each(|log| log.sectors.push(Some(sector)));
                self.index.insert(sector, at);
                return Ok(());
            }
            self.reclaim(self.logs.len().saturating_sub(1))?;
            self.flash.mark_bad(at.block)?;
            self.pool.remove(at.block);
        }
    }

    /// Pages of a log block that can still be programmed.
    pub(super) fn room(&self, log: &Log) -> u32 {
        self.flash.pages_per_block().saturating_sub(log.sectors.len() as u32)
    }

    /// The page for the next sector that goes to a log block, after merges where none is to spare.
    fn next_in_log(&mut self) -> Result<Place> {
        if let Some(log) = self.logs.last().filter(|log| self.room(log) > 0) {
            return Ok(Place { block: log.block, page: log.sectors.len() as u32 });
        }
        while self.logs.len() as u32 >= self.logs_max {
            self.reclaim(0)?;
        }
        let block = self.take_block()?;
        self.logs.push(Log { block, sectors: Vec::new() });
        Ok(Place { block, page: 0 })
    }

    /// Takes a free block that merges do not need.
    fn take_block(&mut self) -> Result<u32> {
        while self.pool.free() <= RESERVE_BLOCKS {
            if self.logs.is_empty() {
                return Err(Error::WornOut);
            }
            self.reclaim(0)?;
        }
        let block = self.pool.take(&mut self.flash, Cause::Gc)?;
        self.pool.commit(block);
        Ok(block)
    }
}
