//! The log-block paper's Fig. 3: the map before and after a merge. Invariant: the map is the one that the scheme keeps; what it
//! says after a power cut is read from the chip alone.

use emulator::{Chip, FaultConfig, TornKind};
use ftl::{BlockDevice, BlockUse, Device, Scheme};
use serde::{Deserialize, Serialize};

use super::chips::{full, small_chip, tidy, write};
use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Results, Row, Table};
use crate::layers::options;

pub const FTL_FIG3: Experiment = Experiment {
    id: "ftl-fig3",
    title: "Log-block FTL, Fig. 3: Mapping information management",
    about: "A log block is merged with its data block. By the text (§III.C) that changes three entries of the map, of a data \
            block, a log block and a free block, with one program; so the power may go at any moment. Here the power goes \
            in that program, and after it, and the map is read from the chip again.",
    differs: "Nothing.",
    jobs,
    finish,
};

const JOB: &str = "ftl-fig3.merge";
const EXTRA_BLOCKS: u32 = 20;
const PAGES: u64 = 32;
/// The data block that is overwritten.
const BLOCK: u64 = 3;

/// What the job gives.
#[derive(Serialize, Deserialize)]
struct Merged {
    /// Blocks whose entries changed: the block, its use before and after.
    changes: Vec<(u32, String, String)>,
    map_programs: u64,
    /// Entries that differ from those before the merge, opened after a cut in the program of the map.
    after_cut_in_it: u64,
    /// Entries that differ from those after the merge, opened after a cut behind it.
    after_cut_behind_it: u64,
}

fn jobs() -> Vec<Job> {
    vec![Job::new(JOB, merge)]
}

fn merge() -> Result<Merged, ExperimentError> {
    let mut device = full(Scheme::LogBlock, EXTRA_BLOCKS)?;
    tidy(&mut device)?;
    let page = vec![0; device.sector_bytes()];
    for place in (1..PAGES).rev() {
        write(&mut device, BLOCK * PAGES + place, &page)?;
    }
    // With more than half of the four log blocks in use, idle time reclaims the one written least recently.
    for other in [BLOCK + 1, BLOCK + 2] {
        write(&mut device, other * PAGES, &page)?;
    }
    let before = uses(&mut device)?;
    let mut merged = device.clone();
    let programs = merged.counts().map_writes;
    step(&mut merged)?;
    let after = uses(&mut merged)?;
    let changed = (0..).zip(before.iter().zip(&after)).filter(|(_, (before, after))| before != after);
    let changes = changed.map(|(block, (before, after))| (block, before.to_string(), after.to_string())).collect();
    let map_programs = merged.counts().map_writes - programs;
    // The copies come first, then the map.
    let [in_it, behind_it] = [PAGES, PAGES + 1].map(|operation| cut_at(device.clone(), operation));
    let (after_cut_in_it, after_cut_behind_it) = (differ(&before, &in_it?), differ(&after, &behind_it?));
    Ok(Merged { changes, map_programs, after_cut_in_it, after_cut_behind_it })
}

fn step(device: &mut Device<Chip>) -> Result<bool, ExperimentError> {
    device.background().map_err(|error| ExperimentError::Never(format!("the merge: {error}")))
}

fn uses(device: &mut Device<Chip>) -> Result<Vec<BlockUse>, ExperimentError> {
    device.uses().map_err(|error| ExperimentError::Never(format!("the use of blocks: {error}")))
}

/// Cuts the power at an operation, opens the volume again, and tells the use of each block.
fn cut_at(mut device: Device<Chip>, operation: u64) -> Result<Vec<BlockUse>, ExperimentError> {
    device.chip_mut().faults_mut().set(FaultConfig { torn: TornKind::Garbage, ..FaultConfig::default() });
    device.chip_mut().faults_mut().cut_power_at(operation);
    while step(&mut device).is_ok_and(|is_done| is_done) {}
    let mut chip = device.into_chip();
    chip.power_on();
    let opened = Device::open(chip, options());
    uses(&mut opened.map_err(|error| ExperimentError::Never(format!("opening after the cut: {error}")))?)
}

fn differ(one: &[BlockUse], other: &[BlockUse]) -> u64 {
    one.iter().zip(other).filter(|(one, other)| one != other).count() as u64
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let Some(merged) = results.get::<Merged>(JOB)? else { return Ok(Outcome::default()) };
    let parameters = small_chip(Scheme::LogBlock, EXTRA_BLOCKS)
        .with("workload", format!("all pages but one of data block {BLOCK} written anew in descending order; a merge"));
    let row = |name: &str, ours: u64| Row::shown(name, ours as f64, "", &parameters);
    let exactly = |name: &str, ours: u64, expected: f64| row(name, ours).paper(expected).bar(Bar::Exactly(expected));
    let rows = vec![
        exactly("entries of the map that a merge changes", merged.changes.len() as u64, 3.0),
        exactly("programs of the map for it", merged.map_programs, 1.0),
        exactly("entries that differ from those before, the power gone in that program", merged.after_cut_in_it, 0.0),
        exactly("entries that differ from those after, the power gone behind it", merged.after_cut_behind_it, 0.0),
    ];
    let told = |(block, before, after): &(u32, String, String)| vec![block.to_string(), before.clone(), after.clone()];
    let table = Table {
        name: "map".into(),
        header: vec!["block", "before", "after"],
        rows: merged.changes.iter().map(told).collect(),
    };
    Ok(Outcome { rows, tables: vec![table], ..Outcome::default() })
}
