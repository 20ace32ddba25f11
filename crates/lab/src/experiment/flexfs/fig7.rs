//! Figure 7: what migration leaves in the SLC region, where it tells hot data from the rest and where it does not. Invariant:
//! both schemes get the same requests, and as much idle time as moves three of the figure's pages.

use std::collections::BTreeMap;

use emulator::Profile;
use flexfs_core::dump::IndexEntry;
use flexfs_core::{Fs, MountOptions, Policy, Wanted};
use serde::{Deserialize, Serialize};

use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row, Table, schemes};
use crate::play::{HostCost, Ledger, PlayError, Player, Setting};
use torture::crash::BASE_NS;

pub const FIG7: Experiment = Experiment {
    id: "fig7",
    title: "Figure 7: A comparison of the locality-unaware and locality-aware approaches",
    about: "Three cold pages and a hot one stand in the SLC region. Idle time moves three pages, then the hot one is \
            written again, and three new ones. In the figure five pages are left there where locality is unknown, and \
            four where it is known. A page of the figure is a file of a block here, since blocks are what is emptied; one \
            more file behind p3 fills the block that its last pages stand in, and counts in neither.",
    differs: "The last digits: a page of the figure is a block here, and the pages that its nodes take stand in none \
              of the five.",
    jobs,
    finish,
};

const SCHEMES: [(&str, Policy, f64); 2] = [("unaware", schemes::DA, 5.0), ("aware", schemes::LA, 4.0)];

/// The figure's p0 to p3, and what comes after: p1 is hot.
const BEFORE: [&str; 4] = ["p0", "p1", "p2", "p3"];
const AFTER: [&str; 4] = ["p1", "p4", "p5", "p6"];
const HOT: &str = "p1";
/// Of them, idle time moves so many.
const MOVED: u64 = 3;

/// How near to the figure what is left must be, in its pages: files do not begin with blocks, and a block is emptied in
/// its own order.
const NEAR: f64 = 0.1;

/// Pages of a file: an SLC block of 64 has room for them and for the nodes beside them.
const FILE_PAGES: u64 = 60;
const PAGE_BYTES: u64 = 4096;
/// How often the hot file was overwritten before, a page of it.
const HEATINGS: u64 = 3;

/// Time between two looks: no longer than from a page's migration to the next.
const LOOK_NS: u64 = 10_000_000;
const LOOKS_MAX: u32 = 100_000;

/// What a job gives: pages of each file in SLC blocks in the end.
#[derive(Serialize, Deserialize)]
struct Left {
    files: Vec<(String, u64)>,
}

impl Left {
    fn pages(&self) -> u64 {
        self.files.iter().map(|(_, pages)| pages).sum()
    }
}

fn jobs() -> Vec<Job> {
    SCHEMES.map(|(scheme, policy, _)| Job::new(job_name(scheme), move || run(policy))).into()
}

fn job_name(scheme: &str) -> String {
    format!("fig7.{scheme}")
}

fn setting(policy: Policy) -> Result<Setting, PlayError> {
    let profile = Profile::default().with_capacity(64 << 20)?;
    Ok(Setting { profile, host: HostCost::NONE, policy, life: Wanted::default(), seed: 1 })
}

/// Writes so many pages over the beginning of a file, or makes it.
fn write(player: &mut Player, ledger: &mut Ledger, name: &str, seed: u64, pages: u64) -> Result<(), PlayError> {
    let found = player.call("looking up a file", |fs, _| match fs.lookup(flexfs_core::ROOT_INO, name.as_bytes()) {
        Err(flexfs_core::Error::NotFound) => Ok(None),
        found => found.map(Some),
    })?;
    let ino = match found {
        Some(attr) => attr.ino,
        None => player.create(name)?.ino,
    };
    ledger.remove(name);
    player.write(ino, 0, &ledger.append(name, seed, pages * PAGE_BYTES))?;
    player.sync()
}

fn run(policy: Policy) -> Result<Left, ExperimentError> {
    let mut player = Player::new(&setting(policy)?)?;
    let mut ledger = Ledger::default();
    for seed in 0..HEATINGS {
        write(&mut player, &mut ledger, HOT, seed, 1)?;
    }
    for (name, seed) in BEFORE.into_iter().zip(10..) {
        write(&mut player, &mut ledger, name, seed, FILE_PAGES)?;
    }
    write(&mut player, &mut ledger, "behind", 9, FILE_PAGES)?;
    rest(&mut player)?;
    for (name, seed) in AFTER.into_iter().zip(20..) {
        write(&mut player, &mut ledger, name, seed, FILE_PAGES)?;
    }
    let left = left_in_slc(&mut player)?;
    ledger.verify(&player.unmount()?)?;
    Ok(left)
}

/// Lets time pass until so much was moved.
fn rest(player: &mut Player) -> Result<(), ExperimentError> {
    for _ in 0..LOOKS_MAX {
        // Nodes are moved as well.
        if player.tally().migrated_pages >= MOVED * FILE_PAGES
            && left_in_slc(player)?.pages() <= (BEFORE.len() as u64 - MOVED) * FILE_PAGES
        {
            return Ok(());
        }
        let until_ns = player.now_ns() + LOOK_NS;
        player.rest_until(until_ns)?;
    }
    Err(ExperimentError::Never("idle time does not move three files".into()))
}

/// Pages of each file in SLC blocks, as a copy of the volume shows it.
fn left_in_slc(player: &mut Player) -> Result<Left, PlayError> {
    let failed = |doing| move |source| PlayError::Fs { doing, source };
    let options = MountOptions { now_ns: BASE_NS + player.now_ns() as i64, ..MountOptions::default() };
    let mounted = Fs::mount(player.look().chip().snapshot(), options);
    let mut fs = mounted.map_err(|(_, source)| PlayError::Fs { doing: "mounting a copy", source })?;
    let mut owners = BTreeMap::new();
    let mut note = |entry: IndexEntry| {
        let first = entry.slot.filter(|_| entry.kind == "data");
        owners.extend(first.into_iter().flat_map(|slot| slot..slot + entry.count).map(|slot| (slot, entry.ino)));
        true
    };
    fs.index_entries(&mut note).map_err(failed("looking at the index"))?;
    let slc: Vec<u32> = fs.blocks().filter(|block| !block.native).map(|block| block.number).collect();
    let mut pages = BTreeMap::new();
    for block in slc {
        fs.slots(block, &mut |slot, _| {
            if let Some(&ino) = owners.get(&slot) {
                *pages.entry(ino).or_insert(0) += 1;
            }
            true
        })
        .map_err(failed("looking at a block"))?;
    }
    let mut files = Vec::new();
    for name in ["p0", "p1", "p2", "p3", "p4", "p5", "p6"] {
        if let Ok(attr) = fs.lookup(flexfs_core::ROOT_INO, name.as_bytes()) {
            files.push((name.to_owned(), pages.get(&attr.ino).copied().unwrap_or(0)));
        }
    }
    Ok(Left { files })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut outcome = Outcome::default();
    let mut rows = Vec::new();
    for (scheme, policy, paper) in SCHEMES {
        let Some(left) = results.get::<Left>(&job_name(scheme))? else { continue };
        let workload = "p0 to p3, a pause in which three of them are moved, p1 again, p4 to p6";
        let parameters = Parameters::of(&setting(policy)?).with("workload", workload);
        let left_pages = left.pages() as f64 / FILE_PAGES as f64;
        let name = format!("locality {scheme}: left in the SLC region");
        outcome.rows.push(
            Row::shown(name, left_pages, "pages of the figure", &parameters)
                .paper(paper)
                .bar(Bar::Between(paper - NEAR, paper + NEAR)),
        );
        let told = left.files.iter().map(|(name, pages)| vec![scheme.to_owned(), name.clone(), pages.to_string()]);
        rows.extend(told);
    }
    if !rows.is_empty() {
        let header = vec!["locality", "file", "pages_in_slc"];
        outcome.tables.push(Table { name: "left".into(), header, rows });
    }
    Ok(outcome)
}
