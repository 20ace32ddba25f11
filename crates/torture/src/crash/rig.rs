//! How a test volume is made: on which chip, with which faults, mounted how. Invariant: one rig and one seed give one
//! volume, bit for bit.

use emulator::{Chip, FaultConfig, Profile};
use flexfs_core::{FormatOptions, Fs, MountOptions, kind};

use super::history::History;
use super::tap::{Emulated, Tap};
use super::tested_chip::{TestedChip, VolumeOver};
use super::twin::Twin;
use crate::content::mix;
use crate::model::ModelFs;
use crate::ops::Shape;

/// When a test volume is formatted: in 2023, and a whole number of the ticks of a page's tag.
pub const BASE_NS: i64 = 1_700_000_000_000_000_000;

/// Permission bits of a test volume's root.
const ROOT_MODE: u32 = 0o755;

/// Chip, faults and mount options of a test volume.
#[derive(Clone, Debug)]
pub struct Rig {
    pub profile: Profile,
    pub faults: FaultConfig,
    pub options: MountOptions,
    /// What the volume is over: of a drive the profile is that of the chip inside.
    pub over: VolumeOver,
}

impl Rig {
    /// A built-in kind of chip cut down to `blocks` blocks of `pages_per_block` pages.
    pub fn small(profile: &str, blocks: u32, pages_per_block: u32, options: MountOptions) -> Result<Self, String> {
        let mut profile = Profile::builtin(profile).map_err(|error| error.to_string())?;
        profile.geometry.blocks = blocks;
        profile.geometry.pages_per_block = pages_per_block;
        profile.check().map_err(|error| error.to_string())?;
        Ok(Self { profile, faults: FaultConfig::power_cuts(0), options, over: VolumeOver::Chip })
    }

    /// The chip, its faults switched on.
    pub fn chip(&self, seed: u64) -> Result<Chip, String> {
        let mut chip = Chip::new(&self.profile, seed).map_err(|error| error.to_string())?;
        chip.faults_mut().set(FaultConfig { seed, ..self.faults.clone() });
        Ok(chip)
    }

    /// A chip that a volume can be formatted on, tapped.
    pub fn tested(&self, chip: Chip, seed: u64) -> Result<TestedChip, String> {
        TestedChip::to_format(Tap::new(chip, self.faults.clone()), self.over, seed)
    }

    /// Formats `chip` and mounts it beside an empty model.
    pub fn format<N: Emulated>(&self, mut chip: N, seed: u64) -> Result<Twin<N>, String> {
        Self::format_only(&mut chip, seed)?;
        self.mount_new(chip)
    }

    /// Formats `chip`, as a new one where nothing was done to it.
    pub fn format_only<N: Emulated>(chip: &mut N, seed: u64) -> Result<(), String> {
        let mut volume_id = [0; 16];
        volume_id[..8].copy_from_slice(&mix(seed).to_le_bytes());
        let format = FormatOptions {
            volume_id,
            label: "lab".into(),
            root_mode: ROOT_MODE,
            blank: chip.is_blank(),
            now_ns: BASE_NS,
            ..FormatOptions::default()
        };
        Fs::format(chip, &format).map_err(|error| format!("format: {error}"))
    }

    /// Mounts a chip just formatted beside an empty model.
    pub fn mount_new<N: Emulated>(&self, chip: N) -> Result<Twin<N>, String> {
        let options = MountOptions { now_ns: BASE_NS, ..self.options.clone() };
        let mut fs = Fs::mount(chip, options).map_err(|(_, error)| format!("first mount: {error}"))?;
        let stat = fs.statfs().map_err(|error| format!("statfs: {error}"))?;
        let model = ModelFs::new(kind::DIR | ROOT_MODE, 0, 0, BASE_NS).with_times(self.options.times);
        Ok(Twin { fs, history: History::new(model, u64::from(stat.chunk_bytes)), now_ns: BASE_NS })
    }

    /// What random histories look like on this volume: files small enough that many fit, `percent` of the capacity
    /// in use before writes give way to deletions.
    pub fn shape<N: Emulated>(&self, twin: &mut Twin<N>, percent: u64, disruptions: usize) -> Result<Shape, String> {
        let stat = twin.fs.statfs().map_err(|error| format!("statfs: {error}"))?;
        Ok(Shape {
            names: 10,
            chunk_bytes: u64::from(stat.chunk_bytes),
            file_bytes: stat.capacity_bytes / 3,
            crowded_bytes: stat.capacity_bytes * percent / 100,
            disruptions,
            times: self.options.times,
        })
    }
}
