//! Files as a placement lays them out before time begins: how unevenly they stand on the channels. Invariant: a placement knows
//! nothing of the requests that come later.

use flexfs_core::dump::imbalance_rate;
use serde::{Deserialize, Serialize};

use crate::drive::load::{FileRequest, FileSizes, TraceShape, first_writes, overwrites};
use crate::drive::place::{FilePlacement, SpreadFiles};
use crate::drive::{CommandKind, DriveShape, DriveTimes, LONG_OVER_PAGES, PendingTimes, PlannedRequest, ShadowedStore};
use crate::experiment::ExperimentError;

pub const PAGES_PER_BLOCK: u32 = 256;
/// Shares of files with a rate up to 0, .25, .5 and so on are counted.
pub const RATES: usize = 13;
pub const RATE_STEP: f64 = 0.25;
/// A file with a page more on one channel than on another need not be uneven by much.
pub const DIFFERENCE_MANY: u64 = 2;

/// Percent of the files that may have a rate over 1, and a channel many pages ahead, under a placement that knows the file.
pub const OVER_ONE_MOST: f64 = 0.1;
pub const BY_MANY_MOST: f64 = 5.0;

/// Percent of a trace's files that the paper finds uneven under Round-Robin, and with a rate over 1 (§II.B).
pub fn share_of_paper(trace: &TraceShape) -> Option<(f64, f64)> {
    match trace.name {
        "exchange" => Some((26.0, 6.3)),
        "msnstorage" => Some((67.0, 27.9)),
        _ => None,
    }
}

/// Writes the files of a trace, and overwrites as many of their pages as the trace says.
pub fn lay_out(
    trace: &TraceShape,
    placement: FilePlacement,
    shape: DriveShape,
    files: &FileSizes,
    seed: u64,
) -> Result<ShadowedStore<SpreadFiles>, ExperimentError> {
    let store = SpreadFiles::new(placement, shape, PAGES_PER_BLOCK, files)?;
    let (mut store, mut planned) = (ShadowedStore::new(store, files.pages()), PlannedRequest::default());
    let pending = PendingTimes::none(shape, DriveTimes::TABLE_I);
    for write in first_writes(trace, files, seed)?.iter().chain(&overwrites(trace, files, seed)?) {
        store.write(write, &pending, &mut planned)?;
    }
    Ok(store)
}

/// How files stand on the channels.
#[derive(Serialize, Deserialize)]
pub struct FileSpread {
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
}

impl FileSpread {
    /// Of the files of a store.
    pub fn of(store: &SpreadFiles) -> Self {
        let by_channel: Vec<Vec<u64>> = store.pages_by_channel().collect();
        let rates: Vec<f64> = by_channel.iter().map(|pages| imbalance_rate(pages)).collect();
        let count = |is_so: &dyn Fn(f64) -> bool| rates.iter().filter(|&&rate| is_so(rate)).count() as u64;
        let count_pages = |is_so: fn(&[u64]) -> bool| by_channel.iter().filter(|pages| is_so(pages)).count() as u64;
        Self {
            files: rates.len() as u64,
            pages: by_channel.iter().flatten().sum(),
            uneven: count(&|rate| rate > 0.0),
            uneven_beyond_two: count_pages(is_uneven_beyond_two),
            over_one: count(&|rate| rate > 1.0),
            by_many: count_pages(|pages| difference(pages) > DIFFERENCE_MANY),
            up_to: (0..RATES).map(|step| count(&|rate| rate <= step as f64 * RATE_STEP)).collect(),
            channels_apart: difference(&store.issued().collect::<Vec<_>>()),
        }
    }

    /// Percent of the files.
    pub fn percent(&self, files: u64) -> f64 {
        100.0 * files as f64 / self.files as f64
    }
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

/// The pages that were read from the channel that was read most, over the mean of the channels.
pub fn read_asymmetry(store: &SpreadFiles) -> f64 {
    let read: Vec<u64> = store.pages_read().collect();
    *read.iter().max().unwrap_or(&0) as f64 * read.len() as f64 / read.iter().sum::<u64>().max(1) as f64
}

/// How long requests are.
#[derive(Serialize, Deserialize)]
pub struct RequestLengths {
    /// Percent of over 16 pages, and of a multiple of 8.
    pub long_percent: f64,
    pub of_eights_percent: f64,
    /// Mean KB, and percent of reads.
    pub mean_kb: f64,
    pub reads_percent: f64,
}

impl RequestLengths {
    /// Of these requests.
    pub fn of(requests: impl Iterator<Item = FileRequest>) -> Self {
        let (mut count, mut long, mut of_eights, mut pages, mut reads) = (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
        for FileRequest { kind, span } in requests {
            count += 1;
            long += u64::from(span.pages > LONG_OVER_PAGES);
            of_eights += u64::from(span.pages.is_multiple_of(8));
            pages += u64::from(span.pages);
            reads += u64::from(kind == CommandKind::Read);
        }
        let percent = |of: u64| 100.0 * of as f64 / count.max(1) as f64;
        Self {
            long_percent: percent(long),
            of_eights_percent: percent(of_eights),
            mean_kb: 4.0 * pages as f64 / count.max(1) as f64,
            reads_percent: percent(reads),
        }
    }
}
