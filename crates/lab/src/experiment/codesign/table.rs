//! Table I of the co-design paper, and the sizes of both maps. Invariant: a map of blocks has an entry a block, a map of
//! pages an entry a page.

use emulator::{Chip, Profile};
use flexfs_core::MountOptions;
use ftl::{BlockMapDrive, DriveFormat};
use nand::CellMode;
use serde::{Deserialize, Serialize};

use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Parameters, Results, Row};
use crate::layers::LayerError;

pub const CO_TABLE: Experiment = Experiment {
    id: "co-table",
    title: "Co-design, Table I and §III.A: the drive, and the size of its map",
    about: "The characteristics of the simulated drive, and the entries of a map of blocks beside those of a map of pages: \
            with 256 pages in a block 1/256 of them.",
    differs: "Nothing in the table. The bytes are those of the whole state that the drive keeps in memory: the map, and the use \
              and the erases of each physical block.",
    jobs,
    finish,
};

const DRIVE: &str = "codesign-mlc8";
const JOB: &str = "co-table.drive";
/// Bytes of a drive's state for a block, and beside that.
const BLOCK_BYTES: f64 = 12.0;
const FIXED_BYTES: f64 = 8192.0;

/// What the job gives.
#[derive(Serialize, Deserialize)]
struct DriveTableI {
    /// A byte on the bus, a read, a program and an erase, ns.
    bus_ns: f64,
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    page_bytes: u32,
    pages_per_block: u32,
    /// Of drives of these sizes, GiB: blocks, and bytes of the state in memory.
    memory: Vec<(u64, u32, u64)>,
}

fn jobs() -> Vec<Job> {
    vec![Job::new(JOB, look)]
}

fn look() -> Result<DriveTableI, ExperimentError> {
    let profile = Profile::builtin(DRIVE).map_err(LayerError::Profile)?;
    let native = profile.mode_timing(CellMode::Native);
    let first = |times: &[u64]| times.first().copied().unwrap_or_default();
    let memory = |gib: u64| {
        let sized = profile.with_capacity(gib << 30).map_err(LayerError::Profile)?;
        let chip = Chip::without_data(&sized, 1).map_err(LayerError::Chip)?;
        let drive = BlockMapDrive::create(chip, &DriveFormat { number: 1, blank: true });
        let drive = drive.map_err(|(_, source)| LayerError::Layer { doing: "making the drive", source })?;
        Ok::<_, ExperimentError>((gib, sized.geometry.blocks, drive.ram_bytes() as u64))
    };
    Ok(DriveTableI {
        bus_ns: profile.timing.bus_ps_per_byte as f64 / 1000.0,
        read_ns: first(&native.read_ns),
        program_ns: first(&native.program_ns),
        erase_ns: native.erase_ns,
        page_bytes: profile.geometry.page_bytes,
        pages_per_block: profile.geometry.pages_per_block,
        memory: [1, 8].into_iter().map(memory).collect::<Result<_, _>>()?,
    })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let Some(found) = results.get::<DriveTableI>(JOB)? else { return Ok(Outcome::default()) };
    let parameters = Parameters::default().with("chip", DRIVE);
    let exact = |name: &str, ours: f64, unit, paper: f64| {
        Row::shown(name, ours, unit, &parameters).paper(paper).bar(Bar::Exactly(paper))
    };
    let mut rows = vec![
        exact("serial access", found.bus_ns, "ns", 25.0),
        exact("read", found.read_ns as f64 / 1e3, "µs", 60.0),
        exact("program", found.program_ns as f64 / 1e3, "µs", 800.0),
        exact("erase", found.erase_ns as f64 / 1e6, "ms", 1.5),
        exact("page", f64::from(found.page_bytes), "bytes", 4096.0),
        exact("block", f64::from(found.pages_per_block), "pages", 256.0),
    ];
    for gib in [1_u64, 8, 64, 1024] {
        let pages = (gib << 30) / u64::from(found.page_bytes);
        let blocks = pages / u64::from(found.pages_per_block);
        let name = format!("entries of a map of pages for one of blocks, {gib} GiB");
        rows.push(exact(&name, pages as f64 / blocks as f64, "", 256.0));
    }
    for (gib, blocks, bytes) in found.memory {
        let most = BLOCK_BYTES * f64::from(blocks) + FIXED_BYTES;
        let row = Row::shown(format!("memory of the drive, {gib} GiB"), bytes as f64, "bytes", &parameters);
        rows.push(row.bar(Bar::AtMost(most)));
        let pages = f64::from(blocks) * f64::from(found.pages_per_block);
        let host =
            Row::shown(format!("FTLPA in the file system, {gib} GiB"), 8.0 * f64::from(blocks), "bytes", &parameters);
        let cache = MountOptions::default().cache_bytes as f64;
        rows.push(Row::shown(
            format!("cache of the index (STLPA) in the file system, {gib} GiB"),
            cache,
            "bytes",
            &parameters,
        ));
        rows.push(
            host.paper(pages * 2.0 / 8.0).because("the paper keeps 2 bits a page, the block table 8 bytes a block"),
        );
    }
    Ok(Outcome { rows, ..Outcome::default() })
}
