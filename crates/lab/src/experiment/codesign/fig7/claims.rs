//! What the paper says of its schemes, beside what they gain in bursts: the least and the most of each, and which trace gains why.
//! Invariant: the figures that the paper's sentences speak of are told with the rows.

use super::super::burst_load::{BURST_SEEDS, BurstRun, burst_of_all_told};
use super::super::figures::{least, mean, most};
use super::super::paper_gains::PAPER_GAINS;
use super::ROUND_ROBIN;
use super::bursts::{FAIRNESS, MSN_STORAGE, READ_AS, gains, job_name};
use crate::drive::load::BURSTS;
use crate::experiment::{Bar, ExperimentError, Outcome, Parameters, Results, Row};

/// The other places of the traces among the bursts, and of the schemes among those of the paper.
const LIVE_MAPS: usize = 0;
const EXCHANGE: usize = 1;
const DEVELOPMENT: usize = 2;
const READ_BUSY: usize = 1;
const DEPTH: usize = 2;
const HYBRID: usize = 3;

/// A trace that the paper says gains most may gain so many points less than another.
const OF_THE_MOST_POINTS: f64 = 2.0;

/// What each of the paper's figures took: of each scheme the least and the most.
const TOOK: [[&str; 2]; 4] = [
    [
        "least on Development, as in the paper: nearly all of its files are uneven, but few have a rate over 1",
        "most on MSNStorage, as in the paper: many of its files have a rate over 1, and reads of them come again; without these \
         reads it gains little",
    ],
    [
        "least on LiveMaps; requests one by one leave it and Development less still, but Exchange and MSNStorage more",
        "the time pending counts reads and writes; by the letter, with reads alone, Read Busy loses on every trace",
    ],
    [
        "only commands of long requests overlap on a die; where all do, Depth gains next to nothing",
        "most on LiveMaps, as in the paper: it has the most requests over 16 pages",
    ],
    [
        "less than the sum of the three, since Fairness and Read Busy both gain from the time pending",
        "reads come again: without these it gains a third less",
    ],
];

pub fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let read_as: Vec<Vec<f64>> = READ_AS.iter().map(|(name, _)| gains(results, name)).collect::<Result<_, _>>()?;
    let mut rows = paper_rows(&read_as);
    rows.extend(who_gains(&read_as, results)?);
    Ok(Outcome { rows, ..Outcome::default() })
}

/// The least and the most gain of each scheme beside the paper's, and what it took.
fn paper_rows(read_as: &[Vec<f64>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (((name, _), gains), (paper, took)) in READ_AS.iter().zip(read_as).zip(PAPER_GAINS.iter().zip(TOOK)) {
        let Some((least, most)) = least(gains).zip(most(gains)) else { continue };
        for (at, (what, ours)) in [("least", least), ("most", most)].into_iter().enumerate() {
            let row = format!("bursts, {name}: gain in mean response, {what} of four traces");
            let parameters = burst_of_all_told().with("placement", *name);
            rows.push(Row::shown(row, ours, "%", &parameters).paper(paper.response[at]).because(took[at]));
        }
    }
    rows
}

/// Figures of the traces under Round-Robin, in their order.
fn figures_told(results: &Results) -> Result<Parameters, ExperimentError> {
    let (mut asymmetry, mut long, mut over_one) = (Vec::new(), Vec::new(), Vec::new());
    for shape in &BURSTS {
        let mut by_seed = [const { Vec::new() }; 3];
        for seed in BURST_SEEDS {
            let Some(run) = results.get::<BurstRun>(&job_name(shape, ROUND_ROBIN.0, seed))? else { continue };
            let figures = [run.read_asymmetry, run.lengths.long_percent, run.spread.percent(run.spread.over_one)];
            by_seed.iter_mut().zip(figures).for_each(|(by_seed, figure)| by_seed.push(figure));
        }
        for (of, by_seed) in [&mut asymmetry, &mut long, &mut over_one].into_iter().zip(&by_seed) {
            of.extend(mean(by_seed).map(|figure| format!("{figure:.2}")));
        }
    }
    let told = burst_of_all_told().with("placement", "by scheme");
    Ok(told
        .with("reads of the channel that is read most, over the mean, by trace", asymmetry.join(", "))
        .with("requests over 16 pages by trace, %", long.join(", "))
        .with("files with a rate over 1 by trace, %", over_one.join(", ")))
}

/// Which trace gains most or least, as the paper tells, and whether all three together gain most.
fn who_gains(read_as: &[Vec<f64>], results: &Results) -> Result<Vec<Row>, ExperimentError> {
    let [fairness, read_busy, depth, hybrid] = [FAIRNESS, READ_BUSY, DEPTH, HYBRID].map(|at| &read_as[at]);
    if read_as.iter().any(|by_trace| by_trace.len() != BURSTS.len()) {
        return Ok(Vec::new());
    }
    let parameters = figures_told(results)?;
    let claim = |name: &str, points: f64, bar: Bar, paper: &'static str| {
        Row::shown(format!("bursts: {name}"), points, "points", &parameters).bar(bar).because(paper)
    };
    let most = |gains: &[f64]| most(gains).unwrap_or_default();
    let others = |gains: &[f64], but: usize| -> Vec<f64> {
        gains.iter().enumerate().filter(|&(number, _)| number != but).map(|(_, &gain)| gain).collect()
    };
    let least_other = least(&others(fairness, DEVELOPMENT)).unwrap_or_default();
    let mut rows = vec![
        claim(
            "what Development gains by Fairness, less than the least other trace",
            least_other - fairness[DEVELOPMENT],
            Bar::AtLeast(0.0),
            "the paper: little, since its imbalance is small; here by the rate, while nearly all of its files are uneven",
        ),
        claim(
            "what LiveMaps gains by Depth, more than the best other trace",
            depth[LIVE_MAPS] - most(&others(depth, LIVE_MAPS)),
            Bar::AtLeast(0.0),
            "the paper: more than others, since it has many large requests; so it is here",
        ),
        claim(
            "what MSNStorage gains by Fairness, less than the best trace",
            most(fairness) - fairness[MSN_STORAGE],
            Bar::AtMost(OF_THE_MOST_POINTS),
            "the paper: much, since its imbalance is large; so it is here",
        ),
        claim(
            "what Exchange gains by Read Busy, less than the best trace",
            most(read_busy) - read_busy[EXCHANGE],
            Bar::AtMost(OF_THE_MOST_POINTS),
            "the paper: effective, since its reads are asymmetric over the channels; here those of MSNStorage are so as much",
        ),
    ];
    for (number, shape) in BURSTS.iter().enumerate() {
        let best_other = [fairness, read_busy, depth].map(|gains| gains[number]);
        let more = hybrid[number] - most(&best_other);
        let name = format!("{}: what Hybrid gains more than the best of the three", shape.trace.name);
        rows.push(claim(&name, more, Bar::AtLeast(0.0), "the paper: the gains add up"));
    }
    Ok(rows)
}
