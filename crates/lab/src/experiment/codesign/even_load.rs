//! Requests that come evenly to files that a placement wrote: how long they take. Invariant: every placement is asked for the
//! same requests at the same times, and each page that is read is compared.

use serde::{Deserialize, Serialize};

use super::laid_files::{FileSpread, PAGES_PER_BLOCK, RequestLengths, lay_out, read_asymmetry};
use super::load_of_drive::{at_load, drive_of_all_told, drive_told, response_cells};
use crate::drive::load::{FileSizes, RequestSource, TraceShape};
use crate::drive::place::FilePlacement;
use crate::drive::{DriveShape, PermissionExchange, PlayPlan, PlayedRequests, RequestArrivals, play};
use crate::experiment::{ExperimentError, Parameters};

pub const FILES: usize = 4_000;
const REQUESTS: usize = 50_000;
const SHAPE: DriveShape = DriveShape::eight_channels(2, 2);

/// What came of it.
#[derive(Serialize, Deserialize)]
pub struct EvenLoadRun {
    pub spread: FileSpread,
    pub lengths: RequestLengths,
    /// At each load, with the asymmetry of the reads.
    pub played: Vec<PlayedRequests>,
    pub read_asymmetry: Vec<f64>,
}

/// Writes the files of a trace, and lets its requests come at each load to the files as they stand then.
pub fn run(
    trace: &TraceShape,
    placement: FilePlacement,
    loads: &[f64],
    seed: u64,
) -> Result<EvenLoadRun, ExperimentError> {
    let plans =
        |requests: &RequestSource| loads.iter().map(|&load| at_load(load, SHAPE, requests, REQUESTS, seed)).collect();
    run_plans(trace, placement, seed, plans)
}

/// The same, where commands wait for the permission to use the drive's memory.
pub fn run_with_exchange(
    trace: &TraceShape,
    placement: FilePlacement,
    loads: &[f64],
    seed: u64,
    exchange: PermissionExchange,
) -> Result<EvenLoadRun, ExperimentError> {
    let plan = |requests: &RequestSource, load| {
        let mut plan = at_load(load, SHAPE, requests, REQUESTS, seed);
        plan.switches.exchange = Some(exchange);
        plan
    };
    run_plans(trace, placement, seed, |requests| loads.iter().map(|&load| plan(requests, load)).collect())
}

/// The same with so many requests outstanding at any time.
pub fn run_outstanding(
    trace: &TraceShape,
    placement: FilePlacement,
    outstanding: u32,
    seed: u64,
) -> Result<EvenLoadRun, ExperimentError> {
    run_plans(trace, placement, seed, |requests| {
        let arrivals = RequestArrivals::Outstanding(outstanding);
        vec![PlayPlan { arrivals, ..at_load(1.0, SHAPE, requests, REQUESTS, seed) }]
    })
}

fn run_plans(
    trace: &TraceShape,
    placement: FilePlacement,
    seed: u64,
    plans: impl FnOnce(&RequestSource) -> Vec<PlayPlan>,
) -> Result<EvenLoadRun, ExperimentError> {
    let files = FileSizes::count(trace, seed, FILES)?;
    let laid_out = lay_out(trace, placement, SHAPE, &files, seed)?;
    let requests = RequestSource::new(trace, &files, seed)?;
    let (mut played, mut asymmetry) = (Vec::new(), Vec::new());
    for plan in plans(&requests) {
        let mut store = laid_out.clone();
        played.push(play(&plan, &mut store, requests.clone(), |_, requests| requests == REQUESTS)?);
        asymmetry.push(read_asymmetry(&store.store));
    }
    Ok(EvenLoadRun {
        spread: FileSpread::of(&laid_out.store),
        lengths: RequestLengths::of(requests.take(REQUESTS)),
        played,
        read_asymmetry: asymmetry,
    })
}

/// What its figures were got with.
pub fn told(trace: &TraceShape, placement: &FilePlacement) -> Parameters {
    placed(drive_told(SHAPE, PAGES_PER_BLOCK, trace), placement)
        .with("written at a time", trace.writers.to_string())
        .with("overwritten", format!("{:.0} %", 100.0 * trace.overwritten))
}

/// What a figure of all four traces was got with.
pub fn told_of_all(placement: &FilePlacement) -> Parameters {
    placed(drive_of_all_told(SHAPE, PAGES_PER_BLOCK), placement)
}

fn placed(parameters: Parameters, placement: &FilePlacement) -> Parameters {
    parameters
        .with("placement", placement.name)
        .with(
            "open blocks",
            "one a channel, or one a die where every request is striped; the next on the channel's next die",
        )
        .with("files", FILES.to_string())
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
