//! Reclaiming: the merge of a data block into a free one, the end of a stream, and the merges that make a log block free.
//!
//! Invariant: the blocks that a merge copies from are freed when every page that counts stands in the one that stays.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::{Fast, Stream};
use crate::Result;
use crate::flash::latest::COPIED;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found, Outcome, Place};

/// What came of copying a block's sectors.
enum Copied {
    /// So many pages were programmed.
    Whole(u32),
    Failed,
}

impl Fast {
    /// Makes a log block free: every data block that has a sector in it is merged.
    pub(super) fn reclaim(&mut self, flash: &mut Flash<impl Nand>, at: usize) -> Result<()> {
        let Some(log) = self.logs.get(at) else { return Ok(()) };
        let block = log.block;
        let pages = (0..).zip(&log.sectors);
        let sectors = pages.filter_map(|(page, sector)| sector.map(|sector| (Place { block, page }, sector)));
        for (place, sector) in sectors.collect::<Vec<_>>() {
            if self.index.get(&sector) == Some(&place) {
                let owner = flash.split(u64::from(sector)).0;
                self.merge(flash, owner)?;
            }
        }
        self.logs.retain(|log| log.block != block);
        flash.pool.release(block);
        Ok(())
    }

    /// Merges all that there is of a data block into a free block.
    pub(super) fn merge(&mut self, flash: &mut Flash<impl Nand>, owner: u32) -> Result<()> {
        flash.counts_mut().merges += 1;
        let target = loop {
            let target = flash.take(Cause::Gc)?;
            match self.copy(flash, owner, target, 0)? {
                Copied::Whole(0) => {
                    flash.pool.put_back(target);
                    break None;
                }
                Copied::Whole(_) => {
                    flash.pool.commit(target);
                    break Some(target);
                }
                Copied::Failed => flash.give_up(target)?,
            }
        };
        if let Some(stream) = self.stream.take_if(|stream| stream.owner == owner) {
            flash.pool.release(stream.block);
        }
        self.becomes_data(flash, owner, target);
        Ok(())
    }

    /// Makes the stream block a data block: as it is where it is full, else with the rest copied to it.
    pub(super) fn end_stream(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        let Some(stream) = self.stream else { return Ok(()) };
        if stream.next < self.pages_per_block {
            if let Copied::Failed = self.copy(flash, stream.owner, stream.block, stream.next)? {
                return self.merge_and_give_up(flash, stream);
            }
            flash.counts_mut().partial_merges += 1;
        } else {
            flash.counts_mut().switches += 1;
        }
        self.stream = None;
        self.becomes_data(flash, stream.owner, Some(stream.block));
        Ok(())
    }

    /// Merges what a stream block holds in which a program failed, and gives the block up with it.
    pub(super) fn merge_and_give_up(&mut self, flash: &mut Flash<impl Nand>, stream: Stream) -> Result<()> {
        self.merge(flash, stream.owner)?;
        flash.mark_bad(stream.block)?;
        flash.pool.remove(stream.block);
        Ok(())
    }

    /// A block holds all that there is of a data block; `None` where there is nothing.
    fn becomes_data(&mut self, flash: &mut Flash<impl Nand>, owner: u32, block: Option<u32>) {
        for sector in owner * self.pages_per_block..(owner + 1) * self.pages_per_block {
            self.index.remove(&sector);
        }
        self.map.set(owner, block).into_iter().for_each(|old| flash.pool.release(old));
    }

    /// Copies a data block's sectors, from a place on, to their places in `target`.
    fn copy(&self, flash: &mut Flash<impl Nand>, owner: u32, target: u32, from: u32) -> Result<Copied> {
        let mut count = 0;
        for page in from..self.pages_per_block {
            let logical = owner * self.pages_per_block + page;
            let Some(source) = self.holder(flash, logical) else { continue };
            let (kind, cause) = match flash.read(source, &mut [], Cause::Gc)? {
                Found::Erased => continue,
                Found::Page(found) if found.kind.is_payload() => (Kind::Merged, Cause::Gc),
                Found::Page(found) if matches!(found.kind, Kind::Hole | Kind::Trim) => (Kind::Hole, Cause::Metadata),
                Found::Page(_) | Found::Unreadable => (Kind::Lost, Cause::Metadata),
            };
            let tag = Tag { extra: COPIED, ..Tag::new(kind, logical) };
            if flash.program_copy(Place { block: target, page }, tag, cause)? == Outcome::Failed {
                return Ok(Copied::Failed);
            }
            count += 1;
        }
        Ok(Copied::Whole(count))
    }
}
