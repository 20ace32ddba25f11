//! Reclaiming a log block (paper §III.B, Fig. 2): the switch, the partial merge, and the merge of two blocks into a third.
//!
//! Invariant: the old blocks count until the new one is whole and the map says so; only then are they free.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::LogBlock;
use super::fragment::Standing;
use super::log::Entry;
use super::map_blocks::{Books, Change};
use super::victim::LogView;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found, Outcome, Place};
use crate::{Error, Result};

/// What a new block's last page says of the pages before it, where the map is not on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// Every request with an earlier stamp is whole.
    Resolved,
    /// Nothing: a request that is not whole is being undone.
    Silent,
}

/// What is done for a page that holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Empty {
    /// It stays erased.
    Skip,
    /// It is programmed as such.
    Write,
}

/// What came of writing a block.
enum Written {
    Whole,
    /// Nothing had to be written.
    Nothing,
    Failed,
}

impl LogBlock {
    /// What the choice of a log block to reclaim goes by, at the stamp `now`.
    pub(super) fn log_views(&self, now: u64) -> impl Iterator<Item = (usize, LogView)> + '_ {
        let pages = self.pages_per_block;
        self.logs.iter().enumerate().map(move |(at, log)| {
            let view = LogView {
                age: now.saturating_sub(log.written()),
                free_pages: log.room(),
                pages,
                is_in_order: log.in_order().is_some() && !log.is_suspect(),
            };
            (at, view)
        })
    }

    /// Makes the log block at that place of the list free, or a data block.
    pub(super) fn reclaim(&mut self, flash: &mut Flash<impl Nand>, at: usize) -> Result<()> {
        self.make_map_room(flash, 1, None)?;
        let Some(log) = self.logs.get(at) else { return Ok(()) };
        let (owner, block, pages) = (log.owner, log.block, self.pages_per_block);
        match log.in_order() {
            Some(next) if next == pages => {
                flash.counts_mut().switches += 1;
                return self.commit(flash, &[Change { block: owner, now: holding(block) }], None);
            }
            Some(next) if self.options.merges_partially && next > 0 && !log.is_suspect() => {
                if self.complete(flash, owner, block, next)? == Outcome::Done {
                    flash.counts_mut().partial_merges += 1;
                    return self.commit(flash, &[Change { block: owner, now: holding(block) }], None);
                }
                let now = self.merged(flash, at, Seal::Resolved)?;
                return self.commit(flash, &[Change { block: owner, now }], Some(block));
            }
            _ => {}
        }
        let now = self.merged(flash, at, Seal::Resolved)?;
        self.commit(flash, &[Change { block: owner, now }], None)
    }

    /// Copies the data block's pages from `next` on to a log block that holds those before in order. None is skipped: of a log
    /// block only the page after the last may be torn and read as erased.
    fn complete(&mut self, flash: &mut Flash<impl Nand>, owner: u32, block: u32, next: u32) -> Result<Outcome> {
        let old = self.table.holder(flash, owner)?;
        for page in next..self.pages_per_block {
            let source = old.map(|block| Place { block, page });
            let to = Place { block, page };
            if let Written::Failed = self.copy(flash, owner, source, to, Empty::Write, Seal::Resolved)? {
                return Ok(Outcome::Failed);
            }
        }
        Ok(Outcome::Done)
    }

    /// Merges a log block and its data block into a free block. Where nothing is left of either, no block is taken.
    pub(super) fn merged(&mut self, flash: &mut Flash<impl Nand>, at: usize, seal: Seal) -> Result<Standing> {
        let Some(log) = self.logs.get(at) else { return Err(Error::Failed) };
        let (owner, block) = (log.owner, log.block);
        let entries: Vec<Entry> = (0..self.pages_per_block).map(|offset| log.entry(offset)).collect();
        let old = self.table.find(flash, owner)?;
        let holder = old.filter(|old| !old.is_empty).map(|old| old.block);
        flash.counts_mut().merges += 1;
        loop {
            let target = flash.take(Cause::Gc)?;
            let mut outcome = Written::Nothing;
            for (page, entry) in (0..).zip(&entries) {
                let source = match *entry {
                    Entry::Trimmed => None,
                    Entry::Page(page) => Some(Place { block, page }),
                    Entry::Absent => holder.map(|block| Place { block, page }),
                };
                match self.copy(flash, owner, source, Place { block: target, page }, Empty::Skip, seal)? {
                    Written::Nothing => {}
                    written => outcome = written,
                }
                if let Written::Failed = outcome {
                    break;
                }
            }
            match (outcome, old) {
                (Written::Whole, _) => return Ok(holding(target)),
                (Written::Nothing, Some(old)) => {
                    flash.pool.put_back(target);
                    return Ok(Standing { is_empty: true, ..old });
                }
                // Where the map is in memory a last page is always written.
                (Written::Nothing, None) => return Err(Error::Failed),
                (Written::Failed, _) => flash.give_up(target)?,
            }
        }
    }

    /// Copies a page of a data block, or writes that it cannot be read any more. Where the map is in memory, the last page
    /// of a block vouches for it, and is written in any case.
    fn copy(
        &self,
        flash: &mut Flash<impl Nand>,
        owner: u32,
        source: Option<Place>,
        to: Place,
        empty: Empty,
        seal: Seal,
    ) -> Result<Written> {
        let is_last = to.page + 1 == self.pages_per_block;
        let logical = owner * self.pages_per_block + to.page;
        let vouches = is_last && !self.table.is_on_flash();
        let found = source.map(|source| flash.read(source, &mut [], Cause::Gc)).transpose()?;
        let kind = match found {
            Some(Found::Page(page)) if page.kind.is_payload() && page.logical == logical => Kind::Merged,
            Some(Found::Page(page)) if page.kind != Kind::Hole => Kind::Lost,
            Some(Found::Unreadable) => Kind::Lost,
            None | Some(Found::Erased | Found::Page(_)) if vouches || empty == Empty::Write => Kind::Hole,
            None | Some(Found::Erased | Found::Page(_)) => return Ok(Written::Nothing),
        };
        let tag = Tag { ends: vouches && seal == Seal::Resolved, ..Tag::new(kind, logical) };
        let outcome = flash.program_copy(to, tag, Cause::Gc)?;
        Ok(if outcome == Outcome::Done { Written::Whole } else { Written::Failed })
    }

    /// Sees to it that so many pages of the map can be written in one sequence. Pages of the map that this takes say that every
    /// request up to the stamp `resolved` is whole, or every request so far.
    pub(super) fn make_map_room(
        &mut self,
        flash: &mut Flash<impl Nand>,
        pages: u32,
        resolved: Option<u64>,
    ) -> Result<()> {
        let books = &Books { logs: &self.logs, resolved };
        self.table.make_room(flash, books, pages)
    }

    /// Data blocks change their places, all or none; their log blocks, and the blocks they stood in, become free. The block
    /// `bad` is given up instead.
    pub(super) fn commit(&mut self, flash: &mut Flash<impl Nand>, changes: &[Change], bad: Option<u32>) -> Result<()> {
        let mut released = Vec::new();
        for change in changes {
            let old = self.table.find(flash, change.block)?.map(|old| old.block);
            released.extend(old.filter(|&old| old != change.now.block));
            if let Some(at) = self.log_of(change.block) {
                let log = self.logs.swap_remove(at);
                released.extend(Some(log.block).filter(|&block| block != change.now.block));
            }
            flash.pool.commit(change.now.block);
        }
        released.iter().for_each(|&block| flash.pool.hold(block));
        let books = &Books { logs: &self.logs, resolved: None };
        self.table.write(flash, books, changes)?;
        for block in released {
            if bad == Some(block) {
                flash.give_up(block)?;
            } else {
                flash.pool.discard(block);
            }
        }
        Ok(())
    }
}

/// A block that holds its data block's sectors.
pub(super) fn holding(block: u32) -> Standing {
    Standing { block, is_empty: false }
}
