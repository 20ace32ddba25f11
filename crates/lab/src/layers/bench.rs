//! The workload that translation layers are timed with: single sectors written at random places of a half full device, with
//! cleaning under way.
//!
//! Invariant: what is counted is a steady state: as many writes as the half has sectors come before it.

use emulator::Profile;
use ftl::{BlockDevice, Device, Scheme};
use serde::Serialize;

use super::{Doing, Foresight, LayerError, LayerPlayer, Request, Work, made, options};
use crate::bench::{Distribution, OPERATIONS_PER_IDLE};
use crate::processor_time::ProcessorTime;
use torture::ops::Supply;

/// Writes that are counted.
const WRITES: u64 = 20_000;
/// Sectors of a request that fills the device.
const FILL_SECTORS: u64 = 32;

/// What to measure, and on what.
#[derive(Clone, Debug)]
pub struct LayerConfig {
    pub profile: Profile,
    pub scheme: Scheme,
    /// Sectors that may wait in a write cache.
    pub cache_sectors: usize,
    /// Idle time after every [`OPERATIONS_PER_IDLE`] writes.
    pub idle_ns: Option<u64>,
    /// Decides the places of the writes.
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct LayerReport {
    pub scheme: &'static str,
    pub chip: String,
    pub chip_bytes: u64,
    pub sectors: u64,
    pub sector_bytes: u64,
    /// Sectors that the workload wrote while it was counted.
    pub writes: u64,
    #[serde(flatten)]
    pub work: Work,
    /// The sum of the prices of all operations.
    pub flash_s: f64,
    /// From the beginning of the counting until the last operation had ended; idle time counts too.
    pub elapsed_s: f64,
    /// Processor time, the emulator's included.
    pub cpu_s: f64,
    pub writes_per_cpu_s: f64,
    /// How long writes waited for the chip.
    pub operations: Distribution,
    /// With idle time: how long background steps took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Distribution>,
    /// Memory the scheme takes, one page buffer left out.
    pub ram_bytes: u64,
    /// Page reads of an opening after it.
    pub open_reads: u64,
}

/// Runs the workload; `progress` is told how many of how many writes are done.
pub fn bench(config: &LayerConfig, progress: &mut dyn FnMut(u64, u64)) -> Result<LayerReport, LayerError> {
    let device = made(&config.profile, config.scheme, None)?;
    let half = device.sectors() / 2;
    let foresight = config.idle_ns.map(|_| Foresight::new(Foresight::WAIT_NS));
    let mut player = LayerPlayer::new(device, config.cache_sectors, foresight);
    for sector in (0..half).step_by(FILL_SECTORS as usize) {
        let count = FILL_SECTORS.min(half - sector);
        player.request(0, &Request::Write { sector, count })?;
    }
    let all = half + WRITES;
    let mut writes = Writes { dice: Supply::new(config.seed), half, idle_ns: config.idle_ns, done: 0 };
    writes.play(&mut player, half, &mut |done| progress(done, all))?;
    let (before, before_ns) = (*player.device().counts(), player.device().chip().counters().flash_ns);
    let start_ns = player.device().chip().now_ns();
    player.take_waits();
    let cpu = ProcessorTime::now();
    writes.play(&mut player, WRITES, &mut |done| progress(done, all))?;
    let cpu_s = cpu.elapsed().as_secs_f64();
    let (responses, steps) = player.take_waits();
    let device = player.finish()?;
    let (counts, ram_bytes) = (*device.counts(), device.ram_bytes() as u64);
    let flash_ns = device.chip().counters().flash_ns - before_ns;
    let elapsed_ns = device.chip().busy_until_ns() - start_ns;
    let (sectors, sector_bytes) = (device.sectors(), device.sector_bytes() as u64);
    let mut device = Device::open(device.into_chip(), options()).doing("opening")?;
    let open_reads = device.counts().all_reads();
    let findings = device.check().doing("checking")?;
    if let Some(finding) = findings.first() {
        return Err(LayerError::Wrong(format!("{}: {finding}", config.scheme)));
    }
    Ok(LayerReport {
        scheme: config.scheme.name(),
        chip: config.profile.name.clone(),
        chip_bytes: config.profile.capacity_bytes(),
        sectors,
        sector_bytes,
        writes: WRITES,
        work: Work::between(&before, &counts, WRITES),
        flash_s: flash_ns as f64 / 1e9,
        elapsed_s: elapsed_ns as f64 / 1e9,
        cpu_s,
        writes_per_cpu_s: WRITES as f64 / cpu_s,
        operations: responses.distribution(),
        steps: config.idle_ns.map(|_| steps.distribution()),
        ram_bytes,
        open_reads,
    })
}

/// The writes to random places of the half that is full, idle times between them.
struct Writes {
    dice: Supply,
    half: u64,
    idle_ns: Option<u64>,
    done: u64,
}

impl Writes {
    fn play(&mut self, player: &mut LayerPlayer, count: u64, done: &mut dyn FnMut(u64)) -> Result<(), LayerError> {
        for _ in 0..count {
            let is_after_idle = self.done.is_multiple_of(OPERATIONS_PER_IDLE);
            let idle_ns = self.idle_ns.filter(|_| is_after_idle).unwrap_or(0);
            let request = Request::Write { sector: self.dice.below(self.half), count: 1 };
            player.request(player.done_ns() + idle_ns, &request)?;
            self.done += 1;
            if self.done.is_multiple_of(1_000) {
                done(self.done);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_that_is_foreseen_takes_merges_out_of_the_way_of_writes() {
        let profile = Profile::builtin("k9f5608u0m").unwrap().with_capacity(2 << 20).unwrap();
        for scheme in Scheme::ALL {
            let config = LayerConfig { profile: profile.clone(), scheme, cache_sectors: 0, idle_ns: None, seed: 1 };
            let busy = bench(&config, &mut |_, _| {}).unwrap();
            let idle = bench(&LayerConfig { idle_ns: Some(500_000_000), ..config }, &mut |_, _| {}).unwrap();
            assert!(busy.steps.is_none() && idle.steps.is_some_and(|steps| steps.count > 100), "{idle:?}");
            let (before, after) = (busy.operations, idle.operations);
            assert!(after.p99_us <= before.p99_us, "{scheme}: {before:?} {after:?}");
            let work = busy.work;
            assert!(work.erases > 100 && work.programs > busy.writes && work.merges > 0, "{busy:?}");
        }
    }
}
