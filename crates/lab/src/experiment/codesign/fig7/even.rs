//! Schemes that go on from the paper's, and static striping, under requests that come evenly: mean responses beside Round-Robin's.
//! Invariant: each scheme has bars for each trace, load and seed.

use super::super::even_load::{EvenLoadRun, RESPONSES_HEADER, response_lines, run, told};
use super::super::figures::percent;
use super::super::load_of_drive::{LOADS, SEEDS};
use super::{ROUND_ROBIN, against, gains_plot, job_name};
use crate::drive::PlayedRequests;
use crate::drive::load::{TRACES, TraceShape};
use crate::drive::place::FilePlacement;
use crate::experiment::{Bar, ExperimentError, Job, Outcome, Results, Row, Table};

const STATIC: (&str, FilePlacement) = ("static", FilePlacement::STATIC);

/// Percent of Round-Robin's mean response, at most: of each trace, where a bar is known.
type MostByTrace = [Option<f64>; 4];

/// A scheme, and its bars at both loads.
struct SchemeBars {
    name: &'static str,
    placement: FilePlacement,
    most: [MostByTrace; 2],
    /// The least percent, where it is to be about as fast.
    least: Option<f64>,
}

const SCHEMES: [SchemeBars; 6] = [
    SchemeBars {
        name: "fair-plus",
        placement: FilePlacement::FAIR_PLUS,
        most: [[Some(0.5), Some(0.5), Some(-9.0), Some(0.5)], [Some(6.0), Some(3.5), Some(-6.0), Some(2.5)]],
        least: None,
    },
    SchemeBars {
        name: "read-busy-plus",
        placement: FilePlacement::READ_BUSY_PLUS,
        most: [[Some(2.0); 4], [None; 4]],
        least: Some(-2.0),
    },
    SchemeBars {
        name: "depth",
        placement: FilePlacement::DEPTH,
        most: [[Some(-12.0), Some(-5.0), None, None], [Some(-20.0), Some(-10.0), None, None]],
        least: None,
    },
    SchemeBars {
        name: "hybrid-plus",
        placement: FilePlacement::HYBRID_PLUS,
        most: [[Some(-15.0), Some(-5.3), Some(-10.3), Some(-1.2)], [Some(-21.3), Some(-9.3), Some(-8.3), Some(1.8)]],
        least: None,
    },
    SchemeBars {
        name: "striped-plus",
        placement: FilePlacement::STRIPED_PLUS,
        most: [
            [Some(-22.3), Some(-12.2), Some(-11.4), Some(-2.3)],
            [Some(-33.0), Some(-22.8), Some(-10.7), Some(-1.9)],
        ],
        least: None,
    },
    SchemeBars {
        name: "window-plus",
        placement: FilePlacement::WINDOW_PLUS,
        most: [
            [Some(-24.3), Some(-12.6), Some(-14.0), Some(-2.6)],
            [Some(-34.0), Some(-22.8), Some(-13.0), Some(-1.2)],
        ],
        least: None,
    },
];

/// Why a scheme may miss its bar on Exchange, and by how many points.
const SEEDS_DIFFER: &str = "few files take most reads of Exchange, so that Round-Robin's own response differs by half a point from \
                            seed to seed";
const SEEDS_POINTS: f64 = 0.2;

/// Window+'s p99.9 at the first load, ms.
const WINDOW_P999_MS: f64 = 2.3;
/// Window+'s reads over those of static striping.
const READS_OVER_STATIC: f64 = 1.01;

pub fn jobs() -> Vec<Job> {
    let own = || SCHEMES.iter().map(|scheme| (scheme.name, scheme.placement));
    let mut jobs = Vec::new();
    for trace in &TRACES {
        for (name, placement) in [ROUND_ROBIN, STATIC].into_iter().chain(own()) {
            let job = |seed| Job::new(job_name(trace, name, seed), move || run(trace, placement, &LOADS, seed));
            jobs.extend(SEEDS.map(job));
        }
    }
    jobs
}

pub fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let (mut outcome, mut lines) = (Outcome::default(), Vec::new());
    for (number, trace) in TRACES.iter().enumerate() {
        for seed in SEEDS {
            let of = |scheme| results.get::<EvenLoadRun>(&job_name(trace, scheme, seed));
            let (Some(base), Some(fixed)) = (of(ROUND_ROBIN.0)?, of(STATIC.0)?) else { continue };
            lines.extend(response_lines(trace, &ROUND_ROBIN.1, &LOADS, seed, &base));
            lines.extend(response_lines(trace, &STATIC.1, &LOADS, seed, &fixed));
            for scheme in &SCHEMES {
                let Some(found) = of(scheme.name)? else { continue };
                lines.extend(response_lines(trace, &scheme.placement, &LOADS, seed, &found));
                for at in 0..LOADS.len() {
                    let played = [&found, &base, &fixed].map(|run| run.played.get(at));
                    let [Some(found), Some(base), Some(fixed)] = played else { continue };
                    let of = SchemeRows { trace, number, scheme, seed, at };
                    outcome.rows.extend(of.rows(found, base, fixed));
                }
            }
        }
    }
    if !lines.is_empty() {
        outcome.tables.push(Table { name: "responses".into(), header: RESPONSES_HEADER.into(), rows: lines });
        for (at, load) in LOADS.into_iter().enumerate() {
            let gains = |scheme: &SchemeBars| -> Result<_, ExperimentError> {
                let percents = against(results, scheme.name, ROUND_ROBIN.0, at)?;
                Ok((scheme.placement.name, percents.into_iter().map(|percent| -percent).collect()))
            };
            let gains = SCHEMES.iter().map(gains).collect::<Result<_, _>>()?;
            let title = format!("Gain in mean response over Round-Robin, even load {load}");
            outcome.column_plots.push(gains_plot(&format!("even-{load}"), &title, (-10.0, 60.0), gains));
        }
    }
    Ok(outcome)
}

/// Of which trace, scheme, seed and load rows are.
struct SchemeRows<'a> {
    trace: &'a TraceShape,
    number: usize,
    scheme: &'a SchemeBars,
    seed: u64,
    at: usize,
}

impl SchemeRows<'_> {
    /// Whether the seed may decide: at the two bars of Exchange that Round-Robin's luck with a few files comes near to.
    fn may_miss(&self) -> bool {
        self.trace.name == "exchange"
            && [("striped-plus", 0), ("hybrid-plus", 1)].contains(&(self.scheme.name, self.at))
    }

    fn rows(&self, found: &PlayedRequests, base: &PlayedRequests, fixed: &PlayedRequests) -> Vec<Row> {
        let SchemeBars { name, placement, most, least } = self.scheme;
        let parameters = told(self.trace, placement);
        let shown = |what: &str, figure: f64, unit| {
            let load = LOADS[self.at];
            let name = format!("{} at {load}, {}, seed {}: {what}", self.trace.name, placement.name, self.seed);
            Row::shown(name, figure, unit, &parameters)
        };
        let mean = shown("mean response against Round-Robin", percent(found.all.mean_us, base.all.mean_us), "%");
        let reads = shown("reads against Round-Robin", percent(found.reads.mean_us, base.reads.mean_us), "%");
        let p999 = shown("p99.9", found.all.distribution.p999_us / 1e3, "ms");
        let is_first_load = self.at == 0;
        let mean = match (most[self.at][self.number], least) {
            (Some(most), Some(least)) => mean.bar(Bar::Between(*least, most)),
            (Some(most), None) if self.may_miss() && (most..=most + SEEDS_POINTS).contains(&mean.ours) => {
                mean.bar(Bar::AtMost(most)).open(SEEDS_DIFFER)
            }
            (Some(most), None) => mean.bar(Bar::AtMost(most)),
            (None, _) => mean,
        };
        match *name {
            "fair-plus" if is_first_load => vec![mean, reads.bar(Bar::AtMost(0.0)), p999],
            "window-plus" => {
                let over = |what: &str, ours: f64, theirs: f64| shown(what, ours / theirs, "");
                let all_over = over("mean over static striping", found.all.mean_us, fixed.all.mean_us);
                let reads_over = over("reads over static striping", found.reads.mean_us, fixed.reads.mean_us);
                let p999 = if is_first_load { p999.bar(Bar::AtMost(WINDOW_P999_MS)) } else { p999 };
                let bars = (Bar::AtMost(1.0), Bar::AtMost(READS_OVER_STATIC));
                vec![mean, reads, p999, all_over.bar(bars.0), reads_over.bar(bars.1)]
            }
            _ => vec![mean, reads, p999],
        }
    }
}
