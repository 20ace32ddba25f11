//! Figure 4: what migration gains. Two full SLC blocks and one free block become two free blocks, by the real code and in
//! idle time. Invariant: blocks are counted by what the chip and the volume say, never by what migration should do.

use emulator::Profile;
use flexfs_core::Wanted;
use nand::{CellMode, Nand};
use serde::{Deserialize, Serialize};

use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row, Table, schemes};
use crate::play::{HostCost, Ledger, PlayError, Player, Setting};

pub const FIG4: Experiment = Experiment {
    id: "fig4",
    title: "Figure 4: Steps in data migration",
    about: "A file fills SLC blocks of a chip of 24 blocks, then nothing is asked of the volume. The figure's free block \
            is the one that migration fills; the native block that a third SLC block's pages are about to go to is not \
            part of the figure and counts as free.",
    differs: "Nothing of the figure; that an emptied block is free only with the next checkpoint, and that metadata \
              takes blocks as well, the figure leaves out.",
    jobs,
    finish,
};

const JOB: &str = "fig4.migration";

/// Few, so that not much has to be written.
const BLOCKS: u64 = 24;

/// The file is written until no more are free.
const FREE_BLOCKS: u32 = 8;

const PAGE_BYTES: u64 = 4096;

/// Time between two looks: no longer than from a page's migration to the next.
const LOOK_NS: u64 = 10_000_000;
const LOOKS_MAX: u32 = 100_000;

/// Blocks by what they are.
#[derive(Serialize, Deserialize)]
struct Blocks {
    slc: u32,
    free: u32,
    /// Native ones, full and other.
    native_full: u32,
    native_open: u32,
}

/// What the job gives.
#[derive(Serialize, Deserialize)]
struct Migration {
    before: Blocks,
    after: Blocks,
    seconds: f64,
}

fn jobs() -> Vec<Job> {
    vec![Job::new(JOB, migrate)]
}

fn setting() -> Result<Setting, PlayError> {
    let profile = Profile::default();
    let profile = profile.with_capacity(BLOCKS * profile.block_bytes())?;
    Ok(Setting { profile, host: HostCost::NONE, policy: schemes::BM, life: Wanted::default(), seed: 1 })
}

fn count(player: &mut Player) -> Result<Blocks, PlayError> {
    let info = player.look().info().map_err(|source| PlayError::Fs { doing: "counting blocks", source })?;
    let chip = player.look().chip();
    let units = chip.layout(CellMode::Native).units();
    let native = (0..chip.geometry().blocks).filter(|&block| chip.block_mode(block) == Some(CellMode::Native));
    let native_full = native.filter(|&block| chip.next_unit(block) == units).count() as u32;
    let blocks = info.blocks;
    Ok(Blocks {
        slc: blocks.slc,
        free: blocks.free,
        native_full,
        native_open: blocks.native.saturating_sub(native_full),
    })
}

/// Fills SLC blocks and waits until two of them are empty.
fn migrate() -> Result<Migration, ExperimentError> {
    let mut player = Player::new(&setting()?)?;
    let mut ledger = Ledger::default();
    let ino = player.create("data")?.ino;
    let mut offset = 0;
    while count(&mut player)?.free >= FREE_BLOCKS {
        player.write(ino, offset, &ledger.append("data", 1, PAGE_BYTES))?;
        offset += PAGE_BYTES;
    }
    player.sync()?;
    let (before, start_ns) = (count(&mut player)?, player.now_ns());
    for _ in 0..LOOKS_MAX {
        let until_ns = player.now_ns() + LOOK_NS;
        player.rest_until(until_ns)?;
        let after = count(&mut player)?;
        if after.slc + 2 <= before.slc {
            let seconds = (player.now_ns() - start_ns) as f64 / 1e9;
            ledger.verify(&player.unmount()?)?;
            return Ok(Migration { before, after, seconds });
        }
    }
    Err(ExperimentError::Never("no two SLC blocks were emptied in idle time".into()))
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let Some(Migration { before, after, seconds }) = results.get(JOB)? else { return Ok(Outcome::default()) };
    let parameters =
        Parameters::of(&setting()?).with("workload", "a file until fewer than 8 blocks are free, then idle");
    let free = |blocks: &Blocks| f64::from(blocks.free + blocks.native_open);
    let exact = |name: &str, ours: f64, paper: f64| {
        Row::shown(name, ours, "blocks", &parameters).paper(paper).bar(Bar::Exactly(paper))
    };
    let filled = f64::from(after.native_full - before.native_full);
    let rows = vec![
        exact("SLC blocks emptied", f64::from(before.slc - after.slc), 2.0),
        exact("native blocks filled with their pages", filled, 1.0),
        exact("free blocks, where one was free", 1.0 + free(&after) - free(&before), 2.0),
        Row::shown("idle time until they were free", seconds, "s", &parameters),
    ];
    let told = |when: &str, blocks: &Blocks| {
        let figures = [blocks.slc, blocks.native_full, blocks.native_open, blocks.free].map(|count| count.to_string());
        std::iter::once(when.to_owned()).chain(figures).collect()
    };
    let table = Table {
        name: "blocks".into(),
        header: vec!["when", "slc", "native_full", "native_open", "free"],
        rows: vec![told("before", &before), told("after", &after)],
    };
    Ok(Outcome { rows, tables: vec![table], ..Outcome::default() })
}
