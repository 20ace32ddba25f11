//! What the log-block paper leaves to future work (§V): another victim, and merges in idle time. Invariant: every variant gets the
//! same requests at the same pauses.

use ftl::{Scheme, Victim};

use super::traces::{Arrivals, Costs, SEEDS, Setup, Spread, logs_at_most, summed};
use crate::experiment::{
    Axis, Experiment, ExperimentError, Job, Outcome, Parameters, Plot, Results, Row, Series, Table,
};
use crate::layers::workload::Workload;

pub const FTL_FUTURE: Experiment = Experiment {
    id: "ftl-future",
    title: "Log-block FTL, §V: the future work",
    about: "The log-block scheme on the six traces with their reads and pauses. The log block to reclaim is the one written least \
            recently, as in the paper, or is chosen by recency and use; and merges are done in idle time, as far as that is \
            foreseen, or when a log block is wanted. Extra erases, and the response that 99 of 100 requests do not exceed. Means of \
            three seeds.",
    differs: "The paper gives no figures. Idle time is foreseen as FlexFS's dynamic allocation does, by the last ten idle times; a \
              pause counts as idle after 10 ms.",
    jobs,
    finish,
};

const EXTRA_BLOCKS: [u32; 2] = [16, 32];

/// A way to run the scheme.
struct Variant {
    job: &'static str,
    name: &'static str,
    victim: Victim,
    arrivals: Arrivals,
}

/// The first is the paper's.
const VARIANTS: [Variant; 4] = [
    Variant { job: "paper", name: "the paper's policy", victim: Victim::LeastRecent, arrivals: Arrivals::Paused },
    Variant { job: "use", name: "recency and use", victim: Victim::RecencyAndUse, arrivals: Arrivals::Paused },
    Variant {
        job: "idle",
        name: "merges in idle time",
        victim: Victim::LeastRecent,
        arrivals: Arrivals::MergingInPauses,
    },
    Variant {
        job: "both",
        name: "recency and use; merges in idle time",
        victim: Victim::RecencyAndUse,
        arrivals: Arrivals::MergingInPauses,
    },
];

fn job_name(workload: &Workload, variant: &Variant, extra_blocks: u32) -> String {
    format!("ftl-future.{}.{}.{extra_blocks}", workload.name, variant.job)
}

fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for workload in Workload::ALL {
        for variant in &VARIANTS {
            for extra_blocks in EXTRA_BLOCKS {
                let paper = Setup::paper(workload, Scheme::LogBlock, extra_blocks);
                let setup = Setup { victim: variant.victim, arrivals: variant.arrivals, ..paper };
                jobs.push(Job::new(job_name(&workload, variant, extra_blocks), move || Ok(setup.measure()?)));
            }
        }
    }
    jobs
}

fn parameters(extra_blocks: u32) -> Parameters {
    Parameters::default()
        .with("chip", "k9f5608u0m, 16 MiB, every sector written")
        .with("blocks", format!("{extra_blocks} of 1,024 extra, {} log blocks at most", logs_at_most(extra_blocks)))
        .with("seeds", SEEDS.to_string())
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    let mut table = Vec::new();
    for extra_blocks in EXTRA_BLOCKS {
        let mut series = Vec::new();
        for variant in &VARIANTS {
            let points = of_variant(results, variant, extra_blocks, &mut outcome.rows, &mut table)?;
            series.push(Series { name: variant.name.into(), points, marked: true });
        }
        series.retain(|series| !series.points.is_empty());
        let most = series.iter().flat_map(|series| &series.points).map(|(_, ms)| *ms).fold(0.0, f64::max);
        if !series.is_empty() {
            outcome.plots.push(Plot {
                name: format!("p99-{extra_blocks}"),
                title: format!("{extra_blocks} extra blocks"),
                x: Axis { label: "trace, in the order of Table II", from: 0.0, to: 7.0 },
                y: Axis { label: "response of 99 % of the requests at most, ms", from: 0.0, to: most * 1.05 },
                series,
            });
        }
    }
    if !table.is_empty() {
        let header =
            vec!["trace", "policy", "extra_blocks", "extra_erases", "least", "most", "p99_us", "least_us", "most_us"];
        outcome.tables.push(Table { name: "future".into(), header, rows: table });
    }
    Ok(outcome)
}

/// The figures of one variant: a row for all traces and one for each; p99 in ms by the number of the trace.
fn of_variant(
    results: &Results,
    variant: &Variant,
    extra_blocks: u32,
    rows: &mut Vec<Row>,
    table: &mut Vec<Vec<String>>,
) -> Result<Vec<(f64, f64)>, ExperimentError> {
    let (mut points, mut erases) = (Vec::new(), Vec::new());
    for (number, workload) in (1..).zip(&Workload::ALL) {
        let Some(costs) = results.get::<Costs>(&job_name(workload, variant, extra_blocks))? else { continue };
        let p99 = Spread::of(&costs.p99_us);
        points.push((f64::from(number), p99.mean / 1e3));
        let name = format!("p99 of {}, {}, {extra_blocks} extra blocks", workload.title, variant.name);
        rows.push(Row::shown(name, p99.mean.round(), "µs", &parameters(extra_blocks)));
        let cells = [workload.title.to_owned(), variant.name.to_owned(), extra_blocks.to_string()];
        let spreads = Spread::of(&costs.erases).cells(0).into_iter().chain(p99.cells(0));
        table.push(cells.into_iter().chain(spreads).collect());
        erases.push(costs.erases);
    }
    if erases.len() == Workload::ALL.len() {
        let name = format!("extra erases of all traces, {}, {extra_blocks} extra blocks", variant.name);
        let sum = Spread::of(&summed(&erases)).mean;
        rows.push(Row::shown(name, sum.round(), "", &parameters(extra_blocks)));
    }
    Ok(points)
}
