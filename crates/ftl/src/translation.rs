//! The engine of every scheme: a chip's pages and a mapping, as one block device.
//!
//! A mapping says where a sector stands; the page is read here, and its tag is held against the sector. Invariant: a
//! sector's bytes are given only if the tag of their page names the sector, and after a change that failed half way
//! nothing more is changed.

use nand::{Cause, Nand};

use crate::device::{BlockDevice, Span};
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::counts::Counts;
use crate::flash::{Flash, Found};
use crate::sector_map::{SchemeRow, SectorMap};
use crate::settings::{Format, Options};
use crate::{Error, Result};

/// A block device that a mapping makes of a chip.
#[derive(Clone, Debug)]
pub struct Translation<N, M> {
    pub(crate) flash: Flash<N>,
    pub(crate) map: M,
}

impl<N: Nand, M: SectorMap> Translation<N, M> {
    /// Makes a volume of a scheme, in which every sector reads as zeros.
    pub(crate) fn create(chip: N, row: &SchemeRow, format: &Format, options: Options) -> Result<Self> {
        let mut flash = Flash::new(chip, format.volume, options.payload)?;
        let good = ANCHOR_BLOCKS + flash.usable().count() as u32;
        let data_blocks = good.saturating_sub(format.extra_blocks);
        let record = Record { volume: format.volume, scheme: row.code, data_blocks, ..Record::default() };
        let demand = M::demand(&record, &flash, format)?;
        if demand.logs < row.logs_min || format.extra_blocks < demand.extra_blocks || data_blocks == 0 {
            return Err(Error::Unfit(demand.refusal));
        }
        let record = Record { logs: demand.logs, ..record };
        let mut map = M::empty(&flash, &record, options)?;
        map.create(&mut flash, record, format)?;
        Ok(Self { flash, map })
    }

    /// Opens the volume on a chip.
    pub(crate) fn recover(chip: N, options: Options) -> Result<Self> {
        let (mut flash, anchors, record) = Anchors::open(chip, options.payload)?;
        let row = M::ROWS.iter().find(|row| row.code == record.scheme);
        let row = row.ok_or(Error::NoVolume("it is of another scheme"))?;
        if record.logs < row.logs_min {
            return Err(Error::NoVolume("the anchor's parameters do not fit the chip"));
        }
        let mut map = M::empty(&flash, &record, options)?;
        map.recover(&mut flash, anchors, record)?;
        Ok(Self { flash, map })
    }

    /// Runs a change of the volume; after a failure that may have left memory and flash apart, nothing more is
    /// changed.
    fn change<T>(&mut self, run: impl FnOnce(&mut M, &mut Flash<N>) -> Result<T>) -> Result<T> {
        if self.flash.has_failed {
            return Err(Error::Failed);
        }
        let outcome = run(&mut self.map, &mut self.flash);
        self.flash.has_failed = !matches!(outcome, Ok(_) | Err(Error::TooLarge { .. }));
        outcome
    }

    /// Reads one sector that the device has.
    pub(crate) fn read_sector(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        let place = self.map.find(&mut self.flash, sector as u32)?;
        let Some(at) = place.page() else {
            data.fill(0);
            return Ok(());
        };
        match self.flash.read(at, data, Cause::Host)? {
            Found::Page(tag) if tag.kind.is_payload() && u64::from(tag.logical) == sector => {}
            Found::Page(tag) if place.is_empty(Some(tag.kind)) => data.fill(0),
            Found::Erased if place.is_empty(None) => data.fill(0),
            Found::Page(_) | Found::Erased | Found::Unreadable => return Err(Error::Unreadable { sector }),
        }
        Ok(())
    }

    /// Does one step of work ahead of need: the scheme's, or the erase of a free block. Whether there was one to do.
    pub fn background(&mut self) -> Result<bool> {
        self.change(|map, flash| Ok(map.step(flash)? || flash.erase_ahead(Cause::Gc)?))
    }

    /// What was counted since the volume was opened.
    pub fn counts(&self) -> &Counts {
        self.flash.counts()
    }

    /// Bytes of memory the scheme takes, one page buffer and the chip left out.
    pub fn ram_bytes(&self) -> usize {
        self.flash.ram_bytes() + self.map.ram_bytes()
    }

    /// The chip.
    pub fn chip(&self) -> &N {
        self.flash.chip()
    }

    /// The chip, to look at it or to set its faults; programs and erases of others damage the volume.
    pub fn chip_mut(&mut self) -> &mut N {
        self.flash.chip_mut()
    }

    /// Gives the chip back.
    pub fn into_chip(self) -> N {
        self.flash.into_chip()
    }
}

impl<N: Nand, M: SectorMap> BlockDevice for Translation<N, M> {
    fn sector_bytes(&self) -> usize {
        self.flash.page_bytes()
    }

    fn sectors(&self) -> u64 {
        self.map.sectors()
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        let span = Span::of_bytes(self, sector, data.len())?;
        self.flash.counts_mut().host_reads += span.count;
        let mut pages = (sector..).zip(data.chunks_exact_mut(self.flash.page_bytes()));
        pages.try_for_each(|(sector, data)| self.read_sector(sector, data))
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<()> {
        let span = Span::of_bytes(self, sector, data.len())?;
        self.flash.counts_mut().host_writes += span.count;
        self.change(|map, flash| map.write(flash, span, data))
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<()> {
        let span = Span::new(self, sector, count)?;
        self.flash.counts_mut().host_trims += span.count;
        self.change(|map, flash| map.trim(flash, span))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
