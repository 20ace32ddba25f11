use super::*;
use crate::drive::load::{FileSizes, PageSpan, RequestSource, TRACES, first_writes};
use crate::drive::place::{FilePlacement, SpreadFiles};
use crate::drive::{BackgroundStep, DieOverlap, PendingTimes};

const SHAPE: DriveShape = DriveShape::eight_channels(2, 2);

fn idle() -> PendingTimes {
    PendingTimes::none(SHAPE, DriveTimes::TABLE_I)
}

fn plan(arrivals: RequestArrivals) -> PlayPlan {
    PlayPlan {
        shape: SHAPE,
        times: DriveTimes::TABLE_I,
        switches: DriveSwitches { overlap: DieOverlap::Always, ..DriveSwitches::default() },
        arrivals,
        dropped: 200,
        seed: 1,
    }
}

fn written(files: &FileSizes) -> ShadowedStore<SpreadFiles> {
    let store = SpreadFiles::new(FilePlacement::ROUND_ROBIN, SHAPE, 256, files).unwrap();
    let (mut store, mut planned) = (ShadowedStore::new(store, files.pages()), PlannedRequest::default());
    for write in first_writes(&TRACES[0], files, 1).unwrap() {
        store.write(&write, &idle(), &mut planned).unwrap();
    }
    store
}

fn played(arrivals: RequestArrivals) -> PlayedRequests {
    let files = FileSizes::count(&TRACES[0], 1, 100).unwrap();
    let requests = RequestSource::new(&TRACES[0], &files, 1).unwrap();
    play(&plan(arrivals), &mut written(&files), requests, |_, requests| requests == 5_000).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_responses() {
    let arrivals = RequestArrivals::Poisson { mean_gap_ns: 3e6 };
    let found = played(arrivals);
    assert_eq!(found, played(arrivals));
    assert_eq!((found.requests, found.all.distribution.count), (5_000, 4_800));
    assert_eq!(found.reads.distribution.count + found.writes.distribution.count, 4_800);
    assert!(found.pages_compared > 5_000 && found.pages > found.pages_compared);
}

#[test]
fn a_request_alone_takes_the_time_of_its_slowest_channel() {
    let found = played(RequestArrivals::Poisson { mean_gap_ns: 1e12 });
    assert_eq!(found.reads.distribution.median_us, 60.0 + 102.4 * 2.0);
    let busier = played(RequestArrivals::Poisson { mean_gap_ns: 2e6 });
    assert!(busier.all.mean_us > 1.1 * found.all.mean_us, "{} and {} µs", busier.all.mean_us, found.all.mean_us);
}

#[test]
fn throughput_times_response_is_the_number_outstanding() {
    for outstanding in [1, 16] {
        let found = played(RequestArrivals::Outstanding(outstanding));
        let product = found.per_s * found.all.mean_us / 1e6;
        assert!((product / f64::from(outstanding) - 1.0).abs() < 0.02, "{product}, not {outstanding}");
    }
}

/// As many requests come in as much time, and wait for each other.
#[test]
fn requests_of_a_burst_come_together() {
    let (mean_gap_ns, requests) = (20e6, 5_000.0);
    let alone = played(RequestArrivals::Bursts { mean_gap_ns, requests_mean: 1.0 });
    let together = played(RequestArrivals::Bursts { mean_gap_ns, requests_mean: 8.0 });
    for found in [alone, together] {
        let gap_ns = found.elapsed_ns as f64 / requests;
        assert!((gap_ns / mean_gap_ns - 1.0).abs() < 0.15, "{gap_ns} ns");
    }
    assert!(together.all.mean_us > 2.0 * alone.all.mean_us, "{} and {} µs", together.all.mean_us, alone.all.mean_us);
}

#[test]
fn a_drive_that_has_no_channel_is_refused() {
    let files = FileSizes::of([4].into_iter());
    let requests = RequestSource::new(&TRACES[0], &files, 1).unwrap();
    let shape = DriveShape { channels: 0, ..SHAPE };
    let plan = PlayPlan { shape, ..plan(RequestArrivals::Outstanding(1)) };
    let refused = play(&plan, &mut written(&files), requests, |_, _| true).unwrap_err().to_string();
    assert_eq!(refused, "0 channels: 1 to 32 are possible");
}

/// A store whose reads give what was written before the last time.
struct Forgetful(Vec<u64>);

impl PageStore for Forgetful {
    fn read(&mut self, span: &PageSpan, out: &mut PlannedRequest) -> Result<(), DriveError> {
        out.stamps.extend_from_slice(&self.0[span.first as usize..(span.first + span.pages) as usize]);
        Ok(())
    }

    fn write(
        &mut self,
        span: &PageSpan,
        first_stamp: u64,
        _: &PendingTimes,
        _: &mut PlannedRequest,
    ) -> Result<(), DriveError> {
        let pages = &mut self.0[span.first as usize..(span.first + span.pages) as usize];
        pages.iter_mut().zip(first_stamp..).filter(|(page, _)| **page == 0).for_each(|(page, stamp)| *page = stamp);
        Ok(())
    }

    fn background(&mut self, _: u8, _: &dyn Fn(u8) -> bool) -> Result<Option<BackgroundStep>, DriveError> {
        Ok(None)
    }

    fn is_collecting(&self, _: u8) -> bool {
        false
    }
}

#[test]
fn a_store_that_reads_older_data_is_found_out() {
    let files = FileSizes::of([4].into_iter());
    let (mut store, mut planned) = (ShadowedStore::new(Forgetful(vec![0; 4]), 4), PlannedRequest::default());
    store.write(&files.span(0, 0, 4), &idle(), &mut planned).unwrap();
    store.read(&files.span(0, 0, 4), &mut planned).unwrap();
    assert_eq!(planned.stamps, [1, 2, 3, 4]);
    store.write(&files.span(0, 2, 1), &idle(), &mut planned).unwrap();
    let found = store.read(&files.span(0, 0, 4), &mut planned);
    assert_eq!(found, Err(DriveError::OtherData { page: 2, expected: 5, found: 3 }));
}
