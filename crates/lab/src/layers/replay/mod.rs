//! Block traces on translation layers, in virtual time and with bytes on the chip: the requests that hosts made to disks
//! are made to a small device.
//!
//! Invariant: a sector that is read is compared with the bytes that were written there last, and in the end every sector
//! that was written is read.

mod before;
mod checked;
mod config;
mod dense;
mod figures;
mod place;
mod playing;
mod shadow;

pub use config::{ReplayConfig, ReplayFormat, TracePlacement};
pub use figures::BlocksReplayed;

use emulator::Chip;
use ftl::{BlockDevice, Device};
use nand::{CellMode, Nand};

use super::{Doing, LayerError, Work, made};
use crate::processor_time::ProcessorTime;
use crate::trace::block::BlockTrace;

use config::options;
use place::RequestPlaces;
use playing::TracePlaying;

/// Sectors that are compared at once in the end.
const AT_ONCE: u64 = 64;
/// The least size that a chip is given for a trace.
const LEAST_BYTES: u64 = 16 << 20;

/// Bytes of a block as translation layers use it: what the trace touches is counted in such.
fn chunk_bytes(chip: &Chip) -> u64 {
    u64::from(chip.layout(CellMode::Slc).pages()) * u64::from(chip.geometry().page_bytes)
}

fn holds_bytes(device: &Device<Chip>) -> u64 {
    device.sectors() * device.sector_bytes() as u64
}

/// The smallest chip of the configuration's kind, of a power of two of bytes or what is next to it, that a trace fits.
///
/// # Errors
/// Where no volume of the scheme and the format can be made that large, or the trace cannot be placed so.
pub fn size_for(trace: &BlockTrace, config: &ReplayConfig) -> Result<u64, LayerError> {
    let ReplayConfig { profile, scheme, format, placement, .. } = config;
    let chunk_bytes = chunk_bytes(&Chip::without_data(profile, 1)?);
    let needed = RequestPlaces::new(*placement, trace, chunk_bytes)?.needed_bytes();
    let mut bytes = LEAST_BYTES.max(needed.next_power_of_two());
    loop {
        let size = bytes.next_multiple_of(profile.block_bytes());
        let sized = profile.with_capacity(size)?;
        let format = format.on(&Chip::without_data(&sized, 1)?, *scheme)?;
        if holds_bytes(&made(&sized, *scheme, Some(format))?) >= needed {
            return Ok(size);
        }
        bytes *= 2;
    }
}

/// Plays a trace on a new device; `progress` hears how much of how much is done.
///
/// A request that arrives while the one before is under way counts as arrived when that is done, as with
/// [`LayerPlayer`](super::LayerPlayer).
///
/// # Errors
/// The trace cannot be placed on the device, the layer refuses a request, or a sector does not hold the bytes that were
/// written there last.
pub fn replay(
    config: &ReplayConfig,
    trace: &BlockTrace,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BlocksReplayed, LayerError> {
    let mut playing = TracePlaying::new(config, trace)?;
    let sectors_before = playing.prepare(config, trace, progress)?;
    let cpu = ProcessorTime::now();
    playing.play_counted(config, trace, progress)?;
    let cpu_s = cpu.elapsed().as_secs_f64();
    let TracePlaying { mut player, mut checked, places, format, start, reads, writes } = playing;
    let steps = config.merges_idle.then(|| player.take_waits().1.distribution());
    let device = player.finish()?;
    let (after, ram_bytes, tally) = (*device.counts(), device.ram_bytes() as u64, checked.tally);
    let work = Work::between(&start.counts, &after, tally.sectors_written);
    let block_pages = device.chip().layout(CellMode::Slc).pages();
    let flash_ns = device.chip().counters().flash_ns - start.flash_ns;
    let elapsed_ns = device.chip().busy_until_ns() - start.at_ns;
    let mut device = Device::open(device.into_chip(), options()).doing("opening")?;
    let open_reads = device.counts().all_reads();
    checked.read_all(&mut device, AT_ONCE)?;
    Ok(BlocksReplayed {
        scheme: config.scheme.name(),
        chip: config.profile.name.clone(),
        chip_bytes: config.profile.capacity_bytes(),
        sectors: device.sectors(),
        sector_bytes: device.sector_bytes() as u64,
        extra_blocks: format.extra_blocks,
        logs: format.logs,
        map_blocks: format.map_blocks,
        placement: config.placement,
        full: config.full,
        warm_up: config.warm_up,
        requests: trace.requests.len() as u64,
        touched_bytes: places.touched_bytes(),
        sectors_before,
        sectors_read: tally.sectors_read,
        sectors_written: tally.sectors_written,
        sectors_trimmed: tally.sectors_trimmed,
        partial_sectors: tally.partial_sectors,
        extra_erases: work.extra_erases(tally.sectors_written, block_pages),
        extra_writes: work.extra_writes(tally.sectors_written),
        work,
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
