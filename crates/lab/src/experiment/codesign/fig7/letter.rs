//! The paper's schemes by the letter, under requests that come evenly, beside its figures. Invariant: a scheme's gain is the mean
//! of the seeds, trace by trace, and each of the paper's figures has the reason of the difference.

use super::super::even_load::{EvenLoadRun, RESPONSES_HEADER, response_lines, run, told, told_of_all};
use super::super::figures::{least, most};
use super::super::load_of_drive::{LOADS, SEEDS};
use super::super::paper_gains::PAPER_GAINS;
use super::{ROUND_ROBIN, against, against_by, gains_plot, job_name};
use crate::drive::load::TRACES;
use crate::drive::place::FilePlacement;
use crate::experiment::{Bar, ExperimentError, Job, Outcome, Results, Row, Table};

/// A scheme, and why its least and its most gain are others than the paper's.
type LetterScheme = (&'static str, FilePlacement, [&'static str; 2]);

/// In the order of the paper's gains.
const SCHEMES: [LetterScheme; 4] = [
    (
        "fairness",
        FilePlacement::FAIRNESS,
        [
            "a page goes to the channel with the fewest pages of its file, however busy that is and however many pages of the \
             request it got; writes of LiveMaps are the longest and wait longest",
            "nearly all requests of Development read, and a quarter of its files has a rate over 1, which Fairness evens out",
        ],
    ),
    (
        "read-busy",
        FilePlacement::READ_BUSY,
        [
            "all pages of a request go to the channels that no read occupies, however few these are; the next reads wait for \
             these writes, and longest where requests are long, as on LiveMaps",
            "requests of MSNStorage are short, so that each needs few channels",
        ],
    ),
    (
        "depth",
        FilePlacement::DEPTH,
        [
            "MSNStorage has next to no requests over 16 pages",
            "a quarter of LiveMaps's requests is over 16 pages, and the higher the load, the more a die less that waits is worth",
        ],
    ),
    (
        "hybrid",
        FilePlacement::HYBRID,
        [
            "Fairness makes writes longer, and MSNStorage has next to no requests over 16 pages",
            "most of what Depth gains is lost again to channels that fill up",
        ],
    ),
];

const SEEDS_TOLD: &str = "1 to 5, mean";
/// Percent by which LiveMaps's responses are longer under Read Busy at the second load: the channels that it takes fill up.
const FILLED: [f64; 2] = [60.0, 80.0];

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
        for ((name, placement, reasons), paper) in SCHEMES.into_iter().zip(&PAPER_GAINS) {
            let by_trace = against(results, name, ROUND_ROBIN.0, at)?;
            for (trace, &ours) in TRACES.iter().zip(&by_trace) {
                let row = format!("{} at {load}, {name} by the letter: mean response against Round-Robin", trace.name);
                let row = Row::shown(row, ours, "%", &told(trace, &placement).with("seeds", SEEDS_TOLD));
                let fills_up = (name, trace.name, at) == ("read-busy", "livemaps", 1);
                rows.push(if fills_up { row.bar(Bar::Between(FILLED[0], FILLED[1])) } else { row });
            }
            let gains: Vec<f64> = by_trace.iter().map(|percent| -percent).collect();
            let Some(extremes) = least(&gains).zip(most(&gains)) else { continue };
            series.push((name, gains));
            let parameters = told_of_all(&placement).with("seeds", SEEDS_TOLD);
            for (at, (what, ours)) in [("least", extremes.0), ("most", extremes.1)].into_iter().enumerate() {
                let row =
                    format!("even load {load}, {name} by the letter: gain in mean response, {what} of four traces");
                let row = Row::shown(row, ours, "%", &parameters).paper(paper.response[at]);
                rows.push(row.because(reasons[at]));
            }
        }
        let all = against(results, "fairness", "static", at)?;
        let reads = against_by(results, "fairness", "static", at, |played| played.reads.mean_us)?;
        for (what, over_static) in [("mean response", all), ("reads", reads)] {
            rows.extend(TRACES.iter().zip(over_static).map(|(trace, ours)| {
                let row = format!("{} at {load}, fairness by the letter: {what} against static striping", trace.name);
                Row::shown(row, ours, "%", &told(trace, &FilePlacement::FAIRNESS).with("seeds", SEEDS_TOLD))
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
