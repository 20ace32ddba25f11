//! The co-design paper's Fig. 8: throughput of channel schemes. Invariant: with as many requests outstanding at any time,
//! throughput × mean response is that many (Little's law), so that a figure of one is a figure of the other.

use super::burst_load::{self, BURST_SEEDS, BurstRun};
use super::even_load::{EvenLoadRun, run_outstanding, told, told_of_all};
use super::figures::{mean, percent};
use super::load_of_drive::{SEEDS, response_cells};
use super::paper_gains::{PAPER_GAINS, RESPONSE_ABOUT, THROUGHPUT_ABOUT};
use crate::drive::load::{BURSTS, BurstShape, TRACES, TraceShape};
use crate::drive::place::FilePlacement;
use crate::experiment::{
    Axis, Bar, ColumnPlot, ColumnSeries, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row, Table,
};

pub const CO_FIG8: Experiment = Experiment {
    id: "co-fig8",
    title: "Co-design, Fig. 8: throughput under channel schemes",
    about: "The paper's throughputs are its responses inverted. Here 16 requests are outstanding at any time, on the drive and the \
            files of co-fig7's even load; then throughput × mean response is 16. Beside that the means over the four traces: the \
            paper says that responses are about 20 % shorter and throughput is about 24 % higher.",
    differs: "The traces are not published, and the paper does not say how its requests come. In bursts the throughput is that of the \
              requests that come; what is told of it there is the response inverted.",
    jobs,
    finish,
};

const OUTSTANDING: u32 = 16;
/// Percent that throughput × mean response may be beside that.
const LITTLE_PERCENT: f64 = 0.5;
/// Points that an inverted response of the paper may be beside its throughput.
const INVERTED_POINTS: f64 = 0.15;

const ROUND_ROBIN: &str = "round-robin";

/// A scheme, and the least of its throughput over Round-Robin's on each trace, where a bar is known.
struct SchemeThroughput {
    name: &'static str,
    placement: FilePlacement,
    least: [Option<f64>; 4],
}

const SCHEMES: [SchemeThroughput; 9] = [
    SchemeThroughput { name: ROUND_ROBIN, placement: FilePlacement::ROUND_ROBIN, least: [None; 4] },
    SchemeThroughput { name: "fairness", placement: FilePlacement::FAIRNESS, least: [None; 4] },
    SchemeThroughput { name: "read-busy", placement: FilePlacement::READ_BUSY, least: [None; 4] },
    SchemeThroughput { name: "depth", placement: FilePlacement::DEPTH, least: [None; 4] },
    SchemeThroughput { name: "hybrid", placement: FilePlacement::HYBRID, least: [None; 4] },
    SchemeThroughput { name: "fair-plus", placement: FilePlacement::FAIR_PLUS, least: [None; 4] },
    SchemeThroughput {
        name: "hybrid-plus",
        placement: FilePlacement::HYBRID_PLUS,
        least: [Some(1.19), Some(1.09), Some(1.03), Some(1.02)],
    },
    SchemeThroughput {
        name: "striped-plus",
        placement: FilePlacement::STRIPED_PLUS,
        least: [Some(1.62), Some(1.88), Some(1.05), Some(1.40)],
    },
    SchemeThroughput { name: "window-plus", placement: FilePlacement::WINDOW_PLUS, least: [None; 4] },
];

/// All three schemes of the paper in bursts.
const IN_BURSTS: [(&str, FilePlacement); 2] =
    [(ROUND_ROBIN, FilePlacement::ROUND_ROBIN), ("hybrid-by-time", FilePlacement::HYBRID_BY_TIME)];

fn job_name(trace: &TraceShape, scheme: &str, seed: u64) -> String {
    format!("co-fig8.{}-{scheme}-{seed}", trace.name)
}

fn burst_job_name(shape: &BurstShape, scheme: &str, seed: u64) -> String {
    format!("co-fig8.bursts-{}-{scheme}-{seed}", shape.trace.name)
}

fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for trace in &TRACES {
        for SchemeThroughput { name, placement, .. } in SCHEMES {
            let run = move |seed| run_outstanding(trace, placement, OUTSTANDING, seed);
            jobs.extend(SEEDS.map(|seed| Job::new(job_name(trace, name, seed), move || run(seed))));
        }
    }
    for shape in &BURSTS {
        for (name, placement) in IN_BURSTS {
            let run = move |seed| burst_load::run(shape, placement, seed);
            jobs.extend(BURST_SEEDS.map(|seed| Job::new(burst_job_name(shape, name, seed), move || run(seed))));
        }
    }
    jobs
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome { rows: inverted(), ..Outcome::default() };
    let mut lines = Vec::new();
    // Of each scheme the mean of the seeds over Round-Robin's throughput, by trace.
    let mut means = vec![Vec::new(); SCHEMES.len()];
    for (number, trace) in TRACES.iter().enumerate() {
        let mut over = vec![Vec::new(); SCHEMES.len()];
        for seed in SEEDS {
            let of = |scheme| results.get::<EvenLoadRun>(&job_name(trace, scheme, seed));
            let Some(base) = of(ROUND_ROBIN)? else { continue };
            for (scheme, over) in SCHEMES.iter().zip(&mut over) {
                let Some(found) = of(scheme.name)? else { continue };
                let (Some(played), Some(base)) = (found.played.first(), base.played.first()) else { continue };
                let mut line = vec![trace.name.into(), scheme.placement.name.into(), seed.to_string()];
                line.push(format!("{:.1}", played.per_s));
                line.extend(response_cells(played));
                lines.push(line);
                over.push(played.per_s / base.per_s);
                let product = played.per_s * played.all.mean_us / 1e6;
                outcome.rows.extend(rows(trace, number, scheme, seed, played.per_s / base.per_s, product));
            }
        }
        for (means, over) in means.iter_mut().zip(&over) {
            means.extend(mean(over).map(|over| percent(over, 1.0)));
        }
    }
    if lines.is_empty() {
        return Ok(Outcome::default());
    }
    outcome.rows.extend(means_of_traces(&means));
    outcome.rows.extend(means_in_bursts(results)?);
    let header =
        vec!["trace", "placement", "seed", "per_s", "mean_us", "reads_us", "writes_us", "p50_us", "p99_us", "p99.9_us"];
    outcome.tables.push(Table { name: "throughput".into(), header, rows: lines });
    outcome.column_plots.push(plot(&means));
    Ok(outcome)
}

/// The paper's responses, inverted, beside its throughputs.
fn inverted() -> Vec<Row> {
    let mut rows = Vec::new();
    for gain in &PAPER_GAINS {
        for (what, response, throughput) in
            [("least", gain.response[0], gain.throughput[0]), ("most", gain.response[1], gain.throughput[1])]
        {
            let name = format!("the paper's {}: {what} gain in throughput, from its response", gain.scheme);
            let ours = 100.0 * (1.0 / (1.0 - response / 100.0) - 1.0);
            let hundredths = |figure: f64| (100.0 * figure).round() / 100.0;
            let bar = Bar::Between(hundredths(throughput - INVERTED_POINTS), hundredths(throughput + INVERTED_POINTS));
            let parameters = Parameters::default().with("response", format!("{response} % shorter"));
            let row = Row::shown(name, ours, "%", &parameters).paper(throughput).bar(bar);
            rows.push(row.because("the same figure: one over what is left of the response"));
        }
    }
    rows
}

fn rows(trace: &TraceShape, number: usize, scheme: &SchemeThroughput, seed: u64, over: f64, product: f64) -> Vec<Row> {
    let SchemeThroughput { placement, least, name } = scheme;
    let parameters = told(trace, placement).with("arrivals", format!("{OUTSTANDING} outstanding"));
    let shown = |what: &str, figure: f64| {
        Row::shown(format!("{}, {}, seed {seed}: {what}", trace.name, placement.name), figure, "", &parameters)
    };
    let little = Bar::Within { percent: LITTLE_PERCENT, of: f64::from(OUTSTANDING) };
    let product = shown("throughput × mean response", product).bar(little);
    if *name == ROUND_ROBIN {
        return vec![product];
    }
    let over = shown("throughput over Round-Robin's", over);
    vec![product, if let Some(least) = least[number] { over.bar(Bar::AtLeast(least)) } else { over }]
}

/// What each scheme gains with requests outstanding, in the mean of the traces.
fn means_of_traces(means: &[Vec<f64>]) -> Vec<Row> {
    let row = |(scheme, by_trace): (&SchemeThroughput, &Vec<f64>)| {
        let parameters = told_of_all(&scheme.placement).with("seeds", "1 to 5, mean");
        let parameters = parameters.with("arrivals", format!("{OUTSTANDING} outstanding"));
        let name = format!("{}: gain in throughput, mean of the traces", scheme.placement.name);
        let row = Row::shown(name, mean(by_trace)?, "%", &parameters).paper(THROUGHPUT_ABOUT);
        Some(row.because("the paper's is of its Hybrid; with 16 outstanding a scheme gains what it saves a request"))
    };
    SCHEMES.iter().zip(means).skip(1).filter_map(row).collect()
}

/// What all three schemes of the paper gain in bursts, in the mean of the traces.
fn means_in_bursts(results: &Results) -> Result<Vec<Row>, ExperimentError> {
    let (mut shorter, mut higher) = (Vec::new(), Vec::new());
    for shape in &BURSTS {
        let mut ratios = Vec::new();
        for seed in BURST_SEEDS {
            let [base, found] = IN_BURSTS.map(|(name, _)| results.get::<BurstRun>(&burst_job_name(shape, name, seed)));
            let (Some(base), Some(found)) = (base?, found?) else { continue };
            ratios.push(found.played.all.mean_us / base.played.all.mean_us);
        }
        shorter.extend(mean(&ratios).map(|ratio| -percent(ratio, 1.0)));
        higher.extend(mean(&ratios).map(|ratio| percent(1.0, ratio)));
    }
    let [_, (name, placement)] = IN_BURSTS;
    let parameters = burst_load::burst_of_all_told().with("placement", placement.name);
    let row = |what: &str, by_trace: &[f64], paper, took| {
        let row = format!("bursts, {name}: {what}, mean of the traces");
        Some(Row::shown(row, mean(by_trace)?, "%", &parameters).paper(paper).because(took))
    };
    let took =
        ["time pending, bursts and reads that come again, as in co-fig7", "the same: each trace's response inverted"];
    let rows = [
        row("gain in mean response", &shorter, RESPONSE_ABOUT, took[0]),
        row("gain in throughput, the response inverted", &higher, THROUGHPUT_ABOUT, took[1]),
    ];
    Ok(rows.into_iter().flatten().collect())
}

fn plot(means: &[Vec<f64>]) -> ColumnPlot {
    let named = |(scheme, gains): (&SchemeThroughput, &Vec<f64>)| ColumnSeries {
        name: scheme.placement.name.into(),
        heights: gains.clone(),
    };
    ColumnPlot {
        name: "outstanding".into(),
        title: "Gain in throughput over Round-Robin, 16 requests outstanding".into(),
        groups: TRACES.iter().map(|trace| trace.name).collect(),
        y: Axis { label: "gain, %", from: -40.0, to: 160.0 },
        series: SCHEMES.iter().zip(means).skip(1).map(named).collect(),
    }
}
