//! The paper's schemes under requests that come in bursts, with reads again of what was just read. Invariant: a scheme's gain is
//! the mean of the seeds, trace by trace.

use super::super::burst_load::{BURST_SEEDS, BurstRun, burst_told, run};
use super::super::figures::{mean, percent};
use super::super::load_of_drive::response_cells;
use super::super::paper_gains::PAPER_GAINS;
use super::{ROUND_ROBIN, gains_plot};
use crate::drive::load::{BURSTS, BurstShape};
use crate::drive::place::FilePlacement;
use crate::experiment::{Bar, ExperimentError, Job, Outcome, Results, Row, Table};

/// The paper's schemes, read so that a channel is as busy as the time pending on it, in the order of the paper's gains.
pub const READ_AS: [(&str, FilePlacement); 4] = [
    ("fairness-by-time", FilePlacement::FAIRNESS_BY_TIME),
    ("read-busy-by-time", FilePlacement::READ_BUSY_BY_TIME),
    ("depth", FilePlacement::DEPTH),
    ("hybrid-by-time", FilePlacement::HYBRID_BY_TIME),
];

/// By the letter.
const LETTER: [(&str, FilePlacement); 3] =
    [("fairness", FilePlacement::FAIRNESS), ("read-busy", FilePlacement::READ_BUSY), ("hybrid", FilePlacement::HYBRID)];

/// Places of a trace among the bursts, and of a scheme among those of the paper.
pub const MSN_STORAGE: usize = 3;
pub const FAIRNESS: usize = 0;

/// A gain may be so many points beside the paper's.
const POINTS: f64 = 4.0;
/// What MSNStorage gains at least by Fairness, %.
const MSN_FAIRNESS: f64 = 11.0;

pub fn job_name(shape: &BurstShape, scheme: &str, seed: u64) -> String {
    format!("co-fig7.bursts-{}-{scheme}-{seed}", shape.trace.name)
}

pub fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for shape in &BURSTS {
        for (name, placement) in [ROUND_ROBIN].into_iter().chain(READ_AS).chain(LETTER) {
            jobs.extend(
                BURST_SEEDS.map(|seed| Job::new(job_name(shape, name, seed), move || run(shape, placement, seed))),
            );
        }
    }
    jobs
}

/// The gains of a scheme in mean response, %, by trace: means of the seeds.
pub fn gains(results: &Results, scheme: &str) -> Result<Vec<f64>, ExperimentError> {
    let mut by_trace = Vec::new();
    for shape in &BURSTS {
        let mut by_seed = Vec::new();
        for seed in BURST_SEEDS {
            let of = |scheme| results.get::<BurstRun>(&job_name(shape, scheme, seed));
            let (Some(found), Some(base)) = (of(scheme)?, of(ROUND_ROBIN.0)?) else { continue };
            by_seed.push(-percent(found.played.all.mean_us, base.played.all.mean_us));
        }
        by_trace.extend(mean(&by_seed));
    }
    Ok(by_trace)
}

pub fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let (mut outcome, mut series) = (Outcome::default(), Vec::new());
    for (at, (name, placement)) in READ_AS.into_iter().enumerate() {
        let by_trace = gains(results, name)?;
        for ((number, shape), &gain) in BURSTS.iter().enumerate().zip(&by_trace) {
            let [mut least, most] = PAPER_GAINS[at].response;
            if number == MSN_STORAGE && at == FAIRNESS {
                least = MSN_FAIRNESS + POINTS;
            }
            let row = gain_row(shape, &placement, gain);
            let tenths = |percent: f64| (10.0 * percent).round() / 10.0;
            outcome.rows.push(row.bar(Bar::Between(tenths(least - POINTS), tenths(most + POINTS))));
        }
        series.push((name, by_trace));
    }
    for (name, placement) in LETTER {
        let by_trace = gains(results, name)?;
        outcome.rows.extend(BURSTS.iter().zip(&by_trace).map(|(shape, &gain)| gain_row(shape, &placement, gain)));
    }
    if outcome.rows.is_empty() {
        return Ok(outcome);
    }
    outcome.tables.push(table(results)?);
    let title = "Gain in mean response over Round-Robin, bursts";
    outcome.column_plots.push(gains_plot("bursts", title, (0.0, 40.0), series));
    Ok(outcome)
}

fn gain_row(shape: &BurstShape, placement: &FilePlacement, gain: f64) -> Row {
    let name = format!("{} in bursts, {}: gain in mean response", shape.trace.name, placement.name);
    Row::shown(name, gain, "%", &burst_told(shape, placement))
}

/// The responses of each run.
fn table(results: &Results) -> Result<Table, ExperimentError> {
    let header = vec!["trace", "placement", "seed", "mean_us", "reads_us", "writes_us", "p50_us", "p99_us", "p99.9_us"];
    let mut rows = Vec::new();
    for shape in &BURSTS {
        for (name, placement) in [ROUND_ROBIN].into_iter().chain(READ_AS).chain(LETTER) {
            for seed in BURST_SEEDS {
                let Some(found) = results.get::<BurstRun>(&job_name(shape, name, seed))? else { continue };
                let mut line = vec![shape.trace.name.into(), placement.name.into(), seed.to_string()];
                line.extend(response_cells(&found.played));
                rows.push(line);
            }
        }
    }
    Ok(Table { name: "bursts".into(), header, rows })
}
