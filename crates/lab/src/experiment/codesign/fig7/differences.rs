//! What made the difference in bursts: the paper's schemes, read by time pending, once one thing of the load or of the drive is taken
//! away. Invariant: Round-Robin, which a scheme is compared with, has the same load and the same drive.

use super::super::burst_load::{BurstRun, burst_told, overlap_of, run_with_overlap};
use super::super::figures::{mean, percent};
use super::ROUND_ROBIN;
use super::bursts::READ_AS;
use crate::drive::DieOverlap;
use crate::drive::load::{BURSTS, BurstShape};
use crate::drive::place::FilePlacement;
use crate::experiment::{ExperimentError, Job, Outcome, Results, Row};

/// Seeds of files, requests and arrivals.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=2;

/// What is other than in the bursts.
struct BurstChange {
    name: &'static str,
    told: &'static str,
    load: fn(BurstShape) -> BurstShape,
    overlap: fn(FilePlacement) -> DieOverlap,
}

const CHANGES: [BurstChange; 3] = [
    BurstChange {
        name: "one-by-one",
        told: "requests come one by one",
        load: |shape| BurstShape { requests_mean: 1.0, ..shape },
        overlap: overlap_of,
    },
    BurstChange {
        name: "not-again",
        told: "no read comes again",
        load: |shape| BurstShape { again: 0.0, ..shape },
        overlap: overlap_of,
    },
    BurstChange {
        name: "overlap",
        told: "dies overlap all commands",
        load: |shape| shape,
        overlap: |_| DieOverlap::Always,
    },
];

fn job_name(change: &BurstChange, shape: &BurstShape, scheme: &str, seed: u64) -> String {
    format!("co-fig7.{}-{}-{scheme}-{seed}", change.name, shape.trace.name)
}

pub fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for change in &CHANGES {
        for shape in &BURSTS {
            for (name, placement) in [ROUND_ROBIN].into_iter().chain(READ_AS) {
                let run =
                    move |seed| run_with_overlap(&(change.load)(*shape), placement, (change.overlap)(placement), seed);
                jobs.extend(SEEDS.map(|seed| Job::new(job_name(change, shape, name, seed), move || run(seed))));
            }
        }
    }
    jobs
}

pub fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut rows = Vec::new();
    for change in &CHANGES {
        for (name, placement) in READ_AS {
            for shape in &BURSTS {
                let mut by_seed = Vec::new();
                for seed in SEEDS {
                    let of = |scheme| results.get::<BurstRun>(&job_name(change, shape, scheme, seed));
                    let (Some(found), Some(base)) = (of(name)?, of(ROUND_ROBIN.0)?) else { continue };
                    by_seed.push(-percent(found.played.all.mean_us, base.played.all.mean_us));
                }
                let row = format!("{} in bursts, {name}, but {}: gain in mean response", shape.trace.name, change.told);
                let parameters = burst_told(&(change.load)(*shape), &placement)
                    .with("other than in the bursts", change.told)
                    .with("overlap", (change.overlap)(placement).told())
                    .with("seeds", "1 and 2, mean");
                rows.extend(mean(&by_seed).map(|gain| Row::shown(row, gain, "%", &parameters)));
            }
        }
    }
    Ok(Outcome { rows, ..Outcome::default() })
}
