//! A trace of the log-block paper on a translation layer: what it costs, and how long its requests wait. Invariant: a
//! device is full, and the trace has run once, before anything is counted.

use emulator::{Chip, Profile};
use ftl::{BlockDevice, Device, Format, Options, Scheme, Victim};
use serde::{Deserialize, Serialize};

use super::chips::write;
use crate::layers::replay::{ReplayConfig, ReplayFormat, TracePlacement};
use crate::layers::workload::{Timed, Workload};
use crate::layers::{Foresight, LayerError, LayerPlayer, Request, Work, made_on, options};

/// Seeds of every trace.
pub const SEEDS: u64 = 3;
/// Extra blocks of Fig. 5.
pub const EXTRA_BLOCKS: [u32; 3] = [16, 32, 64];
/// Pages of a block of the paper's prototype.
pub const PAGES: u32 = 32;
const CHIP_BYTES: u64 = 16 << 20;
/// Extra blocks that cannot be log blocks: anchors, the stream block, and free ones for merges; map blocks come to
/// these.
const NO_LOGS: u32 = 6;
/// Pages of all map blocks at least, and map blocks.
const MAP_PAGES: u32 = 64;
const MAP_BLOCKS: u32 = 2;

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Writes alone, each when the one before is done.
    AtOnce,
    /// Reads and writes, with the pauses of the trace.
    Paused,
    /// The same, with merges in idle time that is foreseen.
    MergingInPauses,
}

/// A trace, and what it is played on: the paper's prototype, or a chip of the same size with other blocks.
#[derive(Clone, Copy)]
pub struct Setup {
    pub workload: Workload,
    pub scheme: Scheme,
    pub pages_per_block: u32,
    pub extra_blocks: u32,
    pub victim: Victim,
    pub arrivals: Arrivals,
}

/// What a trace costs, by seed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Costs {
    /// Pages that the host wrote.
    pub written: Vec<f64>,
    /// Erases beyond one for each block that the host writes.
    pub erases: Vec<f64>,
    /// Pages programmed beyond the host's.
    pub writes: Vec<f64>,
    /// The response that 99 of 100 requests do not exceed, µs.
    pub p99_us: Vec<f64>,
}

impl Setup {
    /// The paper's way to measure: writes alone, the log block written least recently reclaimed.
    pub fn paper(workload: Workload, scheme: Scheme, extra_blocks: u32) -> Self {
        let (victim, arrivals) = (Victim::LeastRecent, Arrivals::AtOnce);
        Self { workload, scheme, pages_per_block: PAGES, extra_blocks, victim, arrivals }
    }

    /// Plays the trace of each seed.
    pub fn measure(&self) -> Result<Costs, LayerError> {
        let mut costs = Costs::default();
        for seed in 1..=SEEDS {
            let requests = self.workload.requests(seed);
            let foresight = (self.arrivals == Arrivals::MergingInPauses).then(|| Foresight::new(Foresight::WAIT_NS));
            let mut player = LayerPlayer::new(self.full()?, 0, foresight);
            self.play(&mut player, &requests)?;
            player.take_waits();
            let before = *player.device().counts();
            self.play(&mut player, &requests)?;
            let after = *player.device().counts();
            let written = after.host_writes - before.host_writes;
            let work = Work::between(&before, &after, written);
            costs.written.push(written as f64);
            costs.erases.push(work.extra_erases(written, self.pages_per_block));
            costs.writes.push(work.extra_writes(written));
            costs.p99_us.push(player.take_waits().0.distribution().p99_us);
        }
        Ok(costs)
    }

    /// Pages erased beyond those that the host writes, for each of these, by seed.
    pub fn pages_erased(&self, costs: &Costs) -> Vec<f64> {
        let pages = f64::from(self.pages_per_block);
        costs.erases.iter().zip(&costs.written).map(|(erases, written)| erases * pages / written).collect()
    }

    /// A device every sector of which was written.
    fn full(&self) -> Result<Device<Chip>, LayerError> {
        let mut profile = Profile::builtin("k9f5608u0m")?;
        profile.geometry.pages_per_block = self.pages_per_block;
        let chip = Chip::without_data(&profile.with_capacity(CHIP_BYTES)?, 1)?;
        let map_blocks = MAP_BLOCKS.max(MAP_PAGES / self.pages_per_block);
        let logs = self.extra_blocks.saturating_sub(NO_LOGS + map_blocks);
        let format = Format { volume: 1, extra_blocks: self.extra_blocks, logs, map_blocks };
        let options = Options { victim: self.victim, ..options() };
        let mut device = made_on(chip, self.scheme, Some(format), options)?;
        let pages = self.pages_per_block as usize;
        let zeros = vec![0; pages * device.sector_bytes()];
        (0..device.sectors()).step_by(pages).try_for_each(|sector| write(&mut device, sector, &zeros))?;
        Ok(device)
    }

    fn play(&self, player: &mut LayerPlayer, requests: &[Timed]) -> Result<(), LayerError> {
        for timed in requests {
            let gap_ns = match self.arrivals {
                Arrivals::AtOnce if !matches!(timed.request, Request::Write { .. }) => continue,
                Arrivals::AtOnce => 0,
                Arrivals::Paused | Arrivals::MergingInPauses => timed.gap_ns,
            };
            player.request(player.done_ns() + gap_ns, &timed.request)?;
        }
        Ok(())
    }
}

/// The paper's way to measure a trace of a disk, at the addresses of the trace.
pub fn paper_replay(scheme: Scheme, extra_blocks: u32) -> Result<ReplayConfig, LayerError> {
    let profile = Profile::builtin("k9f5608u0m")?.with_capacity(CHIP_BYTES)?;
    let logs = Some(logs_at_most(extra_blocks));
    let format = ReplayFormat { extra_blocks: Some(extra_blocks), logs, map_blocks: Some(MAP_BLOCKS) };
    let usual = ReplayConfig::new(profile, scheme);
    Ok(ReplayConfig { format, placement: TracePlacement::AsRecorded, full: true, warm_up: true, ..usual })
}

/// The letters of schemes, from the least figure to the greatest; figures that are the same when rounded are equal.
pub fn in_order(figures: &[(Scheme, f64)]) -> String {
    let mut all: Vec<(i64, Scheme)> = figures.iter().map(|&(scheme, figure)| (figure.round() as i64, scheme)).collect();
    all.sort_by_key(|&(figure, _)| figure);
    let mut order = String::new();
    let mut last = None;
    for (figure, scheme) in all {
        order += last.map_or("", |last| if last == figure { " = " } else { " < " });
        order += scheme.letters();
        last = Some(figure);
    }
    order
}

/// Log blocks at most on the paper's prototype, with so many extra blocks.
pub fn logs_at_most(extra_blocks: u32) -> u32 {
    extra_blocks.saturating_sub(NO_LOGS + MAP_BLOCKS)
}

/// Figures of several seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub mean: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    pub fn of(figures: &[f64]) -> Self {
        let mean = figures.iter().sum::<f64>() / figures.len().max(1) as f64;
        let least = figures.iter().copied().fold(f64::MAX, f64::min);
        Self { mean, least, most: figures.iter().copied().fold(f64::MIN, f64::max) }
    }

    /// Mean, least and most, in so many decimals.
    pub fn cells(&self, decimals: usize) -> [String; 3] {
        // Adding 0 makes no zero negative.
        [self.mean, self.least, self.most].map(|figure| {
            let scale = 10f64.powi(decimals as i32);
            format!("{:.decimals$}", (figure * scale).round() / scale + 0.0)
        })
    }
}

/// Sums by seed.
pub fn summed<'a>(all: impl IntoIterator<Item = &'a Vec<f64>>) -> Vec<f64> {
    all.into_iter().fold(vec![0.0; SEEDS as usize], |sums, figures| {
        sums.iter().zip(figures).map(|(sum, figure)| sum + figure).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::replay::replay;
    use crate::trace::block::{BlockOp, BlockRequest, BlockTrace};

    /// The writes of the Andrew benchmark, as a trace of a disk.
    fn andrew(seed: u64) -> BlockTrace {
        let [.., linux] = Workload::ALL;
        let write = |timed: Timed| match timed.request {
            Request::Write { sector, count } => Some((sector * 512, count * 512)),
            _ => None,
        };
        let request = |(offset, bytes)| BlockRequest { at_ns: 0, disk: 0, op: BlockOp::Write, offset, bytes };
        let writes = linux.requests(seed).into_iter().filter_map(write);
        BlockTrace { requests: writes.map(request).collect(), device: None }
    }

    #[test]
    fn a_replay_that_is_full_and_warmed_up_costs_as_in_fig_5() {
        let [.., linux] = Workload::ALL;
        for scheme in Scheme::ALL {
            let costs = Setup::paper(linux, scheme, 32).measure().unwrap();
            let replayed = replay(&paper_replay(scheme, 32).unwrap(), &andrew(1), &mut |_, _| {}).unwrap();
            let first = |figures: &[f64]| figures.first().copied().unwrap();
            let paid = (replayed.sectors_written as f64, replayed.extra_erases, replayed.extra_writes);
            assert_eq!(paid, (first(&costs.written), first(&costs.erases), first(&costs.writes)), "{scheme}");
        }
    }
}
