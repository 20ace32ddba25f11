//! What a scheme could gain from: of each trace how unevenly reads and files stand on the channels under Round-Robin, and how long
//! requests are. Invariant: these are counts of the very runs that the schemes are compared with.

use super::super::burst_load::{BURST_SEEDS, BurstRun, burst_told};
use super::super::even_load::{EvenLoadRun, told};
use super::super::figures::mean;
use super::super::laid_files::{FileSpread, RequestLengths};
use super::super::load_of_drive::SEEDS;
use super::{ROUND_ROBIN, bursts, job_name};
use crate::drive::load::{BURSTS, TRACES};
use crate::experiment::{ExperimentError, Outcome, Parameters, Results, Row};

/// What is counted, and its unit.
const COUNTS: [(&str, &str); 7] = [
    ("reads of the channel that is read most, over the mean", ""),
    ("requests over 16 pages", "%"),
    ("requests of k × 8 pages", "%"),
    ("uneven files under Round-Robin", "%"),
    ("files with a rate over 1 under Round-Robin", "%"),
    ("files with a channel over 2 pages ahead under Round-Robin", "%"),
    ("mean request", "KB"),
];

fn counts(asymmetry: f64, lengths: &RequestLengths, spread: &FileSpread) -> [f64; 7] {
    [
        asymmetry,
        lengths.long_percent,
        lengths.of_eights_percent,
        spread.percent(spread.uneven),
        spread.percent(spread.over_one),
        spread.percent(spread.by_many),
        lengths.mean_kb,
    ]
}

/// Rows of the means of the seeds.
fn rows(of: &str, parameters: &Parameters, by_seed: &[[f64; 7]]) -> Vec<Row> {
    let row = |(at, (what, unit)): (usize, (&str, &'static str))| {
        let figures: Vec<f64> = by_seed.iter().map(|counts| counts[at]).collect();
        mean(&figures).map(|ours| Row::shown(format!("{of}: {what}"), ours, unit, parameters))
    };
    COUNTS.into_iter().enumerate().filter_map(row).collect()
}

pub fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    for trace in &TRACES {
        let mut by_seed = Vec::new();
        for seed in SEEDS {
            if let Some(run) = results.get::<EvenLoadRun>(&job_name(trace, ROUND_ROBIN.0, seed))? {
                let asymmetry = run.read_asymmetry.first().copied().unwrap_or_default();
                by_seed.push(counts(asymmetry, &run.lengths, &run.spread));
            }
        }
        outcome.rows.extend(rows(trace.name, &told(trace, &ROUND_ROBIN.1), &by_seed));
    }
    for shape in &BURSTS {
        let mut by_seed = Vec::new();
        for seed in BURST_SEEDS {
            if let Some(run) = results.get::<BurstRun>(&bursts::job_name(shape, ROUND_ROBIN.0, seed))? {
                by_seed.push(counts(run.read_asymmetry, &run.lengths, &run.spread));
            }
        }
        let of = format!("{} in bursts", shape.trace.name);
        outcome.rows.extend(rows(&of, &burst_told(shape, &ROUND_ROBIN.1), &by_seed));
    }
    Ok(outcome)
}
