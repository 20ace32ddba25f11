//! The block device that a translation layer makes of a chip.
//!
//! Invariant: what a request returned for is durable, in any order of later power cuts; a sector reads as it was written
//! last, or as zeros where it never was or was trimmed.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::flash::anchor::ANCHOR_BLOCKS;
use crate::flash::pages::{Head, Pages};
use crate::flash::tag::Kind;
use crate::flash::{Flash, Found, Place};
use crate::look::BlockUse;
use crate::{Error, Result};

/// Sectors that can be read and overwritten in any order.
pub trait BlockDevice {
    /// Bytes of a sector: those of a page of the chip.
    fn sector_bytes(&self) -> usize;

    /// Sectors of the device.
    fn sectors(&self) -> u64;

    /// Reads whole sectors from `sector` on.
    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<()>;

    /// Writes whole sectors from `sector` on. Durable when it returns, unless the device has a write cache.
    fn write(&mut self, sector: u64, data: &[u8]) -> Result<()>;

    /// Gives sectors up: they read as zeros. Durable when it returns, unless the device has a write cache.
    fn trim(&mut self, sector: u64, count: u64) -> Result<()>;

    /// Makes everything durable that was written and trimmed.
    fn flush(&mut self) -> Result<()>;
}

/// A request's sectors, once it is known that the device has them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub first: u64,
    pub count: u64,
}

impl Span {
    /// So many sectors from `first` on.
    pub fn new(device: &impl BlockDevice, first: u64, count: u64) -> Result<Self> {
        let sectors = device.sectors();
        match first.checked_add(count) {
            Some(end) if end <= sectors => Ok(Self { first, count }),
            _ => Err(Error::OutOfRange { sector: first, count, sectors }),
        }
    }

    /// The sectors that `bytes` fill.
    pub fn of_bytes(device: &impl BlockDevice, first: u64, bytes: usize) -> Result<Self> {
        let sector_bytes = device.sector_bytes();
        if sector_bytes == 0 || !bytes.is_multiple_of(sector_bytes) {
            return Err(Error::Length { bytes, sector_bytes });
        }
        Self::new(device, first, (bytes / sector_bytes) as u64)
    }

    /// The part of `data`, which has the bytes of this span, that is sector `sector`.
    pub fn bytes_of<'a>(&self, sector: u64, data: &'a [u8], sector_bytes: usize) -> &'a [u8] {
        let start = (sector.saturating_sub(self.first) as usize).saturating_mul(sector_bytes);
        data.get(start..start + sector_bytes).unwrap_or_default()
    }
}

/// What the schemes have in common: pages with tags below, sectors above.
pub(crate) trait Layer {
    type Chip: Nand;

    fn flash(&self) -> &Flash<Self::Chip>;

    fn flash_mut(&mut self) -> &mut Flash<Self::Chip>;

    /// Sectors of the device.
    fn all_sectors(&self) -> u64;

    /// Reads one sector that the device has.
    fn read_sector(&mut self, sector: u64, data: &mut [u8]) -> Result<()>;

    /// Writes sectors that the device has.
    fn write_sectors(&mut self, span: Span, data: &[u8]) -> Result<()>;

    /// Gives up sectors that the device has.
    fn trim_sectors(&mut self, span: Span) -> Result<()>;

    /// Whether a change failed that may have left memory and flash apart.
    fn has_failed(&mut self) -> &mut bool;

    /// Runs what changes the volume; after a failure that may have left memory and flash apart, nothing more is changed.
    fn change<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T>
    where
        Self: Sized,
    {
        if *self.has_failed() {
            return Err(Error::Failed);
        }
        let outcome = run(self);
        *self.has_failed() = !matches!(outcome, Ok(_) | Err(Error::TooLarge { .. }));
        outcome
    }

    /// Reads a sector that stands at a place; one whose page is erased, or says that it holds nothing, is zeros.
    fn read_at(&mut self, at: Place, sector: u64, data: &mut [u8]) -> Result<()> {
        match self.flash_mut().read(at, data, Cause::Host)? {
            Found::Erased => data.fill(0),
            Found::Page(tag) if tag.kind == Kind::Hole => data.fill(0),
            Found::Page(tag) if tag.kind.is_payload() && u64::from(tag.logical) == sector => {}
            Found::Page(_) | Found::Unreadable => return Err(Error::Unreadable { sector }),
        }
        Ok(())
    }

    /// Names the use of every block that the scheme knows of, bad blocks and anchors left out.
    fn visit_uses(&mut self, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()>;

    /// The use of every block.
    fn uses(&mut self) -> Result<Vec<BlockUse>> {
        let blocks = self.flash().blocks();
        let mut uses = alloc::vec![BlockUse::Unknown; blocks as usize];
        self.visit_uses(&mut |block, found| {
            uses.get_mut(block as usize).into_iter().for_each(|slot| *slot = found);
        })?;
        for (block, slot) in (0..blocks).zip(&mut uses) {
            if block < ANCHOR_BLOCKS {
                *slot = BlockUse::Anchor;
            } else if *slot == BlockUse::Unknown && self.flash().is_bad(block) {
                *slot = BlockUse::Bad;
            }
        }
        Ok(uses)
    }

    /// A line for every block of two uses.
    fn used_twice(&mut self) -> Result<Vec<String>> {
        let mut uses: BTreeMap<u32, BlockUse> = (0..ANCHOR_BLOCKS).map(|block| (block, BlockUse::Anchor)).collect();
        let mut findings = Vec::new();
        self.visit_uses(&mut |block, found| {
            if let Some(other) = uses.insert(block, found) {
                findings.push(format!("block {block}: {found}, and {other} as well"));
            }
        })?;
        Ok(findings)
    }

    /// A line for every sector that cannot be read.
    fn unreadable(&mut self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        let mut page = alloc::vec![0; self.flash().page_bytes()];
        for sector in 0..self.all_sectors() {
            match self.read_sector(sector, &mut page) {
                Ok(()) => {}
                Err(Error::Unreadable { .. }) => findings.push(format!("sector {sector} cannot be read")),
                Err(error) => return Err(error),
            }
        }
        Ok(findings)
    }
}

/// Names the use of blocks whose pages are written wherever there is room: free, being filled by `head`, or with pages that
/// count; but for those of which `is_other` says that they hold something else.
pub(crate) fn visit_pages(
    pages: &Pages,
    head: &Head,
    is_other: impl Fn(u32) -> bool,
    visit: &mut dyn FnMut(u32, BlockUse),
) {
    pages.pool.listed().for_each(|block| visit(block, BlockUse::Free));
    for (number, block) in pages.blocks().filter(|(number, _)| !is_other(*number)) {
        let valid = u32::from(block.valid);
        if head.block() == Some(number) {
            visit(number, BlockUse::Open(valid));
        } else if valid > 0 || block.is_closed {
            visit(number, BlockUse::Pages(valid));
        }
    }
}

impl<L: Layer> BlockDevice for L {
    fn sector_bytes(&self) -> usize {
        self.flash().page_bytes()
    }

    fn sectors(&self) -> u64 {
        self.all_sectors()
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        let span = Span::of_bytes(self, sector, data.len())?;
        self.flash_mut().counts_mut().host_reads += span.count;
        let mut pages = (sector..).zip(data.chunks_exact_mut(self.sector_bytes()));
        pages.try_for_each(|(sector, data)| self.read_sector(sector, data))
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<()> {
        let span = Span::of_bytes(self, sector, data.len())?;
        self.flash_mut().counts_mut().host_writes += span.count;
        self.change(|device| device.write_sectors(span, data))
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<()> {
        let span = Span::new(self, sector, count)?;
        self.flash_mut().counts_mut().host_trims += span.count;
        self.change(|device| device.trim_sectors(span))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
