//! A device while a trace is played on it.
//!
//! Invariant: every request is asked once in a playing, in order and not before its time, and every sector that is read
//! is compared with the bytes that were written there last.

use emulator::Chip;
use ftl::{BlockDevice, Counts, Device, Format};

use super::super::{Doing, Foresight, LayerError, LayerPlayer, made_on};
use super::before::before;
use super::checked::Checked;
use super::config::{ReplayConfig, TracePlacement, options};
use super::place::RequestPlaces;
use super::{chunk_bytes, holds_bytes};
use crate::bench::Waits;
use crate::trace::block::{BlockOp, BlockRequest, BlockTrace};

/// The version of what stands on the device before the trace begins.
const BEFORE: u32 = 1;

/// The moment from which on all is counted.
#[derive(Clone, Copy)]
pub struct CountingStart {
    pub counts: Counts,
    pub flash_ns: u64,
    pub at_ns: u64,
}

impl CountingStart {
    /// Now, after so much was counted of the volume since it was opened.
    fn new(chip: &Chip, counts: Counts) -> Self {
        Self { counts, flash_ns: chip.counters().flash_ns, at_ns: chip.now_ns() }
    }
}

/// A device, and the bytes that it must hold.
pub struct TracePlaying {
    pub player: LayerPlayer,
    pub checked: Checked,
    pub places: RequestPlaces,
    pub format: Format,
    pub start: CountingStart,
    pub reads: Waits,
    pub writes: Waits,
}

impl TracePlaying {
    /// A new device for a trace.
    pub fn new(config: &ReplayConfig, trace: &BlockTrace) -> Result<Self, LayerError> {
        let chip = Chip::new(&config.profile, 1)?;
        let format = config.format.on(&chip, config.scheme)?;
        let places = RequestPlaces::new(config.placement, trace, chunk_bytes(&chip))?;
        let mut device = made_on(chip, config.scheme, Some(format), options())?;
        let mut start = CountingStart::new(device.chip(), *device.counts());
        if config.placement == TracePlacement::AsRecorded {
            start.counts = Counts::default();
            device = Device::open(device.into_chip(), options()).doing("opening")?;
        }
        places.fit(holds_bytes(&device))?;
        let checked = Checked::new(&device, config.warm_up_requests(trace));
        let foresight = config.merges_idle.then(|| Foresight::new(Foresight::WAIT_NS));
        let player = LayerPlayer::new(device, 0, foresight);
        Ok(Self { player, checked, places, format, start, reads: Waits::default(), writes: Waits::default() })
    }

    /// Writes the sectors that must be there before the trace begins, and warms the device up where that is asked for. How
    /// many sectors were written before the first request.
    pub fn prepare(
        &mut self,
        config: &ReplayConfig,
        trace: &BlockTrace,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<u64, LayerError> {
        let sectors = self.write_before(config, trace, progress)?;
        if config.warm_up {
            let played = self.play(trace, BEFORE, progress);
            played.map_err(|error| LayerError::Wrong(format!("warming up, {error}")))?;
        }
        if sectors > 0 || config.warm_up {
            let device = self.player.device();
            self.start = CountingStart::new(device.chip(), *device.counts());
        }
        self.checked.tally = Default::default();
        self.player.take_waits();
        (self.reads, self.writes) = (Waits::default(), Waits::default());
        Ok(sectors)
    }

    fn write_before(
        &mut self,
        config: &ReplayConfig,
        trace: &BlockTrace,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<u64, LayerError> {
        let Self { player, checked, places, .. } = self;
        let (device, sector_bytes) = (player.device(), player.device().sector_bytes() as u64);
        let (sectors, block_sectors) = (device.sectors(), chunk_bytes(device.chip()) / sector_bytes);
        let runs = match places {
            _ if config.full => {
                let firsts = (0..sectors).step_by(block_sectors as usize);
                firsts.map(|first| first..sectors.min(first + block_sectors)).collect()
            }
            RequestPlaces::Dense(dense) => before(trace, dense, sector_bytes, block_sectors),
            RequestPlaces::AsRecorded { .. } => Vec::new(),
        };
        for (run, done) in runs.iter().zip(1..) {
            let range = checked.range(run);
            player.ask(0, |device| checked.write(device, range, BEFORE))?;
            progress(done, runs.len() as u64);
        }
        Ok(checked.tally.sectors_written)
    }

    /// Plays the trace that is counted.
    pub fn play_counted(
        &mut self,
        config: &ReplayConfig,
        trace: &BlockTrace,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), LayerError> {
        self.play(trace, BEFORE + config.warm_up_requests(trace), progress)
    }

    /// Asks all requests; the versions of what they write come after `version`.
    fn play(&mut self, trace: &BlockTrace, version: u32, progress: &mut dyn FnMut(u64, u64)) -> Result<(), LayerError> {
        let start_ns = self.player.done_ns();
        for (request, number) in trace.requests.iter().zip(1..) {
            let asked = self.ask(start_ns, request, version + number);
            asked.map_err(|error| LayerError::Wrong(format!("request {number}: {error}")))?;
            progress(number.into(), trace.requests.len() as u64);
        }
        Ok(())
    }

    /// Asks a request; a write gives its range that version.
    fn ask(&mut self, start_ns: u64, request: &BlockRequest, version: u32) -> Result<(), LayerError> {
        let Self { player, checked, places, reads, writes, .. } = self;
        let arrival_ns = start_ns.saturating_add(request.at_ns);
        let range = places.place(request);
        let response_ns = player.ask(arrival_ns, |device| match (request.op, range) {
            (BlockOp::Read, Some(range)) => checked.read(device, range),
            (BlockOp::Write, Some(range)) => checked.write(device, range, version),
            (BlockOp::Trim, Some(range)) => checked.trim(device, range),
            (BlockOp::Flush, _) => device.flush().doing("flushing"),
            // A trim of what nothing was ever written to.
            (BlockOp::Read | BlockOp::Write | BlockOp::Trim, None) => Ok(()),
        })?;
        match request.op {
            BlockOp::Read => reads.add(response_ns),
            BlockOp::Write => writes.add(response_ns),
            BlockOp::Trim | BlockOp::Flush => {}
        }
        Ok(())
    }
}
