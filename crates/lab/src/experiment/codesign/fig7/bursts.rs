//! The paper's schemes under requests that come in bursts, with reads again of what was just read. Invariant: a scheme's gain is
//! the mean of the seeds, trace by trace.

use super::super::burst_load::{BURST_SEEDS, BurstRun, burst_told, run};
use super::super::load_of_drive::response_cells;
use super::super::paper_gains::PAPER_GAINS;
use super::{gains_plot, mean, percent};
use crate::drive::load::{BURSTS, BurstShape};
use crate::drive::place::FilePlacement;
use crate::experiment::{Bar, ExperimentError, Job, Outcome, Parameters, Results, Row, Table};

const ROUND_ROBIN: (&str, FilePlacement) = ("round-robin", FilePlacement::ROUND_ROBIN);

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

/// A gain may be so many points beside the paper's.
const POINTS: f64 = 4.0;
/// What MSNStorage gains at least by Fairness, %.
const MSN_FAIRNESS: f64 = 11.0;
/// A trace that the paper says gains most may gain so many points less than another.
const OF_THE_MOST_POINTS: f64 = 2.0;

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
    let mut read_as = Vec::new();
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
        series.push((name, by_trace.clone()));
        read_as.push(by_trace);
    }
    for (name, placement) in LETTER {
        let by_trace = gains(results, name)?;
        outcome.rows.extend(BURSTS.iter().zip(&by_trace).map(|(shape, &gain)| gain_row(shape, &placement, gain)));
    }
    outcome.rows.extend(paper_rows(&read_as));
    outcome.rows.extend(who_gains(&read_as));
    outcome.tables.push(table(results)?);
    let title = "Gain in mean response over Round-Robin, bursts";
    outcome.column_plots.push(gains_plot("bursts", title, (0.0, 40.0), series));
    if read_as.iter().all(Vec::is_empty) {
        return Ok(Outcome::default());
    }
    Ok(outcome)
}

/// Places of the traces among the bursts, and of the schemes among those of the paper.
const LIVE_MAPS: usize = 0;
const EXCHANGE: usize = 1;
const DEVELOPMENT: usize = 2;
const MSN_STORAGE: usize = 3;
const FAIRNESS: usize = 0;
const READ_BUSY: usize = 1;
const DEPTH: usize = 2;
const HYBRID: usize = 3;

fn gain_row(shape: &BurstShape, placement: &FilePlacement, gain: f64) -> Row {
    let name = format!("{} in bursts, {}: gain in mean response", shape.trace.name, placement.name);
    Row::shown(name, gain, "%", &burst_told(shape, placement))
}

/// The least and the most gain of each scheme beside the paper's, and what it took.
fn paper_rows(read_as: &[Vec<f64>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (((name, _), by_trace), (paper, took)) in READ_AS.iter().zip(read_as).zip(PAPER_GAINS.iter().zip(TOOK)) {
        let gains = by_trace.iter().copied();
        let Some((least, most)) = gains.clone().reduce(f64::min).zip(gains.reduce(f64::max)) else { continue };
        let figures = [("least", least, paper.response[0], took[0]), ("most", most, paper.response[1], took[1])];
        for (what, ours, paper, took) in figures {
            let row = format!("bursts, {name}: gain in mean response, {what} of four traces");
            rows.push(Row::shown(row, ours, "%", &all_traces()).paper(paper).because(took));
        }
    }
    rows
}

fn all_traces() -> Parameters {
    burst_told(&BURSTS[0], &ROUND_ROBIN.1).with("trace", "all four").with("placement", "by scheme")
}

/// What each of the paper's figures took: of each scheme the least and the most.
const TOOK: [[&str; 2]; 4] = [
    [
        "least on Development, as in the paper: its files are long, so that nearly all are uneven by a page, and few by much",
        "most on MSNStorage, as in the paper: many of its files have a rate over 1, and reads of them come again; without these \
         reads it gains little",
    ],
    [
        "bursts: requests one by one find channels that are about as busy, and least is gained where reads and writes are long",
        "time pending counts reads and writes, on dies that overlap nothing; by the letter, with reads alone, it loses on every trace",
    ],
    [
        "only commands of long requests overlap on a die; where all do, Depth gains next to nothing",
        "LiveMaps has the most requests over 16 pages, as in the paper",
    ],
    [
        "the gains add up to less than their sum, since Fairness and Read Busy both gain from the time pending",
        "reads come again: without these it gains a third less",
    ],
];

/// Which trace gains most or least, as the paper tells, and whether all three together gain most.
fn who_gains(read_as: &[Vec<f64>]) -> Vec<Row> {
    let [fairness, read_busy, depth, hybrid] = [FAIRNESS, READ_BUSY, DEPTH, HYBRID].map(|at| &read_as[at]);
    if hybrid.len() < BURSTS.len() || read_as.iter().any(|by_trace| by_trace.len() != hybrid.len()) {
        return Vec::new();
    }
    let most = |gains: &[f64]| gains.iter().copied().fold(f64::MIN, f64::max);
    let others = |gains: &[f64], but: usize| -> Vec<f64> {
        gains.iter().enumerate().filter(|&(number, _)| number != but).map(|(_, &gain)| gain).collect()
    };
    let least_other = others(fairness, DEVELOPMENT).into_iter().fold(f64::MAX, f64::min);
    let claim = |name: &str, points: f64, bar: Bar, paper: &'static str| {
        Row::shown(format!("bursts: {name}"), points, "points", &all_traces()).bar(bar).because(paper)
    };
    let mut rows = vec![
        claim(
            "what Development gains by Fairness, less than the least other trace",
            least_other - fairness[DEVELOPMENT],
            Bar::AtLeast(0.0),
            "the paper: little, since its imbalance is small",
        ),
        claim(
            "what LiveMaps gains by Depth, more than the best other trace",
            depth[LIVE_MAPS] - most(&others(depth, LIVE_MAPS)),
            Bar::AtLeast(0.0),
            "the paper: more than others, since it has many large requests",
        ),
        claim(
            "what MSNStorage gains by Fairness, less than the best trace",
            most(fairness) - fairness[MSN_STORAGE],
            Bar::AtMost(OF_THE_MOST_POINTS),
            "the paper: much, since its imbalance is large",
        ),
        claim(
            "what Exchange gains by Read Busy, less than the best trace",
            most(read_busy) - read_busy[EXCHANGE],
            Bar::AtMost(OF_THE_MOST_POINTS),
            "the paper: effective, since its reads are asymmetric over the channels",
        ),
    ];
    for (number, shape) in BURSTS.iter().enumerate() {
        let best_other = [fairness, read_busy, depth].map(|gains| gains[number]);
        let more = hybrid[number] - most(&best_other);
        let name = format!("{}: what Hybrid gains more than the best of the three", shape.trace.name);
        rows.push(claim(&name, more, Bar::AtLeast(0.0), "the paper: the gains add up"));
    }
    rows
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
