//! `directory` and `scale`: what names cost where there are very many of them.
//!
//! Invariant: both halves of a comparison make the same calls in the same order on chips of the same kind; what is
//! compared is cost per name, in flash time and in processor time.

use emulator::Chip;
use flexfs_core::{HOST_CACHE_BYTES, Ino, NewNode, ROOT_INO, kind};
use serde::Serialize;

use super::volume::{Volume, chip, format, report};
use super::{BenchError, Config, Progress, Report, Workload};
use crate::processor_time::ProcessorTime;
use torture::content::mix;

/// Entries of the one large directory, and of each of the small ones, which are as many together.
const LARGE: u64 = 100_000;
const SMALL: u64 = 1_000;

/// Directories of `scale`, files in each, and their bytes.
const DIRECTORIES: u64 = 1_000;
const FILES_EACH: u64 = 1_000;
const FILE_BYTES: usize = 200;
/// Files whose look-up with nothing cached is counted.
const COLD_LOOKUPS: u64 = 200;

/// What a name costs in a large directory against a small one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// Flash time for each name, among 1,000 and among 100,000.
    pub small_flash_us: f64,
    pub large_flash_us: f64,
    /// `large_flash_us / small_flash_us`.
    pub flash_ratio: f64,
    /// The same of processor time.
    pub cpu_ratio: f64,
}

/// `directory`: what each operation costs more in a large one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Directory {
    pub create: Growth,
    pub lookup: Growth,
    pub unlink: Growth,
}

/// `scale`: a million files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scale {
    pub files: u64,
    /// Page reads of a mount after an unmount.
    pub mount_reads: u64,
    /// Page reads of a look-up by path right after a mount.
    pub stat_reads_worst: u64,
    pub stat_reads_mean: f64,
    /// Files created per second of flash time: the last tenth against the first.
    pub create_rate: f64,
    /// The same by processor time.
    pub create_rate_cpu: f64,
}

/// Flash and processor time, seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    flash_s: f64,
    cpu_s: f64,
}

fn node(kind: u32) -> NewNode {
    NewNode { mode: kind | 0o755, uid: 0, gid: 0, rdev: 0 }
}

fn name(number: u64) -> String {
    format!("file-{number:06}")
}

/// Runs a part and says what it cost.
fn cost(
    volume: &mut Volume<Chip>,
    part: impl FnOnce(&mut Volume<Chip>) -> Result<(), BenchError>,
) -> Result<Cost, BenchError> {
    let (before_ns, cpu) = (volume.fs.chip().counters().flash_ns, ProcessorTime::now());
    part(volume)?;
    let cpu_s = cpu.elapsed().as_secs_f64();
    Ok(Cost { flash_s: (volume.fs.chip().counters().flash_ns - before_ns) as f64 / 1e9, cpu_s })
}

pub fn directory(config: &Config, progress: Progress) -> Result<Report, BenchError> {
    let config = &Config { cache_bytes: HOST_CACHE_BYTES, ..config.clone() };
    let mut costs = Vec::new();
    let mut last = None;
    for (done, each) in [(0, SMALL), (1, LARGE)] {
        let mut fresh = chip(Workload::Directory, config)?;
        format(&mut fresh, config)?;
        let mut volume = Volume::mount(fresh, config)?;
        volume.start_counting();
        costs.push(live(&mut volume, each)?);
        progress(done + 1, 2);
        volume.check()?;
        last = Some(volume);
    }
    let (Some(volume), [small, large]) = (last, costs.as_slice()) else { unreachable!("both sizes ran") };
    let growth = |at: usize| Growth {
        small_flash_us: small[at].flash_s * 1e6 / LARGE as f64,
        large_flash_us: large[at].flash_s * 1e6 / LARGE as f64,
        flash_ratio: large[at].flash_s / small[at].flash_s,
        cpu_ratio: large[at].cpu_s / small[at].cpu_s,
    };
    let directory = Directory { create: growth(0), lookup: growth(1), unlink: growth(2) };
    let figures = volume.figures();
    Ok(Report { directory: Some(directory), ..report(Workload::Directory, config, volume.fs.chip(), figures, 0) })
}

/// `LARGE` names come, are looked up and go, in directories of `each`.
fn live(volume: &mut Volume<Chip>, each: u64) -> Result<[Cost; 3], BenchError> {
    let mut parents = Vec::new();
    for dir in 0..LARGE / each {
        let made = volume.call("creating a directory", |fs, now_ns| {
            fs.create(ROOT_INO, format!("dir-{dir}").as_bytes(), node(kind::DIR), now_ns)
        })?;
        parents.push(made.ino);
    }
    let create = cost(volume, |volume| {
        each_name(volume, &parents, each, |volume, parent, name| {
            let made =
                volume.call("creating", |fs, now_ns| fs.create(parent, name.as_bytes(), node(kind::FILE), now_ns));
            made.map(|_| ())
        })
    })?;
    let lookup = cost(volume, |volume| {
        each_name(volume, &parents, each, |volume, parent, name| {
            volume.call("looking up", |fs, _| fs.lookup(parent, name.as_bytes())).map(|_| ())
        })
    })?;
    let unlink = cost(volume, |volume| {
        each_name(volume, &parents, each, |volume, parent, name| {
            volume.call("unlinking", |fs, now_ns| fs.unlink(parent, name.as_bytes(), now_ns))
        })
    })?;
    Ok([create, lookup, unlink])
}

/// Does one thing with every name of every directory.
fn each_name(
    volume: &mut Volume<Chip>,
    parents: &[Ino],
    each: u64,
    mut one: impl FnMut(&mut Volume<Chip>, Ino, &str) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    for &parent in parents {
        for number in 0..each {
            one(volume, parent, &name(number))?;
        }
    }
    volume.sync()
}

/// Bytes that tell a file from every other.
fn contents(dir: u64, file: u64) -> Vec<u8> {
    (0..FILE_BYTES as u64 / 8).flat_map(|part| mix((dir << 40) + (file << 16) + part).to_le_bytes()).collect()
}

pub fn scale(config: &Config, progress: Progress) -> Result<Report, BenchError> {
    scale_on(chip(Workload::Scale, config)?, config, progress)
}

/// Runs `scale` on a chip of the caller's.
pub fn scale_on(mut chip: Chip, config: &Config, progress: Progress) -> Result<Report, BenchError> {
    let config = &Config { cache_bytes: HOST_CACHE_BYTES, ..config.clone() };
    format(&mut chip, config)?;
    let mut volume = Volume::mount(chip, config)?;
    volume.start_counting();
    let mut tenths = [Cost::default(); 10];
    for dir in 0..DIRECTORIES {
        let spent = cost(&mut volume, |volume| fill(volume, dir))?;
        let tenth = &mut tenths[(dir * 10 / DIRECTORIES) as usize];
        (tenth.flash_s, tenth.cpu_s) = (tenth.flash_s + spent.flash_s, tenth.cpu_s + spent.cpu_s);
        progress(dir + 1, DIRECTORIES + COLD_LOOKUPS);
    }
    let host_bytes = DIRECTORIES * FILES_EACH * FILE_BYTES as u64;
    let created = report(Workload::Scale, config, volume.fs.chip(), volume.figures(), host_bytes);
    let (mut chip, _) = volume.unmount()?;
    chip.reset_counters();
    let mut volume = Volume::mount(chip, config)?;
    let mount_reads = volume.reads();
    let (mut worst, mut total) = (0, 0);
    for number in 0..COLD_LOOKUPS {
        let chip = volume.fs.into_chip();
        volume = Volume::mount(chip, config)?;
        let reads = look_up(&mut volume, mix(number) % DIRECTORIES, mix(!number) % FILES_EACH)?;
        (worst, total) = (reads.max(worst), total + reads);
        progress(DIRECTORIES + number + 1, DIRECTORIES + COLD_LOOKUPS);
    }
    let [first, .., last] = tenths;
    let scale = Scale {
        files: DIRECTORIES * FILES_EACH,
        mount_reads,
        stat_reads_worst: worst,
        stat_reads_mean: total as f64 / COLD_LOOKUPS as f64,
        create_rate: first.flash_s / last.flash_s,
        create_rate_cpu: first.cpu_s / last.cpu_s,
    };
    Ok(Report { scale: Some(scale), ..created })
}

fn fill(volume: &mut Volume<Chip>, dir: u64) -> Result<(), BenchError> {
    let parent = volume.call("creating a directory", |fs, now_ns| {
        fs.create(ROOT_INO, name(dir).as_bytes(), node(kind::DIR), now_ns)
    })?;
    for file in 0..FILES_EACH {
        let made = volume
            .call("creating", |fs, now_ns| fs.create(parent.ino, name(file).as_bytes(), node(kind::FILE), now_ns))?;
        volume.write(made.ino, 0, &contents(dir, file))?;
    }
    Ok(())
}

/// Page reads of looking a file up by its path, with the root directory loaded; its bytes are compared afterwards.
fn look_up(volume: &mut Volume<Chip>, dir: u64, file: u64) -> Result<u64, BenchError> {
    volume.call("looking at the root", |fs, _| fs.getattr(ROOT_INO))?;
    let before = volume.reads();
    let parent = volume.call("looking up", |fs, _| fs.lookup(ROOT_INO, name(dir).as_bytes()))?;
    let found = volume.call("looking up", |fs, _| fs.lookup(parent.ino, name(file).as_bytes()))?;
    let reads = volume.reads() - before;
    let mut bytes = vec![0; FILE_BYTES + 1];
    let count = volume.call("reading back", |fs, _| fs.read(found.ino, 0, &mut bytes))?;
    match bytes[..count] == contents(dir, file) {
        true => Ok(reads),
        false => Err(BenchError::Wrong(format!("file {file} of directory {dir} is not what was written"))),
    }
}
