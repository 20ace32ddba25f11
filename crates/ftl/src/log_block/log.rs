//! A log block: where the newest copy of each sector of its data block stands in it.
//!
//! Invariant: the map says of every sector what the block's programmed pages say, the last page of a sector winning.

use alloc::boxed::Box;

use nand::{Cause, Nand};

use crate::Result;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found, Place};

const NONE: u16 = u16::MAX;
const TRIMMED: u16 = u16::MAX - 1;

/// What a log block says of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Nothing: the data block has it.
    Absent,
    /// It was given up.
    Trimmed,
    /// It stands in this page of the log block.
    Page(u32),
}

/// A log block in use.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub block: u32,
    /// The logical block whose sectors it holds.
    pub owner: u32,
    /// The next page to program.
    next: u32,
    /// That page may have been half programmed when the power went.
    is_suspect: bool,
    /// Every page so far holds the sector of its own place.
    in_order: bool,
    /// Stamp of the last page.
    written: u64,
    pages: Box<[u16]>,
}

impl Log {
    /// A log block just erased.
    pub fn new(block: u32, owner: u32, pages_per_block: u32) -> Self {
        let pages = alloc::vec![NONE; pages_per_block as usize].into_boxed_slice();
        Self { block, owner, next: 0, is_suspect: false, in_order: true, written: 0, pages }
    }

    /// The sector at `offset` of the data block.
    pub fn entry(&self, offset: u32) -> Entry {
        match self.pages.get(offset as usize).copied() {
            None | Some(NONE) => Entry::Absent,
            Some(TRIMMED) => Entry::Trimmed,
            Some(page) => Entry::Page(u32::from(page)),
        }
    }

    /// Pages that can still be written.
    pub fn room(&self) -> u32 {
        (self.pages.len() as u32).saturating_sub(self.next + u32::from(self.is_suspect))
    }

    pub fn next(&self) -> Place {
        Place { block: self.block, page: self.next }
    }

    pub fn is_suspect(&self) -> bool {
        self.is_suspect
    }

    /// Stamp of the last page.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether it says anything at all.
    pub fn is_empty(&self) -> bool {
        self.pages.iter().all(|&page| page == NONE)
    }

    /// Pages that hold the sectors of their own places, from the first on; `None` where any page does not.
    pub fn in_order(&self) -> Option<u32> {
        self.in_order.then_some(self.next)
    }

    /// The next page was programmed with a sector.
    pub fn wrote(&mut self, offset: u32, stamp: u64) {
        self.in_order &= offset == self.next;
        if let Some(slot) = self.pages.get_mut(offset as usize) {
            *slot = self.next as u16;
        }
        self.passed(stamp);
    }

    /// The next page was programmed with the sectors that are given up.
    pub fn trimmed(&mut self, bitmap: &[u8], stamp: u64) {
        self.in_order = false;
        for (offset, slot) in self.pages.iter_mut().enumerate() {
            if bitmap.get(offset / 8).is_some_and(|byte| byte >> (offset % 8) & 1 != 0) {
                *slot = TRIMMED;
            }
        }
        self.passed(stamp);
    }

    /// The next page was programmed with nothing.
    pub fn filled(&mut self, stamp: u64) {
        self.in_order = false;
        self.passed(stamp);
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.pages)
    }

    fn passed(&mut self, stamp: u64) {
        self.next += 1;
        self.is_suspect = false;
        self.written = self.written.max(stamp);
    }
}

/// What was read of a log block.
pub(super) struct Scan {
    /// What its pages say, up to the limit; `None` where no page says anything.
    pub log: Option<Log>,
    /// The highest stamp of a page that ends a request.
    pub ended: u64,
    /// The last page that could be read.
    pub newest: Option<(Place, Tag)>,
}

/// The tag with which a log block begins, if a block is one: of its first page, or of the second where the first is lost. Behind
/// a first page that was torn by a power cut nothing is programmed.
pub(super) fn beginning<N: Nand>(flash: &mut Flash<N>, block: u32) -> Result<Option<Tag>> {
    let mut found = flash.read(Place { block, page: 0 }, &mut [], Cause::Metadata)?;
    if found == Found::Unreadable {
        found = flash.read(Place { block, page: 1 }, &mut [], Cause::Metadata)?;
    }
    Ok(found.tag().filter(|tag| matches!(tag.kind, Kind::Log | Kind::Trim)))
}

/// Reads a log block's pages from the first on. Those with a stamp beyond `limit` are passed over.
pub(super) fn scan<N: Nand>(flash: &mut Flash<N>, block: u32, limit: u64) -> Result<Scan> {
    let mut scan = Scan { log: None, ended: 0, newest: None };
    let pages_per_block = flash.pages_per_block();
    let mut log: Option<Log> = None;
    let mut next = 0;
    for page in 0..pages_per_block {
        let at = Place { block, page };
        let found = flash.read(at, &mut [], Cause::Metadata)?;
        // A page that was torn may read as erased, with others programmed after it.
        if found != Found::Erased {
            next = page + 1;
        }
        let Some(tag) = found.tag() else { continue };
        let (owner, offset) = flash.split(u64::from(tag.logical));
        scan.newest = Some((at, tag));
        if tag.ends {
            scan.ended = scan.ended.max(tag.stamp);
        }
        let counts = tag.stamp <= limit && matches!(tag.kind, Kind::Log | Kind::Trim | Kind::Merged);
        if !counts || log.as_ref().is_some_and(|log| log.owner != owner) {
            continue;
        }
        let log = log.get_or_insert_with(|| Log::new(block, owner, pages_per_block));
        // A page that was skipped over, or could not be read, has no sector of its own.
        log.in_order &= log.next == page;
        log.next = page;
        match tag.kind {
            Kind::Trim => log.trimmed(flash.page(), tag.stamp),
            _ => log.wrote(offset, tag.stamp),
        }
    }
    scan.log = log.map(|log| Log {
        next,
        is_suspect: next < pages_per_block,
        in_order: log.in_order && log.next == next,
        ..log
    });
    Ok(scan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_of_a_sector_wins() {
        let mut log = Log::new(7, 3, 8);
        log.wrote(2, 10);
        log.wrote(5, 11);
        log.wrote(2, 12);
        assert_eq!((log.entry(2), log.entry(5), log.entry(0)), (Entry::Page(2), Entry::Page(1), Entry::Absent));
        log.trimmed(&[0b10_0001], 13);
        assert_eq!((log.entry(0), log.entry(5), log.room()), (Entry::Trimmed, Entry::Trimmed, 4));
    }

    #[test]
    fn a_log_block_is_in_order_until_a_page_holds_another_place_s_sector() {
        let mut log = Log::new(7, 3, 8);
        log.wrote(0, 10);
        log.wrote(1, 11);
        assert_eq!(log.in_order(), Some(2));
        log.wrote(1, 12);
        assert_eq!(log.in_order(), None);
    }
}
