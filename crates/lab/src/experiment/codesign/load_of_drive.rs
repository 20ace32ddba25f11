//! The loads of a drive in the co-design's figures. Invariant: the mean gap follows from the requests themselves, so that a load
//! means the same with every trace.

use crate::drive::load::{FileRequest, RequestSource, TraceShape};
use crate::drive::{
    CommandKind, DieOverlap, DriveShape, DriveSwitches, DriveTimes, PlayPlan, PlayedRequests, RequestArrivals,
};
use crate::experiment::Parameters;

/// How busy the requests' pages would keep the channels, if each were one die.
pub const LOADS: [f64; 2] = [0.10, 0.35];

/// Seeds of files, requests and arrivals.
pub const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

/// A tenth of the requests come before what is measured.
pub const DROPPED_OF: usize = 10;

/// The mean gap between requests at a load: Σ (102.4 µs × pages read + 800 µs × pages written) / requests / channels / load.
pub fn mean_gap_ns(load: f64, channels: u8, requests: impl Iterator<Item = FileRequest>, count: usize) -> f64 {
    let times = DriveTimes::TABLE_I;
    let busy = |request: FileRequest| match request.kind {
        CommandKind::Read => times.bus_ns * u64::from(request.span.pages),
        CommandKind::Program => times.program_ns * u64::from(request.span.pages),
    };
    requests.take(count).map(busy).sum::<u64>() as f64 / count as f64 / f64::from(channels) / load
}

/// Those requests, arriving at random, on a drive whose dies overlap what they can.
pub fn at_load(load: f64, shape: DriveShape, requests: &RequestSource, count: usize, seed: u64) -> PlayPlan {
    PlayPlan {
        shape,
        times: DriveTimes::TABLE_I,
        switches: DriveSwitches { overlap: DieOverlap::Always, ..DriveSwitches::default() },
        arrivals: RequestArrivals::Poisson { mean_gap_ns: mean_gap_ns(load, shape.channels, requests.clone(), count) },
        dropped: count / DROPPED_OF,
        seed,
    }
}

/// Responses of played requests, µs, for a table: all, reads and writes in the mean, and of all three percentiles.
pub fn response_cells(played: &PlayedRequests) -> [String; 6] {
    let all = &played.all.distribution;
    let [reads, writes] = [&played.reads, &played.writes].map(|responses| responses.mean_us);
    [played.all.mean_us, reads, writes, all.median_us, all.p99_us, all.p999_us].map(|us| format!("{us:.1}"))
}

/// What a figure of that drive was got with.
pub fn drive_told(shape: DriveShape, pages_per_block: u32, trace: &TraceShape) -> Parameters {
    drive_of_all_told(shape, pages_per_block).with("trace", trace.told())
}

/// The same of a figure of all four traces.
pub fn drive_of_all_told(shape: DriveShape, pages_per_block: u32) -> Parameters {
    let DriveShape { channels, chips_per_channel, dies_per_chip, planes_per_die } = shape;
    let shape = format!("{channels} × {chips_per_channel} × {dies_per_chip} × {planes_per_die}");
    Parameters::default()
        .with("drive", format!("{shape}, {pages_per_block} pages a block"))
        .with("times", "60 µs a read, 102.4 µs a page on the bus, 800 µs a program, 1.5 ms an erase")
        .with("overlap", "operations of the same kind on a die; a pair of planes holds the bus for both pages")
        .with("exchange", "none")
        .with("read priority", "none")
        .with("buffer", "none: a write is answered after its program")
        .with("arrivals", "Poisson, by load")
        .with("trace", "all four: each is told with its own rows")
}
