//! The co-design paper's Fig. 6: mean responses of a page-mapped drive and of the co-design, both with collection under way.
//! Invariant: both are asked for the same requests at the same times, from the begin of a collection on.

use serde::{Deserialize, Serialize};

use super::load_of_drive::{LOADS, SEEDS, at_load, drive_told, response_cells};
use crate::drive::load::{FileSizes, RequestSource, TRACES, TraceShape};
use crate::drive::pair::{
    CollectionEnd, CollectionPace, CollectionRule, CollectionScope, LogShape, StoragePair, condition,
};
use crate::drive::{DriveShape, PlayedRequests, ShadowedStore, play};
use crate::experiment::{Axis, Bar, Experiment, ExperimentError, Job, Outcome, Plot, Results, Row, Series, Table};

pub const CO_FIG6: Experiment = Experiment {
    id: "co-fig6",
    title: "Co-design, Fig. 6: mean response of page mapping and of the co-design",
    about: "A drive of 8 channels is 70 % full, and was overwritten until as many blocks were erased as it has. Then requests \
            come at two loads, from the begin of a collection on, over whole cycles of it. In the paper the co-design, whose \
            drive maps blocks, responds like a drive that maps pages.",
    differs: "The paper tells neither load nor size. By its text collection runs to its end at once, and then requests of \
              either pair wait for tens of milliseconds in the mean: shown beside. Here a step of it is taken where a die is \
              idle. \"Reclaims more than 10 % of the whole capacity\" is read as 10 % free; 10 % given back is shown beside. The \
              co-design is somewhat faster than page mapping, since it collects all channels at the same time: where each \
              channel collects by itself, they get out of step, and more requests meet one that collects.",
    jobs,
    finish,
};

const PAGES_PER_BLOCK: u32 = 256;
const SHAPE: DriveShape = DriveShape::eight_channels(2, 1);
const BLOCKS: LogShape =
    LogShape { channels: 8, dies_per_channel: 2, blocks_per_channel: 256, pages_per_block: PAGES_PER_BLOCK };
/// Of all pages.
const FULL_PERCENT: u32 = 70;
const REQUESTS: usize = 50_000;
/// More than any cycle of collection takes.
const REQUESTS_MAX: usize = 2_000_000;
/// The co-design's mean response over that of page mapping.
const RATIO_MOST: f64 = 1.03;
/// p99.9 at each load, ms.
const P999_MS: [f64; 2] = [10.0, 12.0];

#[derive(Clone, Copy, PartialEq, Eq)]
enum PairKind {
    PageMapped,
    Codesign,
}

const PAIRS: [(PairKind, &str, &str); 2] =
    [(PairKind::PageMapped, "page", "page-mapped"), (PairKind::Codesign, "codesign", "co-design")];

/// How collection is read: its name in jobs and in rows, when it ends, how fast it goes, and the seeds.
const READINGS: [(&str, &str, CollectionEnd, CollectionPace, u64); 3] = [
    ("idle", "where idle, to 10 % free", CollectionEnd::Free, CollectionPace::WhereIdle, *SEEDS.end()),
    ("given-back", "where idle, 10 % given back", CollectionEnd::GivenBack, CollectionPace::WhereIdle, 1),
    ("at-once", "at once, to 10 % free", CollectionEnd::Free, CollectionPace::AtOnce, 1),
];

/// What a job gives, of one load.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct PairResponses {
    played: PlayedRequests,
    erases: u64,
    copies: u64,
    host_pages: u64,
    hurried_steps: u64,
    /// Begins of collection, with that at which measuring began.
    begins: u64,
    map_entries: u32,
}

fn job_name(trace: &TraceShape, reading: &str, pair: &str, seed: u64) -> String {
    format!("co-fig6.{}-{reading}-{pair}-{seed}", trace.name)
}

fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    for trace in &TRACES {
        for (reading, _, end, pace, seeds) in READINGS {
            for (kind, pair, _) in PAIRS {
                let job = |seed| {
                    Job::new(job_name(trace, reading, pair, seed), move || measure(trace, kind, (end, pace), seed))
                };
                jobs.extend((1..=seeds).map(job));
            }
        }
    }
    jobs
}

fn measure(
    trace: &TraceShape,
    kind: PairKind,
    (end, pace): (CollectionEnd, CollectionPace),
    seed: u64,
) -> Result<Vec<PairResponses>, ExperimentError> {
    let pages = BLOCKS.pages() / 100 * FULL_PERCENT;
    let files = FileSizes::filling(trace, seed, pages)?;
    let pair = match kind {
        PairKind::PageMapped => {
            StoragePair::page_mapped(BLOCKS, pages, CollectionRule { scope: CollectionScope::EachChannel, end, pace })
        }
        PairKind::Codesign => {
            StoragePair::codesign(BLOCKS, pages, CollectionRule { scope: CollectionScope::WholeDrive, end, pace })
        }
    };
    let mut pair = ShadowedStore::new(pair, pages);
    condition(&mut pair, &files, &mut RequestSource::before(trace, &files, seed)?)?;
    LOADS.into_iter().map(|load| at(load, trace, &files, pair.clone(), seed)).collect()
}

/// Plays requests until each part that collects by itself has begun again, and on to a begin. As many requests as are not
/// measured after the first begin are measured after that one: whole cycles.
fn at(
    load: f64,
    trace: &TraceShape,
    files: &FileSizes,
    mut pair: ShadowedStore<StoragePair>,
    seed: u64,
) -> Result<PairResponses, ExperimentError> {
    let (before, begins_before) = (pair.store.counts(), pair.store.begins().collect::<Vec<_>>());
    let requests = RequestSource::new(trace, files, seed)?;
    let plan = at_load(load, SHAPE, &requests, REQUESTS, seed);
    let (mut begins, mut end) = (begins_before.iter().sum::<u64>(), REQUESTS_MAX);
    let played = play(&plan, &mut pair, requests, |store, requests| {
        let begins_so_far = std::mem::replace(&mut begins, store.begins().sum());
        let is_whole = store.begins().zip(&begins_before).all(|(now, before)| now > *before);
        if requests >= REQUESTS && is_whole && begins > begins_so_far {
            end = end.min(requests + plan.dropped);
        }
        requests >= end
    })?;
    let after = pair.store.counts();
    Ok(PairResponses {
        played,
        erases: after.erases - before.erases,
        copies: after.copies - before.copies,
        host_pages: after.host_pages - before.host_pages,
        hurried_steps: after.hurried_steps - before.hurried_steps,
        begins: pair.store.begins().sum::<u64>() - begins_before.iter().sum::<u64>() + 1,
        map_entries: pair.store.map_entries(),
    })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    let mut lines = Vec::new();
    let mut series: [Vec<(f64, f64)>; 2] = Default::default();
    for (number, trace) in TRACES.iter().enumerate() {
        for (reading, told, _, pace, seeds) in READINGS {
            for seed in 1..=seeds {
                let of = |pair| results.get::<Vec<PairResponses>>(&job_name(trace, reading, pair, seed));
                let [(_, page, _), (_, codesign, _)] = PAIRS;
                let (Some(page), Some(codesign)) = (of(page)?, of(codesign)?) else { continue };
                for (at, (page, codesign)) in page.iter().zip(&codesign).enumerate() {
                    let row = RowOf { trace, told, is_held: reading == READINGS[0].0, seed, at };
                    outcome.rows.extend(row.rows(page, codesign));
                    lines.extend([line(&row, PAIRS[0].2, page), line(&row, PAIRS[1].2, codesign)]);
                }
                if pace == CollectionPace::WhereIdle && reading == READINGS[0].0 && seed == 1 {
                    for (series, found) in series.iter_mut().zip([&page, &codesign]) {
                        series.extend(found.first().map(|found| (number as f64 + 1.0, found.played.all.mean_us)));
                    }
                }
            }
        }
    }
    if !lines.is_empty() {
        outcome.plots.push(plot(series));
        outcome.tables.push(table(lines));
    }
    Ok(outcome)
}

/// Of which trace, reading, seed and load rows are.
struct RowOf<'a> {
    trace: &'a TraceShape,
    told: &'static str,
    /// Whether this reading is held to the bars.
    is_held: bool,
    seed: u64,
    at: usize,
}

impl RowOf<'_> {
    fn rows(&self, page: &PairResponses, codesign: &PairResponses) -> Vec<Row> {
        let parameters = drive_told(SHAPE, PAGES_PER_BLOCK, self.trace)
            .with("blocks", format!("{} a channel, {FULL_PERCENT} % full", BLOCKS.blocks_per_channel))
            .with("collection", format!("below 5 % free; the block with the fewest valid pages; {}", self.told))
            .with(
                "requests",
                format!(
                    "at least {REQUESTS}, and whole cycles of collection; the first {} are not measured",
                    REQUESTS / 10
                ),
            );
        let name = |what: &str| {
            format!("{} at {}, collection {}, seed {}: {what}", self.trace.name, LOADS[self.at], self.told, self.seed)
        };
        let shown = |what: &str, figure: f64, unit| Row::shown(name(what), figure, unit, &parameters);
        let held = |row: Row, bar: Bar| if self.is_held { row.bar(bar) } else { row };
        let ratio = shown(
            "mean response, co-design over page-mapped",
            codesign.played.all.mean_us / page.played.all.mean_us,
            "",
        );
        let mut rows = vec![held(ratio.paper(1.0), Bar::AtMost(RATIO_MOST))];
        for ((_, _, pair), found) in PAIRS.into_iter().zip([page, codesign]) {
            let of = |what: &str| format!("{pair}: {what}");
            rows.push(shown(&of("mean response"), found.played.all.mean_us, "µs"));
            let p999 = shown(&of("p99.9"), found.played.all.distribution.p999_us / 1e3, "ms");
            rows.push(match pair {
                "co-design" => held(p999, Bar::AtMost(P999_MS[self.at])),
                _ => p999,
            });
            let erases = shown(&of("erases"), found.erases as f64, "");
            rows.push(held(erases, Bar::AtLeast(1.0)));
            rows.push(shown(
                &of("pages copied for each of the host's"),
                found.copies as f64 / found.host_pages as f64,
                "",
            ));
        }
        rows
    }
}

fn line(of: &RowOf, pair: &str, found: &PairResponses) -> Vec<String> {
    let PairResponses { played, .. } = found;
    let mut line =
        vec![of.trace.name.into(), of.told.into(), pair.into(), of.seed.to_string(), LOADS[of.at].to_string()];
    line.extend(response_cells(played));
    let counts = [
        played.requests,
        played.pages,
        played.pages_compared,
        found.host_pages,
        found.copies,
        found.erases,
        found.hurried_steps,
        found.begins,
        u64::from(found.map_entries),
    ];
    line.extend(counts.map(|count| count.to_string()));
    line
}

fn table(rows: Vec<Vec<String>>) -> Table {
    let header = vec![
        "trace",
        "collection",
        "pair",
        "seed",
        "load",
        "mean_us",
        "reads_us",
        "writes_us",
        "p50_us",
        "p99_us",
        "p99.9_us",
        "requests",
        "pages",
        "compared",
        "host_pages",
        "copies",
        "erases",
        "hurried_steps",
        "begins",
        "map_entries",
    ];
    Table { name: "responses".into(), header, rows }
}

fn plot([page, codesign]: [Vec<(f64, f64)>; 2]) -> Plot {
    let most = page.iter().chain(&codesign).map(|&(_, us)| us).fold(0.0, f64::max);
    let named = |(name, points, from): (&str, Vec<_>, f64)| Series {
        name: name.into(),
        points: bars(&points, from),
        marked: false,
    };
    Plot {
        name: "mean".into(),
        title: "Mean response at load .10".into(),
        x: Axis { label: "1 LiveMaps, 2 Exchange, 3 Development, 4 MSNStorage", from: 0.5, to: 4.5 },
        y: Axis { label: "mean response (µs)", from: 0.0, to: (most * 1.2 / 100.0).ceil() * 100.0 },
        series: [("page-mapped", page, -BAR_WIDTH), ("co-design", codesign, 0.0)].map(named).into(),
    }
}

const BAR_WIDTH: f64 = 0.25;

/// The outline of a bar for each point, which begins so far from its place.
fn bars(points: &[(f64, f64)], from: f64) -> Vec<(f64, f64)> {
    let outline = |&(at, height): &(f64, f64)| {
        let (left, right) = (at + from, at + from + BAR_WIDTH);
        [(left, 0.0), (left, height), (right, height), (right, 0.0)]
    };
    points.iter().flat_map(outline).collect()
}
