//! The co-design paper's Fig. 2: how unevenly Round-Robin spreads files, and how long requests take on that drive. Invariant: a
//! placement is told nothing of the load, and each page that is read is compared.

use flexfs_core::dump::imbalance_rate;
use serde::{Deserialize, Serialize};

use super::load_of_drive::{LOADS, SEEDS, at_load, drive_told};
use crate::drive::load::{FileSizes, RequestSource, TRACES, TraceShape, first_writes, overwrites};
use crate::drive::place::{FilePlacement, SpreadFiles};
use crate::drive::{DriveShape, PlannedRequest, PlayedRequests, ShadowedStore, play};
use crate::experiment::{Axis, Bar, Experiment, ExperimentError, Job, Outcome, Plot, Results, Row, Series, Table};

pub const CO_FIG2: Experiment = Experiment {
    id: "co-fig2",
    title: "Co-design, Fig. 2: the imbalance rate of files under Round-Robin",
    about: "4,000 files are written on a drive of 8 channels, some at a time, in writes of the trace's sizes; then pages are \
            overwritten. The paper finds 26 % of the files of Exchange uneven, and 67 % of MSNStorage's; the rate of Eq. 1 is \
            over 1 for 6.3 and 27.9 %. Then requests come at two loads, to Round-Robin and to two rivals: Round-Robin with \
            striped dies, and static striping by the page's place in its file. co-fig2-real has the shares of the real file \
            system, under the rules that spread better, too.",
    differs: "The traces are not published: sizes of files, popularity and what is overwritten are assumed so that Round-Robin \
              comes to the paper's shares. The paper tells no response times for Round-Robin alone; ours are held to those of \
              another simulator of the same drive.",
    jobs,
    finish,
};

const FILES: usize = 4_000;
const PAGES_PER_BLOCK: u32 = 256;
const REQUESTS: usize = 50_000;
const SHAPE: DriveShape = DriveShape::eight_channels(2, 2);
/// Shares of files with a rate up to 0, .25, .5 and so on are told.
const RATES: usize = 13;
const RATE_STEP: f64 = 0.25;

const PLACEMENTS: [(&str, FilePlacement); 3] = [
    ("round-robin", FilePlacement::ROUND_ROBIN),
    ("striped", FilePlacement::ROUND_ROBIN_STRIPED),
    ("static", FilePlacement::STATIC),
];

/// Mean responses under Round-Robin, µs, at each load, in the order of the traces; and how far ours may be from them.
const RESPONSES_US: [[f64; 4]; 2] = [[760.0, 825.0, 297.0, 477.0], [1_031.0, 1_024.0, 394.0, 558.0]];
const RESPONSES_PERCENT: f64 = 5.0;

/// Percent of the files that the paper finds uneven, and with a rate over 1: of Exchange and MSNStorage.
fn of_paper(trace: &TraceShape) -> Option<(f64, f64)> {
    match trace.name {
        "exchange" => Some((26.0, 6.3)),
        "msnstorage" => Some((67.0, 27.9)),
        _ => None,
    }
}

/// What a job gives.
#[derive(Serialize, Deserialize)]
struct SpreadAndResponses {
    files: u64,
    pages: u64,
    /// Files with a rate over 0; with two pages of a channel held to be even; with a rate over 1.
    uneven: u64,
    uneven_beyond_two: u64,
    over_one: u64,
    /// Files with a rate up to 0, .25, .5 and so on.
    up_to: Vec<u64>,
    /// Pages of the fullest channel less those of the emptiest, of all that were written.
    channels_apart: u64,
    /// At each load.
    played: Vec<PlayedRequests>,
}

fn job_name(trace: &TraceShape, placement: &str, seed: u64) -> String {
    format!("co-fig2.{}-{placement}-{seed}", trace.name)
}

fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for trace in &TRACES {
        for (name, placement) in PLACEMENTS {
            let job = |seed| Job::new(job_name(trace, name, seed), move || measure(trace, placement, seed));
            jobs.extend(SEEDS.map(job));
        }
    }
    jobs
}

fn measure(trace: &TraceShape, placement: FilePlacement, seed: u64) -> Result<SpreadAndResponses, ExperimentError> {
    let files = FileSizes::count(trace, seed, FILES)?;
    let store = SpreadFiles::new(placement, SHAPE, PAGES_PER_BLOCK, &files)?;
    let (mut store, mut planned) = (ShadowedStore::new(store, files.pages()), PlannedRequest::default());
    for write in first_writes(trace, &files, seed)?.iter().chain(&overwrites(trace, &files, seed)?) {
        store.write(write, &mut planned)?;
    }
    let by_channel: Vec<Vec<u64>> = store.store.pages_by_channel().collect();
    let rates: Vec<f64> = by_channel.iter().map(|pages| imbalance_rate(pages)).collect();
    let count = |is_so: &dyn Fn(f64) -> bool| rates.iter().filter(|&&rate| is_so(rate)).count() as u64;
    let (most, least) = (store.store.issued().max().unwrap_or(0), store.store.issued().min().unwrap_or(0));
    let mut played = Vec::new();
    for load in LOADS {
        let requests = RequestSource::new(trace, &files, seed)?;
        let plan = at_load(load, SHAPE, &requests, REQUESTS, seed);
        played.push(play(&plan, &mut store.clone(), requests, |_, requests| requests == REQUESTS)?);
    }
    Ok(SpreadAndResponses {
        files: rates.len() as u64,
        pages: u64::from(files.pages()),
        uneven: count(&|rate| rate > 0.0),
        uneven_beyond_two: by_channel.iter().filter(|pages| is_uneven_beyond_two(pages)).count() as u64,
        over_one: count(&|rate| rate > 1.0),
        up_to: (0..RATES).map(|step| count(&|rate| rate <= step as f64 * RATE_STEP)).collect(),
        channels_apart: most - least,
        played,
    })
}

/// The paper's other reading: a file of fewer pages than channels is even where no channel has more than two of them.
fn is_uneven_beyond_two(by_channel: &[u64]) -> bool {
    let is_short = by_channel.iter().sum::<u64>() < by_channel.len() as u64;
    let is_even = is_short && by_channel.iter().all(|&pages| pages <= 2);
    !is_even && imbalance_rate(by_channel) > 0.0
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    let mut table = Vec::new();
    for (number, trace) in TRACES.iter().enumerate() {
        let mut series = Vec::new();
        for (name, placement) in PLACEMENTS {
            let mut by_seed = Vec::new();
            for seed in SEEDS {
                let Some(found) = results.get::<SpreadAndResponses>(&job_name(trace, name, seed))? else { continue };
                table.extend(lines(trace, &placement, seed, &found));
                by_seed.push((seed, found));
            }
            if let Some((_, first)) = by_seed.first() {
                series.push(rates_of(&placement, first));
                outcome.rows.extend(rows(number, trace, &placement, &by_seed));
            }
        }
        if !series.is_empty() {
            outcome.plots.push(plot(trace, series));
        }
    }
    if !table.is_empty() {
        outcome.tables.push(Table {
            name: "responses".into(),
            header: vec![
                "trace",
                "placement",
                "seed",
                "load",
                "mean_us",
                "reads_us",
                "writes_us",
                "p50_us",
                "p99_us",
                "p99.9_us",
                "pages",
                "compared",
            ],
            rows: table,
        });
    }
    Ok(outcome)
}

fn lines(trace: &TraceShape, placement: &FilePlacement, seed: u64, found: &SpreadAndResponses) -> Vec<Vec<String>> {
    let line = |(load, played): (f64, &PlayedRequests)| {
        let us = |figure: f64| format!("{figure:.1}");
        let all = &played.all.distribution;
        let mut line = vec![trace.name.into(), placement.name.into(), seed.to_string(), load.to_string()];
        line.extend([played.all.mean_us, played.reads.mean_us, played.writes.mean_us].map(us));
        line.extend([all.median_us, all.p99_us, all.p999_us].map(us));
        line.extend([played.pages.to_string(), played.pages_compared.to_string()]);
        line
    };
    LOADS.into_iter().zip(&found.played).map(line).collect()
}

fn rates_of(placement: &FilePlacement, found: &SpreadAndResponses) -> Series {
    let share = |files: &u64| 100.0 * *files as f64 / found.files as f64;
    let points = (0..).zip(&found.up_to).map(|(step, files)| (f64::from(step) * RATE_STEP, share(files)));
    Series { name: placement.name.into(), points: points.collect(), marked: true }
}

fn plot(trace: &TraceShape, series: Vec<Series>) -> Plot {
    Plot {
        name: trace.name.into(),
        title: format!("Files of {} by their imbalance rate", trace.name),
        x: Axis { label: "imbalance rate, at most", from: 0.0, to: (RATES - 1) as f64 * RATE_STEP },
        y: Axis { label: "% of files", from: 0.0, to: 100.0 },
        series,
    }
}

fn rows(
    number: usize,
    trace: &TraceShape,
    placement: &FilePlacement,
    by_seed: &[(u64, SpreadAndResponses)],
) -> Vec<Row> {
    let parameters = drive_told(SHAPE, PAGES_PER_BLOCK, trace)
        .with("placement", placement.name)
        .with("files", FILES.to_string())
        .with("written at a time", trace.writers.to_string())
        .with("overwritten", format!("{:.0} %", 100.0 * trace.overwritten))
        .with("collection", "none")
        .with("requests", format!("{REQUESTS}, of which the first 10 % are not measured"));
    let shown = |what: String, figure: f64, unit| {
        Row::shown(format!("{}, {}: {what}", trace.name, placement.name), figure, unit, &parameters)
    };
    let is_round_robin = *placement == FilePlacement::ROUND_ROBIN;
    let mut rows = Vec::new();
    for (seed, found) in by_seed {
        let share = |what: &str, files: u64| {
            shown(format!("{what}, seed {seed}"), 100.0 * files as f64 / found.files as f64, "%")
        };
        let (uneven, over_one) =
            (share("uneven files", found.uneven), share("files with a rate over 1", found.over_one));
        match of_paper(trace).filter(|_| is_round_robin) {
            Some((paper_uneven, paper_over_one)) => {
                let near = |row: Row, paper: f64| row.paper(paper).bar(Bar::Between(paper - 3.0, paper + 3.0));
                rows.extend([near(uneven, paper_uneven), near(over_one, paper_over_one)]);
            }
            None => rows.extend([uneven, over_one]),
        }
        rows.push(share("uneven, two pages of a channel held to be even", found.uneven_beyond_two));
        if is_round_robin {
            let apart = shown(
                format!("pages written per channel, most less least, seed {seed}"),
                found.channels_apart as f64,
                "",
            );
            rows.push(apart.bar(Bar::AtMost(1.0)));
        }
    }
    for (at, load) in LOADS.into_iter().enumerate() {
        let each = || by_seed.iter().filter_map(|(_, found)| found.played.get(at));
        let mean_us = each().map(|played| played.all.mean_us).sum::<f64>() / by_seed.len() as f64;
        let row = shown(format!("mean response at {load}"), mean_us, "µs");
        rows.push(match is_round_robin {
            true => row.bar(Bar::Within { percent: RESPONSES_PERCENT, of: RESPONSES_US[at][number] }),
            false => row,
        });
        let pages = each().map(|played| played.pages).sum::<u64>();
        rows.push(shown(format!("pages read and programmed at {load}"), pages as f64, ""));
    }
    rows
}
