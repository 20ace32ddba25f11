//! The log-block paper's Fig. 6: where a camera writes, and how often each block is erased for it, without and with map blocks
//! exchanged for free ones. Invariant: erases are the chip's own, those that filled the device left out.

use emulator::{Chip, Profile};
use ftl::{BlockDevice, BlockUse, Device, Format, Options, Scheme};
use serde::{Deserialize, Serialize};

use super::chips::write;
use crate::experiment::{
    Axis, Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Plot, Results, Row, Series, Table,
};
use crate::layers::workload::{SECTORS, Workload};
use crate::layers::{LayerError, LayerPlayer, Request, options};

pub const FTL_FIG6: Experiment = Experiment {
    id: "ftl-fig6",
    title: "Log-block FTL, Fig. 6: Simulation results for wear leveling",
    about: "The Canon PowerShot G1 for a long time: forty traces of different seeds behind each other on a full device. (a) How \
            often each sector is written: the table of FAT is a hot spot. (b) How often each block is erased: by the text the hot \
            spot is spread by merges and switches, but map blocks wear out early. (c) The same with map blocks exchanged for free \
            ones, every eighth time that one is begun.",
    differs: "The paper's trace is longer or shorter than ours: it does not say. Anchor blocks, which the paper does not have, are left \
              out.",
    jobs,
    finish,
};

const ROUNDS: u64 = 40;
const PAGES: u64 = 32;
const CHIP_BYTES: u64 = 16 << 20;
const FORMAT: Format = Format { volume: 1, extra_blocks: 32, logs: 8, map_blocks: 3 };
/// Sectors that make one point of the plot.
const BUCKET_SECTORS: u64 = 32;
/// How much more than the mean the most erased block may be.
const MOST: f64 = 1.5;

/// A run: its job, its name, and after how many map blocks begun one is exchanged.
const RUNS: [(&str, &str, u32); 2] =
    [("ftl-fig6.without", "without exchange of map blocks", 0), ("ftl-fig6.with", "with exchange of map blocks", 8)];
const WRITES_JOB: &str = "ftl-fig6.writes";

/// Writes of each bucket of sectors.
#[derive(Serialize, Deserialize)]
struct Writes {
    buckets: Vec<u64>,
}

/// Erases of each block, and whether it is a map block at the end.
#[derive(Serialize, Deserialize)]
struct Erases {
    blocks: Vec<(u32, bool)>,
}

fn jobs() -> Vec<Job> {
    let runs = RUNS.map(|(job, _, swap_every)| Job::new(job, move || Ok(erases(swap_every)?)));
    [Job::new(WRITES_JOB, || Ok(writes()))].into_iter().chain(runs).collect()
}

/// All write requests, in order.
fn requests() -> impl Iterator<Item = Request> {
    let camera = Workload::ALL.into_iter().next();
    let all = (1..=ROUNDS).flat_map(move |seed| camera.map(|camera| camera.requests(seed)).unwrap_or_default());
    all.map(|timed| timed.request).filter(|request| matches!(request, Request::Write { .. }))
}

fn writes() -> Writes {
    let mut buckets = vec![0; SECTORS.div_ceil(BUCKET_SECTORS) as usize];
    for request in requests() {
        let Request::Write { sector, count } = request else { continue };
        for sector in sector..sector + count {
            buckets.get_mut((sector / BUCKET_SECTORS) as usize).into_iter().for_each(|writes| *writes += 1);
        }
    }
    Writes { buckets }
}

fn erases(swap_every: u32) -> Result<Erases, LayerError> {
    let profile = Profile::builtin("k9f5608u0m")?.with_capacity(CHIP_BYTES)?;
    let chip = Chip::without_data(&profile, 1)?;
    let refused = |source| LayerError::Layer { doing: "running the camera", source };
    let options = Options { swap_every, ..options() };
    let mut device = Device::format(chip, Scheme::LogBlock, &FORMAT, options).map_err(refused)?;
    let zeros = vec![0; PAGES as usize * device.sector_bytes()];
    (0..device.sectors()).step_by(PAGES as usize).try_for_each(|sector| write(&mut device, sector, &zeros))?;
    let before: Vec<u32> = device.chip().erase_counts().collect();
    let mut player = LayerPlayer::new(device, 0, None);
    requests().try_for_each(|request| player.request(player.done_ns(), &request))?;
    let mut device = player.finish()?;
    let uses = device.uses().map_err(refused)?;
    let counts = device.chip().erase_counts().zip(before).map(|(after, before)| after - before);
    let blocks = counts.zip(&uses).filter(|(_, found)| **found != BlockUse::Anchor);
    Ok(Erases { blocks: blocks.map(|(count, found)| (count, *found == BlockUse::Map)).collect() })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    if let Some(Writes { buckets }) = results.get(WRITES_JOB)? {
        let points = (0..).zip(&buckets).map(|(at, &writes)| (f64::from(at * BUCKET_SECTORS as u32), writes as f64));
        let series = Series { name: "writes".into(), points: points.collect(), marked: false };
        let most = buckets.iter().copied().max().unwrap_or(0) as f64;
        outcome.plots.push(Plot {
            name: "writes".into(),
            title: "(a) writes by logical address".into(),
            x: Axis { label: "sector", from: 0.0, to: SECTORS as f64 },
            y: Axis { label: "writes", from: 0.0, to: most * 1.05 },
            series: vec![series],
        });
        let rows = (0..).zip(&buckets).map(|(at, writes)| vec![(at * BUCKET_SECTORS).to_string(), writes.to_string()]);
        outcome.tables.push(Table { name: "writes".into(), header: vec!["sector", "writes"], rows: rows.collect() });
    }
    for (job, name, swap_every) in RUNS {
        let Some(Erases { blocks }) = results.get(job)? else { continue };
        let mean = blocks.iter().map(|(count, _)| f64::from(*count)).sum::<f64>() / blocks.len().max(1) as f64;
        let most = blocks.iter().map(|(count, _)| f64::from(*count)).fold(0.0, f64::max);
        let parameters = Parameters::default()
            .with("chip", "k9f5608u0m, 16 MiB, every sector written")
            .with("blocks", "32 of 1,024 extra, 8 log blocks at most, 3 map blocks")
            .with("workload", format!("{ROUNDS} traces of canon-g1"))
            .with("map blocks begun between exchanges", swap_every.to_string());
        let row =
            Row::shown(format!("erases of the most erased block, of the mean, {name}"), most / mean, "", &parameters);
        outcome.rows.push(if swap_every > 0 { row.bar(Bar::AtMost(MOST)) } else { row.bar(Bar::AtLeast(MOST)) });
        outcome.rows.push(Row::shown(format!("erases of a block in the mean, {name}"), mean, "", &parameters));
        outcome.plots.push(erases_plot(job, name, &blocks, most));
        let rows = (2..).zip(&blocks).map(|(block, (count, is_map)): (u32, &(u32, bool))| {
            vec![block.to_string(), count.to_string(), is_map.to_string()]
        });
        let header = vec!["block", "erases", "is_map_block_at_the_end"];
        outcome.tables.push(Table { name: job.replace("ftl-fig6.", ""), header, rows: rows.collect() });
    }
    Ok(outcome)
}

fn erases_plot(job: &str, name: &str, blocks: &[(u32, bool)], most: f64) -> Plot {
    let points = (2..).zip(blocks).map(|(block, &(count, _))| (f64::from(block), f64::from(count)));
    Plot {
        name: job.replace("ftl-fig6.", ""),
        title: format!("erases by physical block, {name}"),
        x: Axis { label: "block", from: 0.0, to: blocks.len() as f64 + 2.0 },
        y: Axis { label: "erases", from: 0.0, to: most * 1.05 },
        series: vec![Series { name: "erases".into(), points: points.collect(), marked: false }],
    }
}
