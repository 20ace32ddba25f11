//! Pages with tags, programmed one at a time, and the free blocks: the ground that every scheme stands on.
//!
//! Blocks are used with one bit a cell, so that no program endangers another page. Each program and erase is waited for
//! before the next: at a power cut one operation at most is under way. Invariant: stamps ascend in the order of programs,
//! and a page is returned only if its tag's checksum is right.

pub mod anchor;
pub mod block_map;
pub mod cleaning;
mod counting;
pub mod counts;
pub mod head;
pub mod latest;
mod newest;
pub mod pages;
mod place;
pub mod pool;
mod record;
mod size;
pub mod tag;
mod write;

use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError};

use crate::Result;
use anchor::ANCHOR_BLOCKS;
use counts::{Counts, count};
pub use newest::{newer, still_reads, to_write_anew};
pub use place::{Place, SectorPlace};
use pool::Pool;
pub use size::ChipSize;
use tag::{TAG_BYTES, Tag, checksum};

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

/// A chip's pages with their tags, and its free blocks.
#[derive(Clone, Debug)]
pub struct Flash<N> {
    chip: N,
    volume: u32,
    payload: Payload,
    /// A change of the volume failed: memory may differ from flash.
    pub has_failed: bool,
    blocks: u32,
    pages_per_block: u32,
    next_stamp: u64,
    counts: Counts,
    /// The free blocks.
    pub pool: Pool,
    /// The one page buffer.
    page: Vec<u8>,
    /// The checksum of the page buffer, where the tag read with it covers a host's bytes.
    page_sum: Option<u32>,
    failures: Vec<nand::Failure>,
}

impl<N: Nand> Flash<N> {
    /// The pages of `chip`, as those of the volume of that number.
    pub fn new(chip: N, volume: u32, payload: Payload) -> Result<Self> {
        let ChipSize { blocks, pages_per_block, page_bytes } = ChipSize::of_fit(&chip)?;
        Ok(Self {
            chip,
            volume,
            payload,
            has_failed: false,
            blocks,
            pages_per_block,
            next_stamp: 1,
            counts: Counts::default(),
            pool: Pool::default(),
            page: alloc::vec![0; page_bytes],
            page_sum: None,
            failures: Vec::new(),
        })
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
        (self.volume, self.page_sum) = (volume, None);
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

    /// The chip's sizes.
    pub fn size(&self) -> ChipSize {
        ChipSize { blocks: self.blocks, pages_per_block: self.pages_per_block, page_bytes: self.page_bytes() }
    }

    /// The good blocks behind the anchors.
    pub fn usable(&self) -> impl Iterator<Item = u32> + '_ {
        (ANCHOR_BLOCKS..self.blocks).filter(|&block| !self.is_bad(block))
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
        if !data.is_empty() {
            return Ok(self.sense(at.block, page, data, cause)?.0);
        }
        let mut own = core::mem::take(&mut self.page);
        let sensed = self.sense(at.block, page, &mut own, cause);
        self.page = own;
        self.page_sum = sensed.as_ref().map_or(None, |&(_, sum)| sum);
        Ok(sensed?.0)
    }

    /// Reads a page, and the checksum of its bytes where its tag covers a host's.
    fn sense(&mut self, block: u32, page: u32, data: &mut [u8], cause: Cause) -> Result<(Found, Option<u32>)> {
        let mut spare = [0; TAG_BYTES];
        count(&mut self.counts.reads, cause);
        match self.chip.read(block, page, 0, data, &mut spare, cause) {
            Ok(_) => {}
            Err(NandError::Uncorrectable { .. }) => return Ok((Found::Unreadable, None)),
            Err(error) => return Err(error.into()),
        }
        // One wrong bit is no reason to take an erased tag for another.
        let zeros = u128::from_le_bytes(spare).count_zeros();
        if zeros <= 1 && data.iter().all(|&byte| byte == 0xff) {
            return Ok((Found::Erased, None));
        }
        let sum = checksum(self.volume, data);
        if let Some(tag) = Tag::decode(&spare, sum) {
            return Ok((Found::Page(tag), tag.kind.is_payload().then_some(sum)));
        }
        let bare = if self.payload == Payload::Absent { Tag::decode(&spare, self.volume) } else { None };
        Ok((bare.filter(|tag| tag.kind.is_payload()).map_or(Found::Unreadable, Found::Page), None))
    }

    /// The page buffer, as the last read into it left it.
    pub fn page(&self) -> &[u8] {
        &self.page
    }

    /// The page behind the last one of a block that does not read as erased.
    pub fn end_of(&mut self, block: u32) -> Result<u32> {
        let mut end = self.pages_per_block;
        while end > 0 && self.read(Place { block, page: end - 1 }, &mut [], Cause::Metadata)? == Found::Erased {
            end -= 1;
        }
        Ok(end)
    }

    pub fn is_bad(&self, block: u32) -> bool {
        self.chip.is_bad(block)
    }

    fn physical(&self, at: Place) -> Result<u32> {
        let page = self.chip.layout(CellMode::Slc).page(at.page);
        page.ok_or(NandError::OutOfRange { block: at.block, page: at.page }.into())
    }

    /// Bytes of memory, the page buffer and the chip left out.
    pub fn ram_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<N>()
            + self.failures.capacity() * size_of::<nand::Failure>()
            + self.pool.ram_bytes()
    }
}
