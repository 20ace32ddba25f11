//! Table 1: what a page read, a page program and a block erase take, by how cells are programmed; beside it the slides'
//! overheads, what a page write takes at the file system. Invariant: times are measured by doing the operations.

use emulator::{Chip, Profile};
use flexfs_core::{Policy, Wanted};
use nand::{Cause, CellMode, Nand};
use serde::{Deserialize, Serialize};

use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row, Table};
use crate::play::{HostCost, Ledger, PlayError, Player, Setting};

pub const TABLE1: Experiment = Experiment {
    id: "table1",
    title: "Table 1: Performance comparison of different types of cell programming",
    about: "One block is programmed, read and erased page by page on the emulated chip: a pure SLC one, the MLC one by \
            its LSB pages alone, and by all its pages. Below that, from the slides (\"Overheads\"): what a page write \
            takes at the file system of the paper's board, whose processor takes 1,378 µs for an SLC page and \
            1,289 µs for a native one.",
    differs: "Nothing: the chip's times are the paper's, and a page write at the file system adds the time of the \
              paper's board to them.",
    jobs,
    finish,
};

/// A column of the paper's table.
struct Column {
    job: &'static str,
    name: &'static str,
    mode: CellMode,
    profile: fn() -> Profile,
    /// Read, program, erase.
    paper_us: [f64; 3],
}

const COLUMNS: [Column; 3] = [
    Column { job: "table1.slc", name: "SLC", mode: CellMode::Slc, profile: pure_slc, paper_us: [399.0, 417.0, 860.0] },
    Column {
        job: "table1.lsb",
        name: "MLC_LSB",
        mode: CellMode::Slc,
        profile: Profile::default,
        paper_us: [409.0, 431.0, 872.0],
    },
    Column {
        job: "table1.both",
        name: "MLC_BOTH",
        mode: CellMode::Native,
        profile: Profile::default,
        paper_us: [403.0, 994.0, 872.0],
    },
];

const OPERATIONS: [&str; 3] = ["read (page)", "write (page)", "erase (block)"];

/// How far a time may be off, in percent.
const NEAR_PERCENT: f64 = 0.1;

/// The slides' overheads: job, name, policy, and what they say, µs.
const OVERHEADS: [(&str, &str, Policy, f64); 2] = [
    ("table1.overhead-lsb", "MLC (LSB)", Policy::SLC_ONLY, 1809.0),
    ("table1.overhead-both", "MLC (LSB and MSB)", Policy::NATIVE_ONLY, 2283.0),
];

/// How far those may be off: the file system's own pages, for which the host is not charged, are among them.
const OVERHEAD_PERCENT: f64 = 1.0;

const FILE_BYTES: u64 = 8 << 20;
const WRITE_BYTES: u64 = 128 << 10;

/// What a job gives: mean times in µs.
#[derive(Serialize, Deserialize)]
struct Times {
    us: Vec<f64>,
}

fn jobs() -> Vec<Job> {
    let columns = COLUMNS.iter().map(|column| Job::new(column.job, || operations(column)));
    let overheads = OVERHEADS.iter().map(|&(job, _, policy, _)| Job::new(job, move || overhead(policy)));
    columns.chain(overheads).collect()
}

/// The paper's SLC part: one bit a cell, blocks of half the size, as the LSB pages alone make.
fn pure_slc() -> Profile {
    let mlc = Profile::default();
    let mut profile = Profile { name: "pure-slc".into(), ..mlc };
    profile.geometry.bits_per_cell = 1;
    profile.geometry.pages_per_block /= 2;
    profile.programming.pairing = emulator::Pairing::None;
    for timing in [&mut profile.timing.slc, &mut profile.timing.native] {
        (timing.read_ns, timing.program_ns, timing.erase_ns) = (vec![399_000], vec![417_000], 860_000);
    }
    profile
}

/// Reads, programs and erases a block.
fn operations(column: &Column) -> Result<Times, ExperimentError> {
    let mut chip = Chip::new(&(column.profile)(), 1).map_err(PlayError::from)?;
    let layout = chip.layout(column.mode).clone();
    let (data, mut found) =
        (vec![0x5a; chip.geometry().page_bytes as usize], vec![0; chip.geometry().page_bytes as usize]);
    let start_ns = settle(&mut chip)?;
    for unit in 0..layout.units() {
        chip.program(0, unit, column.mode, &data, &[], Cause::Host)?;
    }
    let programmed_ns = settle(&mut chip)?;
    for index in 0..layout.pages() {
        let page = layout.page(index).unwrap_or(0);
        chip.read(0, page, 0, &mut found, &mut [], Cause::Host)?;
    }
    let read_ns = settle(&mut chip)?;
    chip.erase(0, Cause::Host)?;
    let erased_ns = settle(&mut chip)?;
    let pages = f64::from(layout.pages());
    let us = |ns: u64| ns as f64 / 1e3;
    Ok(Times {
        us: vec![us(read_ns - programmed_ns) / pages, us(programmed_ns - start_ns) / pages, us(erased_ns - read_ns)],
    })
}

/// Waits for the chip; what time it is then.
fn settle(chip: &mut Chip) -> Result<u64, ExperimentError> {
    chip.barrier(&mut Vec::new())?;
    Ok(chip.now_ns())
}

fn overhead_setting(policy: Policy) -> Result<Setting, PlayError> {
    let profile = Profile::default().with_capacity(64 << 20)?;
    Ok(Setting { profile, host: HostCost::OMAP2420, policy, life: Wanted::default(), seed: 1 })
}

/// Writes a file and syncs it: what a page of it took.
fn overhead(policy: Policy) -> Result<Times, ExperimentError> {
    let mut player = Player::new(&overhead_setting(policy)?)?;
    let mut ledger = Ledger::default();
    let ino = player.create("file")?.ino;
    player.sync()?;
    let (arrival_ns, before) = (player.now_ns(), player.look().chip().counters().programs.total());
    let (_, response) = player.request(arrival_ns, |player| {
        for offset in (0..FILE_BYTES).step_by(WRITE_BYTES as usize) {
            player.write(ino, offset, &ledger.append("file", 1, WRITE_BYTES))?;
        }
        player.sync()
    })?;
    let programs = player.look().chip().counters().programs.total() - before;
    ledger.verify(&player.unmount()?)?;
    Ok(Times { us: vec![response.time_ns() as f64 / 1e3 / programs as f64] })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut rows = Vec::new();
    for column in &COLUMNS {
        let Some(Times { us }) = results.get(column.job)? else { continue };
        let parameters = Parameters::default()
            .with("chip", (column.profile)().name)
            .with("workload", "every page of one block programmed and read, the block erased");
        for ((operation, paper), ours) in OPERATIONS.iter().zip(column.paper_us).zip(us) {
            let bar = Bar::Within { percent: NEAR_PERCENT, of: paper };
            let name = format!("{operation}, {}", column.name);
            rows.push(Row::shown(name, ours, "µs", &parameters).paper(paper).bar(bar));
        }
    }
    for (job, name, policy, paper) in OVERHEADS {
        let Some(Times { us }) = results.get(job)? else { continue };
        let parameters =
            Parameters::of(&overhead_setting(policy)?).with("workload", "one file of 8 MiB, synced; a page");
        for ours in us {
            let bar = Bar::Within { percent: OVERHEAD_PERCENT, of: paper };
            let name = format!("write (page) at the file system, {name}");
            rows.push(Row::shown(name, ours, "µs", &parameters).paper(paper).bar(bar));
        }
    }
    let told = |row: &Row| vec![row.name.clone(), row.paper.unwrap_or_default().to_string(), row.ours.to_string()];
    let table = Table {
        name: "times".into(),
        header: vec!["operation", "paper_us", "ours_us"],
        rows: rows.iter().map(told).collect(),
    };
    Ok(Outcome { tables: if rows.is_empty() { Vec::new() } else { vec![table] }, rows, ..Outcome::default() })
}
