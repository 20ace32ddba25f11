//! The server is killed with SIGKILL, round after round on one image, while SQLite and `git` commit through the mount;
//! nothing that was acknowledged to either is ever lost, and nothing is ever broken.
//!
//! `FLEXFS_KILL_ROUNDS` says how many rounds (10 unless set, and 4 over a drive or on eight channels), `FLEXFS_KILL_SEED` which. Image and volume live on, so
//! that recovery follows recovery; some kills come while the server mounts, some while it ends. What was acknowledged
//! is recorded outside the mount. It is a program of its own, which runs itself as the loads, since a program that has
//! a file mapped dies with its server.

#[path = "../common/mod.rs"]
mod common;
mod git;
mod rounds;
mod sqlite;

use std::path::Path;
use std::process::ExitCode;

use rounds::{Ground, Rounds};

const ROUNDS: u64 = 10;
/// Rounds over a drive that maps only blocks, and on eight channels.
const FEW_ROUNDS: u64 = 4;
const SEED: u64 = 1;

fn main() -> ExitCode {
    let number = |name, unset| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(unset);
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--sqlite", database, journal, acknowledged] => {
            sqlite::load(Path::new(database), journal, Path::new(acknowledged));
        }
        ["--git", repository, acknowledged] => git::load(Path::new(repository), Path::new(acknowledged)),
        ["--list", ..] => {}
        _ => {
            for (over, channels) in [(None, 1), (Some("codesign"), 1), (None, 8), (Some("codesign"), 8)] {
                let rounds = if (over, channels) == (None, 1) { ROUNDS } else { FEW_ROUNDS };
                let ground = Ground { over, channels };
                Rounds::begin(number("FLEXFS_KILL_SEED", SEED), ground).run(number("FLEXFS_KILL_ROUNDS", rounds));
            }
        }
    }
    ExitCode::SUCCESS
}
