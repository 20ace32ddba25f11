//! The memory that each scheme takes for its map and all else it keeps, beside the log-block paper's figures. Invariant: bytes
//! are those of the live structures of a volume in use; one page buffer is left out of every scheme.

use ftl::Scheme;
use serde::{Deserialize, Serialize};

use super::chips::{SIZES, Size};
use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Results, Row, Table};

pub const FTL_MEMORY: Experiment = Experiment {
    id: "ftl-memory",
    title: "Log-block FTL, §II and §V: memory for the map",
    about: "Volumes of 16 MiB, 256 MiB and 1 GiB in use. By the text a map of pages takes 64 KB at 16 MB, and 4 MB at 1 GB \
            with pages of 512 bytes; a map of blocks takes 2 KB at 16 MB; the log-block scheme with map blocks stays within \
            6 KB whatever the capacity.",
    differs: "A map of pages takes 4 bytes an entry, not 2 as the paper's 64 KB implies; at 1 GiB its pages are of 2 KiB, so \
              that there are a quarter as many. A map of blocks is held with the log blocks, the free blocks and a bit for \
              each block that holds nothing.",
    jobs,
    finish,
};

/// The budget of the log-block scheme (§V).
const BUDGET_BYTES: f64 = 6144.0;

/// What the paper's text gives, by scheme and size.
const PAPER: [(Scheme, &str, f64); 6] = [
    (Scheme::LogBlock, "16mib", BUDGET_BYTES),
    (Scheme::LogBlock, "1gib", BUDGET_BYTES),
    (Scheme::LogBlockScanned, "16mib", 2048.0),
    (Scheme::PageGreedy, "16mib", 65_536.0),
    (Scheme::PageCostBenefit, "16mib", 65_536.0),
    (Scheme::PageGreedy, "1gib", 4_194_304.0),
];

/// What a job gives.
#[derive(Serialize, Deserialize)]
struct Memory {
    bytes: u64,
}

fn job_name(scheme: Scheme, size: &Size) -> String {
    format!("ftl-memory.{scheme}-{}", size.job)
}

fn jobs() -> Vec<Job> {
    let all = SIZES.iter().flat_map(|size| Scheme::ALL.map(|scheme| (scheme, size)));
    all.map(|(scheme, size)| {
        Job::new(job_name(scheme, size), move || Ok(Memory { bytes: size.in_use(scheme)?.ram_bytes() as u64 }))
    })
    .collect()
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut rows = Vec::new();
    let mut table = Vec::new();
    for size in &SIZES {
        for scheme in Scheme::ALL {
            let Some(Memory { bytes }) = results.get(&job_name(scheme, size))? else { continue };
            let name = format!("{} ({scheme}), {}", scheme.letters(), size.name);
            let row = Row::shown(name, bytes as f64, "bytes", &size.parameters(scheme));
            let paper = PAPER.iter().find(|(of, at, _)| (*of, *at) == (scheme, size.job));
            let row = paper.iter().fold(row, |row, (_, _, bytes)| row.paper(*bytes));
            let is_held = scheme == Scheme::LogBlock;
            rows.push(if is_held { row.bar(Bar::AtMost(BUDGET_BYTES)) } else { row });
            table.push(vec![scheme.letters().into(), size.name.into(), bytes.to_string()]);
        }
    }
    let table = Table { name: "memory".into(), header: vec!["scheme", "chip", "bytes"], rows: table };
    Ok(Outcome { tables: if rows.is_empty() { Vec::new() } else { vec![table] }, rows, ..Outcome::default() })
}
