//! The rounds: mount and check, put the loads on, kill; over and over on one image.
//!
//! Invariant: whatever a load was promised before a kill is checked through the next mount, and the image itself by
//! `fsck`, as the kill left it and after orderly unmounts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::common::{Dice, Mount, assert_clean, detach, flexfs, info, need, need_root, run, wait_for};
use crate::git::Git;
use crate::sqlite::{ROLLBACK_JOURNALS, Sqlite};

/// Small, so that blocks are emptied all the time, and partly taken by what nobody changes.
const IMAGE: &str = "64MiB";
const IDLE_BYTES: usize = 16 << 20;
/// The kill comes when up to so many answers were given to `git`, or times as many to SQLite where that is alone, and a
/// moment later, as long as a commit may take.
const COMMITS_MAX: u64 = 10;
const TRANSACTIONS: usize = 12;
const COMMIT_US_MAX: u64 = 60_000;
/// About as long as a mount takes, or its end.
const STEP_US_MAX: u64 = 25_000;
/// Rounds between two orderly unmounts.
const ORDERLY_EVERY: u64 = 5;

/// Ways to mount, of which each round takes one. A kill does not care for the disk under the image, so most do not
/// wait for it.
const WAYS: [&[&str]; 5] = [
    &[],
    &["-o", "nosync_image"],
    &["-o", "nosync_image,writethrough"],
    &["-o", "nosync_image,mode=mlc-only"],
    &["-o", "nosync_image,compress=lz4"],
];

/// What has come to pass.
#[derive(Default)]
struct Figures {
    under_load: u64,
    while_ending: u64,
    while_mounting: u64,
    transactions: u64,
    commits: u64,
    unmounts: u64,
}

/// A load that runs.
struct Load {
    name: &'static str,
    process: Child,
    /// What it was promised, a line each.
    acknowledged: PathBuf,
}

/// What the file system stands on.
#[derive(Clone, Copy)]
pub struct Ground {
    /// A drive that maps only blocks.
    pub over: Option<&'static str>,
    /// Channels of the chip: one or eight.
    pub channels: usize,
}

/// A chip of eight channels, in blocks so small that each head has a lane on each channel of a small image.
const EIGHT_CHANNELS: &str = include_str!("../../../emulator/profiles/codesign-mlc8.toml");

pub struct Rounds {
    dir: tempfile::TempDir,
    image: PathBuf,
    dice: Dice,
    idle: Vec<u8>,
    wal: Sqlite,
    rollback: Sqlite,
    git: Git,
    figures: Figures,
}

impl Rounds {
    /// An image with two databases, a repository, and a large file that stays.
    pub fn begin(seed: u64, Ground { over, channels }: Ground) -> Self {
        need_root("takes dead mounts off the tree");
        need("git");
        println!("kill -9: seed {seed}, over {}, channels {channels}", over.unwrap_or("a chip"));
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("flash.img");
        let mut mkfs = flexfs(["mkfs", "--size", IMAGE]);
        mkfs.args(over.map(|drive| format!("--over={drive}")));
        if channels > 1 {
            let profile = dir.path().join("eight-channels.toml");
            let small = EIGHT_CHANNELS.replace("pages_per_block = 256", "pages_per_block = 16");
            fs::write(&profile, small.replace("codesign-mlc8", "eight-channels")).unwrap();
            mkfs.arg("--profile").arg(&profile);
        }
        run(mkfs.arg(&image));
        let made = info(&image);
        assert_eq!(made["drive"]["kind"].as_str(), over);
        assert_eq!(made["lanes"].as_array().map_or(1, |lanes| lanes.len() / 4), channels, "{made}");
        let idle = Dice::new(seed).bytes(IDLE_BYTES);
        let mount = Mount::new(&image);
        fs::write(mount.join("idle"), &idle).unwrap();
        let wal = Sqlite::new(&mount.path, "wal", dir.path());
        let rollback = Sqlite::new(&mount.path, "rollback", dir.path());
        let git = Git::new(&mount.path, dir.path());
        mount.unmount();
        Self { dir, image, dice: Dice::new(seed), idle, wal, rollback, git, figures: Figures::default() }
    }

    pub fn run(mut self, rounds: u64) {
        for round in 0..rounds {
            let mount = self.mount(round);
            self.check(&mount);
            let mount =
                if round % ORDERLY_EVERY == ORDERLY_EVERY - 1 { self.unmount_between(mount, round) } else { mount };
            self.kill_under_load(mount);
            if self.dice.below(2) == 0 {
                assert_clean(&self.image);
            }
            for _ in 0..self.dice.below(3) {
                self.kill_while_mounting();
            }
        }
        let mount = self.mount(rounds);
        self.check(&mount);
        assert!(fs::read(mount.join("idle")).unwrap() == self.idle, "what nobody changed has changed");
        mount.unmount();
        assert_clean(&self.image);
        let Figures { under_load, while_ending, while_mounting, transactions, commits, unmounts } = self.figures;
        println!(
            "test kill9: {rounds} rounds, killed {under_load} times under load, {while_ending} while ending, \
             {while_mounting} while mounting, {unmounts} orderly unmounts; {transactions} transactions and {commits} \
             commits as acknowledged ... ok"
        );
    }

    fn mount(&mut self, round: u64) -> Mount {
        let way = WAYS[self.dice.below(WAYS.len() as u64) as usize];
        println!("round {round}: {way:?}");
        Mount::with(&self.image, way)
    }

    fn check(&mut self, mount: &Mount) {
        self.figures.transactions += self.wal.check(&mount.path) + self.rollback.check(&mount.path);
        self.figures.commits += self.git.check(&mount.path);
    }

    fn unmount_between(&mut self, mount: Mount, round: u64) -> Mount {
        mount.unmount();
        self.figures.unmounts += 1;
        assert_clean(&self.image);
        self.mount(round)
    }

    /// Kills the server while all loads run; sometimes a moment after it was asked to end.
    fn kill_under_load(&mut self, mut mount: Mount) {
        let journal = ROLLBACK_JOURNALS[self.dice.below(ROLLBACK_JOURNALS.len() as u64) as usize];
        let mut loads = self.start_loads(&mount, journal);
        let answers = self.dice.below(COMMITS_MAX + 1) as usize * if loads[0].name == "git" { 1 } else { TRANSACTIONS };
        wait_for("answers", || {
            assert!(mount.is_served(), "the server ended by itself");
            for load in &mut loads {
                let ended = load.process.try_wait().unwrap();
                assert!(ended.is_none(), "{} failed before the kill:\n{}", load.name, self.said(load.name));
            }
            fs::read_to_string(&loads[0].acknowledged).unwrap().lines().count() >= answers
        });
        std::thread::sleep(Duration::from_micros(self.dice.below(COMMIT_US_MAX)));
        if self.dice.below(5) == 0 {
            mount.signal(Signal::TERM);
            std::thread::sleep(Duration::from_micros(self.dice.below(STEP_US_MAX)));
            self.figures.while_ending += 1;
        } else {
            self.figures.under_load += 1;
        }
        // Where it was asked to end it may have done so.
        mount.signal(Signal::KILL);
        mount.wait();
        mount.detach();
        for mut load in loads {
            wait_for(&format!("the end of {}", load.name), || load.process.try_wait().unwrap().is_some());
        }
    }

    /// One load, or all: a sync for one is a sync for all, so that together they hide one that is missing.
    fn start_loads(&mut self, mount: &Mount, journal: &str) -> Vec<Load> {
        let (wal, rollback, git) = (&self.wal, &self.rollback, &self.git);
        let mut loads = vec![
            ("git", git.load(&mount.path), &git.acknowledged),
            ("wal", wal.load(&mount.path, "wal"), &wal.acknowledged),
            ("rollback", rollback.load(&mount.path, journal), &rollback.acknowledged),
        ];
        let alone = self.dice.below(loads.len() as u64 + 1) as usize;
        if alone < loads.len() {
            loads = vec![loads.swap_remove(alone)];
        }
        loads.into_iter().map(|(name, command, acknowledged)| self.start(name, command, acknowledged)).collect()
    }

    fn start(&self, name: &'static str, mut command: Command, acknowledged: &Path) -> Load {
        let said = File::create(self.log(name)).unwrap();
        let process = command.stdout(Stdio::null()).stderr(said).spawn().unwrap();
        Load { name, process, acknowledged: acknowledged.to_path_buf() }
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }

    fn said(&self, name: &str) -> String {
        fs::read_to_string(self.log(name)).unwrap()
    }

    /// Kills a server that is just recovering the image.
    fn kill_while_mounting(&mut self) {
        let path = self.image.with_file_name("mnt");
        let mut command = flexfs(["mount"]);
        let mut server = command.arg(&self.image).arg(&path).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(self.dice.below(STEP_US_MAX)));
        assert!(server.try_wait().unwrap().is_none(), "the server did not mount");
        server.kill().unwrap();
        server.wait().unwrap();
        detach(&path.canonicalize().unwrap_or(path));
        self.figures.while_mounting += 1;
    }
}
