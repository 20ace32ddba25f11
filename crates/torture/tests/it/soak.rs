//! A busy volume with background work in between, for a long time from cut to cut: synced overwrites of a large file
//! beside many small ones, on chips small enough that blocks are used again and again while a checkpoint is written.
//!
//! Invariant: after each cut the volume mounts for writing, `check` finds nothing, and every synced byte is there.

use std::ops::{Range, RangeInclusive};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use emulator::{Chip, FaultConfig, Profile};
use flexfs_core::{Error, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, kind};
use torture::content::{Fill, Texture, mix};
use torture::crash::{Rig, VolumeOver};

/// Seeds and cuts in each, unless the environment asks for more: `FLEXFS_SOAK_SEEDS=312 FLEXFS_SOAK_CUTS=70`.
const SEEDS: u64 = 12;
const CUTS: u64 = 3;

/// Bytes of an overwrite.
const OVERWRITE_BYTES: usize = 4096;
/// Background calls after each overwrite, and the time before each, ns.
const BACKGROUND_CALLS: usize = 2;
const BETWEEN_NS: i64 = 5_000_000;
/// Flash operations after the last whole overwrite until the power fails, at most.
const CUT_WITHIN: u64 = 24;

/// A chip, what stands on it, and how far apart its cuts are.
struct Soak {
    rig: Rig,
    /// How many small files there are, of how many bytes.
    small: (u64, usize),
    large_bytes: u64,
    /// Overwrites before a cut, small numbers as likely as large ones of as many digits.
    overwrites: RangeInclusive<u64>,
}

impl Soak {
    /// Seed by seed another of all combinations of chip and cache.
    fn seeded(seed: u64) -> Self {
        let page_bytes = if seed.is_multiple_of(2) { 2048 } else { 4096 };
        let mode = [None, Some(Policy::BASELINE), Some(Policy::NATIVE_ONLY)][(seed / 2 % 3) as usize];
        let cache_bytes = [0, 64 << 10, 1 << 20][(seed / 6 % 3) as usize];
        let blocks = 128 << (mix(seed) % 2);
        let rig = rig(mode, page_bytes, blocks, cache_bytes);
        let large_bytes = rig.profile.capacity_bytes() * (60 + mix(seed ^ 1) % 16) / 100;
        Self { rig, small: (50 + mix(seed ^ 2) % 400, 400), large_bytes, overwrites: 300..=3_000 }
    }
}

/// An MLC chip mounted in a mode, or with none an SLC chip.
fn rig(policy: Option<Policy>, page_bytes: u32, blocks: u32, cache_bytes: usize) -> Rig {
    let mut profile = Profile::builtin("flexfs-mlc").unwrap();
    let geometry = &mut profile.geometry;
    (geometry.page_bytes, geometry.blocks, geometry.pages_per_block) = (page_bytes, blocks, 64);
    if policy.is_none() {
        geometry.bits_per_cell = 1;
        (profile.programming, profile.timing.native) =
            (Profile::builtin("k9f5608u0m").unwrap().programming, profile.timing.slc.clone());
    }
    let options = MountOptions { policy: policy.unwrap_or_default(), cache_bytes, ..MountOptions::default() };
    Rig { profile, faults: FaultConfig::power_cuts(0), options, over: VolumeOver::Chip }
}

/// A volume and what was written to it.
struct Life {
    rig: Rig,
    seed: u64,
    now_ns: i64,
    small: Vec<Ino>,
    large: Ino,
    chunk_bytes: usize,
    /// How often each chunk of the large file was written.
    versions: Vec<u64>,
    /// The chunks being overwritten, until the sync returns.
    unsynced: Range<usize>,
    tally: Tally,
}

/// How many overwrites there were, and for how many of them there was no space.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    overwrites: u64,
    refused: u64,
}

fn contents(seed: u64, chunk: u64, version: u64, len: usize) -> Vec<u8> {
    Fill { seed: mix(seed ^ mix(chunk ^ mix(version))), start: 0, texture: Texture::Noise }.bytes(len)
}

impl Life {
    /// A volume with many small files and a large one, synced.
    fn begin(soak: &Soak, seed: u64) -> (Self, Fs<Chip>) {
        let mut fs = soak.rig.format(soak.rig.chip(seed).unwrap(), seed).unwrap().fs;
        let chunk_bytes = fs.statfs().unwrap().chunk_bytes as usize;
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        let (mut small, (files, bytes)) = (Vec::new(), soak.small);
        for number in 0..files {
            let ino = fs.create(ROOT_INO, format!("small{number}").as_bytes(), node, 0).unwrap().ino;
            fs.write(ino, 0, &contents(seed, ino, 0, bytes), 0).unwrap();
            small.push(ino);
        }
        let large = fs.create(ROOT_INO, b"large", node, 0).unwrap().ino;
        let versions = vec![0; soak.large_bytes as usize / OVERWRITE_BYTES * (OVERWRITE_BYTES / chunk_bytes)];
        for chunk in 0..versions.len() as u64 {
            let bytes = contents(seed, chunk, 0, chunk_bytes);
            fs.write(large, chunk * chunk_bytes as u64, &bytes, 0).unwrap();
        }
        fs.sync().unwrap();
        let rig = soak.rig.clone();
        (
            Self { rig, seed, now_ns: 0, small, large, chunk_bytes, versions, unsynced: 0..0, tally: Tally::default() },
            fs,
        )
    }

    /// A synced overwrite, and the background work after it.
    fn overwrite(&mut self, fs: &mut Fs<Chip>) -> Result<(), Error> {
        self.tally.overwrites += 1;
        let chunks = OVERWRITE_BYTES / self.chunk_bytes;
        let places = (self.versions.len() / chunks) as u64;
        let first = (mix(self.seed ^ self.tally.overwrites) % places) as usize * chunks;
        self.unsynced = first..first + chunks;
        let parts = self.unsynced.clone().map(|chunk| self.contents(chunk, self.versions[chunk] + 1));
        let bytes: Vec<u8> = parts.flatten().collect();
        let written = match fs.write(self.large, (first * self.chunk_bytes) as u64, &bytes, self.now_ns) {
            Err(Error::NoSpace) => {
                self.tally.refused += 1;
                0
            }
            written => written?,
        };
        fs.sync()?;
        self.versions[first..first + written / self.chunk_bytes].iter_mut().for_each(|version| *version += 1);
        self.unsynced = 0..0;
        for _ in 0..BACKGROUND_CALLS {
            self.now_ns += BETWEEN_NS;
            fs.background(self.now_ns, self.now_ns)?;
        }
        Ok(())
    }

    /// Overwrites so many times, and goes on until the power fails.
    fn until_cut(&mut self, fs: &mut Fs<Chip>, overwrites: u64) -> Result<(), String> {
        for _ in 0..overwrites {
            self.overwrite(fs).map_err(|error| format!("overwrite {}: {error}", self.tally.overwrites))?;
        }
        fs.chip_mut().faults_mut().cut_power_at(1 + mix(self.seed ^ self.tally.overwrites) % CUT_WITHIN);
        while fs.chip().is_powered() {
            match self.overwrite(fs) {
                Err(error) if fs.chip().is_powered() => {
                    return Err(format!("overwrite {}: {error}", self.tally.overwrites));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn mount(&self, mut chip: Chip) -> Result<Fs<Chip>, String> {
        chip.power_on();
        let options = MountOptions { now_ns: self.now_ns, ..self.rig.options.clone() };
        Fs::mount(chip, options).map_err(|(_, error)| format!("mount: {error}"))
    }

    /// What is wrong with a volume that was mounted after a cut.
    fn judge(&mut self, fs: &mut Fs<Chip>, small_bytes: usize) -> Result<(), String> {
        if let Some(ended) = fs.info().map_err(|error| format!("info: {error}"))?.ended {
            return Err(format!("mounted read-only: {ended:?}"));
        }
        let report = fs.check().map_err(|error| format!("check: {error}"))?;
        if !report.findings.is_empty() {
            return Err(format!("check: {}", report.findings.join("; ")));
        }
        let mut found = vec![0; self.chunk_bytes];
        for &ino in &self.small {
            let count = fs.read(ino, 0, &mut found).map_err(|error| format!("inode {ino}: {error}"))?;
            if found[..count] != contents(self.seed, ino, 0, small_bytes) {
                return Err(format!("inode {ino} differs"));
            }
        }
        let unsynced = std::mem::take(&mut self.unsynced);
        for chunk in 0..self.versions.len() {
            let read = fs.read(self.large, (chunk * self.chunk_bytes) as u64, &mut found);
            read.map_err(|error| format!("chunk {chunk}: {error}"))?;
            let version = self.versions[chunk];
            if found == self.contents(chunk, version) {
                continue;
            }
            if !unsynced.contains(&chunk) || found != self.contents(chunk, version + 1) {
                return Err(format!("chunk {chunk} differs"));
            }
            self.versions[chunk] += 1;
        }
        Ok(())
    }

    fn contents(&self, chunk: usize, version: u64) -> Vec<u8> {
        contents(self.seed, chunk as u64, version, self.chunk_bytes)
    }
}

/// Soaks one volume.
fn soak(soak: &Soak, seed: u64, cuts: u64) -> Result<Tally, String> {
    let (mut life, mut fs) = Life::begin(soak, seed);
    for cut in 0..cuts {
        let (least, most) = (*soak.overwrites.start() as f64, *soak.overwrites.end() as f64);
        let drawn = (mix(seed ^ mix(cut)) % 1_000) as f64 / 1_000.0;
        let overwrites = (least * (most / least).powf(drawn)) as u64;
        let cut_short = |error| format!("cut {cut}: {error}");
        life.until_cut(&mut fs, overwrites).map_err(cut_short)?;
        fs = life.mount(fs.into_chip()).map_err(cut_short)?;
        life.judge(&mut fs, soak.small.1).map_err(cut_short)?;
    }
    Ok(life.tally)
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

#[test]
fn overwrites_with_background_work_between_them_survive_cuts_far_apart() {
    let (seeds, cuts) = (number("FLEXFS_SOAK_SEEDS", SEEDS), number("FLEXFS_SOAK_CUTS", CUTS));
    let (next, outcomes) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mine = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                for seed in mine.take_while(|&seed| seed < seeds) {
                    let outcome = soak(&Soak::seeded(seed), seed, cuts);
                    outcomes.lock().unwrap().push(outcome.map_err(|error| format!("seed {seed}: {error}")));
                }
            });
        }
    });
    let (mut overwrites, mut refused, mut failed) = (0, 0, Vec::new());
    for outcome in outcomes.into_inner().unwrap() {
        match outcome {
            Ok(tally) => (overwrites, refused) = (overwrites + tally.overwrites, refused + tally.refused),
            Err(error) => failed.push(error),
        }
    }
    println!("{seeds} seeds, {} cuts, {overwrites} overwrites, {refused} refused", seeds * cuts);
    assert!(failed.is_empty(), "{failed:#?}");
}

/// A block of the log that was emptied while a checkpoint was being written, and that its index pages went to, was listed
/// with what it had held as well: more than a block holds, so that the next mount refused the volume.
#[test]
fn a_block_that_turns_from_log_to_index_during_a_checkpoint_is_listed_with_what_it_holds() {
    for (overwrites, cuts, seed) in [(701, 10, 6), (1_501, 12, 4), (3_001, 4, 2)] {
        let rig = rig(None, 2048, 512, 1 << 20);
        let between = overwrites..=overwrites;
        let volume = Soak { rig, small: (1_000, 1_000), large_bytes: 44 << 20, overwrites: between };
        soak(&volume, seed, cuts).unwrap_or_else(|error| panic!("cut after every {overwrites} overwrites: {error}"));
    }
}
