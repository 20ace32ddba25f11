//! The paper's schemes by the letter, under requests that come evenly, beside its figures. Invariant: a scheme's gain is the mean
//! of the seeds, trace by trace, and each of the paper's figures has the reason of the difference.

use super::super::even_load::{EvenLoadRun, RESPONSES_HEADER, response_lines, run, told};
use super::super::load_of_drive::{LOADS, SEEDS};
use super::super::paper_gains::PAPER_GAINS;
use super::{against, against_by, gains_plot, job_name};
use crate::drive::load::TRACES;
use crate::drive::place::FilePlacement;
use crate::experiment::{ExperimentError, Job, Outcome, Results, Row, Table};

/// The schemes in the order of the paper's gains, and why theirs are others here.
const SCHEMES: [(&str, FilePlacement, &str); 4] = [
    ("fairness", FilePlacement::FAIRNESS, FAIRNESS_REASON),
    ("read-busy", FilePlacement::READ_BUSY, READ_BUSY_REASON),
    ("depth", FilePlacement::DEPTH, DEPTH_REASON),
    ("hybrid", FilePlacement::HYBRID, HYBRID_REASON),
];

const FAIRNESS_REASON: &str = "by the letter a page goes to the channel with the fewest pages of its file, whatever that has to do and \
                               however many pages of the same request it got: reads gain where files are long, writes lose";
const READ_BUSY_REASON: &str = "by the letter the pages of a request go to the channels that no read occupies, however few these are: \
                                they fill up with writes, for which the next reads wait; it costs more, the more requests read";
const DEPTH_REASON: &str = "only requests over 16 pages gain, and only two traces have many; the drive overlaps commands of short \
                            requests, too, so that little is left for Depth to add";
const HYBRID_REASON: &str = "Fairness's channels cost writes, Read Busy's fill up; what Depth gains is left on the traces with long \
                             requests";

pub fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    // Depth is among the schemes that have bars.
    for (name, placement, _) in SCHEMES.into_iter().filter(|(name, ..)| *name != "depth") {
        for trace in &TRACES {
            let job = |seed| Job::new(job_name(trace, name, seed), move || run(trace, placement, &LOADS, seed));
            jobs.extend(SEEDS.map(job));
        }
    }
    jobs
}

pub fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let (mut rows, mut column_plots) = (Vec::new(), Vec::new());
    for (at, load) in LOADS.into_iter().enumerate() {
        let mut series = Vec::new();
        for ((name, placement, reason), paper) in SCHEMES.into_iter().zip(&PAPER_GAINS) {
            let by_trace = against(results, name, "round-robin", at)?;
            for (trace, &ours) in TRACES.iter().zip(&by_trace) {
                let row = format!("{} at {load}, {name} by the letter: mean response against Round-Robin", trace.name);
                rows.push(Row::shown(row, ours, "%", &told(trace, &placement)));
            }
            let gains: Vec<f64> = by_trace.iter().map(|percent| -percent).collect();
            let (least, most) = (gains.iter().copied().reduce(f64::min), gains.iter().copied().reduce(f64::max));
            let Some((least, most)) = least.zip(most) else { continue };
            series.push((name, gains));
            let parameters = told(&TRACES[0], &placement).with("trace", "all four");
            for (what, ours, paper) in [("least", least, paper.response[0]), ("most", most, paper.response[1])] {
                let row =
                    format!("even load {load}, {name} by the letter: gain in mean response, {what} of four traces");
                rows.push(Row::shown(row, ours, "%", &parameters).paper(paper).because(reason));
            }
        }
        let all = against(results, "fairness", "static", at)?;
        let reads = against_by(results, "fairness", "static", at, |played| played.reads.mean_us)?;
        for (what, over_static) in [("mean response", all), ("reads", reads)] {
            rows.extend(TRACES.iter().zip(over_static).map(|(trace, ours)| {
                let row = format!("{} at {load}, fairness by the letter: {what} against static striping", trace.name);
                Row::shown(row, ours, "%", &told(trace, &FilePlacement::FAIRNESS))
            }));
        }
        if !series.is_empty() {
            let title = format!("The paper's schemes by the letter: gain in mean response, even load {load}");
            column_plots.push(gains_plot(&format!("letter-{load}"), &title, (-80.0, 60.0), series));
        }
    }
    Ok(Outcome { rows, column_plots, tables: table(results)?.into_iter().collect(), ..Outcome::default() })
}

/// The responses of each run; nothing where there is none.
fn table(results: &Results) -> Result<Option<Table>, ExperimentError> {
    let mut rows = Vec::new();
    for trace in &TRACES {
        for (name, placement, _) in SCHEMES.into_iter().filter(|(name, ..)| *name != "depth") {
            for seed in SEEDS {
                let Some(found) = results.get::<EvenLoadRun>(&job_name(trace, name, seed))? else { continue };
                rows.extend(response_lines(trace, &placement, &LOADS, seed, &found));
            }
        }
    }
    Ok((!rows.is_empty()).then(|| Table { name: "letter".into(), header: RESPONSES_HEADER.into(), rows }))
}
