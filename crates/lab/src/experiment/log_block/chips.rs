//! The chips that translation layers are compared on. Invariant: every scheme gets the same chip with the same number of extra
//! blocks, but for DFTL where its translation pages fill more.

use emulator::{Chip, Profile};
use ftl::{BlockDevice, Device, Format, Scheme};

use nand::{CellMode, Nand};

use crate::experiment::Parameters;
use crate::layers::{LayerError, made};
use torture::ops::Supply;

/// A chip, and the blocks of a volume on it.
pub struct Size {
    /// In a job's name.
    pub job: &'static str,
    pub name: &'static str,
    profile: &'static str,
    bytes: u64,
    format: Format,
}

/// The paper's prototype, the same pages on a larger chip, and a part of 1 GB with larger ones.
pub const SIZES: [Size; 3] = [
    Size {
        job: "16mib",
        name: "16 MiB",
        profile: "k9f5608u0m",
        bytes: 16 << 20,
        format: Format { volume: 1, extra_blocks: 32, logs: 8, map_blocks: 3 },
    },
    Size {
        job: "256mib",
        name: "256 MiB",
        profile: "k9f5608u0m",
        bytes: 256 << 20,
        format: Format { volume: 1, extra_blocks: 32, logs: 8, map_blocks: 10 },
    },
    Size {
        job: "1gib",
        name: "1 GiB",
        profile: "k9k8g08u0m",
        bytes: 1 << 30,
        format: Format { volume: 1, extra_blocks: 64, logs: 16, map_blocks: 3 },
    },
];

/// Blocks of the small chip that single operations are shown on, whose pages and blocks are the prototype's.
const SMALL_BLOCKS: u64 = 64;

/// Random writes of single sectors that come after.
const WRITES: u64 = 5_000;

impl Size {
    fn chip(&self) -> Result<Profile, LayerError> {
        Ok(Profile::builtin(self.profile)?.with_capacity(self.bytes)?)
    }

    /// A volume that is in use: half full, then written at random places.
    pub fn in_use(&self, scheme: Scheme) -> Result<Device<Chip>, LayerError> {
        let format = (scheme != Scheme::Dftl).then_some(self.format);
        let mut device = made(&self.chip()?, scheme, format)?;
        let half = device.sectors() / 2;
        fill(&mut device, half)?;
        let (mut dice, zeros) = (Supply::new(1), vec![0; device.sector_bytes()]);
        for _ in 0..WRITES {
            write(&mut device, dice.below(half), &zeros)?;
        }
        Ok(device)
    }

    /// What figures of a volume on this chip were got with.
    pub fn parameters(&self, scheme: Scheme) -> Parameters {
        let Format { extra_blocks, logs, map_blocks, .. } = self.format;
        let blocks = match scheme {
            Scheme::LogBlock => format!("{extra_blocks} extra, {logs} log blocks at most, {map_blocks} map blocks"),
            Scheme::LogBlockScanned | Scheme::Fast => format!("{extra_blocks} extra, {logs} log blocks at most"),
            Scheme::Dftl => "extra: 1 of 64, at least 32, or twice those that translation pages fill, and 16".into(),
            Scheme::Replacement | Scheme::PageGreedy | Scheme::PageCostBenefit => format!("{extra_blocks} extra"),
        };
        Parameters::default()
            .with("chip", format!("{}, {}", self.profile, self.name))
            .with("blocks", blocks)
            .with("workload", format!("half of the sectors in order, then {WRITES} of these at random"))
    }
}

/// A small chip all of whose sectors are written, with so many extra blocks.
pub fn full(scheme: Scheme, extra_blocks: u32) -> Result<Device<Chip>, LayerError> {
    let profile = Profile::builtin("k9f5608u0m")?;
    let profile = profile.with_capacity(SMALL_BLOCKS * profile.block_bytes())?;
    let format = Format { volume: 1, extra_blocks, logs: 4, map_blocks: 2 };
    let mut device = made(&profile, scheme, Some(format))?;
    let sectors = device.sectors();
    fill(&mut device, sectors)?;
    Ok(device)
}

/// The small chip in words.
pub fn small_chip(scheme: Scheme, extra_blocks: u32) -> Parameters {
    Parameters::default()
        .with("chip", format!("k9f5608u0m, {SMALL_BLOCKS} blocks, {extra_blocks} of them extra; every sector written"))
        .with("scheme", scheme.name())
}

/// Writes whole blocks.
fn fill(device: &mut Device<Chip>, sectors: u64) -> Result<(), LayerError> {
    let pages = device.chip().layout(CellMode::Slc).pages() as usize;
    let zeros = vec![0; pages * device.sector_bytes()];
    (0..sectors).step_by(pages).try_for_each(|sector| write(device, sector, &zeros))
}

/// Writes a request.
pub fn write(device: &mut Device<Chip>, sector: u64, data: &[u8]) -> Result<(), LayerError> {
    device.write(sector, data).map_err(|source| LayerError::Layer { doing: "writing", source })
}

/// Works in the background until nothing is left to do.
pub fn tidy(device: &mut Device<Chip>) -> Result<(), LayerError> {
    loop {
        match device.background() {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(source) => return Err(LayerError::Layer { doing: "working in the background", source }),
        }
    }
}
