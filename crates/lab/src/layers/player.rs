//! Requests that arrive at a device in virtual time, and what is done between them.
//!
//! Invariant: a response lasts from the arrival of the request, though a background step that began before may still be under
//! way.

use emulator::{Chip, Profile};
use ftl::{BlockDevice, Device, WriteCache};
use nand::{CellMode, Nand};

use super::{Doing, Foresight, LayerError};
use crate::bench::Waits;

/// What a host asks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Read { sector: u64, count: u64 },
    Write { sector: u64, count: u64 },
    Trim { sector: u64, count: u64 },
    Flush,
}

/// A device that requests are played to. Sectors are written as zeros: the chip keeps no host data.
pub struct LayerPlayer {
    device: WriteCache<Device<Chip>>,
    foresight: Option<Foresight>,
    /// What a merge takes: the longest step.
    step_ns: u64,
    /// Whether the last step found nothing to do, and no request came since.
    is_tidy: bool,
    done_ns: u64,
    responses: Waits,
    steps: Waits,
    buffer: Vec<u8>,
}

impl LayerPlayer {
    /// Plays to a device behind a cache of so many sectors; with foresight, background work is done in idle time.
    pub fn new(device: Device<Chip>, cache_sectors: usize, foresight: Option<Foresight>) -> Self {
        let (step_ns, done_ns) = (merge_ns(device.chip()), device.chip().now_ns());
        Self {
            device: WriteCache::new(device, cache_sectors),
            foresight,
            step_ns,
            is_tidy: false,
            done_ns,
            responses: Waits::default(),
            steps: Waits::default(),
            buffer: Vec::new(),
        }
    }

    /// The device.
    pub fn device(&self) -> &Device<Chip> {
        self.device.device()
    }

    /// When the last request was done.
    pub fn done_ns(&self) -> u64 {
        self.done_ns
    }

    /// How long requests waited, and how long background steps took, since the last time this was asked.
    pub fn take_waits(&mut self) -> (Waits, Waits) {
        (std::mem::take(&mut self.responses), std::mem::take(&mut self.steps))
    }

    /// Gives the device back, everything written out.
    pub fn finish(mut self) -> Result<Device<Chip>, LayerError> {
        self.device.flush().doing("flushing")?;
        Ok(self.device.into_device())
    }

    /// A request arrives, after background work where there was time for it.
    pub fn request(&mut self, arrival_ns: u64, request: &Request) -> Result<(), LayerError> {
        let arrival_ns = arrival_ns.max(self.done_ns);
        self.work_until(arrival_ns)?;
        self.device.device_mut().chip_mut().advance_to_ns(arrival_ns);
        let sector_bytes = self.device.sector_bytes() as u64;
        match *request {
            Request::Read { sector, count } => {
                self.buffer.resize((count * sector_bytes) as usize, 0);
                self.device.read(sector, &mut self.buffer).doing("reading")?;
            }
            Request::Write { sector, count } => {
                self.buffer.clear();
                self.buffer.resize((count * sector_bytes) as usize, 0);
                self.device.write(sector, &self.buffer).doing("writing")?;
            }
            Request::Trim { sector, count } => self.device.trim(sector, count).doing("trimming")?,
            Request::Flush => self.device.flush().doing("flushing")?,
        }
        self.done_ns = self.device().chip().now_ns();
        self.responses.add(self.done_ns.saturating_sub(arrival_ns));
        self.is_tidy = false;
        Ok(())
    }

    /// Works in the background until a request arrives, as far as the idle time is foreseen to last.
    fn work_until(&mut self, arrival_ns: u64) -> Result<(), LayerError> {
        let Some(foresight) = &mut self.foresight else { return Ok(()) };
        let device = self.device.device_mut();
        device.chip_mut().advance_to_ns((self.done_ns + foresight.wait_ns()).min(arrival_ns));
        while !self.is_tidy {
            let now_ns = device.chip().now_ns();
            if now_ns >= arrival_ns || foresight.left_ns(now_ns - self.done_ns) < self.step_ns {
                break;
            }
            self.is_tidy = !device.background().doing("working in the background")?;
            if !self.is_tidy {
                self.steps.add(device.chip().now_ns() - now_ns);
            }
        }
        foresight.met(arrival_ns - self.done_ns);
        Ok(())
    }
}

/// What copying a block's pages and erasing a block takes.
fn merge_ns(chip: &Chip) -> u64 {
    let profile: &Profile = chip.profile();
    let timing = &profile.timing.slc;
    let page_ns = timing.read_ns.iter().max().unwrap_or(&0) + timing.program_ns.iter().max().unwrap_or(&0);
    u64::from(chip.layout(CellMode::Slc).pages()) * page_ns + timing.erase_ns
}
