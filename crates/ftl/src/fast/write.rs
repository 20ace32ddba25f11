//! Writing: to the stream block where a request goes on in it or begins one, else to the log block that is being filled.
//!
//! Invariant: a page that counts is found through the index, the stream or the map as soon as it is programmed, and not before.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::{Fast, Log, Stream};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Outcome, Place};
use crate::sector_map::RESERVE_BLOCKS;
use crate::{Error, Result};

impl Fast {
    pub(super) fn write_sector(&mut self, flash: &mut Flash<impl Nand>, sector: u32, data: &[u8]) -> Result<()> {
        let (owner, page) = flash.split(u64::from(sector));
        if page == 0 {
            self.begin_stream(flash, owner)?;
        }
        match self.stream.filter(|stream| stream.owner == owner) {
            Some(stream) if stream.next == page => self.append_to_stream(flash, stream, sector, data),
            Some(_) => {
                self.end_stream(flash)?;
                self.append_to_log(flash, sector, Kind::Log, data)
            }
            None => self.append_to_log(flash, sector, Kind::Log, data),
        }
    }

    /// Gives a sector up that stands anywhere: it gets a page that says that it holds nothing.
    pub(super) fn trim_sector(&mut self, flash: &mut Flash<impl Nand>, sector: u32, zeros: &[u8]) -> Result<()> {
        let owner = flash.split(u64::from(sector)).0;
        if self.stream.is_some_and(|stream| stream.owner == owner) {
            self.end_stream(flash)?;
        }
        self.append_to_log(flash, sector, Kind::Trim, zeros)
    }

    fn begin_stream(&mut self, flash: &mut Flash<impl Nand>, owner: u32) -> Result<()> {
        self.end_stream(flash)?;
        let block = self.take_block(flash)?;
        self.stream = Some(Stream { block, owner, next: 0 });
        Ok(())
    }

    fn append_to_stream(
        &mut self,
        flash: &mut Flash<impl Nand>,
        stream: Stream,
        sector: u32,
        data: &[u8],
    ) -> Result<()> {
        let at = Place { block: stream.block, page: stream.next };
        if flash.program(at, Tag::new(Kind::Data, sector), data, Cause::Host)? == Outcome::Failed {
            self.merge_and_give_up(flash, stream)?;
            return self.append_to_log(flash, sector, Kind::Log, data);
        }
        self.stream = Some(Stream { next: stream.next + 1, ..stream });
        self.index.remove(&sector);
        if stream.next + 1 == self.pages_per_block {
            self.end_stream(flash)?;
        }
        Ok(())
    }

    /// Programs the next page of the log block that is being filled.
    pub(super) fn append_to_log(
        &mut self,
        flash: &mut Flash<impl Nand>,
        sector: u32,
        kind: Kind,
        data: &[u8],
    ) -> Result<()> {
        let cause = if kind == Kind::Log { Cause::Host } else { Cause::Metadata };
        loop {
            let at = self.next_in_log(flash)?;
            if flash.program(at, Tag::new(kind, sector), data, cause)? == Outcome::Done {
                self.logs.last_mut().into_iter().for_each(|log| log.sectors.push(Some(sector)));
                self.index.insert(sector, at);
                return Ok(());
            }
            self.reclaim(flash, self.logs.len().saturating_sub(1))?;
            flash.mark_bad(at.block)?;
            flash.pool.remove(at.block);
        }
    }

    /// Pages of a log block that can still be programmed.
    pub(super) fn room(&self, log: &Log) -> u32 {
        self.pages_per_block.saturating_sub(log.sectors.len() as u32)
    }

    /// The page for the next sector that goes to a log block, after merges where none is to spare.
    fn next_in_log(&mut self, flash: &mut Flash<impl Nand>) -> Result<Place> {
        if let Some(log) = self.logs.last().filter(|log| self.room(log) > 0) {
            return Ok(Place { block: log.block, page: log.sectors.len() as u32 });
        }
        while self.logs.len() as u32 >= self.logs_max {
            self.reclaim(flash, 0)?;
        }
        let block = self.take_block(flash)?;
        self.logs.push(Log { block, sectors: Vec::new() });
        Ok(Place { block, page: 0 })
    }

    /// Takes a free block that merges do not need.
    fn take_block(&mut self, flash: &mut Flash<impl Nand>) -> Result<u32> {
        while flash.pool.free() <= RESERVE_BLOCKS {
            if self.logs.is_empty() {
                return Err(Error::WornOut);
            }
            self.reclaim(flash, 0)?;
        }
        let block = flash.take(Cause::Gc)?;
        flash.pool.commit(block);
        Ok(block)
    }
}
