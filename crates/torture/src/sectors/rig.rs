//! The chips that translation layers are tortured on: small, so that everything happens often.
//!
//! Invariant: a rig gives the same chip and the same volume each time.

use emulator::{Chip, FaultConfig, Profile};
use ftl::{BlockDevice, Device, Format, Options, Scheme, TooLarge, Victim, WriteCache};
use nand::Nand;

use super::script::Requests;
use super::shadow::Promise;

/// A kind of chip, and of volume on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RigKind {
    /// Blocks of 8 pages of 512 bytes, a map of two fragments whose directory fits, few free blocks.
    Small,
    /// Blocks of 16 pages; requests that are too large are split, the victim is chosen by recency and use, no partial merges.
    Wide,
    /// So many blocks that the map's directory does not fit its fragment and is found by scanning the map blocks.
    Long,
    /// A small chip behind a write cache: requests are durable at a flush.
    Cached,
    /// Blocks of 4 pages; requests of up to all sectors, which need more blocks than are free and are split. Where the map is in
    /// fragments they cross the bound of two.
    Large,
}

impl RigKind {
    /// Every kind.
    pub const ALL: [RigKind; 5] = [RigKind::Small, RigKind::Wide, RigKind::Long, RigKind::Cached, RigKind::Large];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            RigKind::Small => "small",
            RigKind::Wide => "wide",
            RigKind::Long => "long",
            RigKind::Cached => "cached",
            RigKind::Large => "large",
        }
    }
}

impl std::str::FromStr for RigKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or(format!("no chip is called \"{name}\""))
    }
}

/// Blocks beyond the data blocks where pages are mapped: few, so that blocks are cleaned often.
const MAPPED_EXTRA_BLOCKS: u32 = 12;
/// As few as there may be where translation pages fill blocks of a long chip, so that map blocks are cleaned too.
const LONG_DFTL_EXTRA_BLOCKS: u32 = 20;
/// Pages of a block where requests are large.
const LARGE_PAGES: u32 = 4;
/// The sectors used there of a device whose map is in fragments, on both sides of a bound of these.
const LARGE_SECTORS: std::ops::Range<u64> = 424..588;
/// Sectors of a translation page there.
const FRAGMENT_SECTORS: u64 = 252;

/// Sectors that wait in the cache of a chip that has one.
const CACHE_SECTORS: usize = 12;

/// Wrong bits for each one read, where a medium fails, of a block that is new; of a worn one 21 times as many. Of 240 pages
/// one is corrected then, of 8,000 tags one; two wrong bits of a tag, which cannot be corrected, are once in 100 million.
const FRESH_BIT_ERRORS: f64 = 5e-8;

/// A device, behind a cache that passes everything on at once unless the kind of chip has one.
pub type Cached<N> = WriteCache<Device<N>>;

/// A scheme on a kind of chip.
#[derive(Clone, Copy, Debug)]
pub struct Rig {
    pub scheme: Scheme,
    pub kind: RigKind,
}

impl Rig {
    /// Blocks, pages of a block, and the format.
    fn shape(&self) -> (u32, u32, Format) {
        let (blocks, pages, format) = match self.kind {
            RigKind::Small | RigKind::Cached => (44, 8, Format { volume: 7, extra_blocks: 18, logs: 4, map_blocks: 3 }),
            RigKind::Wide => (38, 16, Format { volume: 7, extra_blocks: 18, logs: 5, map_blocks: 2 }),
            RigKind::Long => (2200, 8, Format { volume: 7, extra_blocks: 110, logs: 4, map_blocks: 6 }),
            RigKind::Large => {
                let blocks = if self.scheme.is_atomic() { 168 } else { 62 };
                (blocks, LARGE_PAGES, Format { volume: 7, extra_blocks: 20, logs: 4, map_blocks: 3 })
            }
        };
        let extra_blocks = match (self.scheme, self.kind) {
            (Scheme::Dftl, RigKind::Long) => LONG_DFTL_EXTRA_BLOCKS,
            (Scheme::PageGreedy | Scheme::PageCostBenefit, _) => MAPPED_EXTRA_BLOCKS,
            _ => format.extra_blocks,
        };
        (blocks, pages, Format { extra_blocks, ..format })
    }

    /// How a volume is run.
    pub fn options(&self) -> Options {
        let options = Options { swap_every: 2, ..Options::default() };
        match self.kind {
            RigKind::Small | RigKind::Long | RigKind::Cached => options,
            RigKind::Large => Options { too_large: TooLarge::Split, ..options },
            RigKind::Wide => Options {
                victim: Victim::RecencyAndUse,
                too_large: TooLarge::Split,
                merges_partially: false,
                ..options
            },
        }
    }

    /// A chip as it comes from the factory, with a bad block.
    pub fn chip(&self, seed: u64) -> Result<Chip, String> {
        let (blocks, pages, _) = self.shape();
        let mut profile = Profile::builtin("k9f5608u0m").map_err(|error| error.to_string())?;
        (profile.geometry.blocks, profile.geometry.pages_per_block) = (blocks, pages);
        profile.errors.slc.fresh = FRESH_BIT_ERRORS;
        let mut chip = Chip::new(&profile, seed).map_err(|error| error.to_string())?;
        chip.faults_mut().set_factory_bad(&[9]).map_err(|error| error.to_string())?;
        chip.faults_mut().set(FaultConfig::power_cuts(seed));
        Ok(chip)
    }

    /// A new volume on a chip.
    pub fn format(&self, chip: Chip) -> Result<Cached<Chip>, String> {
        let format = self.shape().2;
        let device = Device::format(chip, self.scheme, &format, self.options());
        device.map(|device| self.cached(device)).map_err(|error| format!("format: {error}"))
    }

    /// Opens the volume on a chip.
    pub fn open<N: Nand>(&self, chip: N) -> Result<Cached<N>, ftl::Error> {
        Device::open(chip, self.options()).map(|device| self.cached(device))
    }

    /// Unmounts a volume and opens it again.
    pub fn reopen<N: Nand>(&self, mut device: Cached<N>) -> Result<Cached<N>, ftl::Error> {
        device.flush()?;
        self.open(device.into_device().into_chip())
    }

    fn cached<N: Nand>(&self, device: Device<N>) -> Cached<N> {
        let sectors = if self.kind == RigKind::Cached { CACHE_SECTORS } else { 0 };
        WriteCache::new(device, sectors)
    }

    /// What a power cut leaves of requests.
    pub fn promise(&self) -> Promise {
        match (self.kind, self.scheme.is_atomic()) {
            (RigKind::Cached, _) => Promise::AtFlush,
            (RigKind::Large, true) => Promise::Parts { pages: u64::from(LARGE_PAGES) },
            (_, true) => Promise::Whole,
            (_, false) => Promise::Sectors,
        }
    }

    /// Steps of a history before the first that is cut: it takes some until map blocks are cleaned on a long chip, or blocks
    /// where pages are mapped.
    pub fn quiet_steps(&self) -> usize {
        match (self.kind, self.scheme) {
            (RigKind::Small | RigKind::Wide | RigKind::Cached, Scheme::LogBlock | Scheme::LogBlockScanned) => 0,
            (RigKind::Small | RigKind::Wide | RigKind::Cached, _) => 50,
            (RigKind::Large, _) => 8,
            (RigKind::Long, Scheme::Dftl) => 500,
            (RigKind::Long, _) => 60,
        }
    }

    /// How long requests are.
    pub fn requests(&self) -> Requests {
        match self.kind {
            RigKind::Large => Requests::Large,
            RigKind::Small | RigKind::Wide | RigKind::Long | RigKind::Cached => Requests::Short,
        }
    }

    /// The sectors that histories use: all, or, on a long chip, some on both sides of the bounds of
    /// a few fragments of the map.
    pub fn sectors_used(&self, sectors: u64) -> Vec<u64> {
        match self.kind {
            RigKind::Small | RigKind::Wide | RigKind::Cached => (0..sectors).collect(),
            RigKind::Large if self.scheme.is_atomic() => LARGE_SECTORS.collect(),
            RigKind::Large => (0..sectors).collect(),
            // More than the part of the map in memory has entries.
            RigKind::Long if self.scheme == Scheme::Dftl => {
                (0..sectors).filter(|sector| sector % FRAGMENT_SECTORS < 10).collect()
            }
            RigKind::Long => (0..sectors).filter(|sector| (sector + 16) % 4096 < 32).collect(),
        }
    }
}
