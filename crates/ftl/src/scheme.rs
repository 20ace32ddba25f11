//! The schemes by name, and a device of any of them.
//!
//! Invariant: a volume is opened by the scheme that its anchor names.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use nand::Nand;

use crate::device::Layer;
use crate::dftl::Dftl;
use crate::fast::Fast;
use crate::flash::Flash;
use crate::flash::anchor::Anchors;
use crate::flash::counts::Counts;
use crate::log_block::LogBlock;
use crate::look::BlockUse;
use crate::page_map::PageMap;
use crate::replacement::Replacement;
use crate::settings::{Format, Options};
use crate::{BlockDevice, Error, Result};

/// A way to make a block device of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Log blocks, the block map in map blocks (L).
    LogBlock,
    /// Log blocks, the block map in memory (L-M).
    LogBlockScanned,
    /// Replacement blocks (R).
    Replacement,
    /// Log blocks that any sector may go to, and one for a stream (FAST).
    Fast,
    /// Every page mapped, the map on flash, and a part of it in memory (DFTL).
    Dftl,
    /// Every page mapped, the block with the fewest pages that count cleaned (P/G).
    PageGreedy,
    /// Every page mapped, blocks cleaned by cost and benefit (P/C).
    PageCostBenefit,
}

impl Scheme {
    /// Every scheme.
    pub const ALL: [Scheme; 7] = [
        Scheme::LogBlock,
        Scheme::LogBlockScanned,
        Scheme::Replacement,
        Scheme::Fast,
        Scheme::Dftl,
        Scheme::PageGreedy,
        Scheme::PageCostBenefit,
    ];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::LogBlock => "log-block",
            Scheme::LogBlockScanned => "log-block-scanned",
            Scheme::Replacement => "replacement",
            Scheme::Fast => "fast",
            Scheme::Dftl => "dftl",
            Scheme::PageGreedy => "page-greedy",
            Scheme::PageCostBenefit => "page-cost-benefit",
        }
    }

    /// Its name in the paper's figures.
    pub fn letters(self) -> &'static str {
        match self {
            Scheme::LogBlock => "L",
            Scheme::LogBlockScanned => "L-M",
            Scheme::Replacement => "R",
            Scheme::Fast => "FAST",
            Scheme::Dftl => "DFTL",
            Scheme::PageGreedy => "P/G",
            Scheme::PageCostBenefit => "P/C",
        }
    }

    /// Its number in an anchor.
    pub fn code(self) -> u8 {
        match self {
            Scheme::LogBlock => 1,
            Scheme::LogBlockScanned => 2,
            Scheme::Replacement => 5,
            Scheme::Fast => 6,
            Scheme::Dftl => 7,
            Scheme::PageGreedy => 3,
            Scheme::PageCostBenefit => 4,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.code() == code)
    }

    /// Whether a request of several sectors is there as a whole or not at all after a power cut.
    pub fn is_atomic(self) -> bool {
        match self {
            Scheme::LogBlock | Scheme::LogBlockScanned => true,
            Scheme::Replacement | Scheme::Fast | Scheme::Dftl | Scheme::PageGreedy | Scheme::PageCostBenefit => false,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Scheme {
    type Err = &'static str;

    fn from_str(name: &str) -> core::result::Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|scheme| scheme.name() == name).ok_or("no such scheme")
    }
}

/// A block device of any scheme.
#[derive(Clone, Debug)]
pub enum Device<N> {
    LogBlock(LogBlock<N>),
    PageMap(PageMap<N>),
    Replacement(Replacement<N>),
    Fast(Fast<N>),
    Dftl(Dftl<N>),
}

/// Does the same with the device of whatever scheme.
macro_rules! each {
    ($device:expr, $inner:ident => $body:expr) => {
        match $device {
            Device::LogBlock($inner) => $body,
            Device::PageMap($inner) => $body,
            Device::Replacement($inner) => $body,
            Device::Fast($inner) => $body,
            Device::Dftl($inner) => $body,
        }
    };
}

impl<N: Nand> Device<N> {
    /// Makes a volume of a scheme, in which every sector reads as zeros.
    pub fn format(chip: N, scheme: Scheme, format: &Format, options: Options) -> Result<Self> {
        let map_blocks = if scheme == Scheme::LogBlock { format.map_blocks.max(2) } else { 0 };
        let format = Format { map_blocks, ..*format };
        match scheme {
            Scheme::LogBlock | Scheme::LogBlockScanned => {
                LogBlock::format(chip, &format, options).map(Device::LogBlock)
            }
            Scheme::PageGreedy | Scheme::PageCostBenefit => {
                PageMap::format(chip, scheme, &format, options).map(Device::PageMap)
            }
            Scheme::Replacement => Replacement::format(chip, &format, options).map(Device::Replacement),
            Scheme::Fast => Fast::format(chip, &format, options).map(Device::Fast),
            Scheme::Dftl => Dftl::format(chip, &format, options).map(Device::Dftl),
        }
    }

    /// Opens the volume on a chip, of whatever scheme it is.
    pub fn open(mut chip: N, options: Options) -> Result<Self> {
        let record = Anchors::find(&mut Flash::new(&mut chip, 0, options.payload)?)?.1;
        match Scheme::from_code(record.scheme) {
            Some(Scheme::LogBlock | Scheme::LogBlockScanned) => LogBlock::open(chip, options).map(Device::LogBlock),
            Some(Scheme::PageGreedy | Scheme::PageCostBenefit) => PageMap::open(chip, options).map(Device::PageMap),
            Some(Scheme::Replacement) => Replacement::open(chip, options).map(Device::Replacement),
            Some(Scheme::Fast) => Fast::open(chip, options).map(Device::Fast),
            Some(Scheme::Dftl) => Dftl::open(chip, options).map(Device::Dftl),
            None => Err(Error::NoVolume("its scheme is not known")),
        }
    }

    /// Does one step of work ahead of need. Whether there was one to do.
    pub fn background(&mut self) -> Result<bool> {
        each!(self, device => device.background())
    }

    /// Reads everything that counts; a line for whatever is not as it should be.
    pub fn check(&mut self) -> Result<Vec<String>> {
        each!(self, device => device.check())
    }

    /// The use of every block.
    pub fn uses(&mut self) -> Result<Vec<BlockUse>> {
        each!(self, device => device.uses())
    }

    /// What was counted since the volume was opened.
    pub fn counts(&self) -> &Counts {
        each!(self, device => device.flash().counts())
    }

    /// Bytes of memory the scheme takes, one page buffer and the chip left out.
    pub fn ram_bytes(&self) -> usize {
        each!(self, device => device.ram_bytes())
    }

    /// The chip.
    pub fn chip(&self) -> &N {
        each!(self, device => device.flash().chip())
    }

    /// The chip, to look at it or to set its faults; programs and erases of others damage the volume.
    pub fn chip_mut(&mut self) -> &mut N {
        each!(self, device => device.flash_mut().chip_mut())
    }

    /// Gives the chip back.
    pub fn into_chip(self) -> N {
        each!(self, device => device.into_chip())
    }
}

impl<N: Nand> BlockDevice for Device<N> {
    fn sector_bytes(&self) -> usize {
        each!(self, device => device.sector_bytes())
    }

    fn sectors(&self) -> u64 {
        each!(self, device => device.sectors())
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        each!(self, device => device.read(sector, data))
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<()> {
        each!(self, device => device.write(sector, data))
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<()> {
        each!(self, device => device.trim(sector, count))
    }

    fn flush(&mut self) -> Result<()> {
        each!(self, device => device.flush())
    }
}
