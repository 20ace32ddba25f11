//! Threads that race each other through one mount see what they would see one after the other: of every burst of calls,
//! an order is found in which a small model of the tree gives just the answers the mount gave, and ends in its tree.
//!
//! `FLEXFS_RACE_SECONDS` says for how long (5 unless set), half with the kernel's writeback cache and half without;
//! `FLEXFS_RACE_SEED` what, `FLEXFS_RACE_THREADS` how many (8). It is a program of its own, which also makes sure that
//! the search refuses what has no order.

mod act;
mod burst;
#[path = "../common/mod.rs"]
mod common;
mod model;
mod op;
mod order;
mod refusal;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use act::look;
use common::{Dice, Mount, assert_clean, image};
use op::{DIRS, dir_name};
use order::{Burst, Call, Verdict, search};

const SECONDS: u64 = 5;
const THREADS: u64 = 8;
const SEED: u64 = 1;
/// The kernel may be wrong about a tree once in so many bursts: asked to look for a name again while that is just made,
/// it forgets a file, and remembers an answer from before the last change of its size.
const STALE_ONCE_IN: u64 = 10_000;
/// Bursts that are made however slow the machine is: of fewer, one that is too hard to order says nothing.
const BURSTS_LEAST: u64 = 100;
/// Nodes past which a tree is not carried on to the next burst, so that its model stays small.
const NODES_MAX: usize = 14;

fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == "--list") {
        return ExitCode::SUCCESS;
    }
    let number = |name, unset| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(unset);
    refusal::assert_refused();
    let half = Duration::from_secs(number("FLEXFS_RACE_SECONDS", SECONDS)) / 2;
    let (threads, seed) = (number("FLEXFS_RACE_THREADS", THREADS) as usize, number("FLEXFS_RACE_SEED", SEED));
    for arguments in [&[][..], &["-o", "writethrough"]] {
        race(half, threads, seed, arguments);
    }
    ExitCode::SUCCESS
}

fn race(duration: Duration, threads: usize, seed: u64, arguments: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mut mount = Mount::with(&image, arguments);
    for dir in 0..DIRS {
        fs::create_dir(mount.join(dir_name(dir))).unwrap();
    }
    let (start, mut dice) = (Instant::now(), Dice::new(seed));
    let (mut bursts, mut calls_made, mut unknown, mut stale) = (0, 0, 0, 0);
    let (mut before, mut miscounted) = look(&mount.path);
    while start.elapsed() < duration || bursts < BURSTS_LEAST {
        if before.nodes.len() > NODES_MAX {
            clear(&mount.path);
            (before, _) = look(&mount.path);
        }
        let calls = burst::make(&mount.path, threads, &mut dice);
        let (mut tree, miscounts) = look(&mount.path);
        let after = tree.describe();
        let burst = Burst { before: &before, threads, after: Some(&after), early_sizes: !arguments.is_empty() };
        match search(&burst, &calls) {
            Verdict::Ordered => {}
            Verdict::Unknown => unknown += 1,
            Verdict::Impossible => {
                // What the kernel believes of a file may be older than what it was told since; what counts is then
                // what a new mount finds.
                mount.unmount();
                mount = Mount::with(&image, arguments);
                (tree, _) = look(&mount.path);
                let found = tree.describe();
                if search(&Burst { after: Some(&found), ..burst }, &calls) != Verdict::Ordered {
                    refuse(&burst, &calls, &format!("seed {seed}, {arguments:?}, burst {bursts}"));
                }
                println!("{arguments:?}, burst {bursts}: after it the kernel believed\n{after}of\n{found}");
                stale += 1;
            }
        }
        (bursts, calls_made, before) = (bursts + 1, calls_made + calls.len(), tree);
        miscounted += miscounts;
    }
    assert!(unknown * 100 <= bursts, "of {bursts} bursts {unknown} were too hard to order");
    assert!(stale <= 1 + bursts / STALE_ONCE_IN, "of {bursts} bursts the kernel had {stale} wrong");
    mount.unmount();
    assert_clean(&image);
    println!(
        "test races {arguments:?}: {bursts} bursts of {threads} threads, {calls_made} calls, each burst in an order but \
         {unknown} that were too hard, {miscounted} times names miscounted by the kernel, {stale} times it believed what was no longer so ... ok"
    );
}

/// Tells of a burst without an order.
fn refuse(burst: &Burst, calls: &[Call], which: &str) -> ! {
    let blamed = burst::minimise(burst, calls);
    let after = burst.after.filter(|_| blamed.after_counts).unwrap_or("it does not matter what\n");
    panic!(
        "{which} has no order\nbefore:\n{}calls that contradict each other:\n{}after:\n{after}all calls:\n{}",
        burst.before.describe(),
        burst::describe(&blamed.calls),
        burst::describe(calls),
    );
}

/// Empties the directories that stay.
fn clear(mount: &Path) {
    for dir in 0..DIRS {
        for entry in fs::read_dir(mount.join(dir_name(dir))).unwrap() {
            let path = entry.unwrap().path();
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
        }
    }
}
