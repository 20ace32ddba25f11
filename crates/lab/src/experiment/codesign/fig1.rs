//! The co-design paper's Fig. 1: two files under Round-Robin, and spread evenly. Invariant: the pages are placed by the rules
//! that the file system places its own by.

use flexfs_core::dump::imbalance_rate;
use serde::{Deserialize, Serialize};

use crate::drive::load::FileSizes;
use crate::drive::place::{FilePlacement, SpreadFiles};
use crate::drive::{DriveShape, DriveTimes, PendingTimes, PlannedRequest, ShadowedStore};
use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row};

pub const CO_FIG1: Experiment = Experiment {
    id: "co-fig1",
    title: "Co-design, Fig. 1: an example of Round-Robin",
    about: "On 8 channels with pages of 4 KB file A writes 36 KB, B 12 KB, and A 20 KB more. Under Round-Robin A has 3 pages on \
            one channel and 1 on three others; its imbalance rate (Eq. 1) is 1. File Channel Fairness spreads the same writes \
            evenly.",
    differs: "Nothing in the example. The paper calls a file of fewer than 8 pages even where no channel has more than 2 of \
              them; by its own equation 2 pages of one channel are uneven, so a file is even here where no channel has more \
              than one. co-fig2 shows both.",
    jobs,
    finish,
};

const SHAPE: DriveShape = DriveShape::eight_channels(1, 1);
/// Pages of file A on each channel, in the paper's order.
const PAPER: [u64; 8] = [3, 1, 1, 1, 2, 2, 2, 2];
const PAPER_EVEN: [u64; 8] = [2, 2, 2, 2, 2, 2, 1, 1];

/// Pages of the writes: of which file, and how many.
const WRITES: [(u32, u32); 3] = [(0, 9), (1, 3), (0, 5)];

const RULES: [(&str, FilePlacement); 2] =
    [("round-robin", FilePlacement::ROUND_ROBIN), ("fairness", FilePlacement::FAIRNESS)];

/// What a job gives.
#[derive(Serialize, Deserialize)]
struct SpreadOfFile {
    by_channel: Vec<u64>,
    rate: f64,
}

fn job_name(rule: &str) -> String {
    format!("co-fig1.{rule}")
}

fn jobs() -> Vec<Job> {
    let job = |(name, placement): (&str, FilePlacement)| Job::new(job_name(name), move || spread(placement));
    RULES.map(job).into()
}

/// Makes the writes, reads them back, and counts the pages of file A.
fn spread(placement: FilePlacement) -> Result<SpreadOfFile, ExperimentError> {
    let pages = |file| WRITES.iter().filter(|(of, _)| *of == file).map(|(_, pages)| pages).sum();
    let files = FileSizes::of([0, 1].map(pages).into_iter());
    let store = SpreadFiles::new(placement, SHAPE, 256, &files)?;
    let (mut store, mut planned) = (ShadowedStore::new(store, files.pages()), PlannedRequest::default());
    let mut written = [0; 2];
    for (file, pages) in WRITES {
        let offset = &mut written[file as usize];
        store.write(
            &files.span(file, *offset, pages),
            &PendingTimes::none(SHAPE, DriveTimes::TABLE_I),
            &mut planned,
        )?;
        *offset += pages;
    }
    for file in 0..files.files() {
        store.read(&files.span(file, 0, files.size(file)), &mut planned)?;
    }
    let by_channel = store.store.pages_by_channel().next().unwrap_or_default();
    Ok(SpreadOfFile { rate: imbalance_rate(&by_channel), by_channel })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let parameters =
        Parameters::default().with("drive", "8 channels, pages of 4 KB").with("writes", "A 36 KB, B 12 KB, A 20 KB");
    let exactly = |name: String, ours: f64, paper: f64| {
        Row::shown(name, ours, "", &parameters).paper(paper).bar(Bar::Exactly(paper))
    };
    let mut rows = Vec::new();
    if let Some(found) = results.get::<SpreadOfFile>(&job_name("round-robin"))? {
        for (channel, (&ours, paper)) in found.by_channel.iter().zip(PAPER).enumerate() {
            rows.push(exactly(format!("round-robin: pages of A on channel {channel}"), ours as f64, paper as f64));
        }
        rows.push(exactly("round-robin: imbalance rate of A".into(), found.rate, 1.0));
    }
    if let Some(mut found) = results.get::<SpreadOfFile>(&job_name("fairness"))? {
        found.by_channel.sort_unstable_by(|one, other| other.cmp(one));
        for (nth, (&ours, paper)) in (1..).zip(found.by_channel.iter().zip(PAPER_EVEN)) {
            rows.push(exactly(
                format!("spread evenly: pages of A on the fullest channel but {}", nth - 1),
                ours as f64,
                paper as f64,
            ));
        }
        rows.push(exactly("spread evenly: imbalance rate of A".into(), found.rate, 0.5));
    }
    Ok(Outcome { rows, ..Outcome::default() })
}
