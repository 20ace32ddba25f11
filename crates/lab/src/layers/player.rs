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

/// A device that requests are played to. A [`Request`] writes sectors as zeros, for chips that keep no host data.
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
        let mut buffer = std::mem::take(&mut self.buffer);
        self.ask(arrival_ns, |device| zeros(device, request, &mut buffer))?;
        self.buffer = buffer;
        Ok(())
    }

    /// Asks something of the device that arrives as a request does, and how long it took from then on. A request that arrives
    /// while the one before is under way counts as arrived when that is done.
    pub fn ask(
        &mut self,
        arrival_ns: u64,
        run: impl FnOnce(&mut WriteCache<Device<Chip>>) -> Result<(), LayerError>,
    ) -> Result<u64, LayerError> {
        let arrival_ns = arrival_ns.max(self.done_ns);
        self.work_until(arrival_ns)?;
        self.device.device_mut().chip_mut().advance_to_ns(arrival_ns);
        run(&mut self.device)?;
        self.done_ns = self.device().chip().now_ns();
        self.is_tidy = false;
        let response_ns = self.done_ns.saturating_sub(arrival_ns);
        self.responses.add(response_ns);
        Ok(response_ns)
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

/// Does a request, with zeros where it writes.
fn zeros(device: &mut impl BlockDevice, request: &Request, buffer: &mut Vec<u8>) -> Result<(), LayerError> {
    let sector_bytes = device.sector_bytes() as u64;
    match *request {
        Request::Read { sector, count } => {
            buffer.resize((count * sector_bytes) as usize, 0);
            device.read(sector, buffer).doing("reading")
        }
        Request::Write { sector, count } => {
            buffer.clear();
            buffer.resize((count * sector_bytes) as usize, 0);
            device.write(sector, buffer).doing("writing")
        }
        Request::Trim { sector, count } => device.trim(sector, count).doing("trimming"),
        Request::Flush => device.flush().doing("flushing"),
    }
}

/// What copying a block's pages and erasing a block takes.
pub fn merge_ns(chip: &Chip) -> u64 {
    let profile: &Profile = chip.profile();
    let timing = &profile.timing.slc;
    let page_ns = timing.read_ns.iter().max().unwrap_or(&0) + timing.program_ns.iter().max().unwrap_or(&0);
    u64::from(chip.layout(CellMode::Slc).pages()) * page_ns + timing.erase_ns
}
