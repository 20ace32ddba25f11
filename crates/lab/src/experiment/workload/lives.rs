//! Lives of a chip whose blocks endure ten cycles: the paper's endurance workload, and others that arrive otherwise. Invariant:
//! wear is counted by the chip, in cycles begun from after formatting on, and what is stored is read back at the end.

use std::collections::VecDeque;

use flexfs_core::wear::{Controller, Goal};
use flexfs_core::{Policy, ROOT_INO, Wanted};
use serde::{Deserialize, Serialize};

use super::bursts::FILE_BYTES;
use crate::experiment::{Parameters, schemes};
use crate::play::{HostCost, Ledger, PlayError, Player, Setting};
use torture::content::mix;
use torture::crash::BASE_NS;

const MIB: u64 = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;
const WRITE_BYTES: u64 = 128 << 10;

/// §5.1.3: the size of the memory, the cycles of a block, the lifetime and the length of a wear window.
const CHIP_BYTES: u64 = 120 * MIB;
pub const ENDURANCE: u32 = 10;
pub const WINDOWS: usize = 10;
const WINDOW_NS: u64 = 400 * SECOND_NS;
/// Files stored at most, and those that are overwritten page by page.
const FILES_MAX: usize = 40;
const SYNCED_FILES: usize = 20;
const PAGE_BYTES: u64 = 4096;
const YEAR_NS: i64 = 365 * 24 * 60 * 60 * 1_000_000_000;

/// Table 3: what arrives in each window, MiB.
pub const TABLE_3: [u64; WINDOWS] = [40, 40, 40, 80, 80, 20, 20, 40, 40, 40];

/// Who manages the wear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Management {
    /// Nobody, and blocks are taken in turn.
    None,
    Paper,
    Ours,
}

impl Management {
    pub const ALL: [Self; 3] = [Self::None, Self::Paper, Self::Ours];

    /// Its name in rows and of jobs.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "unmanaged",
            Self::Paper => "paper",
            Self::Ours => "ours",
        }
    }

    /// What a life under it is played on: the paper's chip, or one of the same size with more bits in a cell.
    pub fn setting(self, bits_per_cell: u8) -> Result<Setting, PlayError> {
        let mut profile = schemes::chip(bits_per_cell)?.with_capacity(CHIP_BYTES)?;
        (profile.endurance.slc_erases, profile.endurance.native_erases) = (ENDURANCE, ENDURANCE);
        let goal = Goal { life_ns: WINDOWS as u64 * WINDOW_NS, window_ns: WINDOW_NS };
        let (policy, life) = match self {
            Self::None => (Policy::BM.without_levelling("unmanaged"), Wanted::default()),
            Self::Paper => (schemes::BM, Wanted { goal: Some(goal), controller: Controller::Paper }),
            Self::Ours => (schemes::BM, Wanted { goal: Some(goal), controller: Controller::WholeLife }),
        };
        Ok(Setting { profile, host: HostCost::NONE, policy, life, seed: 1 })
    }
}

/// How data arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// As files of 1 MiB, each synced; the oldest goes where there would be more than 40.
    Files,
    /// As overwrites of 4 KiB in files of 1 MiB, each synced; 20 of them are written first.
    SyncedPages,
}

/// What ends a mount, ten times in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    Never,
    /// An unmount; the wall clock jumps by a year, to and fro.
    Unmount,
    Cut,
}

/// What arrives in a life: how, and how many MiB in each window; and what ends its mounts.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub arrival: Arrival,
    pub mib: [u64; WINDOWS],
    pub interruption: Interruption,
    pub bits_per_cell: u8,
}

/// The paper's.
pub const PAPER: Plan =
    Plan { arrival: Arrival::Files, mib: TABLE_3, interruption: Interruption::Never, bits_per_cell: 2 };

impl Plan {
    /// The parameters of its rows.
    pub fn parameters(&self, management: Management) -> Result<Parameters, PlayError> {
        let mib: Vec<String> = self.mib.iter().map(u64::to_string).collect();
        let how = match self.arrival {
            Arrival::Files => "files of 1 MiB, each synced, 40 stored at most",
            Arrival::SyncedPages => "overwrites of 4 KiB in 20 files of 1 MiB, each synced",
        };
        let how = match self.interruption {
            Interruption::Never => how.to_owned(),
            Interruption::Unmount => format!("{how}, unmounted a hundred times, the clock put a year on and back"),
            Interruption::Cut => format!("{how}, the power cut a hundred times"),
        };
        let workload = format!("{how}; MiB in each window of 400 s: {}", mib.join(" "));
        let parameters = Parameters::of(&management.setting(self.bits_per_cell)?).with("workload", workload);
        Ok(parameters.with("wear", management.name()).with("endurance_cycles", ENDURANCE.to_string()))
    }
}

/// A window of a life.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Window {
    /// δ at its beginning, and the mean over its time.
    pub first_index: f64,
    pub mean_index: f64,
    /// Host pages that went to SLC, and all.
    pub slc_pages: u64,
    pub pages: u64,
    /// Cycles begun in all blocks by its end, and what the volume believes of that.
    pub cycles: u64,
    pub believed_cycles: u64,
}

/// What came of a life.
#[derive(Serialize, Deserialize)]
pub struct Life {
    pub windows: Vec<Window>,
    /// Cycles begun in each block but those of the anchors.
    pub cycles: Vec<u32>,
    /// When it was said that the goal cannot be met, and when the budget would be spent then, s; if it was said.
    pub warned: Option<(f64, f64)>,
}

impl Life {
    /// The mean of δ over the windows.
    pub fn mean_index(&self) -> f64 {
        self.windows.iter().map(|window| window.mean_index).sum::<f64>() / self.windows.len() as f64
    }

    /// The share of host pages that went to SLC.
    pub fn slc_share(&self) -> f64 {
        let (slc, all) =
            self.windows.iter().fold((0, 0), |(slc, all), window| (slc + window.slc_pages, all + window.pages));
        slc as f64 / all as f64
    }

    pub fn total_cycles(&self) -> u64 {
        self.windows.last().map_or(0, |window| window.cycles)
    }

    pub fn most_cycles(&self) -> u32 {
        self.cycles.iter().copied().max().unwrap_or(0)
    }

    pub fn mean_cycles(&self) -> f64 {
        self.cycles.iter().map(|&cycles| f64::from(cycles)).sum::<f64>() / self.cycles.len() as f64
    }

    /// The standard deviation of the blocks' cycles.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean_cycles();
        let squares = self.cycles.iter().map(|&cycles| (f64::from(cycles) - mean).powi(2));
        (squares.sum::<f64>() / self.cycles.len() as f64).sqrt()
    }
}

/// A life that is being lived.
struct Living {
    player: Player,
    ledger: Ledger,
    stored: VecDeque<u64>,
    next_file: u64,
    /// What the chip and the volume counted after formatting.
    cycles: u64,
    believed_cycles: u64,
    warned: Option<(f64, f64)>,
}

/// Lives a life.
pub fn live(management: Management, plan: Plan) -> Result<Life, PlayError> {
    let mut player = Player::new(&management.setting(plan.bits_per_cell)?)?;
    // The life begins with the first request.
    player.sync()?;
    let (cycles, believed_cycles) = cycles(&mut player)?;
    let (ledger, stored) = (Ledger::default(), VecDeque::new());
    let mut living = Living { player, ledger, stored, next_file: 0, cycles, believed_cycles, warned: None };
    let formatted: Vec<u32> = living.player.look().chip().all_cycles().collect();
    let mut windows = Vec::new();
    for (number, mib) in (0..).zip(plan.mib) {
        let (lived, window) = living.window(plan, number, mib)?;
        living = lived;
        windows.push(window);
    }
    let blocks: Vec<bool> = living.player.look().blocks().map(|block| block.used_as != "anchor").collect();
    let warned = living.warned;
    let chip = living.player.unmount()?;
    living.ledger.verify(&chip)?;
    let pool = chip.all_cycles().zip(formatted).zip(blocks).filter(|&(_, is_pool)| is_pool);
    let cycles = pool.map(|((now, before), _)| now - before).collect();
    Ok(Life { windows, cycles, warned })
}

/// Cycles begun in all blocks: by the chip, and as the volume believes.
fn cycles(player: &mut Player) -> Result<(u64, u64), PlayError> {
    let counted = player.look().chip().all_cycles().map(u64::from).sum();
    let believed = player.look().info().map_err(failed("asking for the wear"))?.cycles;
    Ok((counted, believed))
}

fn failed(doing: &'static str) -> impl Fn(flexfs_core::Error) -> PlayError {
    move |source| PlayError::Fs { doing, source }
}

impl Living {
    /// A window: its files at equal distances.
    fn window(mut self, plan: Plan, number: u64, mib: u64) -> Result<(Self, Window), PlayError> {
        let start_ns = number * WINDOW_NS;
        let before = *self.player.look().chip().counters();
        let mut window = Window::default();
        let mut indexes = Vec::new();
        let parts = mib.max(10);
        for part in 0..parts {
            let at_ns = start_ns + part * WINDOW_NS / parts;
            self.player.rest_until(at_ns)?;
            match plan.arrival {
                _ if part >= mib => {}
                Arrival::SyncedPages if self.stored.len() == SYNCED_FILES => self.overwrite(at_ns)?,
                _ => self.store(at_ns)?,
            }
            indexes.push(self.wear_index()?);
            // Ten of them, spread over the window, each at a moment of its own before the next file.
            if plan.interruption != Interruption::Never && part * 10 % parts < 10 {
                let moment_ns = mix(number << 32 | part) % (WINDOW_NS / parts);
                self.player.rest_until(at_ns + moment_ns)?;
                self = self.interrupted(plan.interruption)?;
            }
        }
        self.player.rest_until(start_ns + WINDOW_NS)?;
        let after = *self.player.look().chip().counters();
        let (slc, native) = (
            after.programs.slc.host - before.programs.slc.host,
            after.programs.native.host - before.programs.native.host,
        );
        let (counted, believed) = cycles(&mut self.player)?;
        window.first_index = indexes.first().copied().unwrap_or(1.0);
        window.mean_index = indexes.iter().sum::<f64>() / indexes.len() as f64;
        (window.slc_pages, window.pages) = (slc, slc + native);
        (window.cycles, window.believed_cycles) = (counted - self.cycles, believed - self.believed_cycles);
        Ok((self, window))
    }

    /// Ends the mount, and mounts again.
    fn interrupted(self, interruption: Interruption) -> Result<Self, PlayError> {
        let cut = interruption == Interruption::Cut;
        let jump_ns = if cut || !self.next_file.is_multiple_of(2) { 0 } else { YEAR_NS };
        let player = self.player.mount_again(cut, BASE_NS + jump_ns)?;
        Ok(Self { player, ..self })
    }

    /// δ now; a warning that the goal cannot be met is noted.
    fn wear_index(&mut self) -> Result<f64, PlayError> {
        let now_s = self.player.now_ns() as f64 / 1e9;
        let Some(life) = self.player.look().info().map_err(failed("asking for δ"))?.life else { return Ok(1.0) };
        if let Some(ends_ns) = life.ends_ns {
            self.warned = self.warned.or(Some((now_s, ends_ns as f64 / 1e9)));
        }
        Ok(f64::from(life.wear_index) / 1e6)
    }

    /// Stores another file, in the place of the oldest if need be.
    fn store(&mut self, arrival_ns: u64) -> Result<(), PlayError> {
        let number = self.next_file;
        self.next_file += 1;
        let oldest = if self.stored.len() < FILES_MAX { None } else { self.stored.pop_front() };
        let Self { player, ledger, .. } = self;
        let answer = |player: &mut Player| {
            if let Some(oldest) = oldest {
                let name = name(oldest);
                ledger.remove(&name);
                player.call("removing a file", |fs, now_ns| fs.unlink(ROOT_INO, name.as_bytes(), now_ns))?;
            }
            let name = name(number);
            let ino = player.create(&name)?.ino;
            for offset in (0..FILE_BYTES).step_by(WRITE_BYTES as usize) {
                player.write(ino, offset, &ledger.append(&name, number, WRITE_BYTES))?;
            }
            player.sync()
        };
        player.request(arrival_ns, answer)?;
        self.stored.push_back(number);
        Ok(())
    }

    /// Overwrites the oldest file, page by page.
    fn overwrite(&mut self, arrival_ns: u64) -> Result<(), PlayError> {
        let seed = self.next_file;
        self.next_file += 1;
        let Some(number) = self.stored.pop_front() else { return Ok(()) };
        let Self { player, ledger, .. } = self;
        let name = name(number);
        ledger.remove(&name);
        let ino = player.call("looking up a file", |fs, _| fs.lookup(ROOT_INO, name.as_bytes()))?.ino;
        for offset in (0..FILE_BYTES).step_by(PAGE_BYTES as usize) {
            player.request(arrival_ns.max(player.now_ns()), |player| {
                player.write(ino, offset, &ledger.append(&name, seed, PAGE_BYTES))?;
                player.sync()
            })?;
        }
        self.stored.push_back(number);
        Ok(())
    }
}

fn name(number: u64) -> String {
    format!("file{number:05}")
}
