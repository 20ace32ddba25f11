//! The block device that a translation layer makes of a chip, and the sectors that a request to it names.
//!
//! Invariant: what a request returned for is durable, in any order of later power cuts; a sector reads as it was written
//! last, or as zeros where it never was or was trimmed.

use core::ops::Range;

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
pub struct Span {
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

    /// The sectors of the span, each with its bytes of `data`.
    pub fn pages<'a>(&self, data: &'a [u8], sector_bytes: usize) -> impl Iterator<Item = (u32, &'a [u8])> {
        (self.first as u32..).zip(data.chunks_exact(sector_bytes))
    }

    /// The sectors of the span.
    pub fn sectors(&self) -> Range<u32> {
        self.first as u32..(self.first + self.count) as u32
    }

    /// The part of `data`, which has the bytes of this span, that is sector `sector`.
    pub fn bytes_of<'a>(&self, sector: u64, data: &'a [u8], sector_bytes: usize) -> &'a [u8] {
        let start = (sector.saturating_sub(self.first) as usize).saturating_mul(sector_bytes);
        data.get(start..start + sector_bytes).unwrap_or_default()
    }
}
