//! Reclaiming: the merge of a data block into a free one, the end of a stream, and the merges that make a log block free.
//!
//! Invariant: the blocks that a merge copies from are freed when every page that counts stands in the one that stays.

use nand::{Cause, Nand};

use super::{Fast, NOWHERE};
use crate::Result;
use crate::flash::latest::COPIED;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Found, Outcome, Place};

/// What came of copying a block's sectors.
enum Copied {
    /// So many pages were programmed.
    Whole(u32),
    Failed,
}

impl<N: Nand> Fast<N> {
    /// Makes a log block free: every data block that has a sector in it is merged.
    pub(super) fn reclaim(&mut self, at: usize) -> Result<()> {
        let Some(log) = self.logs.get(at) else { return Ok(()) };
        let block = log.block;
        let sectors: alloc::vec::Vec<(Place, u32)> = (0..)
            .zip(&log.sectors)
            .filter_map(|(page, sector)| sector.map(|sector| (Place { block, page }, sector)))
            .collect();
        for (place, sector) in sectors {
            if self.index.get(&sector) == Some(&place) {
                self.merge(self.flash.split(u64::from(sector)).0)?;
            }
        }
        self.logs.retain(|log| log.block != block);
        self.pool.release(block);
        Ok(())
    }

    /// Merges all that there is of a data block into a free block.
    pub(super) fn merge(&mut self, owner: u32) -> Result<()> {
        self.flash.counts_mut().merges += 1;
        let target = loop {
            let target = self.pool.take(&mut self.flash, Cause::Gc)?;
            match self.copy(owner, target, 0)? {
                Copied::Whole(0) => {
                    self.pool.put_back(target);
                    break NOWHERE;
                }
                Copied::Whole(_) => {
                    self.pool.commit(target);
                    break target;
                }
                Copied::Failed => self.pool.give_up(&mut self.flash, target)?,
            }
        };
        if let Some(stream) = self.stream.take_if(|stream| stream.owner == owner) {
            self.pool.release(stream.block);
        }
        self.becomes_data(owner, target);
        Ok(())
    }

    /// Makes the stream block a data block: as it is where it is full, else with the rest copied to it.
    pub(super) fn end_stream(&mut self) -> Result<()> {
        let Some(stream) = self.stream else { return Ok(()) };
        if stream.next < self.flash.pages_per_block() {
            if let Copied::Failed = self.copy(stream.owner, stream.block, stream.next)? {
                self.merge(stream.owner)?;
                self.flash.mark_bad(stream.block)?;
                self.pool.remove(stream.block);
                return Ok(());
            }
            self.flash.counts_mut().partial_merges += 1;
        } else {
            self.flash.counts_mut().switches += 1;
        }
        self.stream = None;
        self.becomes_data(stream.owner, stream.block);
        Ok(())
    }

    /// A block holds all that there is of a data block.
    fn becomes_data(&mut self, owner: u32, block: u32) {
        let pages = self.flash.pages_per_block();
        for sector in owner * pages..(owner + 1) * pages {
            self.index.remove(&sector);
        }
        if let Some(slot) = self.map.get_mut(owner as usize) {
            let old = core::mem::replace(slot, block);
            if old != NOWHERE {
                self.pool.release(old);
            }
        }
    }

    /// Copies a data block's sectors, from a place on, to their places in `target`.
    fn copy(&mut self, owner: u32, target: u32, from: u32) -> Result<Copied> {
        let pages = self.flash.pages_per_block();
        let mut count = 0;
        for page in from..pages {
            let logical = owner * pages + page;
            let Some(source) = self.holder(logical) else { continue };
            let tag = |kind| Tag { kind, ends: true, logical, stamp: 0, extra: COPIED };
            let to = Place { block: target, page };
            let outcome = match self.flash.read(source, &mut [], Cause::Gc)? {
                Found::Erased => continue,
                Found::Page(found) if found.kind.is_payload() => {
                    self.flash.program_buffer(to, tag(Kind::Merged), Cause::Gc)?
                }
                Found::Page(found) if matches!(found.kind, Kind::Hole | Kind::Trim) => {
                    self.flash.program_filled(to, tag(Kind::Hole), Cause::Metadata, |_| {})?
                }
                Found::Page(_) | Found::Unreadable => {
                    self.flash.program_filled(to, tag(Kind::Lost), Cause::Metadata, |_| {})?
                }
            };
            if outcome == Outcome::Failed {
                return Ok(Copied::Failed);
            }
            count += 1;
        }
        Ok(Copied::Whole(count))
    }
}
