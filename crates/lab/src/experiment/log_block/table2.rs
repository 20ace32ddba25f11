//! The log-block paper's Table II: write commands and pages written of the six traces. Invariant: nothing is run on a scheme; the
//! requests alone are counted.

use serde::{Deserialize, Serialize};

use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row, Table};
use crate::layers::Request;
use crate::layers::workload::Workload;

pub const FTL_TABLE2: Experiment = Experiment {
    id: "ftl-table2",
    title: "Log-block FTL, Table II: Trace characteristics",
    about: "The sector requests of four cameras, a PDA and the Andrew benchmark are made anew, by what FAT and ext2 write for \
            them; docs/FTL.md tells how. Means of three seeds.",
    differs: "The paper's traces are not to be had. Sizes of pictures, files and requests are chosen so that commands and \
              pages come near the table's; in which order a camera writes table and directory is not known.",
    jobs,
    finish,
};

const SEEDS: u64 = 3;
/// How far a count may be off.
const NEAR_PERCENT: f64 = 10.0;
/// Sectors of a block: §IV calls requests of fewer small.
const BLOCK_SECTORS: u64 = 32;
/// Of Kodak's pages so many percent are in small requests: the text says more than 25 %.
const SMALL_PERCENT: Bar = Bar::Between(25.0, 30.0);
const SMALL_REASON: &str =
    "at least 79 % of the commands are small by the table, so that the text's quarter is meant by pages";

/// What a job gives, by seed.
#[derive(Serialize, Deserialize)]
struct Counted {
    commands: Vec<u64>,
    pages: Vec<u64>,
    /// Of these, those in requests of fewer sectors than a block has.
    small_pages: Vec<u64>,
}

fn job_name(workload: &Workload) -> String {
    format!("ftl-table2.{}", workload.name)
}

fn jobs() -> Vec<Job> {
    Workload::ALL.map(|workload| Job::new(job_name(&workload), move || Ok(count(&workload)))).into()
}

fn count(workload: &Workload) -> Counted {
    let mut counted = Counted { commands: Vec::new(), pages: Vec::new(), small_pages: Vec::new() };
    for seed in 1..=SEEDS {
        let requests = workload.requests(seed).into_iter();
        let writes: Vec<u64> = requests
            .filter_map(|timed| match timed.request {
                Request::Write { count, .. } => Some(count),
                _ => None,
            })
            .collect();
        counted.commands.push(writes.len() as u64);
        counted.pages.push(writes.iter().sum());
        counted.small_pages.push(writes.iter().filter(|&&sectors| sectors < BLOCK_SECTORS).sum());
    }
    counted
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut rows = Vec::new();
    let mut table = Vec::new();
    for workload in Workload::ALL {
        let Some(Counted { commands, pages, small_pages }) = results.get(&job_name(&workload))? else { continue };
        rows.push(small_row(&workload, &small_pages, &pages));
        for (what, paper, ours) in
            [("write commands", workload.paper_commands, commands), ("pages written", workload.paper_pages, pages)]
        {
            let mean = ours.iter().sum::<u64>() as f64 / ours.len() as f64;
            let (least, most) = (ours.iter().min().unwrap_or(&0), ours.iter().max().unwrap_or(&0));
            let parameters = Parameters::default()
                .with("workload", workload.name)
                .with("seeds", format!("{SEEDS}, from {least} to {most}"));
            let bar = Bar::Within { percent: NEAR_PERCENT, of: paper as f64 };
            let row = Row::shown(format!("{}: {what}", workload.title), mean.round(), "", &parameters);
            rows.push(row.paper(paper as f64).bar(bar));
            let numbers = [paper, mean.round() as u64, *least, *most].map(|number| number.to_string());
            table.push([workload.title.to_owned(), what.to_owned()].into_iter().chain(numbers).collect());
        }
    }
    let header = vec!["trace", "what", "paper", "mean", "least", "most"];
    let table = Table { name: "traces".into(), header, rows: table };
    Ok(Outcome { tables: if rows.is_empty() { Vec::new() } else { vec![table] }, rows, ..Outcome::default() })
}

/// How many of the pages are in requests that are smaller than a block, all seeds together.
fn small_row(workload: &Workload, small_pages: &[u64], pages: &[u64]) -> Row {
    let percent = 100.0 * small_pages.iter().sum::<u64>() as f64 / pages.iter().sum::<u64>() as f64;
    let parameters = Parameters::default().with("workload", workload.name).with("seeds", SEEDS.to_string());
    let row =
        Row::shown(format!("{}: pages in requests smaller than a block", workload.title), percent, "%", &parameters);
    if workload.name == Workload::SMALL_REQUESTS { row.bar(SMALL_PERCENT).because(SMALL_REASON) } else { row }
}
