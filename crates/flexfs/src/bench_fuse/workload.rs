//! The calls that both file systems are measured with, and what each makes sure of.
//!
//! Invariant: the kernel is made to forget pages and names before they are read or looked up, so that each such call
//! is answered by the file system; a read that was not is an error. Of `list` the kernel may answer what it is let keep.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use fuser::INodeNo;

use super::target::Target;

/// What one figure counts.
pub struct Phase {
    pub name: &'static str,
    pub unit: &'static str,
    /// Whether all of it runs on one processor. Calls on names are so short that waking another one takes longer
    /// than they do, and whether one is woken is chance.
    pub alone: bool,
    /// Does it once, as fast as what it gives says.
    pub run: fn(&Target, &Plan) -> Result<f64>,
}

/// The figures, in an order in which each finds what it needs: what is read is written before on the same mount.
pub const PHASES: [Phase; 9] = [
    Phase { name: "write-1MiB", unit: "MB/s", alone: false, run: |to, plan| write(to, plan, LARGE_CALL_BYTES) },
    Phase { name: "write-4KiB", unit: "MB/s", alone: false, run: |to, plan| write(to, plan, SMALL_CALL_BYTES) },
    Phase { name: "read-1MiB", unit: "MB/s", alone: false, run: |to, plan| read(to, plan, LARGE_CALL_BYTES) },
    Phase { name: "read-4KiB", unit: "MB/s", alone: false, run: |to, plan| read(to, plan, SMALL_CALL_BYTES) },
    Phase { name: "create", unit: "/s", alone: true, run: create },
    Phase { name: "stat", unit: "/s", alone: true, run: stat },
    Phase { name: "unlink", unit: "/s", alone: true, run: unlink },
    Phase { name: "synced", unit: "/s", alone: true, run: synced },
    Phase { name: "list", unit: "/s", alone: true, run: list },
];

const LARGE_CALL_BYTES: usize = 1 << 20;
const SMALL_CALL_BYTES: usize = 4 << 10;

/// Directories the empty files are spread over.
const DIRECTORIES: u64 = 20;

/// The most empty files.
const FILES_MAX: u64 = 20_000;

/// Directories that are listed, and names in each.
const LISTED: u64 = 100;
const LISTED_NAMES: u64 = 20;

/// Of the empty files, one in so many is as many synced ones.
const SYNCED_PART: u64 = 10;

/// How much is done.
pub struct Plan {
    /// Bytes of each large file.
    file_bytes: u64,
    /// Empty files in each directory.
    files: u64,
}

impl Plan {
    /// Large files of an eighth of the chip, and an empty file for each 32 KiB of it, but no more than 20,000.
    pub fn for_chip(chip_bytes: u64) -> Self {
        let file_bytes = (chip_bytes / 8 / LARGE_CALL_BYTES as u64).max(1) * LARGE_CALL_BYTES as u64;
        Self { file_bytes, files: (chip_bytes / (32 << 10)).clamp(DIRECTORIES, FILES_MAX) / DIRECTORIES }
    }
}

fn megabytes_per_s(bytes: u64, since: Instant) -> f64 {
    bytes as f64 / 1e6 / since.elapsed().as_secs_f64()
}

/// The file that is written and read by calls of this size.
fn file(target: &Target, call_bytes: usize) -> PathBuf {
    target.root.join(format!("by-{call_bytes}"))
}

fn write(target: &Target, plan: &Plan, call_bytes: usize) -> Result<f64> {
    let piece: Vec<u8> = (0..call_bytes).map(|index| (index * 31 + index / 251) as u8).collect();
    let mut file = OpenOptions::new().write(true).create_new(true).open(file(target, call_bytes))?;
    let start = Instant::now();
    for _ in 0..plan.file_bytes / call_bytes as u64 {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    Ok(megabytes_per_s(plan.file_bytes, start))
}

fn read(target: &Target, plan: &Plan, call_bytes: usize) -> Result<f64> {
    let mut file = File::open(file(target, call_bytes))?;
    target.notifier.inval_inode(INodeNo(file.metadata()?.ino()), 0, 0).context("dropping pages")?;
    let mut piece = vec![0; call_bytes];
    let before = (target.fetched_bytes)()?;
    let start = Instant::now();
    for _ in 0..plan.file_bytes / call_bytes as u64 {
        file.read_exact(&mut piece)?;
    }
    let rate = megabytes_per_s(plan.file_bytes, start);
    let fetched = (target.fetched_bytes)()? - before;
    ensure!(fetched >= plan.file_bytes, "only {fetched} of {} bytes did not come from a cache", plan.file_bytes);
    Ok(rate)
}

fn directory(target: &Target, number: u64) -> PathBuf {
    target.root.join(format!("directory-{number}"))
}

fn file_name(number: u64) -> OsString {
    format!("file-{number}").into()
}

/// Times one call for each empty file.
fn for_each_file(target: &Target, plan: &Plan, call: impl Fn(PathBuf) -> std::io::Result<()>) -> Result<f64> {
    let start = Instant::now();
    for number in 0..DIRECTORIES {
        let dir = directory(target, number);
        for file in 0..plan.files {
            call(dir.join(file_name(file)))?;
        }
    }
    Ok((DIRECTORIES * plan.files) as f64 / start.elapsed().as_secs_f64())
}

fn create(target: &Target, plan: &Plan) -> Result<f64> {
    for number in 0..DIRECTORIES {
        fs::create_dir(directory(target, number))?;
    }
    for_each_file(target, plan, |path| OpenOptions::new().write(true).create_new(true).open(path).map(drop))
}

fn stat(target: &Target, plan: &Plan) -> Result<f64> {
    for number in 0..DIRECTORIES {
        let parent = INodeNo(fs::metadata(directory(target, number))?.ino());
        for file in 0..plan.files {
            target.notifier.inval_entry(parent, &file_name(file)).context("dropping names")?;
        }
    }
    for_each_file(target, plan, |path| fs::symlink_metadata(path).map(drop))
}

fn unlink(target: &Target, plan: &Plan) -> Result<f64> {
    for_each_file(target, plan, fs::remove_file)
}

/// Files of 4 KiB: each created, written, synced and closed.
fn synced(target: &Target, plan: &Plan) -> Result<f64> {
    let dir = target.root.join("synced");
    fs::create_dir(&dir)?;
    let (piece, files) = ([0x5a; SMALL_CALL_BYTES], (DIRECTORIES * plan.files / SYNCED_PART).max(1));
    let start = Instant::now();
    for number in 0..files {
        let mut file = OpenOptions::new().write(true).create_new(true).open(dir.join(file_name(number)))?;
        file.write_all(&piece)?;
        file.sync_all()?;
    }
    Ok(files as f64 / start.elapsed().as_secs_f64())
}

/// Listings of directories that were listed before, and have not changed since.
fn list(target: &Target, _: &Plan) -> Result<f64> {
    let dir = |number| target.root.join(format!("listed-{number}"));
    for number in 0..LISTED {
        fs::create_dir(dir(number))?;
        for file in 0..LISTED_NAMES {
            File::create_new(dir(number).join(file_name(file)))?;
        }
    }
    let list_all = || -> Result<()> {
        for number in 0..LISTED {
            let listed = fs::read_dir(dir(number))?.try_fold(0, |count, entry| entry.map(|_| count + 1))?;
            ensure!(listed == LISTED_NAMES, "{listed} of {LISTED_NAMES} names are listed");
        }
        Ok(())
    };
    list_all()?;
    let start = Instant::now();
    list_all()?;
    Ok(LISTED as f64 / start.elapsed().as_secs_f64())
}
