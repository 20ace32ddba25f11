//! The real file system over the real drive, beside a page-mapped FTL on the same chip: the paper's claim that a map of
//! blocks costs no more. Invariant: both write the same pages in the same order, and everything is compared in the end.

use emulator::{Chip, Pairing, Profile};
use flexfs_core::{FormatOptions, Fs, Ino, MountOptions, NewNode, ROOT_INO, kind};
use ftl::{BlockDevice, BlockMapDrive, DriveFormat, Options, Scheme};
use nand::Nand;
use serde::{Deserialize, Serialize};

use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row};
use crate::layers::{LayerError, made_on};
use crate::play::PlayError;
use torture::content::mix;
use torture::crash::BASE_NS;

pub const CO_REAL: Experiment = Experiment {
    id: "co-real",
    title: "Co-design, §III.A and §IV: a map of blocks under the file system, beside a map of pages",
    about: "A chip of one bit a cell, 64 MiB in blocks of 64 pages, three quarters full; 20,000 durable overwrites of random \
            pages, of 8 MiB of the data and of all 48 MiB. The paper finds response times similar to page mapping's.",
    differs: "The paper simulates one trace-driven model for both. Here FlexFS writes to the drive, and the page-mapped FTL \
              with greedy cleaning takes the same writes as sectors.",
    jobs,
    finish,
};

const CHIP_BYTES: u64 = 64 << 20;
const PAGES_PER_BLOCK: u32 = 64;
const PAGE_BYTES: usize = 4096;
const FILE_PAGES: u64 = 256;
const FILES: u64 = 48;
const WRITES: u64 = 20_000;
/// Programs and flash time of the file system, against those of the page-mapped FTL.
const MOST: f64 = 1.10;

/// Where overwrites go: to so many of the files, from the first on.
const SPANS: [(&str, u64); 2] = [("8mib", 8), ("48mib", FILES)];

/// What a job gives.
#[derive(Serialize, Deserialize)]
struct OverwriteCosts {
    programs: u64,
    flash_s: f64,
    erases: u64,
    metadata_programs: u64,
    /// Commands to the drive, or requests to the FTL.
    commands: u64,
    map_bytes: u64,
}

/// The paper's chip of eight channels, with one bit a cell.
pub(super) fn one_bit_profile() -> Result<Profile, LayerError> {
    let mut profile = Profile::builtin("codesign-mlc8")?;
    profile.geometry.bits_per_cell = 1;
    profile.programming.pairing = Pairing::None;
    let (timing, energy) = (&mut profile.timing, &mut profile.energy);
    timing.native = timing.slc.clone();
    energy.native = energy.slc.clone();
    Ok(profile)
}

pub(super) fn profile() -> Result<Profile, LayerError> {
    let mut profile = one_bit_profile()?;
    (profile.geometry.channels, profile.geometry.pages_per_block) = (1, PAGES_PER_BLOCK);
    Ok(profile.with_capacity(CHIP_BYTES)?)
}

/// The page that a write goes to, and the seed of its bytes.
fn write_of(number: u64, files: u64) -> (u64, u64) {
    (mix(number ^ 0x5eed) % (files * FILE_PAGES), FILES * FILE_PAGES + number)
}

pub(super) fn bytes_of(seed: u64) -> Vec<u8> {
    (0..PAGE_BYTES as u64 / 8).flat_map(|word| mix(seed << 16 | word).to_le_bytes()).collect()
}

fn jobs() -> Vec<Job> {
    let spans = SPANS.into_iter();
    spans
        .flat_map(|(name, files)| {
            let file_system = Job::new(format!("co-real.flexfs-{name}"), move || file_system(files));
            [file_system, Job::new(format!("co-real.page-{name}"), move || page_mapped(files))]
        })
        .collect()
}

fn wrong(what: &str, page: u64) -> ExperimentError {
    ExperimentError::Never(format!("{what}: page {page} holds other bytes than were written"))
}

/// The seeds of all pages, after the overwrites.
fn expected(files: u64) -> Vec<u64> {
    let mut seeds: Vec<u64> = (0..FILES * FILE_PAGES).collect();
    for number in 0..WRITES {
        let (page, seed) = write_of(number, files);
        seeds[page as usize] = seed;
    }
    seeds
}

pub(super) fn told<T>(doing: &'static str, result: flexfs_core::Result<T>) -> Result<T, ExperimentError> {
    result.map_err(|source| PlayError::Fs { doing, source }.into())
}

pub(super) fn drive_error(source: ftl::Error) -> ExperimentError {
    LayerError::Layer { doing: "using the drive", source }.into()
}

fn file_system(files: u64) -> Result<OverwriteCosts, ExperimentError> {
    let chip = Chip::new(&profile()?, 1).map_err(LayerError::Chip)?;
    let format = DriveFormat { number: 1, blank: true };
    let mut drive = BlockMapDrive::create(chip, &format).map_err(|(_, source)| drive_error(source))?;
    let options = FormatOptions {
        volume_id: [1; 16],
        label: "co".into(),
        now_ns: BASE_NS,
        blank: true,
        ..FormatOptions::default()
    };
    told("formatting", Fs::format(&mut drive, &options))?;
    let mut fs = mounted(drive)?;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let mut inodes: Vec<Ino> = Vec::new();
    for file in 0..FILES {
        let ino = told("creating", fs.create(ROOT_INO, format!("f{file}").as_bytes(), node, BASE_NS))?.ino;
        for page in 0..FILE_PAGES {
            told("filling", fs.write(ino, page * PAGE_BYTES as u64, &bytes_of(file * FILE_PAGES + page), BASE_NS))?;
        }
        told("filling", fs.sync())?;
        inodes.push(ino);
    }
    fs.chip_mut().chip_mut().reset_counters();
    let before = *fs.chip().counts();
    for number in 0..WRITES {
        let (page, seed) = write_of(number, files);
        let now_ns = fs.chip().chip().now_ns() as i64;
        fs.request(now_ns);
        let ino = inodes[(page / FILE_PAGES) as usize];
        told("overwriting", fs.write(ino, page % FILE_PAGES * PAGE_BYTES as u64, &bytes_of(seed), BASE_NS + now_ns))?;
        told("syncing", fs.sync())?;
    }
    let (counters, after) = (*fs.chip().chip().counters(), *fs.chip().counts());
    let costs = OverwriteCosts {
        programs: counters.programs.total(),
        flash_s: counters.flash_ns as f64 / 1e9,
        erases: counters.erases.total(),
        metadata_programs: counters.programs.cause(nand::Cause::Metadata),
        commands: after.reads + after.programs + after.trims - before.reads - before.programs - before.trims,
        map_bytes: fs.chip().ram_bytes() as u64,
    };
    let (drive, unmounted) = fs.unmount(BASE_NS);
    told("unmounting", unmounted)?;
    // The map is found again from the chip alone.
    let mut fs = mounted(BlockMapDrive::start(drive.into_chip()).map_err(|(_, source)| drive_error(source))?)?;
    let mut found = vec![0; PAGE_BYTES];
    for (page, seed) in (0..).zip(expected(files)) {
        let ino = inodes[(page / FILE_PAGES) as usize];
        told("reading back", fs.read(ino, page % FILE_PAGES * PAGE_BYTES as u64, &mut found))?;
        if found != bytes_of(seed) {
            return Err(wrong("the file system", page));
        }
    }
    Ok(costs)
}

pub(super) fn mounted<N: Nand>(chip: N) -> Result<Fs<N>, ExperimentError> {
    let options = MountOptions { now_ns: BASE_NS, ..MountOptions::default() };
    Fs::mount(chip, options).map_err(|(_, source)| PlayError::Fs { doing: "mounting", source }.into())
}

fn page_mapped(files: u64) -> Result<OverwriteCosts, ExperimentError> {
    let chip = Chip::new(&profile()?, 1).map_err(LayerError::Chip)?;
    let mut device = made_on(chip, Scheme::PageGreedy, None, Options::default())?;
    let ftl = |source| ExperimentError::from(LayerError::Layer { doing: "using the FTL", source });
    for page in 0..FILES * FILE_PAGES {
        device.write(page, &bytes_of(page)).map_err(ftl)?;
    }
    device.chip_mut().reset_counters();
    for number in 0..WRITES {
        let (page, seed) = write_of(number, files);
        device.write(page, &bytes_of(seed)).map_err(ftl)?;
    }
    let counters = *device.chip().counters();
    let mut found = vec![0; PAGE_BYTES];
    for (page, seed) in (0..).zip(expected(files)) {
        device.read(page, &mut found).map_err(ftl)?;
        if found != bytes_of(seed) {
            return Err(wrong("the page-mapped FTL", page));
        }
    }
    Ok(OverwriteCosts {
        programs: counters.programs.total(),
        flash_s: counters.flash_ns as f64 / 1e9,
        erases: counters.erases.total(),
        metadata_programs: counters.programs.cause(nand::Cause::Metadata),
        commands: WRITES,
        map_bytes: device.ram_bytes() as u64,
    })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut rows = Vec::new();
    let parameters = Parameters::default()
        .with("chip", "codesign-mlc8 with one bit a cell and one channel, 64 MiB, blocks of 64 pages");
    for (name, files) in SPANS {
        let ours = results.get::<OverwriteCosts>(&format!("co-real.flexfs-{name}"))?;
        let theirs = results.get::<OverwriteCosts>(&format!("co-real.page-{name}"))?;
        let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
        let shown =
            |what: &str, figure: f64, unit| Row::shown(format!("{what}, {files} MiB"), figure, unit, &parameters);
        let held = |row: Row| if files == FILES { row } else { row.bar(Bar::AtMost(MOST)) };
        rows.push(held(shown(
            "programs over those of page mapping",
            ours.programs as f64 / theirs.programs as f64,
            "",
        )));
        rows.push(held(shown("flash time over that of page mapping", ours.flash_s / theirs.flash_s, "")));
        for (of, costs) in [("FlexFS on the drive", &ours), ("page mapping", &theirs)] {
            rows.push(shown(&format!("{of}: programs"), costs.programs as f64, ""));
            rows.push(shown(&format!("{of}: of them of metadata"), costs.metadata_programs as f64, ""));
            rows.push(shown(&format!("{of}: erases"), costs.erases as f64, ""));
            rows.push(shown(&format!("{of}: flash time"), costs.flash_s, "s"));
            rows.push(shown(&format!("{of}: commands an overwrite"), costs.commands as f64 / WRITES as f64, ""));
            rows.push(shown(&format!("{of}: memory of the map"), costs.map_bytes as f64, "bytes"));
        }
    }
    Ok(Outcome { rows, ..Outcome::default() })
}
