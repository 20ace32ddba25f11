//! Block traces on translation layers, in virtual time and with bytes on the chip: what hosts asked of disks is asked of a small
//! device.
//!
//! Invariant: every request is asked once, in order and not before its time, and every sector that is read is compared with
//! what was written there last.

mod before;
mod checked;
mod dense;
mod shadow;

use emulator::{Chip, Profile};
use ftl::{BlockDevice, Device, Options, Scheme, TooLarge};
use nand::{CellMode, Nand};
use serde::Serialize;

use super::{Doing, Foresight, LayerError, LayerPlayer, Work, made, made_on};
use crate::bench::{Distribution, Waits};
use crate::processor_time::ProcessorTime;
use crate::trace::block::{BlockOp, BlockRequest, BlockTrace};

use before::before;
use checked::Checked;
use dense::Dense;

/// The version of what stands on the device before the trace begins.
const BEFORE: u32 = 1;
/// Sectors that are compared at once in the end.
const AT_ONCE: u64 = 64;
/// The least size that a chip is given for a trace.
const LEAST_BYTES: u64 = 16 << 20;

/// What a trace is played on.
#[derive(Clone, Debug)]
pub struct ReplayConfig {
    pub profile: Profile,
    pub scheme: Scheme,
    /// Merge in idle time, as far as it is foreseen.
    pub merges_idle: bool,
}

/// How a device answered a trace.
#[derive(Clone, Debug, Serialize)]
pub struct BlocksReplayed {
    pub scheme: &'static str,
    pub chip: String,
    pub chip_bytes: u64,
    pub sectors: u64,
    pub sector_bytes: u64,
    /// Requests of the trace, and what of its disks they touch.
    pub requests: u64,
    pub touched_bytes: u64,
    /// Sectors written before the trace began, since it reads them.
    pub sectors_before: u64,
    pub sectors_read: u64,
    pub sectors_written: u64,
    pub sectors_trimmed: u64,
    /// Sectors read first since a part of them was written.
    pub partial_sectors: u64,
    #[serde(flatten)]
    pub work: Work,
    /// The sum of the prices of all operations.
    pub flash_s: f64,
    /// From the beginning of the counting until the last operation had ended; idle time counts too.
    pub elapsed_s: f64,
    /// Processor time, the emulator's and that of the check included.
    pub cpu_s: f64,
    pub read_responses: Distribution,
    pub write_responses: Distribution,
    /// With merges in idle time: how long background steps took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Distribution>,
    /// Memory the scheme takes, one page buffer left out.
    pub ram_bytes: u64,
    /// Page reads of an opening after it.
    pub open_reads: u64,
    /// Sectors that were compared once more after that opening.
    pub sectors_verified: u64,
}

/// A host expects that a request of any length is taken.
fn options() -> Options {
    Options { too_large: TooLarge::Split, ..Options::default() }
}

/// Bytes of a block as translation layers use it: what the trace touches is counted in such.
fn chunk_bytes(chip: &Chip) -> u64 {
    u64::from(chip.layout(CellMode::Slc).pages()) * u64::from(chip.geometry().page_bytes)
}

/// The smallest chip of a kind, of a power of two of bytes or what is next to it, that holds what a trace touches.
///
/// # Errors
/// Where no volume of the scheme can be made that large.
pub fn size_for(trace: &BlockTrace, profile: &Profile, scheme: Scheme) -> Result<u64, LayerError> {
    let needed = Dense::new(trace, chunk_bytes(&Chip::without_data(profile, 1)?)).bytes();
    let mut bytes = LEAST_BYTES.max(needed.next_power_of_two());
    loop {
        let size = bytes.next_multiple_of(profile.block_bytes());
        if holds_bytes(&made(&profile.with_capacity(size)?, scheme, None)?) >= needed {
            return Ok(size);
        }
        bytes *= 2;
    }
}

fn holds_bytes(device: &Device<Chip>) -> u64 {
    device.sectors() * device.sector_bytes() as u64
}

/// Plays a trace on a new device; `progress` hears how much of how much is done.
///
/// A request that arrives while the one before is under way counts as arrived when that is done, as with [`LayerPlayer`].
///
/// # Errors
/// What the trace touches does not fit, the layer refuses something, or a sector does not hold what was written there last.
pub fn replay(
    config: &ReplayConfig,
    trace: &BlockTrace,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BlocksReplayed, LayerError> {
    let mut replaying = Replaying::new(config, trace)?;
    let sectors_before = replaying.prepare(trace, progress)?;
    let device = replaying.player.device();
    let (before, before_ns) = (*device.counts(), device.chip().counters().flash_ns);
    let start_ns = device.chip().now_ns();
    let cpu = ProcessorTime::now();
    replaying.play(trace, progress)?;
    let cpu_s = cpu.elapsed().as_secs_f64();
    let Replaying { mut player, mut checked, dense, reads, writes, .. } = replaying;
    let steps = config.merges_idle.then(|| player.take_waits().1.distribution());
    let device = player.finish()?;
    let (after, ram_bytes, tally) = (*device.counts(), device.ram_bytes() as u64, checked.tally);
    let flash_ns = device.chip().counters().flash_ns - before_ns;
    let elapsed_ns = device.chip().busy_until_ns() - start_ns;
    let mut device = Device::open(device.into_chip(), options()).doing("opening")?;
    let open_reads = device.counts().all_reads();
    checked.read_all(&mut device, AT_ONCE)?;
    Ok(BlocksReplayed {
        scheme: config.scheme.name(),
        chip: config.profile.name.clone(),
        chip_bytes: config.profile.capacity_bytes(),
        sectors: device.sectors(),
        sector_bytes: device.sector_bytes() as u64,
        requests: trace.requests.len() as u64,
        touched_bytes: dense.bytes(),
        sectors_before,
        sectors_read: tally.sectors_read,
        sectors_written: tally.sectors_written,
        sectors_trimmed: tally.sectors_trimmed,
        partial_sectors: tally.partial_sectors,
        work: Work::between(&before, &after, tally.sectors_written),
        flash_s: flash_ns as f64 / 1e9,
        elapsed_s: elapsed_ns as f64 / 1e9,
        cpu_s,
        read_responses: reads.distribution(),
        write_responses: writes.distribution(),
        steps,
        ram_bytes,
        open_reads,
        sectors_verified: checked.tally.sectors_read - tally.sectors_read,
    })
}

/// A device while a trace is played on it.
struct Replaying {
    player: LayerPlayer,
    checked: Checked,
    dense: Dense,
    block_sectors: u64,
    reads: Waits,
    writes: Waits,
}

impl Replaying {
    fn new(config: &ReplayConfig, trace: &BlockTrace) -> Result<Self, LayerError> {
        let chip = Chip::new(&config.profile, 1)?;
        let (chunk_bytes, page_bytes) = (chunk_bytes(&chip), u64::from(chip.geometry().page_bytes));
        let dense = Dense::new(trace, chunk_bytes);
        let device = made_on(chip, config.scheme, None, options())?;
        let (touched_bytes, holds_bytes) = (dense.bytes(), holds_bytes(&device));
        if touched_bytes > holds_bytes {
            return Err(LayerError::NoRoom { touched_bytes, holds_bytes });
        }
        let checked = Checked::new(&device);
        let foresight = config.merges_idle.then(|| Foresight::new(Foresight::WAIT_NS));
        let player = LayerPlayer::new(device, 0, foresight);
        let (reads, writes) = (Waits::default(), Waits::default());
        Ok(Self { player, checked, dense, block_sectors: chunk_bytes / page_bytes, reads, writes })
    }

    /// Writes what must be there before the trace begins. How many sectors.
    fn prepare(&mut self, trace: &BlockTrace, progress: &mut dyn FnMut(u64, u64)) -> Result<u64, LayerError> {
        let Self { player, checked, dense, block_sectors, .. } = self;
        let sector_bytes = player.device().sector_bytes() as u64;
        let runs = before(trace, dense, sector_bytes, *block_sectors);
        for (run, done) in runs.iter().zip(1..) {
            let range = checked.range(run);
            player.ask(0, |device| checked.write(device, range, BEFORE))?;
            progress(done, runs.len() as u64);
        }
        player.take_waits();
        Ok(std::mem::take(&mut checked.tally).sectors_written)
    }

    fn play(&mut self, trace: &BlockTrace, progress: &mut dyn FnMut(u64, u64)) -> Result<(), LayerError> {
        let start_ns = self.player.done_ns();
        for (request, number) in trace.requests.iter().zip(1..) {
            let asked = self.ask(start_ns, request, BEFORE + number);
            asked.map_err(|error| LayerError::Wrong(format!("request {number}: {error}")))?;
            progress(number.into(), trace.requests.len() as u64);
        }
        Ok(())
    }

    /// Asks a request; a write gives its range that version.
    fn ask(&mut self, start_ns: u64, request: &BlockRequest, version: u32) -> Result<(), LayerError> {
        let Self { player, checked, dense, reads, writes, .. } = self;
        let arrival_ns = start_ns.saturating_add(request.at_ns);
        let range = dense.place(request);
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
