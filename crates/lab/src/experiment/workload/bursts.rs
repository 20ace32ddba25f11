//! The workloads of the paper's Idle, Busy and Locality benchmarks: bursts of so many MiB, one every so many seconds, until
//! 95 % of the capacity hold data. Invariant: a burst's time is its requests' alone, from the arrival of each; what it wrote is read back.

use std::collections::BTreeSet;

use emulator::Profile;
use flexfs_core::dump::SlotState;
use flexfs_core::{Fs, MountOptions, Policy, ROOT_INO, Wanted};
use serde::{Deserialize, Serialize};

use crate::play::{HostCost, Ledger, PlayError, Player, Response, Setting};
use torture::content::mix;
use torture::crash::BASE_NS;

/// A request: a file of so many bytes, made, written and synced.
pub const FILE_BYTES: u64 = 1 << 20;
const WRITE_BYTES: u64 = 128 << 10;

/// Of the capacity, what is written.
const FULL_PERCENT: f64 = 95.0;

/// What is written, when, and on what.
#[derive(Clone, Copy, Debug)]
pub struct Bursts {
    pub chip_bytes: u64,
    pub host: HostCost,
    /// Requests of each burst.
    pub files: u64,
    /// Files that are overwritten again and again: the first ones, one of them by turns with the last request of each
    /// burst.
    pub hot_files: u64,
    /// From the start of one burst to the start of the next, unless it takes longer.
    pub interval_ns: u64,
    /// How often the volume was filled like this and emptied before.
    pub cycles: u32,
    /// Decides the chip's chance events.
    pub seed: u64,
}

/// What came of it.
#[derive(Serialize, Deserialize)]
pub struct Course {
    /// What `statfs` told right after formatting, with the default policy.
    pub capacity_bytes: u64,
    /// Of each burst the times of its requests, ns.
    pub bursts: Vec<Vec<u64>>,
    /// Files there were after each request.
    pub stored: Vec<u64>,
    /// The share of pages that was to go to SLC (α) after each request, where the policy allocates.
    pub alphas: Vec<Option<f64>>,
    /// Pages that were moved before they were overwritten.
    pub needless_pages: u64,
    /// The volume was full before the end.
    pub no_space: bool,
    pub migrated_pages: u64,
    /// Until the last request was answered.
    pub seconds: f64,
}

/// The throughput of files that took so long each, MB/s.
pub fn rate(times: &[u64]) -> f64 {
    let bytes = times.len() as u64 * FILE_BYTES;
    bytes as f64 * 1e3 / times.iter().sum::<u64>() as f64
}

impl Course {
    /// How full the volume was after so many requests, in percent.
    pub fn percent(&self, requests: u64) -> f64 {
        let last = (requests as usize).checked_sub(1).and_then(|last| self.stored.get(last));
        100.0 * (last.copied().unwrap_or(0) * FILE_BYTES) as f64 / self.capacity_bytes as f64
    }

    /// The bursts: how full the volume was after each, in percent, and its throughput, MB/s.
    pub fn by_use(&self) -> Vec<(f64, f64)> {
        let mut requests = 0;
        let some = self.bursts.iter().filter(|times| !times.is_empty());
        some.map(|times| {
            requests += times.len() as u64;
            (self.percent(requests), rate(times))
        })
        .collect()
    }

    /// The mean throughput of the bursts of so many files, MB/s.
    pub fn mean_rate(&self, files: u64) -> f64 {
        let whole: Vec<u64> =
            self.bursts.iter().filter(|times| times.len() as u64 == files).flatten().copied().collect();
        rate(&whole)
    }
}

impl Bursts {
    pub fn setting(&self, policy: Policy) -> Result<Setting, PlayError> {
        let profile = Profile::default().with_capacity(self.chip_bytes)?;
        Ok(Setting { profile, host: self.host, policy, life: Wanted::default(), seed: self.seed })
    }

    pub fn workload(&self) -> String {
        let seconds = self.interval_ns / 1_000_000_000;
        let text = format!("{} files of 1 MiB every {seconds} s, each synced", self.files);
        let text = match self.hot_files {
            0 => text,
            hot_files => format!("{text}, the last of each burst one of the first {hot_files}, overwritten"),
        };
        match self.cycles {
            0 => text,
            cycles => format!("{text}, the volume filled and emptied {cycles} times before"),
        }
    }

    /// Runs it.
    pub fn run(&self, policy: Policy) -> Result<Course, PlayError> {
        let capacity_bytes = self.capacity_bytes()?;
        let mut player = Player::new(&self.setting(policy)?)?;
        let mut ledger = Ledger::default();
        for _ in 0..self.cycles {
            let full = self.fill(&mut player, &mut ledger, capacity_bytes)?;
            self.empty(&mut player, &mut ledger, &full)?;
        }
        let migrated_pages = player.tally().migrated_pages;
        let full = self.fill(&mut player, &mut ledger, capacity_bytes)?;
        let migrated_pages = player.tally().migrated_pages - migrated_pages;
        let seconds = (player.now_ns() - full.start_ns) as f64 / 1e9;
        ledger.verify(&player.unmount()?)?;
        let Filled { bursts, stored, alphas, needless_pages, no_space, .. } = full;
        Ok(Course { capacity_bytes, bursts, stored, alphas, needless_pages, no_space, migrated_pages, seconds })
    }

    fn capacity_bytes(&self) -> Result<u64, PlayError> {
        let mut player = Player::new(&self.setting(Policy::BASELINE)?)?;
        let stat =
            player.look().statfs().map_err(|source| PlayError::Fs { doing: "asking for the capacity", source })?;
        Ok(stat.capacity_bytes)
    }

    /// Writes until the volume is as full as it shall be, or takes no more.
    fn fill(&self, player: &mut Player, ledger: &mut Ledger, capacity_bytes: u64) -> Result<Filled, PlayError> {
        let enough_bytes = (capacity_bytes as f64 * FULL_PERCENT / 100.0) as u64;
        let start_ns = player.now_ns();
        let mut full = Filled { start_ns, ..Filled::default() };
        let mut due_ns = start_ns;
        while full.files * FILE_BYTES < enough_bytes && !full.no_space {
            let (mut times, burst) = (Vec::new(), full.bursts.len() as u64);
            let start_ns = due_ns.max(player.now_ns());
            let mut arrival_ns = start_ns;
            for position in 0..self.files {
                if full.files * FILE_BYTES >= enough_bytes {
                    break;
                }
                match self.hot_file(burst, position) {
                    Some(number) => {
                        player.rest_until(arrival_ns)?;
                        full.needless_pages += moved_pages(player, &name(number))?;
                        times.push(overwrite(player, ledger, (number, burst), arrival_ns)?.time_ns());
                    }
                    None => match store(player, ledger, full.files, arrival_ns) {
                        Ok(response) => {
                            times.push(response.time_ns());
                            full.files += 1;
                        }
                        Err(error) if error.is_no_space() => {
                            remove(player, ledger, full.files)?;
                            full.no_space = true;
                            break;
                        }
                        Err(error) => return Err(error),
                    },
                }
                full.stored.push(full.files);
                full.alphas.push(alpha(player)?);
                arrival_ns = player.now_ns();
            }
            due_ns = start_ns + self.interval_ns;
            full.bursts.push(times);
        }
        Ok(full)
    }

    /// The file that a request overwrites, if it is not a new one: the hot files are made by the first bursts.
    fn hot_file(&self, burst: u64, position: u64) -> Option<u64> {
        let overwrites = self.hot_files > 0 && burst * self.files >= self.hot_files && position + 1 == self.files;
        overwrites.then(|| burst % self.hot_files)
    }

    /// Removes all that was written, and waits as long as between two bursts.
    fn empty(&self, player: &mut Player, ledger: &mut Ledger, full: &Filled) -> Result<(), PlayError> {
        let arrival_ns = player.now_ns() + self.interval_ns;
        player.rest_until(arrival_ns)?;
        for number in 0..full.files {
            remove(player, ledger, number)?;
        }
        player.sync()?;
        let until_ns = player.now_ns() + self.interval_ns;
        player.rest_until(until_ns)
    }
}

/// A volume that was filled.
#[derive(Default)]
struct Filled {
    start_ns: u64,
    bursts: Vec<Vec<u64>>,
    stored: Vec<u64>,
    alphas: Vec<Option<f64>>,
    needless_pages: u64,
    files: u64,
    no_space: bool,
}

fn alpha(player: &mut Player) -> Result<Option<f64>, PlayError> {
    let info =
        player.look().info().map_err(|source| PlayError::Fs { doing: "asking for the allocation ratio", source })?;
    Ok(info.alpha())
}

fn name(number: u64) -> String {
    format!("file{number:05}")
}

fn store(player: &mut Player, ledger: &mut Ledger, number: u64, arrival_ns: u64) -> Result<Response, PlayError> {
    let name = name(number);
    let answer = |player: &mut Player| {
        let ino = player.create(&name)?.ino;
        write(player, ledger, (&name, ino), number)
    };
    player.request(arrival_ns, answer).map(|((), response)| response)
}

/// Writes a whole file anew over what it holds.
fn overwrite(
    player: &mut Player,
    ledger: &mut Ledger,
    (number, burst): (u64, u64),
    arrival_ns: u64,
) -> Result<Response, PlayError> {
    let name = name(number);
    ledger.remove(&name);
    let answer = |player: &mut Player| {
        let ino = player.call("looking up a file", |fs, _| fs.lookup(ROOT_INO, name.as_bytes()))?.ino;
        write(player, ledger, (&name, ino), mix(number ^ mix(burst)))
    };
    player.request(arrival_ns, answer).map(|((), response)| response)
}

fn write(player: &mut Player, ledger: &mut Ledger, (name, ino): (&str, u64), seed: u64) -> Result<(), PlayError> {
    for offset in (0..FILE_BYTES).step_by(WRITE_BYTES as usize) {
        player.write(ino, offset, &ledger.append(name, seed, WRITE_BYTES))?;
    }
    player.sync()
}

/// Pages of a file that were moved since they were written, as a copy of the volume shows it.
fn moved_pages(player: &mut Player, name: &str) -> Result<u64, PlayError> {
    let failed = |doing| move |source| PlayError::Fs { doing, source };
    let options = MountOptions { now_ns: BASE_NS + player.now_ns() as i64, ..MountOptions::default() };
    let mounted = Fs::mount(player.look().chip().snapshot(), options);
    let mut fs = mounted.map_err(|(_, source)| PlayError::Fs { doing: "mounting a copy", source })?;
    let ino = fs.lookup(ROOT_INO, name.as_bytes()).map_err(failed("looking up a file"))?.ino;
    let mut slots = BTreeSet::new();
    fs.index_entries(&mut |entry| {
        if let (true, Some(slot)) = (entry.ino == ino && entry.kind == "data", entry.slot) {
            slots.extend(slot..slot + entry.count);
        }
        entry.ino <= ino
    })
    .map_err(failed("looking at the index"))?;
    let native: Vec<u32> = fs.blocks().filter(|block| block.native).map(|block| block.number).collect();
    let mut moved = 0;
    for block in native {
        fs.slots(block, &mut |slot, state| {
            let is_copy = matches!(&state, SlotState::Holds(tag) if tag.copy_of.is_some() && !tag.unlogged);
            moved += u64::from(is_copy && slots.contains(&slot));
            true
        })
        .map_err(failed("looking at a block"))?;
    }
    Ok(moved)
}

fn remove(player: &mut Player, ledger: &mut Ledger, number: u64) -> Result<(), PlayError> {
    let name = name(number);
    ledger.remove(&name);
    // A file that found no space may not even have got its name.
    let there = |fs: &mut Fs<_>| fs.lookup(ROOT_INO, name.as_bytes()).is_ok();
    if !there(player.look()) {
        return Ok(());
    }
    player.call("removing a file", |fs, now_ns| fs.unlink(ROOT_INO, name.as_bytes(), now_ns))
}
