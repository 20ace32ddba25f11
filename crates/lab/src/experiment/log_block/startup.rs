//! What each scheme reads until it can serve the first request. Invariant: the reads are counted by the chip, and those of data
//! blocks by themselves, from an opening of a volume that was in use.

use ftl::{BlockDevice, BlockUse, Device, Scheme};
use nand::{CellMode, Nand};
use serde::{Deserialize, Serialize};

use super::chips::{SIZES, Size};
use crate::experiment::{Bar, Experiment, ExperimentError, Job, Outcome, Results, Row, Table};
use crate::layers::{LayerError, options};

pub const FTL_STARTUP: Experiment = Experiment {
    id: "ftl-startup",
    title: "Log-block FTL, §III.C: pages read at a start-up",
    about: "A volume in use is opened, and one sector of it read. By the text the log-block scheme reads its map blocks and \
            its log blocks alone; without map blocks, and where pages are mapped, the whole chip has to be scanned for tags.",
    differs: "The paper gives no figures. The log-block scheme also reads the anchors, and the first page of each free block, \
              which may have become a log block since the map was written. Without map blocks, the first and the last page of \
              a block tell most of it; replacement blocks and mapped pages are read one by one.",
    jobs,
    finish,
};

/// Pages that are read once more: the newest of the map and of the log blocks, the fragment that the host's sector needs, and
/// that sector; beside these the first page of each map block.
const AGAIN: u64 = 4;

/// What a job gives: page reads.
#[derive(Serialize, Deserialize)]
struct Reads {
    /// Until the first read of a host is served.
    all: u64,
    /// Of data blocks, before that read.
    of_data_blocks: u64,
    /// All pages of the anchors, the map blocks and the log blocks in use; one of each free block; and those read again.
    bound: u64,
}

fn job_name(scheme: Scheme, size: &Size) -> String {
    format!("ftl-startup.{scheme}-{}", size.job)
}

fn jobs() -> Vec<Job> {
    let all = SIZES.iter().flat_map(|size| Scheme::ALL.map(|scheme| (scheme, size)));
    all.map(|(scheme, size)| Job::new(job_name(scheme, size), move || start(scheme, size))).collect()
}

fn refused(source: ftl::Error) -> LayerError {
    LayerError::Layer { doing: "starting up", source }
}

fn start(scheme: Scheme, size: &Size) -> Result<Reads, ExperimentError> {
    let mut device = size.in_use(scheme)?;
    let uses = device.uses().map_err(refused)?;
    let chip = device.into_chip();
    let count = |wanted: fn(&BlockUse) -> bool| uses.iter().filter(|found| wanted(found)).count() as u64;
    let whole = count(|found| matches!(found, BlockUse::Anchor | BlockUse::Map | BlockUse::Log(_)));
    let pages = u64::from(chip.layout(CellMode::Slc).pages());
    let again = AGAIN + count(|found| *found == BlockUse::Map);
    let bound = whole * pages + count(|found| *found == BlockUse::Free) + again;
    let data_blocks: Vec<u32> =
        (0..).zip(&uses).filter(|(_, found)| matches!(found, BlockUse::Data(_))).map(|(block, _)| block).collect();
    let of_data =
        |chip: &emulator::Chip| data_blocks.iter().map(|&block| u64::from(chip.read_count(block))).sum::<u64>();
    let before = of_data(&chip);
    let mut device = Device::open(chip, options()).map_err(refused)?;
    let of_data_blocks = of_data(device.chip()) - before;
    let mut page = vec![0; device.sector_bytes()];
    device.read(0, &mut page).map_err(refused)?;
    Ok(Reads { all: device.counts().all_reads(), of_data_blocks, bound })
}

fn finish(results: &Results) -> Result<Outcome, ExperimentError> {
    let mut rows = Vec::new();
    let mut table = Vec::new();
    for size in &SIZES {
        for scheme in Scheme::ALL {
            let Some(Reads { all, of_data_blocks, bound }) = results.get(&job_name(scheme, size))? else { continue };
            let parameters = size.parameters(scheme);
            let name = format!("{} ({scheme}), {}", scheme.letters(), size.name);
            let row = Row::shown(name.clone(), all as f64, "reads", &parameters);
            if scheme == Scheme::LogBlock {
                rows.push(row.bar(Bar::AtMost(bound as f64)));
                let row = Row::shown(format!("{name}: of data blocks"), of_data_blocks as f64, "reads", &parameters);
                rows.push(row.bar(Bar::Exactly(0.0)));
            } else {
                rows.push(row);
            }
            let numbers = [all, of_data_blocks].map(|reads| reads.to_string());
            table.push([scheme.letters().into(), size.name.into()].into_iter().chain(numbers).collect());
        }
    }
    let header = vec!["scheme", "chip", "reads", "reads_of_data_blocks"];
    let table = Table { name: "reads".into(), header, rows: table };
    Ok(Outcome { tables: if rows.is_empty() { Vec::new() } else { vec![table] }, rows, ..Outcome::default() })
}
