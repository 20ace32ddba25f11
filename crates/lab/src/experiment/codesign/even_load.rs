//! Files that a placement wrote, and requests that come evenly to them: how unevenly the files stand, and how long the requests
//! take. Invariant: a placement knows nothing of the requests before they come, and each page that is read is compared.

use flexfs_core::dump::imbalance_rate;
use serde::{Deserialize, Serialize};

use super::load_of_drive::{at_load, drive_told, response_cells};
use crate::drive::load::{FileSizes, RequestSource, TraceShape, first_writes, overwrites};
use crate::drive::place::{FilePlacement, SpreadFiles};
use crate::drive::{DriveShape, DriveTimes, PendingTimes, PlannedRequest, PlayedRequests, ShadowedStore, play};
use crate::experiment::{ExperimentError, Parameters};

pub const FILES: usize = 4_000;
const PAGES_PER_BLOCK: u32 = 256;
const REQUESTS: usize = 50_000;
const SHAPE: DriveShape = DriveShape::eight_channels(2, 2);
/// Shares of files with a rate up to 0, .25, .5 and so on are counted.
pub const RATES: usize = 13;
pub const RATE_STEP: f64 = 0.25;
/// A file with a page more on one channel than on another need not be uneven by much.
pub const DIFFERENCE_MANY: u64 = 2;

/// What came of it.
#[derive(Serialize, Deserialize)]
pub struct EvenLoadRun {
    pub files: u64,
    pub pages: u64,
    /// Files with a rate over 0; with two pages of a channel held to be even; with a rate over 1; with a channel many pages
    /// ahead of another.
    pub uneven: u64,
    pub uneven_beyond_two: u64,
    pub over_one: u64,
    pub by_many: u64,
    /// Files with a rate up to 0, .25, .5 and so on.
    pub up_to: Vec<u64>,
    /// Pages of the fullest channel less those of the emptiest, of all that were written.
    pub channels_apart: u64,
    /// At each load.
    pub played: Vec<PlayedRequests>,
}

/// Writes the files of a trace, and lets its requests come at each load to the files as they stand then.
pub fn run(
    trace: &TraceShape,
    placement: FilePlacement,
    loads: &[f64],
    seed: u64,
) -> Result<EvenLoadRun, ExperimentError> {
    let files = FileSizes::count(trace, seed, FILES)?;
    let store = SpreadFiles::new(placement, SHAPE, PAGES_PER_BLOCK, &files)?;
    let (mut store, mut planned) = (ShadowedStore::new(store, files.pages()), PlannedRequest::default());
    let pending = PendingTimes::none(SHAPE, DriveTimes::TABLE_I);
    for write in first_writes(trace, &files, seed)?.iter().chain(&overwrites(trace, &files, seed)?) {
        store.write(write, &pending, &mut planned)?;
    }
    let by_channel: Vec<Vec<u64>> = store.store.pages_by_channel().collect();
    let rates: Vec<f64> = by_channel.iter().map(|pages| imbalance_rate(pages)).collect();
    let count = |is_so: &dyn Fn(f64) -> bool| rates.iter().filter(|&&rate| is_so(rate)).count() as u64;
    let count_pages = |is_so: fn(&[u64]) -> bool| by_channel.iter().filter(|pages| is_so(pages)).count() as u64;
    let mut played = Vec::new();
    for &load in loads {
        let requests = RequestSource::new(trace, &files, seed)?;
        let plan = at_load(load, SHAPE, &requests, REQUESTS, seed);
        played.push(play(&plan, &mut store.clone(), requests, |_, requests| requests == REQUESTS)?);
    }
    Ok(EvenLoadRun {
        files: rates.len() as u64,
        pages: u64::from(files.pages()),
        uneven: count(&|rate| rate > 0.0),
        uneven_beyond_two: count_pages(is_uneven_beyond_two),
        over_one: count(&|rate| rate > 1.0),
        by_many: count_pages(|pages| difference(pages) > DIFFERENCE_MANY),
        up_to: (0..RATES).map(|step| count(&|rate| rate <= step as f64 * RATE_STEP)).collect(),
        channels_apart: difference(&store.store.issued().collect::<Vec<_>>()),
        played,
    })
}

/// The greatest count less the least.
fn difference(counts: &[u64]) -> u64 {
    counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0)
}

/// The paper's other reading: a file of fewer pages than channels is even where no channel has more than two of them.
fn is_uneven_beyond_two(by_channel: &[u64]) -> bool {
    let is_short = by_channel.iter().sum::<u64>() < by_channel.len() as u64;
    let is_even = is_short && by_channel.iter().all(|&pages| pages <= 2);
    !is_even && imbalance_rate(by_channel) > 0.0
}

/// What its figures were got with.
pub fn told(trace: &TraceShape, placement: &FilePlacement) -> Parameters {
    drive_told(SHAPE, PAGES_PER_BLOCK, trace)
        .with("placement", placement.name)
        .with("files", FILES.to_string())
        .with("written at a time", trace.writers.to_string())
        .with("overwritten", format!("{:.0} %", 100.0 * trace.overwritten))
        .with("collection", "none")
        .with("requests", format!("{REQUESTS}, of which the first 10 % are not measured"))
}

/// What is printed of the requests of each load, for a table.
pub const RESPONSES_HEADER: [&str; 12] = [
    "trace",
    "placement",
    "seed",
    "load",
    "mean_us",
    "reads_us",
    "writes_us",
    "p50_us",
    "p99_us",
    "p99.9_us",
    "pages",
    "compared",
];

/// The lines of a run under that header.
pub fn response_lines(
    trace: &TraceShape,
    placement: &FilePlacement,
    loads: &[f64],
    seed: u64,
    found: &EvenLoadRun,
) -> Vec<Vec<String>> {
    let line = |(load, played): (&f64, &PlayedRequests)| {
        let mut line = vec![trace.name.into(), placement.name.into(), seed.to_string(), load.to_string()];
        line.extend(response_cells(played));
        line.extend([played.pages.to_string(), played.pages_compared.to_string()]);
        line
    };
    loads.iter().zip(&found.played).map(line).collect()
}
