//! The file that requests are written down in, and what it says of the card.
//!
//! Invariant: no file that is there is written over.

use std::fs::OpenOptions;
use std::io::{BufWriter, ErrorKind};
use std::path::Path;

use anyhow::{Result, bail};
use card::record::{RecordedDevice, RequestRecorder};
use emulator::Chip;
use ftl::Volume;
use nand::{CellMode, Nand};

use crate::host::At;

/// Begins a recording in a new file.
pub fn begin(path: &Path, chip: &Chip, volume: &Volume) -> Result<RequestRecorder> {
    let file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{}: exists; choose another name for the recording", path.display())
        }
        opened => opened.at(path)?,
    };
    RequestRecorder::new(Box::new(BufWriter::new(file)), &recorded(chip, volume)).at(path)
}

/// The card as its recording describes it.
fn recorded(chip: &Chip, volume: &Volume) -> RecordedDevice {
    let geometry = chip.geometry();
    let good = geometry.blocks - chip.bad_blocks().count() as u32;
    let block_sectors = u64::from(chip.layout(CellMode::Slc).pages());
    RecordedDevice {
        sectors: u64::from(volume.data_blocks) * block_sectors,
        sector_bytes: geometry.page_bytes.into(),
        scheme: volume.scheme.name().to_owned(),
        profile: chip.profile().name.clone(),
        chip_bytes: geometry.native_bytes(),
        extra_blocks: good.saturating_sub(volume.data_blocks),
        logs: volume.logs,
        map_blocks: volume.map_blocks.len() as u32,
    }
}
