//! What a kind of chip is like, as data: a TOML file, built in or the user's own.
//!
//! Nothing here runs a chip. Invariant: a [`Profile`] that was parsed or resized by this module describes a chip that
//! can be made; fields are public so that experiments can vary one, and [`Profile::check`] is run again before use.

use nand::CellMode;
use serde::{Deserialize, Serialize};

use crate::bounds::range;
use crate::energy::Energy;
use crate::error::ProfileError;
use crate::pairing::{self, Programming};
use crate::timing::{ModeTiming, Timing};

/// A kind of chip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What it is called on a command line.
    pub name: String,
    /// One line for people.
    #[serde(default)]
    pub description: String,
    /// Its shape.
    pub geometry: Shape,
    /// How its blocks are programmed.
    pub programming: Programming,
    /// What its operations cost.
    pub timing: Timing,
    /// What they take of a battery.
    #[serde(default, skip_serializing_if = "Energy::is_unknown")]
    pub energy: Energy,
    /// What its blocks endure.
    pub endurance: Endurance,
    /// What its ECC engine corrects.
    pub ecc: Ecc,
    /// How many raw bit errors it has.
    pub errors: Errors,
}

/// [`nand::Geometry`] as it stands in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of nand::Geometry")]
pub struct Shape {
    pub channels: u16,
    pub chips_per_channel: u16,
    pub dies_per_chip: u16,
    pub planes_per_die: u16,
    pub blocks: u32,
    pub pages_per_block: u32,
    pub page_bytes: u32,
    pub spare_bytes: u32,
    pub spare_ecc: bool,
    pub bits_per_cell: u8,
}

impl Shape {
    /// Dies over all channels and chips; at least 1.
    pub fn dies(&self) -> u32 {
        let dies = u32::from(self.channels) * u32::from(self.chips_per_channel) * u32::from(self.dies_per_chip);
        dies.max(1)
    }
}

/// What blocks endure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endurance {
    /// Erases of a block always programmed with one bit per cell.
    pub slc_erases: u32,
    /// Erases of a block always programmed natively.
    pub native_erases: u32,
    /// Chance that a program or erase fails, per multiple of the endurance by which a block is overused.
    pub overuse_failure: f64,
}

/// What the ECC engine corrects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ecc {
    /// Data bytes of a codeword.
    pub codeword_bytes: u32,
    /// Bits it corrects in each.
    pub correctable_bits: u32,
}

/// How many raw bit errors there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// With one bit per cell.
    pub slc: ErrorRates,
    /// With all bits per cell.
    pub native: ErrorRates,
}

/// A raw bit error rate: `fresh * (1 + wear * d²) + retention_per_day * (1 + d) * days + per_read * reads`, where `d`
/// is the part of its endurance that the block has used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRates {
    /// Of a new block, just programmed.
    pub fresh: f64,
    /// By how much a block at the end of its endurance is worse.
    pub wear: f64,
    /// Added by each day since the block's first program after its erase.
    pub retention_per_day: f64,
    /// Added by each read of the block since its erase.
    pub per_read: f64,
}

const BUILTIN: [&str; 6] = [
    include_str!("../profiles/flexfs-mlc.toml"),
    include_str!("../profiles/flexfs-slc.toml"),
    include_str!("../profiles/k9f5608u0m.toml"),
    include_str!("../profiles/codesign-mlc8.toml"),
    include_str!("../profiles/tlc-3d.toml"),
    include_str!("../profiles/k9k8g08u0m.toml"),
];
const NAMES: [&str; 6] = ["flexfs-mlc", "flexfs-slc", "k9f5608u0m", "codesign-mlc8", "tlc-3d", "k9k8g08u0m"];

/// More pages than these are a typing error, not a chip: 1 TiB of 4 KiB pages, and 256 MiB of RAM to keep track of.
const MOST_PAGES: u32 = 1 << 28;
const LEAST_BLOCKS: u32 = 4;

impl Profile {
    /// The name of the profile used where none is asked for.
    pub const DEFAULT: &'static str = NAMES[0];

    /// The names of the built-in profiles, the default first.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// A built-in profile.
    pub fn builtin(name: &str) -> Result<Self, ProfileError> {
        match NAMES.iter().position(|&known| known == name) {
            Some(index) => Self::from_toml(BUILTIN[index]),
            None => Err(ProfileError::Unknown { name: name.to_owned(), known: NAMES.join(", ") }),
        }
    }

    /// Reads a profile from the text of a TOML file.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text).map_err(|error| ProfileError::Parse(error.to_string()))?;
        profile.check()?;
        Ok(profile)
    }

    /// The profile as the text of a TOML file.
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        toml::to_string(self).map_err(|error| ProfileError::Parse(error.to_string()))
    }

    /// The same kind of chip with as many blocks as hold `bytes` natively; `bytes` must be a multiple of a block's.
    pub fn with_capacity(&self, bytes: u64) -> Result<Self, ProfileError> {
        let multiple = self.block_bytes();
        let blocks = u32::try_from(bytes / multiple.max(1)).unwrap_or(u32::MAX);
        let mut sized = self.clone();
        sized.geometry.blocks = blocks;
        if !bytes.is_multiple_of(multiple.max(1)) || sized.check().is_err() {
            let least = multiple * u64::from(LEAST_BLOCKS);
            let most = multiple * u64::from(MOST_PAGES / self.geometry.pages_per_block.max(1));
            return Err(ProfileError::Capacity { bytes, multiple, least, most });
        }
        Ok(sized)
    }

    /// Native bytes of one erase block: capacities are multiples of it.
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.geometry.page_bytes) * u64::from(self.geometry.pages_per_block)
    }

    /// Native bytes of the whole chip.
    pub fn capacity_bytes(&self) -> u64 {
        self.block_bytes() * u64::from(self.geometry.blocks)
    }

    /// The costs of operations in `mode`.
    pub fn mode_timing(&self, mode: CellMode) -> &ModeTiming {
        self.timing.mode(mode)
    }

    /// The raw bit error rates in `mode`.
    pub fn error_rates(&self, mode: CellMode) -> &ErrorRates {
        match mode {
            CellMode::Slc => &self.errors.slc,
            CellMode::Native => &self.errors.native,
        }
    }

    /// Whether the numbers describe a chip.
    pub fn check(&self) -> Result<(), ProfileError> {
        let shape = &self.geometry;
        range("geometry.channels", shape.channels, 1, 64)?;
        range("geometry.chips_per_channel", shape.chips_per_channel, 1, 64)?;
        range("geometry.dies_per_chip", shape.dies_per_chip, 1, 64)?;
        range("geometry.planes_per_die", shape.planes_per_die, 1, 64)?;
        range("geometry.pages_per_block", shape.pages_per_block, 4, 4032)?;
        range("geometry.blocks", shape.blocks, LEAST_BLOCKS, MOST_PAGES / shape.pages_per_block)?;
        range("geometry.page_bytes", shape.page_bytes, 256, 64 << 10)?;
        range("geometry.spare_bytes", shape.spare_bytes, 0, 8 << 10)?;
        range("geometry.bits_per_cell", shape.bits_per_cell, 1, 4)?;
        range("ecc.codeword_bytes", self.ecc.codeword_bytes, 1, shape.page_bytes)?;
        range("endurance.slc_erases", self.endurance.slc_erases, 1, u32::MAX)?;
        range("endurance.native_erases", self.endurance.native_erases, 1, u32::MAX)?;
        self.timing.check()?;
        for mode in CellMode::ALL {
            let rates = self.error_rates(mode);
            for rate in [rates.fresh, rates.retention_per_day, rates.per_read] {
                range("errors.*", rate, 0.0, 0.5)?;
            }
            range("errors.*.wear", rates.wear, 0.0, 1e9)?;
        }
        self.energy.check()?;
        range("endurance.overuse_failure", self.endurance.overuse_failure, 0.0, 1e9)?;
        pairing::pages(&self.programming, shape.pages_per_block, shape.bits_per_cell).map(drop)
    }
}

impl Default for Profile {
    /// The FlexFS paper's chip.
    fn default() -> Self {
        // The text is part of the program, and a test parses it.
        Self::builtin(Self::DEFAULT).unwrap_or_else(|error| unreachable!("built-in profile: {error}"))
    }
}
