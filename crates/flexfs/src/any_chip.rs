//! The chip under a volume: emulated, in an image file or in RAM, real, behind an MTD device of Linux, or a drive that maps
//! only blocks, on an emulated one.
//!
//! Invariant: the file system drives all in the same way; properties of emulated chips alone are asked for by
//! [`AnyChip::emulated`].

use std::path::{Path, PathBuf};

use emulator::{Chip, Counters, EmulatorError, Trace};
use flexfs_core::{CellRecord, Error, recorded_cells};
use ftl::BlockMapDrive;
use mtd::{Mtd, MtdError, MtdNumber, PageReads};
use nand::{Nand, NandWrapper};
use torture::record::TracedChip;

use crate::counted_chip::CountedChip;
use crate::real_cells::{self, USUAL_ENDURANCE};

/// Set to `apart`, it has pages read as on a kernel without `MEMREAD`, which came with Linux 6.1.
const READS_VARIABLE: &str = "FLEXFS_MTD_READS";

/// A chip.
pub enum AnyChip {
    Emulated(Box<Chip>),
    Real(Box<CountedChip<Mtd>>),
    /// The co-design's drive, on an emulated chip.
    Drive(Box<BlockMapDrive<Chip>>),
}

/// Why a chip could not be opened.
pub enum OpenFailure {
    Image(EmulatorError),
    Device(MtdError),
}

impl OpenFailure {
    /// Whether somebody else has it open.
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Image(EmulatorError::InUse { .. }) | Self::Device(MtdError::InUse { .. }))
    }
}

impl From<Chip> for AnyChip {
    fn from(chip: Chip) -> Self {
        Self::Emulated(Box::new(chip))
    }
}

impl From<BlockMapDrive<Chip>> for AnyChip {
    fn from(drive: BlockMapDrive<Chip>) -> Self {
        Self::Drive(Box::new(drive))
    }
}

/// Whether a name is that of an MTD device, and not of an image.
pub fn is_device(path: &Path) -> bool {
    MtdNumber::of(path).is_some()
}

/// Where devices have their names, and below it where files have theirs.
const DEVICES: [&str; 2] = ["/dev", "/dev/shm"];

/// Whether a name is one for a device: a file of that name would be lost when the machine is started again.
pub fn is_below_devices(path: &Path) -> bool {
    let [devices, files] = DEVICES;
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok()).unwrap_or_default();
    parent.starts_with(devices) && !parent.starts_with(files)
}

impl AnyChip {
    /// Opens the chip in an image file, or behind a device.
    pub fn open(path: &Path, read_only: bool) -> Result<Self, OpenFailure> {
        if is_device(path) {
            return Self::open_device(path, read_only).map_err(OpenFailure::Device);
        }
        Chip::open_image(path, read_only).map(Self::from).map_err(OpenFailure::Image)
    }

    fn open_device(path: &Path, read_only: bool) -> Result<Self, MtdError> {
        let apart = std::env::var_os(READS_VARIABLE).is_some_and(|reads| reads == "apart");
        let reads = if apart { PageReads::Apart } else { PageReads::Together };
        let mut chip = Mtd::open(path, read_only, reads, USUAL_ENDURANCE)?;
        match recorded_cells(&mut chip) {
            Ok(Some(record)) => set_cells(&mut chip, &record)?,
            // The mount that follows says so.
            Ok(None) | Err(Error::Unsuitable(_)) => {}
            Err(error) => return Err(MtdError::Shape { path: path.to_path_buf(), why: error.to_string() }),
        }
        Ok(Self::Real(Box::new(CountedChip::new(chip))))
    }

    /// The drive on an emulated chip, which is only read for that. The chip itself, where there is none.
    pub fn with_drive(self) -> Result<Self, Self> {
        match self {
            Self::Emulated(mut chip) => {
                chip.forget_reads();
                BlockMapDrive::start(*chip).map(Self::from).map_err(|(chip, _)| Self::from(chip))
            }
            other => Err(other),
        }
    }

    /// The drive, if it is one.
    pub fn drive(&self) -> Option<&BlockMapDrive<Chip>> {
        match self {
            Self::Drive(drive) => Some(drive),
            Self::Emulated(_) | Self::Real(_) => None,
        }
    }

    /// Whether nobody knows how its cells are programmed: they hold more than one bit, and no volume on it tells more.
    pub fn lacks_cells(&self) -> bool {
        matches!(self, Self::Real(chip) if chip.inner().is_multi_level() && chip.geometry().bits_per_cell == 1)
    }

    /// The chip behind a device, if it is a real chip.
    pub fn real_mut(&mut self) -> Option<&mut Mtd> {
        match self {
            Self::Emulated(_) | Self::Drive(_) => None,
            Self::Real(chip) => Some(chip.inner_mut()),
        }
    }

    /// The emulated chip, if this is an emulated chip, or a drive on one.
    pub fn emulated(&self) -> Option<&Chip> {
        match self {
            Self::Emulated(chip) => Some(chip),
            Self::Drive(drive) => Some(drive.chip()),
            Self::Real(_) => None,
        }
    }

    /// The same, to change it.
    pub fn emulated_mut(&mut self) -> Option<&mut Chip> {
        match self {
            Self::Emulated(chip) => Some(chip),
            Self::Drive(drive) => Some(drive.chip_mut()),
            Self::Real(_) => None,
        }
    }

    /// The emulated chip, or the device that it is behind.
    pub fn into_emulated(self) -> Result<Chip, PathBuf> {
        match self {
            Self::Emulated(chip) => Ok(*chip),
            Self::Drive(drive) => Ok(drive.into_chip()),
            Self::Real(chip) => Err(chip.inner().path().to_path_buf()),
        }
    }

    /// Its name: of an emulated chip its profile's, of a real chip the name that its driver gives it.
    pub fn name(&self) -> &str {
        match self {
            Self::Emulated(chip) => &chip.profile().name,
            Self::Drive(drive) => &drive.chip().profile().name,
            Self::Real(chip) => chip.inner().name(),
        }
    }

    /// What has been done to it since it was opened.
    pub fn counters(&self) -> &Counters {
        match self {
            Self::Emulated(chip) => chip.counters(),
            Self::Drive(drive) => drive.chip().counters(),
            Self::Real(chip) => chip.counters(),
        }
    }

    /// Forgets the reads of an image that is left as it is.
    pub fn forget_reads(&mut self) {
        if let Some(chip) = self.emulated_mut() {
            chip.forget_reads();
        }
    }

    /// Makes changes of the chip last: on the disk under an image; a real chip needs nothing.
    pub fn sync(&mut self) -> Result<(), EmulatorError> {
        match self {
            Self::Emulated(chip) => chip.sync_image(),
            Self::Drive(drive) => drive.chip_mut().sync_image(),
            Self::Real(_) => Ok(()),
        }
    }
}

/// Drives a chip by what a volume keeps, or is to keep, of its cells.
pub fn set_cells(chip: &mut Mtd, record: &CellRecord) -> Result<(), MtdError> {
    let cells = real_cells::chip_cells(record, chip.geometry());
    chip.set_cells(cells.map_err(|why| MtdError::Shape { path: chip.path().to_path_buf(), why })?);
    Ok(())
}

impl NandWrapper for AnyChip {
    type Inner = dyn Nand + 'static;

    fn inner(&self) -> &Self::Inner {
        match self {
            Self::Emulated(chip) => &**chip,
            Self::Real(chip) => &**chip,
            Self::Drive(drive) => &**drive,
        }
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        match self {
            Self::Emulated(chip) => &mut **chip,
            Self::Real(chip) => &mut **chip,
            Self::Drive(drive) => &mut **drive,
        }
    }
}

/// Of a real chip nothing is traced: only an emulated chip can do the same again.
impl TracedChip for AnyChip {
    fn chip_ns(&self) -> u64 {
        self.emulated().map_or(0, Chip::now_ns)
    }

    fn start_trace(&mut self) {
        if let Some(chip) = self.emulated_mut() {
            chip.start_trace(usize::MAX);
        }
    }

    fn take_trace(&mut self) -> Trace {
        self.emulated_mut().map(Chip::take_trace).unwrap_or_default()
    }
}
