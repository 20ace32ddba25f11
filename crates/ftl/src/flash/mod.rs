//! Pages with tags, programmed one at a time: what every scheme stands on.
//!
//! Blocks are used with one bit a cell, so that no program endangers another page. Each program and erase is waited for
//! before the next: at a power cut one operation at most is under way. Invariant: stamps ascend in the order of programs,
//! and a page is returned only if its tag's checksum is right.

pub mod anchor;
mod counting;
pub mod counts;
pub mod latest;
pub mod pages;
pub mod pool;
mod record;
pub mod tag;

use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError};

use crate::{Error, Result};
use counts::{Counts, count};
use tag::{Kind, TAG_BYTES, Tag};

/// A page of the chip: a block, and the page's place in the order in which that is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub block: u32,
    pub page: u32,
}

/// What was found in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: it reads as erased.
    Erased,
    /// What no checksum vouches for: torn, another volume's, or lost.
    Unreadable,
    Page(Tag),
}

impl Found {
    /// The tag, where there is one.
    pub fn tag(self) -> Option<Tag> {
        match self {
            Found::Page(tag) => Some(tag),
            Found::Erased | Found::Unreadable => None,
        }
    }
}

/// Whether a program or an erase succeeded; a block in which one failed is to be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    Done,
    Failed,
}

/// Whether a host's bytes are kept and covered by checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    #[default]
    Kept,
    /// The chip keeps tags and the map, and no host's bytes: sectors read as zeros.
    Absent,
}

/// A chip's pages with their tags.
#[derive(Clone, Debug)]
pub struct Flash<N> {
    chip: N,
    volume: u32,
    payload: Payload,
    blocks: u32,
    pages_per_block: u32,
    next_stamp: u64,
    counts: Counts,
    /// The one page buffer.
    page: Vec<u8>,
    failures: Vec<nand::Failure>,
}

impl<N: Nand> Flash<N> {
    /// The pages of `chip`, as those of the volume of that number.
    pub fn new(chip: N, volume: u32, payload: Payload) -> Result<Self> {
        let (geometry, layout) = (chip.geometry(), chip.layout(CellMode::Slc));
        if (geometry.spare_bytes as usize) < TAG_BYTES {
            return Err(Error::Unfit("a page needs 16 spare bytes for its tag"));
        }
        if layout.pages_per_unit() != 1 || layout.pages() < 4 || layout.pages() > 0x4000 {
            return Err(Error::Unfit("blocks of 4 to 16,384 pages that are programmed one by one are needed"));
        }
        let (blocks, pages_per_block) = (geometry.blocks, layout.pages());
        let sectors = u64::from(blocks) * u64::from(pages_per_block);
        if sectors > u64::from(u32::MAX >> 1) || geometry.page_bytes < 512 {
            return Err(Error::Unfit("pages of at least 512 bytes, and less than 2^31 of them, are needed"));
        }
        let page = alloc::vec![0; geometry.page_bytes as usize];
        let (counts, failures) = (Counts::default(), Vec::new());
        Ok(Self { chip, volume, payload, blocks, pages_per_block, next_stamp: 1, counts, page, failures })
    }

    pub fn chip(&self) -> &N {
        &self.chip
    }

    pub fn chip_mut(&mut self) -> &mut N {
        &mut self.chip
    }

    pub fn into_chip(self) -> N {
        self.chip
    }

    pub fn volume(&self) -> u32 {
        self.volume
    }

    pub fn set_volume(&mut self, volume: u32) {
        self.volume = volume;
    }

    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    pub fn page_bytes(&self) -> usize {
        self.page.len()
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    pub fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// The stamp that the next program gets.
    pub fn next_stamp(&self) -> u64 {
        self.next_stamp
    }

    /// Later programs get stamps beyond `stamp`.
    pub fn saw_stamp(&mut self, stamp: u64) {
        self.next_stamp = self.next_stamp.max(stamp + 1);
    }

    /// Block and place in it of a sector that stands in its block at its own place.
    pub fn split(&self, sector: u64) -> (u32, u32) {
        let pages = u64::from(self.pages_per_block);
        ((sector / pages) as u32, (sector % pages) as u32)
    }

    /// Reads a page into `data`, which is a page long, or is empty where the page buffer will do.
    pub fn read(&mut self, at: Place, data: &mut [u8], cause: Cause) -> Result<Found> {
        let page = self.physical(at)?;
        let mut own = core::mem::take(&mut self.page);
        let buffer = if data.is_empty() { own.as_mut_slice() } else { data };
        let found = self.sense(at.block, page, buffer, cause);
        self.page = own;
        found
    }

    fn sense(&mut self, block: u32, page: u32, data: &mut [u8], cause: Cause) -> Result<Found> {
        let mut spare = [0; TAG_BYTES];
        count(&mut self.counts.reads, cause);
        match self.chip.read(block, page, 0, data, &mut spare, cause) {
            Ok(_) => {}
            Err(NandError::Uncorrectable { .. }) => return Ok(Found::Unreadable),
            Err(error) => return Err(error.into()),
        }
        // One wrong bit is no reason to take an erased tag for another.
        let zeros: u32 = spare.iter().map(|byte| byte.count_zeros()).sum();
        if zeros <= 1 && data.iter().all(|&byte| byte == 0xff) {
            return Ok(Found::Erased);
        }
        if let Some(tag) = Tag::decode(&spare, self.volume, data) {
            return Ok(Found::Page(tag));
        }
        let bare = if self.payload == Payload::Absent { Tag::decode(&spare, self.volume, &[]) } else { None };
        Ok(bare.filter(|tag| tag.kind.is_payload()).map_or(Found::Unreadable, Found::Page))
    }

    /// The page buffer, as the last read into it left it.
    pub fn page(&self) -> &[u8] {
        &self.page
    }

    /// Programs a page. The tag's stamp is given here.
    pub fn program(&mut self, at: Place, tag: Tag, data: &[u8], cause: Cause) -> Result<Outcome> {
        let unit = at.page;
        let tag = Tag { stamp: self.next_stamp, ..tag };
        let covered = if self.payload == Payload::Absent && tag.kind.is_payload() { &[] } else { data };
        let spare = tag.encode(self.volume, covered);
        self.next_stamp += 1;
        count(&mut self.counts.programs, cause);
        match self.chip.program(at.block, unit, CellMode::Slc, data, &spare, cause) {
            Ok(()) => self.wait(),
            Err(NandError::ProgramFailed { .. }) => Ok(Outcome::Failed),
            Err(error) => Err(error.into()),
        }
    }

    /// Uses up a page that may have been half programmed when the power went, whatever becomes of it.
    pub fn use_up(&mut self, at: Place) -> Result<()> {
        let tag = Tag { kind: Kind::Filler, ends: false, logical: u32::MAX, stamp: 0, extra: 0 };
        match self.program_filled(at, tag, Cause::Metadata, |_| {}) {
            Ok(_) | Err(Error::Nand(NandError::Misuse { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Programs a page whose bytes `fill` puts into the page buffer, which is zeros before.
    pub fn program_filled(
        &mut self,
        at: Place,
        tag: Tag,
        cause: Cause,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Outcome> {
        let mut page = core::mem::take(&mut self.page);
        page.fill(0);
        fill(&mut page);
        let outcome = self.program(at, tag, &page, cause);
        self.page = page;
        outcome
    }

    /// Programs what the page buffer holds, as the last read left it.
    pub fn program_buffer(&mut self, at: Place, tag: Tag, cause: Cause) -> Result<Outcome> {
        let page = core::mem::take(&mut self.page);
        let outcome = self.program(at, tag, &page, cause);
        self.page = page;
        outcome
    }

    pub fn erase(&mut self, block: u32, cause: Cause) -> Result<Outcome> {
        count(&mut self.counts.erases, cause);
        match self.chip.erase(block, cause) {
            Ok(()) => self.wait(),
            Err(NandError::EraseFailed { .. }) => Ok(Outcome::Failed),
            Err(error) => Err(error.into()),
        }
    }

    fn wait(&mut self) -> Result<Outcome> {
        self.failures.clear();
        self.chip.barrier(&mut self.failures)?;
        Ok(if self.failures.is_empty() { Outcome::Done } else { Outcome::Failed })
    }

    pub fn is_bad(&self, block: u32) -> bool {
        self.chip.is_bad(block)
    }

    pub fn mark_bad(&mut self, block: u32) -> Result<()> {
        self.counts.grown_bad += 1;
        Ok(self.chip.mark_bad(block)?)
    }

    fn physical(&self, at: Place) -> Result<u32> {
        let page = self.chip.layout(CellMode::Slc).page(at.page);
        page.ok_or(NandError::OutOfRange { block: at.block, page: at.page }.into())
    }

    /// Bytes of memory, the page buffer and the chip left out.
    pub fn ram_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<N>() + self.failures.capacity() * size_of::<nand::Failure>()
    }
}

/// The newer of two pages.
pub fn newer(one: Option<(Place, Tag)>, other: Option<(Place, Tag)>) -> Option<(Place, Tag)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.1.stamp > one.1.stamp { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Whether a page reads as it did.
pub fn still_reads<N: Nand>(flash: &mut Flash<N>, newest: Option<(Place, Tag)>) -> Result<bool> {
    let Some((at, tag)) = newest else { return Ok(true) };
    Ok(flash.read(at, &mut [], Cause::Metadata)? == Found::Page(tag))
}
