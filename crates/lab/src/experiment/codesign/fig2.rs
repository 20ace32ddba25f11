//! The co-design paper's Fig. 2: how unevenly Round-Robin spreads files, and how long requests take on that drive. Invariant: a
//! placement is told nothing of the load, and each page that is read is compared.

use super::even_load::{EvenLoadRun, RESPONSES_HEADER, response_lines, run, told};
use super::laid_files::{BY_MANY_MOST, FileSpread, OVER_ONE_MOST, RATE_STEP, RATES, share_of_paper};
use super::load_of_drive::{LOADS, SEEDS};
use crate::drive::load::{TRACES, TraceShape};
use crate::drive::place::FilePlacement;
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

/// Those that requests come to, and those whose files alone are looked at.
const PLACEMENTS: [(&str, FilePlacement, &[f64]); 6] = [
    ("round-robin", FilePlacement::ROUND_ROBIN, &LOADS),
    ("striped", FilePlacement::ROUND_ROBIN_STRIPED, &LOADS),
    ("static", FilePlacement::STATIC, &LOADS),
    ("fair-plus", FilePlacement::FAIR_PLUS, &[]),
    ("striped-plus", FilePlacement::STRIPED_PLUS, &[]),
    ("window-plus", FilePlacement::WINDOW_PLUS, &[]),
];
/// Mean responses under Round-Robin, µs, at each load, in the order of the traces; and how far ours may be from them.
const RESPONSES_US: [[f64; 4]; 2] = [[760.0, 825.0, 297.0, 477.0], [1_031.0, 1_024.0, 394.0, 558.0]];
const RESPONSES_PERCENT: f64 = 5.0;

/// What the paper's shares took.
const TOOK: &str =
    "sizes of files, how many are written at a time and how much is overwritten are assumed so that it comes out";

fn job_name(trace: &TraceShape, placement: &str, seed: u64) -> String {
    format!("co-fig2.{}-{placement}-{seed}", trace.name)
}

fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for trace in &TRACES {
        for (name, placement, loads) in PLACEMENTS {
            let job = |seed| Job::new(job_name(trace, name, seed), move || run(trace, placement, loads, seed));
            jobs.extend(SEEDS.map(job));
        }
    }
    jobs
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    let mut table = Vec::new();
    for (number, trace) in TRACES.iter().enumerate() {
        let mut series = Vec::new();
        for (name, placement, loads) in PLACEMENTS {
            let mut by_seed = Vec::new();
            for seed in SEEDS {
                let Some(found) = results.get::<EvenLoadRun>(&job_name(trace, name, seed))? else { continue };
                table.extend(response_lines(trace, &placement, loads, seed, &found));
                by_seed.push((seed, found));
            }
            if let Some((_, first)) = by_seed.first() {
                series.push(rates_of(&placement, &first.spread));
                outcome.rows.extend(rows(number, trace, &placement, &by_seed));
            }
        }
        if !series.is_empty() {
            outcome.plots.push(plot(trace, series));
        }
    }
    if !table.is_empty() {
        outcome.tables.push(Table { name: "responses".into(), header: RESPONSES_HEADER.into(), rows: table });
    }
    Ok(outcome)
}

fn rates_of(placement: &FilePlacement, spread: &FileSpread) -> Series {
    let points = (0..).zip(&spread.up_to);
    let points = points.map(|(step, &files)| (f64::from(step) * RATE_STEP, spread.percent(files)));
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

fn rows(number: usize, trace: &TraceShape, placement: &FilePlacement, by_seed: &[(u64, EvenLoadRun)]) -> Vec<Row> {
    let parameters = told(trace, placement);
    let shown = |what: String, figure: f64, unit| {
        Row::shown(format!("{}, {}: {what}", trace.name, placement.name), figure, unit, &parameters)
    };
    let is_round_robin = *placement == FilePlacement::ROUND_ROBIN;
    let mut rows = Vec::new();
    for (seed, found) in by_seed {
        let spread = &found.spread;
        let share = |what: &str, files: u64| shown(format!("{what}, seed {seed}"), spread.percent(files), "%");
        let (uneven, over_one) =
            (share("uneven files", spread.uneven), share("files with a rate over 1", spread.over_one));
        let by_many = share("files with a channel over 2 pages ahead", spread.by_many);
        let near = |row: Row, paper: f64| row.paper(paper).bar(Bar::Between(paper - 3.0, paper + 3.0)).because(TOOK);
        match share_of_paper(trace).filter(|_| is_round_robin) {
            Some((of_uneven, of_over_one)) => {
                rows.extend([near(uneven, of_uneven), near(over_one, of_over_one), by_many])
            }
            None if found.played.is_empty() => {
                let (over_one, by_many) =
                    (over_one.bar(Bar::AtMost(OVER_ONE_MOST)), by_many.bar(Bar::AtMost(BY_MANY_MOST)));
                rows.extend([uneven, over_one, by_many]);
            }
            None => rows.extend([uneven, over_one, by_many]),
        }
        if is_round_robin {
            rows.push(share("uneven, two pages of a channel held to be even", spread.uneven_beyond_two));
            let apart = format!("pages written per channel, most less least, seed {seed}");
            rows.push(shown(apart, spread.channels_apart as f64, "").bar(Bar::AtMost(1.0)));
        }
    }
    rows.extend(LOADS.into_iter().enumerate().filter_map(|(at, load)| {
        let played: Vec<_> = by_seed.iter().filter_map(|(_, found)| found.played.get(at)).collect();
        let mean_us = played.iter().map(|played| played.all.mean_us).sum::<f64>() / played.len() as f64;
        let row = shown(format!("mean response at {load}"), mean_us, "µs");
        let bar = Bar::Within { percent: RESPONSES_PERCENT, of: RESPONSES_US[at][number] };
        (!played.is_empty()).then(|| if is_round_robin { row.bar(bar) } else { row })
    }));
    rows
}
