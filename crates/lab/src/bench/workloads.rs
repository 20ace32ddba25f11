//! `seq`, `small`, `over` and `gc`. Invariant: counting starts after the preparation and ends with the unmount; what is
//! read back afterwards is read on a copy and counts nowhere.

use flexfs_core::{Ino, Policy, ROOT_INO};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bench_chip::BenchChip;
use super::volume::{Figures, PIECE_BYTES, Pool, Volume, chip, format, report};
use super::{BenchError, Config, Progress, Report, Workload};
use torture::crash::Emulated;

/// Bytes of a file of `seq` and `gc`.
pub const FILE_BYTES: u64 = PIECE_BYTES as u64;

/// How full `seq` makes the chip, in percent of what the file system offers.
const SEQ_FULL_PERCENT: u64 = 90;

const SMALL_FILES: u64 = 2_000;
const SMALL_BYTES: usize = 4 << 10;

const PAGE_BYTES: usize = 4 << 10;
const BIG_FILE: &str = "big";
const BIG_BYTES: u64 = 8 << 20;
const BIG_PAGES: usize = BIG_BYTES as usize / PAGE_BYTES;

const OVER_WRITES: u64 = 2_000;
const GC_WRITES: u64 = 20_000;
const GC_FILES: u64 = 40;

/// Pieces of the pool from this number on are for overwrites.
const OVERWRITE_PIECES: u64 = 1 << 32;

/// 1 MiB files until 90 % full.
pub fn seq<N: BenchChip>(config: &Config, progress: Progress) -> Result<Report, BenchError> {
    let pool = Pool::new(config.seed);
    let mut chip: N = fresh(Workload::Seq, config)?;
    chip.emulated_mut().reset_counters();
    let (chip, figures, files) = run_seq(chip, config, &pool, progress)?;
    verify_files(chip.copy()?, config, &pool, files)?;
    Ok(report(Workload::Seq, config, &chip, figures, files * FILE_BYTES))
}

/// The body of `seq`, for `mount` too: returns the unmounted chip and the number of files.
pub fn run_seq<N: Emulated>(
    chip: N,
    config: &Config,
    pool: &Pool,
    progress: Progress,
) -> Result<(N, Figures, u64), BenchError> {
    let mut volume = Volume::mount(chip, config)?;
    let capacity = volume.call("asking for the capacity", |fs, _| fs.statfs())?.capacity_bytes;
    let files = capacity * SEQ_FULL_PERCENT / 100 / FILE_BYTES;
    for number in 0..files {
        volume.store(&file_name(number), pool.piece(number, PIECE_BYTES))?;
        progress(number + 1, files);
    }
    let (chip, figures) = volume.unmount()?;
    Ok((chip, figures, files))
}

/// 2,000 small files.
pub fn small<N: BenchChip>(config: &Config, progress: Progress) -> Result<Report, BenchError> {
    let pool = Pool::new(config.seed);
    let mut chip: N = fresh(Workload::Small, config)?;
    chip.emulated_mut().reset_counters();
    let mut volume = Volume::mount(chip, config)?;
    for number in 0..SMALL_FILES {
        volume.store(&file_name(number), pool.piece(number, SMALL_BYTES))?;
        progress(number + 1, SMALL_FILES);
    }
    let (chip, figures) = volume.unmount()?;
    let mut copy = Volume::mount(chip.copy()?, config)?;
    let mut buf = Vec::new();
    for number in 0..SMALL_FILES {
        copy.expect(&file_name(number), pool.piece(number, SMALL_BYTES), &mut buf)?;
    }
    copy.check()?;
    Ok(report(Workload::Small, config, &chip, figures, SMALL_FILES * SMALL_BYTES as u64))
}

/// 2,000 synced random overwrites.
pub fn over<N: BenchChip>(config: &Config, progress: Progress) -> Result<Report, BenchError> {
    let pool = Pool::new(config.seed);
    let mut volume = Volume::mount(fresh::<N>(Workload::Over, config)?, config)?;
    volume.store(BIG_FILE, &big_contents(&pool))?;
    overwrite(Workload::Over, volume, config, &pool, OVER_WRITES, progress)
}

/// 20,000 synced random overwrites on a chip that is three quarters full.
pub fn gc<N: BenchChip>(config: &Config, progress: Progress) -> Result<Report, BenchError> {
    let pool = Pool::new(config.seed);
    let filling = Config { policy: Policy::NATIVE_ONLY, idle_ns: None, ..config.clone() };
    let mut volume = Volume::mount(fresh::<N>(Workload::Gc, config)?, &filling)?;
    for number in 0..GC_FILES {
        volume.store(&file_name(number), pool.piece(number, PIECE_BYTES))?;
    }
    volume.store(BIG_FILE, &big_contents(&pool))?;
    let (mut chip, _) = volume.unmount()?;
    chip.emulated_mut().reset_counters();
    let volume = Volume::mount(chip, config)?;
    overwrite(Workload::Gc, volume, config, &pool, GC_WRITES, progress)
}

/// Overwrites random pages of the big file on a volume that holds it; counts only that.
fn overwrite<N: BenchChip>(
    workload: Workload,
    mut volume: Volume<N>,
    config: &Config,
    pool: &Pool,
    writes: u64,
    progress: Progress,
) -> Result<Report, BenchError> {
    let ino: Ino = volume.call("looking up a file", |fs, _| fs.lookup(ROOT_INO, BIG_FILE.as_bytes()))?.ino;
    let mut expected = big_contents(pool);
    let mut dice = ChaCha8Rng::seed_from_u64(config.seed);
    volume.start_counting();
    for number in 0..writes {
        let at = dice.random_range(0..BIG_PAGES) * PAGE_BYTES;
        let data = pool.piece(OVERWRITE_PIECES + number, PAGE_BYTES);
        volume.write(ino, at as u64, data)?;
        volume.sync()?;
        volume.end_operation()?;
        expected[at..at + PAGE_BYTES].copy_from_slice(data);
        progress(number + 1, writes);
    }
    let (chip, figures) = volume.unmount()?;
    let mut copy = Volume::mount(chip.copy()?, config)?;
    copy.expect(BIG_FILE, &expected, &mut Vec::new())?;
    if workload == Workload::Gc {
        verify_on(&mut copy, pool, GC_FILES)?;
    }
    copy.check()?;
    let dies = copy.call("looking at the dies", |fs, _| fs.info())?.dies;
    let free_blocks = if dies.len() > 1 { dies.iter().map(|die| die.free_blocks).collect() } else { Vec::new() };
    Ok(Report { free_blocks, ..report(workload, config, &chip, figures, writes * PAGE_BYTES as u64) })
}

/// Compares the numbered files on a chip and lets the volume check itself.
pub fn verify_files<N: Emulated>(chip: N, config: &Config, pool: &Pool, files: u64) -> Result<(), BenchError> {
    let mut volume = Volume::mount(chip, config)?;
    verify_on(&mut volume, pool, files)?;
    volume.check()
}

fn verify_on<N: Emulated>(volume: &mut Volume<N>, pool: &Pool, files: u64) -> Result<(), BenchError> {
    let mut buf = Vec::new();
    for number in 0..files {
        volume.expect(&file_name(number), pool.piece(number, PIECE_BYTES), &mut buf)?;
    }
    Ok(())
}

/// A formatted chip.
pub fn fresh<N: BenchChip>(workload: Workload, config: &Config) -> Result<N, BenchError> {
    let mut chip = N::of(chip(workload, config)?, config.seed)?;
    format(&mut chip, config)?;
    Ok(chip)
}

pub fn file_name(number: u64) -> String {
    format!("file{number:06}")
}

fn big_contents(pool: &Pool) -> Vec<u8> {
    let pieces = BIG_BYTES / FILE_BYTES;
    (0..pieces).flat_map(|piece| pool.piece(OVERWRITE_PIECES - 1 - piece, PIECE_BYTES)).copied().collect()
}
