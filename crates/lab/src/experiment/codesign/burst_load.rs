//! Requests that come in bursts to files that a placement wrote: how long they take. Invariant: every placement is asked for the
//! same requests at the same times, and each page that is read is compared.

use serde::{Deserialize, Serialize};

use super::laid_files::{FileSpread, PAGES_PER_BLOCK, RequestLengths, lay_out, read_asymmetry};
use super::load_of_drive::{DROPPED_OF, drive_of_all_told, mean_gap_ns};
use crate::drive::load::{BurstShape, BurstSource, FileSizes};
use crate::drive::place::{DieStriping, FilePlacement};
use crate::drive::{
    DieOverlap, DriveShape, DriveSwitches, DriveTimes, PlayPlan, PlayedRequests, RequestArrivals, play,
};
use crate::experiment::{ExperimentError, Parameters};

const REQUESTS: usize = 30_000;
const SHAPE: DriveShape = DriveShape::eight_channels(1, 2);

/// Seeds of files, requests and arrivals.
pub const BURST_SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

/// What came of it.
#[derive(Serialize, Deserialize)]
pub struct BurstRun {
    pub spread: FileSpread,
    pub lengths: RequestLengths,
    pub played: PlayedRequests,
    pub read_asymmetry: f64,
}

/// Writes the files of a trace, and lets its requests come in bursts, to a drive on which only Dynamic Depth brings overlap with
/// it.
pub fn run(shape: &BurstShape, placement: FilePlacement, seed: u64) -> Result<BurstRun, ExperimentError> {
    run_with_overlap(shape, placement, overlap_of(placement), seed)
}

/// The same, to a drive that overlaps so much.
pub fn run_with_overlap(
    shape: &BurstShape,
    placement: FilePlacement,
    overlap: DieOverlap,
    seed: u64,
) -> Result<BurstRun, ExperimentError> {
    let files = FileSizes::count(&shape.trace, seed, shape.files)?;
    let mut store = lay_out(&shape.trace, placement, SHAPE, &files, seed)?;
    let spread = FileSpread::of(&store.store);
    let requests = BurstSource::new(shape, &files, seed)?;
    let mean_gap_ns = mean_gap_ns(shape.load, SHAPE.channels, requests.clone(), REQUESTS);
    let plan = PlayPlan {
        shape: SHAPE,
        times: DriveTimes::TABLE_I,
        switches: DriveSwitches { overlap, ..DriveSwitches::default() },
        arrivals: RequestArrivals::Bursts { mean_gap_ns, requests_mean: shape.requests_mean },
        dropped: REQUESTS / DROPPED_OF,
        seed,
    };
    let played = play(&plan, &mut store, requests.clone(), |_, requests| requests == REQUESTS)?;
    let lengths = RequestLengths::of(requests.take(REQUESTS));
    Ok(BurstRun { spread, lengths, played, read_asymmetry: read_asymmetry(&store.store) })
}

/// Dynamic Depth brings the overlap within long requests with it.
pub fn overlap_of(placement: FilePlacement) -> DieOverlap {
    match placement.striping {
        DieStriping::LongRequests => DieOverlap::LongRequests,
        DieStriping::Never | DieStriping::Always => DieOverlap::Never,
    }
}

/// What its figures were got with.
pub fn burst_told(shape: &BurstShape, placement: &FilePlacement) -> Parameters {
    let BurstShape { trace, files, load, requests_mean, again, goes_on } = shape;
    burst_of_all_told()
        .with("overlap", overlap_of(*placement).told())
        .with("placement", placement.name)
        .with("trace", trace.told())
        .with("files", files.to_string())
        .with("written at a time", trace.writers.to_string())
        .with("overwritten", format!("{:.0} %", 100.0 * trace.overwritten))
        .with("arrivals", format!("bursts, requests of one in the mean: {requests_mean}; load {load}"))
        .with("a read is the last one again", again.to_string())
        .with("a request goes on behind the last of its kind", goes_on.to_string())
}

/// What a figure of all four traces was got with.
pub fn burst_of_all_told() -> Parameters {
    drive_of_all_told(SHAPE, PAGES_PER_BLOCK)
        .with("overlap", "by placement")
        .with("arrivals", "bursts, by trace")
        .with("offsets", "⌊u³ × places⌋")
        .with("collection", "none")
        .with("requests", format!("{REQUESTS}, of which the first 10 % are not measured"))
        .with("seeds", format!("{} to {}, mean", BURST_SEEDS.start(), BURST_SEEDS.end()))
}
