//! The co-design paper's Fig. 7: mean responses of channel schemes, beside Round-Robin's, under requests that come evenly and
//! in bursts. Invariant: each scheme wrote the files that it serves, and is asked for the same requests at the same times.

mod bursts;
mod claims;
mod differences;
mod even;
mod exchange;
mod letter;
mod traces;

use super::even_load::EvenLoadRun;
use super::figures::{mean, percent};
use super::load_of_drive::SEEDS;
use crate::drive::PlayedRequests;
use crate::drive::load::{TRACES, TraceShape};
use crate::drive::place::FilePlacement;
use crate::experiment::{Axis, ColumnPlot, ColumnSeries, Experiment, ExperimentError, Job, Outcome, Results};

pub const CO_FIG7: Experiment = Experiment {
    id: "co-fig7",
    title: "Co-design, Fig. 7: mean response under channel schemes",
    about: "Each scheme writes files on a drive of 8 channels, then requests like the trace's come. The paper finds responses 7.0 \
            to 23.1 % shorter than Round-Robin's with File Channel Fairness, 7.4 to 17.2 % with Read Busy, 7.8 to 15.5 % with \
            Dynamic Depth and 14.4 to 24.4 % with all three. Requests that come evenly: the paper's schemes by the letter, those \
            that go on from them (Fair+, Read Busy+, Hybrid+, Striped+, Window+), and static striping. Requests that come in \
            bursts: the paper's schemes by the letter, and read so that a channel is as busy as the time pending on it.",
    differs: "The traces are not published. Under even arrivals the paper's schemes do not come to its figures: by the letter \
              Fairness gains on Development alone, Read Busy on no trace, Hybrid on two. The bursts were found by a search over \
              drives, readings of the rules and loads: they show that such figures can be had, not that the authors had them so.",
    jobs,
    finish,
};

fn jobs() -> Vec<Job> {
    [even::jobs(), letter::jobs(), exchange::jobs(), bursts::jobs(), differences::jobs()]
        .into_iter()
        .flatten()
        .collect()
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    let parts = [
        even::finish(results)?,
        letter::finish(results)?,
        exchange::finish(results)?,
        bursts::finish(results)?,
        claims::finish(results)?,
        differences::finish(results)?,
        traces::finish(results)?,
    ];
    for part in parts {
        outcome.rows.extend(part.rows);
        outcome.tables.extend(part.tables);
        outcome.column_plots.extend(part.column_plots);
    }
    Ok(outcome)
}

fn job_name(trace: &TraceShape, scheme: &str, seed: u64) -> String {
    format!("co-fig7.{}-{scheme}-{seed}", trace.name)
}

/// What every scheme is compared with.
const ROUND_ROBIN: (&str, FilePlacement) = ("round-robin", FilePlacement::ROUND_ROBIN);

/// Gains over Round-Robin, a column of each scheme for each trace.
fn gains_plot(name: &str, title: &str, (from, to): (f64, f64), gains: Vec<(&str, Vec<f64>)>) -> ColumnPlot {
    let series = gains.into_iter().map(|(name, heights)| ColumnSeries { name: name.into(), heights });
    ColumnPlot {
        name: name.into(),
        title: title.into(),
        groups: TRACES.iter().map(|trace| trace.name).collect(),
        y: Axis { label: "gain, %", from, to },
        series: series.collect(),
    }
}

/// Of each trace, the mean response of a scheme against that of another, %, in the mean of the seeds; of the run's load of that
/// number.
fn against(results: &Results, scheme: &str, base: &str, at: usize) -> Result<Vec<f64>, ExperimentError> {
    against_by(results, scheme, base, at, |played| played.all.mean_us)
}

/// The same of another figure of what was played.
fn against_by(
    results: &Results,
    scheme: &str,
    base: &str,
    at: usize,
    figure: fn(&PlayedRequests) -> f64,
) -> Result<Vec<f64>, ExperimentError> {
    let mut by_trace = Vec::new();
    for trace in &TRACES {
        let mut by_seed = Vec::new();
        for seed in SEEDS {
            let of = |scheme| results.get::<EvenLoadRun>(&job_name(trace, scheme, seed));
            let (Some(found), Some(base)) = (of(scheme)?, of(base)?) else { continue };
            if let (Some(found), Some(base)) = (found.played.get(at), base.played.get(at)) {
                by_seed.push(percent(figure(found), figure(base)));
            }
        }
        by_trace.extend(mean(&by_seed));
    }
    Ok(by_trace)
}
