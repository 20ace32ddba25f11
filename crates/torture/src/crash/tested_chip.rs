//! What a volume under torture stands on: a tapped chip, or a drive on one.
//!
//! Invariant: a drive that is opened is started from its chip alone; nothing that an earlier one knew helps it.

use emulator::Chip;
use ftl::{BlockMapDrive, DriveFormat};
use nand::{Nand, NandWrapper};

use super::tap::{Emulated, Record, Tap, Torn};
use crate::content::mix;

/// What a file system is run over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumeOver {
    /// A bare chip.
    #[default]
    Chip,
    /// The co-design's drive on a chip, which maps only blocks.
    Codesign,
}

impl VolumeOver {
    /// The name of the drive.
    pub const CODESIGN: &'static str = "codesign";
}

/// A tapped chip, or a drive on one.
pub enum TestedChip {
    Bare(Box<Tap>),
    Drive(Box<BlockMapDrive<Tap>>),
}

/// A start that found no drive, or failed.
pub struct FailedStart {
    pub tap: Tap,
    pub error: ftl::Error,
}

impl FailedStart {
    /// Whether there is no drive, or one that was never finished.
    pub fn is_for_lack_of_drive(&self) -> bool {
        matches!(self.error, ftl::Error::NoVolume(_))
    }
}

impl std::fmt::Display for FailedStart {
    fn fmt(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(to, "start of the drive: {}", self.error)
    }
}

impl TestedChip {
    /// What stands on a tapped chip: of a drive, what its start finds.
    pub fn open(tap: Tap, over: VolumeOver) -> Result<Self, Box<FailedStart>> {
        match over {
            VolumeOver::Chip => Ok(Self::Bare(Box::new(tap))),
            VolumeOver::Codesign => {
                let started = BlockMapDrive::start(tap).map(|drive| Self::Drive(Box::new(drive)));
                started.map_err(|(tap, error)| Box::new(FailedStart { tap, error }))
            }
        }
    }

    /// The same, and an error in words.
    pub fn opened(tap: Tap, over: VolumeOver) -> Result<Self, String> {
        Self::open(tap, over).map_err(|failed| failed.to_string())
    }

    /// What a volume can be formatted on: a bare chip as it is, a drive that is made where there is none.
    pub fn to_format(tap: Tap, over: VolumeOver, seed: u64) -> Result<Self, String> {
        let tap = match Self::open(tap, over) {
            Ok(chip) => return Ok(chip),
            Err(failed) if failed.is_for_lack_of_drive() => failed.tap,
            Err(failed) => return Err(failed.to_string()),
        };
        let format = DriveFormat { number: mix(seed) as u32, blank: tap.emulated().operations() == 0 };
        let made = BlockMapDrive::create(tap, &format);
        made.map(|drive| Self::Drive(Box::new(drive))).map_err(|(_, error)| format!("making the drive: {error}"))
    }

    /// The same after its power was off.
    pub fn restarted(self) -> Result<Self, String> {
        match self {
            Self::Bare(tap) => Ok(Self::Bare(tap)),
            Self::Drive(drive) => Self::opened(drive.into_chip(), VolumeOver::Codesign),
        }
    }

    pub fn tap(&self) -> &Tap {
        match self {
            Self::Bare(tap) => tap,
            Self::Drive(drive) => drive.chip(),
        }
    }

    pub fn tap_mut(&mut self) -> &mut Tap {
        match self {
            Self::Bare(tap) => tap,
            Self::Drive(drive) => drive.chip_mut(),
        }
    }

    /// The drive, if it is one.
    pub fn drive(&self) -> Option<&BlockMapDrive<Tap>> {
        match self {
            Self::Bare(_) => None,
            Self::Drive(drive) => Some(drive),
        }
    }

    pub fn into_chip(self) -> Chip {
        match self {
            Self::Bare(tap) => tap.into_chip(),
            Self::Drive(drive) => drive.into_chip().into_chip(),
        }
    }

    /// What to record from now on.
    pub fn record(&mut self, record: Record) {
        self.tap_mut().record(record);
    }

    /// What was torn since this was last asked.
    pub fn take_torn(&mut self) -> Vec<Torn> {
        self.tap_mut().take_torn()
    }

    /// The block, as the file system counts, that was read last for a copy elsewhere, unless it was erased since.
    pub fn copied_from(&self) -> Option<u32> {
        let block = self.tap().copied_from();
        match self {
            Self::Bare(_) => block,
            Self::Drive(drive) => block.and_then(|physical| drive.logical(physical)),
        }
    }
}

impl NandWrapper for TestedChip {
    type Inner = dyn Nand;

    fn inner(&self) -> &Self::Inner {
        match self {
            Self::Bare(tap) => &**tap,
            Self::Drive(drive) => &**drive,
        }
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        match self {
            Self::Bare(tap) => &mut **tap,
            Self::Drive(drive) => &mut **drive,
        }
    }
}

impl Emulated for TestedChip {
    fn emulated(&self) -> &Chip {
        self.tap().emulated()
    }

    fn emulated_mut(&mut self) -> &mut Chip {
        self.tap_mut().emulated_mut()
    }

    fn is_blank(&self) -> bool {
        match self {
            Self::Bare(tap) => tap.is_blank(),
            Self::Drive(drive) => drive.is_blank(),
        }
    }
}
