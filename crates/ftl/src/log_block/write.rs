//! Writing: a request is taken apart by data blocks; whole blocks go to free blocks, the rest to log blocks.
//!
//! Room for all of it is made first. Its last program commits it: the log page that ends the request, or, where whole
//! blocks are among it and the map is on flash, the page of the map that gives them their places (paper §III.D).
//! Invariant: until that program nothing of the request counts after a power cut, and from then on all of it does.

use alloc::vec::Vec;
use core::ops::Range;

use nand::{Cause, Nand};

use super::log::Log;
use super::map_blocks::{Change, MapBlocks};
use super::merge::holding;
use super::{LogBlock, RESERVE_BLOCKS};
use crate::device::Span;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Outcome, Place};
use crate::settings::TooLarge;
use crate::{Error, Result};

/// Attempts at a request whose programs fail, each of which takes a block out of use.
pub(super) const ATTEMPTS: u32 = 16;

/// The sectors of a request in one data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub block: u32,
    pub offset: u32,
    pub count: u32,
}

/// What became of a part.
pub(super) enum Wrote {
    Done,
    /// A program failed in this block.
    Failed(u32),
}

/// The data blocks, of so many pages, that a span has sectors of.
fn touched(span: Span, pages: u32) -> Range<u64> {
    span.first / u64::from(pages)..(span.first + span.count).div_ceil(u64::from(pages))
}

/// Those that it has all sectors of.
pub(super) fn wholes(span: Span, pages: u32) -> Range<u32> {
    let (first, end) = (span.first.div_ceil(u64::from(pages)), (span.first + span.count) / u64::from(pages));
    first as u32..end.max(first) as u32
}

/// The first `count` sectors of a span, or fewer, so that they end where a data block ends, if one ends among them.
fn to_end_of_block(span: Span, count: u64, pages: u32) -> u64 {
    let end = (span.first + count) / u64::from(pages) * u64::from(pages);
    if count < span.count && end > span.first { end - span.first } else { count }
}

/// Takes a span apart by blocks of so many pages.
pub(super) fn parts(span: Span, pages: u32) -> impl Iterator<Item = Part> + Clone {
    let blocks = touched(span, pages);
    let (pages, first, end) = (u64::from(pages), span.first, span.first + span.count);
    blocks.map(move |block| {
        let (start, stop) = ((block * pages).max(first), ((block + 1) * pages).min(end));
        Part { block: block as u32, offset: (start % pages) as u32, count: (stop - start) as u32 }
    })
}

impl LogBlock {
    /// Writes a request, at once where that is possible.
    pub(super) fn write_span(&mut self, flash: &mut Flash<impl Nand>, span: Span, data: &[u8]) -> Result<()> {
        let (mut rest, mut most) = (span, span.count);
        while rest.count > 0 {
            let count = self.at_once(flash, rest)?.min(most);
            let now = Span { count: to_end_of_block(rest, count, self.pages_per_block), ..rest };
            match self.write_at_once(flash, span, now, data) {
                Ok(()) => rest = Span { first: now.first + now.count, count: rest.count - now.count },
                // Blocks have gone bad in it, or reclaiming gave fewer than there were log blocks.
                Err(Error::TooLarge { .. }) if self.options.too_large == TooLarge::Split && now.count > 1 => {
                    most = now.count / 2;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn is_whole(&self, part: &Part) -> bool {
        part.count == self.pages_per_block
    }

    /// How many of the sectors can be written at once: the whole blocks among them need free blocks until they are
    /// committed, of which each log block that is reclaimed gives one, and a page of the map for each fragment.
    fn at_once(&self, flash: &Flash<impl Nand>, span: Span) -> Result<u64> {
        let pages = self.pages_per_block;
        let whole = wholes(span, pages);
        let reclaimable = self.logs.iter().filter(|log| !touched(span, pages).contains(&u64::from(log.owner))).count();
        let can_be_had = (flash.pool.free() + reclaimable as u32).saturating_sub(RESERVE_BLOCKS + 2);
        let most = can_be_had.max(1).min(self.table.neighbours(whole.start, MapBlocks::sequence_max(flash)));
        if whole.len() <= most as usize {
            return Ok(span.count);
        }
        match self.options.too_large {
            TooLarge::Refuse => Err(Error::TooLarge { count: span.count, needed: whole.len() as u32, free: most }),
            TooLarge::Split => Ok(u64::from(whole.start + most) * u64::from(pages) - span.first),
        }
    }

    fn write_at_once(&mut self, flash: &mut Flash<impl Nand>, all: Span, span: Span, data: &[u8]) -> Result<()> {
        for _ in 0..ATTEMPTS {
            self.make_room(flash, span)?;
            let start = flash.next_stamp();
            let mut changes = Vec::new();
            match self.write_parts(flash, all, span, data, &mut changes)? {
                Wrote::Done if changes.is_empty() => return Ok(()),
                Wrote::Done => return self.commit(flash, &changes, None),
                Wrote::Failed(bad) => self.undo(flash, start, &changes, Some(bad))?,
            }
        }
        Err(Error::WornOut)
    }

    /// Makes room for a request: log blocks for its parts, free blocks for whole ones, and pages of the map.
    pub(super) fn make_room(&mut self, flash: &mut Flash<impl Nand>, span: Span) -> Result<()> {
        self.refill(flash)?;
        let pages = self.pages_per_block;
        let mut wanted = 0;
        for part in parts(span, pages).filter(|part| part.count < pages) {
            match self.log_of(part.block) {
                Some(at) if self.logs.get(at).is_some_and(|log| log.room() < part.count) => {
                    self.reclaim(flash, at)?;
                    wanted += 1;
                }
                Some(_) => {}
                None => wanted += 1,
            }
        }
        let (touched, wholes) = (touched(span, pages), wholes(span, pages));
        let whole = wholes.len() as u32;
        while self.logs.len() as u32 + wanted > self.logs_max || flash.pool.free() < whole + wanted + RESERVE_BLOCKS {
            let is_other = |log: &Log| !touched.contains(&u64::from(log.owner));
            let others = self.log_views(flash.next_stamp()).filter(|(at, _)| self.logs.get(*at).is_some_and(is_other));
            let victim = self.options.victim.choose(others).ok_or(match whole {
                0 => Error::WornOut,
                needed => Error::TooLarge { count: span.count, needed, free: flash.pool.free() },
            })?;
            self.reclaim(flash, victim)?;
        }
        self.make_map_room(flash, self.table.pages_of(wholes), None)
    }

    fn write_parts(
        &mut self,
        flash: &mut Flash<impl Nand>,
        all: Span,
        span: Span,
        data: &[u8],
        changes: &mut Vec<Change>,
    ) -> Result<Wrote> {
        let pages = self.pages_per_block;
        let whole = !wholes(span, pages).is_empty();
        let last = span.first + span.count - 1;
        for part in parts(span, pages) {
            let target = if self.is_whole(&part) {
                let block = flash.take(Cause::Gc)?;
                changes.push(Change { block: part.block, now: holding(block) });
                Some(block)
            } else {
                None
            };
            for offset in part.offset..part.offset + part.count {
                let sector = u64::from(part.block) * u64::from(pages) + u64::from(offset);
                // Where the map is on flash, it is the map that commits whole blocks and the parts beside them.
                let ends = sector == last && !(whole && self.table.is_on_flash());
                let bytes = all.bytes_of(sector, data, flash.page_bytes());
                let tag = Tag { ends, ..Tag::new(Kind::Data, sector as u32) };
                let wrote = match target {
                    Some(block) => program_in(flash, Place { block, page: offset }, tag, bytes)?,
                    None => self.append(flash, part.block, Tag { kind: Kind::Log, ..tag }, bytes)?,
                };
                if let Wrote::Failed(_) = wrote {
                    return Ok(wrote);
                }
            }
        }
        Ok(Wrote::Done)
    }

    /// Programs the next page of a data block's log block, which is opened where there is none.
    pub(super) fn append(&mut self, flash: &mut Flash<impl Nand>, owner: u32, tag: Tag, data: &[u8]) -> Result<Wrote> {
        let at = match self.log_of(owner) {
            Some(at) => at,
            None => {
                let block = flash.take(Cause::Gc)?;
                flash.pool.commit(block);
                self.logs.push(Log::new(block, owner, self.pages_per_block));
                self.logs.len() - 1
            }
        };
        let Some(log) = self.logs.get_mut(at) else { return Err(Error::Failed) };
        if log.is_suspect() {
            flash.use_up(log.next())?;
            log.filled(flash.next_stamp() - 1);
        }
        let stamp = flash.next_stamp();
        if flash.program(log.next(), tag, data, Cause::Host)? == Outcome::Failed {
            return Ok(Wrote::Failed(log.block));
        }
        match tag.kind {
            Kind::Trim => log.trimmed(data, stamp),
            _ => log.wrote(tag.logical % self.pages_per_block, stamp),
        }
        Ok(Wrote::Done)
    }
}

fn program_in(flash: &mut Flash<impl Nand>, at: Place, tag: Tag, data: &[u8]) -> Result<Wrote> {
    let outcome = flash.program(at, tag, data, Cause::Host)?;
    Ok(if outcome == Outcome::Done { Wrote::Done } else { Wrote::Failed(at.block) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_apart_at_the_bounds_of_blocks() {
        let part = |block, offset, count| Part { block, offset, count };
        let all: Vec<Part> = parts(Span { first: 30, count: 40 }, 32).collect();
        assert_eq!(all, [part(0, 30, 2), part(1, 0, 32), part(2, 0, 6)]);
        let one: Vec<Part> = parts(Span { first: 64, count: 32 }, 32).collect();
        assert_eq!(one, [part(2, 0, 32)]);
        let ends = |first, count| to_end_of_block(Span { first, count: 100 }, count, 32);
        assert_eq!((ends(30, 40), ends(64, 32), ends(1, 30), ends(7, 100)), (34, 32, 30, 100));
        let whole = |first, count| wholes(Span { first, count }, 32);
        assert_eq!((whole(30, 40), whole(64, 32), whole(63, 2), whole(65, 30)), (1..2, 2..3, 2..2, 3..3));
    }
}
