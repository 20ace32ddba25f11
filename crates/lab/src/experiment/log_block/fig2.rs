//! The log-block paper's Fig. 2: what reclaiming space costs, by scheme. Invariant: the operations are done on a chip and
//! counted, the erases of the blocks that become free among them.

use emulator::Chip;
use ftl::{BlockDevice, ByCause, Counts, Device, Scheme};
use nand::Cause;
use serde::{Deserialize, Serialize};

use super::chips::{full, small_chip, tidy, write};
use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Results, Row, Table};

pub const FTL_FIG2: Experiment = Experiment {
    id: "ftl-fig2",
    title: "Log-block FTL, Fig. 2: Comparison of merge operations",
    about: "A block of 32 pages is overwritten in the way that each part of the figure shows, and the space is reclaimed: \
            (a) a log block with pages out of order is merged with its data block, by the text (§III.B) n reads, n \
            programs and two erases; (b) a log block in order is switched, with one erase; (c) a chain of replacement \
            blocks is merged; (d) a block of a page-mapped device, as of a log-structured file system, is cleaned.",
    differs: "Nothing: (a) and (b) are the paper's counts. It gives none for (c) and (d); ours follow from the pages that \
              count. A log block whose first pages are in order is completed and switched, as later work does it, which \
              the paper's scheme merges. A merge by the paper's text adds one program of the map, which is counted by itself.",
    jobs,
    finish,
};

/// Pages of a block.
const PAGES: u64 = 32;
/// The data block that is overwritten.
const BLOCK: u64 = 3;

/// A part of the figure.
struct Example {
    job: &'static str,
    name: &'static str,
    scheme: Scheme,
    extra_blocks: u32,
    /// The places of the data block that are overwritten, one request each.
    overwritten: fn() -> Vec<u64>,
    /// Reads, programs and erases; blocks that are free afterwards and were not before.
    expected: [u64; 4],
    is_papers: bool,
}

const EXAMPLES: [Example; 6] = [
    Example {
        job: "ftl-fig2.merge",
        name: "(a) merge of a log block",
        scheme: Scheme::LogBlock,
        extra_blocks: 20,
        overwritten: || (0..PAGES).rev().collect(),
        expected: [PAGES, PAGES, 2, 1],
        is_papers: true,
    },
    Example {
        job: "ftl-fig2.switch",
        name: "(b) switch of a log block",
        scheme: Scheme::LogBlock,
        extra_blocks: 20,
        overwritten: || (0..PAGES).collect(),
        expected: [0, 0, 1, 1],
        is_papers: true,
    },
    Example {
        job: "ftl-fig2.chain",
        name: "(c) merge of two replacement blocks, the last page overwritten twice",
        scheme: Scheme::Replacement,
        extra_blocks: 8,
        overwritten: || vec![PAGES - 1; 2],
        expected: [PAGES, PAGES, 3, 2],
        is_papers: false,
    },
    Example {
        job: "ftl-fig2.chain-last",
        name: "(c) the same, the first page overwritten twice: the last block is filled up",
        scheme: Scheme::Replacement,
        extra_blocks: 8,
        overwritten: || vec![0; 2],
        expected: [PAGES - 1, PAGES - 1, 2, 2],
        is_papers: false,
    },
    Example {
        job: "ftl-fig2.clean-half",
        name: "(d) cleaning of a block half of whose pages count",
        scheme: Scheme::PageGreedy,
        extra_blocks: 7,
        overwritten: || (0..PAGES / 2).collect(),
        expected: [PAGES / 2, PAGES / 2, 1, 1],
        is_papers: false,
    },
    Example {
        job: "ftl-fig2.clean-quarter",
        name: "(d) cleaning of a block a quarter of whose pages count",
        scheme: Scheme::PageGreedy,
        extra_blocks: 7,
        overwritten: || (0..PAGES * 3 / 4).collect(),
        expected: [PAGES / 4, PAGES / 4, 1, 1],
        is_papers: false,
    },
];

const FIGURES: [&str; 4] = ["reads", "programs", "erases", "free blocks gained"];

/// What a job gives.
#[derive(Serialize, Deserialize)]
struct Spent {
    /// In the order of [`FIGURES`].
    figures: [u64; 4],
    map_programs: u64,
    /// Pages that a host wrote until then.
    written: u64,
}

fn jobs() -> Vec<Job> {
    EXAMPLES.iter().map(|example| Job::new(example.job, || reclaim(example))).collect()
}

/// Overwrites the block's pages, and has the space reclaimed.
fn reclaim(example: &Example) -> Result<Spent, ExperimentError> {
    let mut device = full(example.scheme, example.extra_blocks)?;
    tidy(&mut device)?;
    let page = vec![0; device.sector_bytes()];
    let overwritten = (example.overwritten)();
    for place in &overwritten {
        write(&mut device, BLOCK * PAGES + place, &page)?;
    }
    let (before, free) = (*device.counts(), free_blocks(&mut device)?);
    tidy(&mut device)?;
    let gained = free_blocks(&mut device)?.saturating_sub(free);
    let after = device.counts();
    let copies = |of: fn(&Counts) -> &ByCause| by_cause(of(after), Cause::Gc) - by_cause(of(&before), Cause::Gc);
    let reads = copies(|counts| &counts.reads);
    let programs = copies(|counts| &counts.programs);
    let erases = after.all_erases() - before.all_erases();
    let map_programs = after.map_writes - before.map_writes;
    Ok(Spent { figures: [reads, programs, erases, gained], map_programs, written: overwritten.len() as u64 })
}

fn free_blocks(device: &mut Device<Chip>) -> Result<u64, ExperimentError> {
    let uses = device.uses().map_err(|error| ExperimentError::Never(format!("the use of blocks: {error}")))?;
    Ok(uses.into_iter().filter(|found| *found == ftl::BlockUse::Free).count() as u64)
}

fn by_cause(numbers: &ByCause, cause: Cause) -> u64 {
    Cause::ALL.iter().zip(numbers).filter(|(other, _)| **other == cause).map(|(_, number)| number).sum()
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut rows = Vec::new();
    let mut table = Vec::new();
    for example in &EXAMPLES {
        let Some(Spent { figures, map_programs, written }) = results.get(example.job)? else { continue };
        let parameters = small_chip(example.scheme, example.extra_blocks)
            .with("workload", format!("{written} pages of one block written anew, one request each"));
        for ((figure, ours), expected) in FIGURES.into_iter().zip(figures).zip(example.expected) {
            let row = Row::shown(format!("{}: {figure}", example.name), ours as f64, "", &parameters);
            let row = if example.is_papers { row.paper(expected as f64) } else { row };
            rows.push(row.bar(Bar::Exactly(expected as f64)));
        }
        let numbers = figures.into_iter().chain([map_programs]).map(|number| number.to_string());
        table.push([example.name.to_owned()].into_iter().chain(numbers).collect());
    }
    let header = vec!["operation", "reads", "programs", "erases", "free_blocks_gained", "map_programs"];
    let table = Table { name: "operations".into(), header, rows: table };
    Ok(Outcome { tables: if rows.is_empty() { Vec::new() } else { vec![table] }, rows, ..Outcome::default() })
}
