//! The device under an export: a volume of a translation layer, which is opened anew after a change that failed half way.
//!
//! Invariant: a device that cannot be opened anew refuses everything; its size stays known.

use ftl::{BlockDevice, Device, Error, Options, Result};
use nand::Nand;

/// A device that an export can serve.
pub trait ServedDevice: BlockDevice + Send {
    /// Opens the device anew, after a change that failed half way.
    fn reopen(&mut self) -> Result<()>;

    /// Makes durable what the chip holds, on the medium that stands for the chip; or the reason why that failed.
    fn sync(&mut self) -> core::result::Result<(), String>;
}

/// Makes durable what a chip holds.
pub type SyncChip<N> = fn(&mut N) -> core::result::Result<(), String>;

/// A volume of a translation layer on a chip.
pub struct CardVolume<N> {
    state: VolumeState<N>,
    options: Options,
    sync: SyncChip<N>,
    sectors: u64,
    sector_bytes: usize,
}

enum VolumeState<N> {
    Open(Box<Device<N>>),
    /// Why it could not be opened anew.
    Lost(Error),
}

impl<N: Nand> CardVolume<N> {
    /// Opens the volume on a chip; `sync` makes durable what the chip holds.
    ///
    /// # Errors
    /// There is no volume, or it cannot be opened.
    pub fn open(chip: N, options: Options, sync: SyncChip<N>) -> Result<Self> {
        let device = Device::open(chip, options)?;
        let (sectors, sector_bytes) = (device.sectors(), device.sector_bytes());
        Ok(Self { state: VolumeState::Open(Box::new(device)), options, sync, sectors, sector_bytes })
    }

    /// The device.
    ///
    /// # Errors
    /// Why it could not be opened anew.
    pub fn device(&mut self) -> Result<&mut Device<N>> {
        match &mut self.state {
            VolumeState::Open(device) => Ok(device),
            VolumeState::Lost(error) => Err(error.clone()),
        }
    }
}

impl<N: Nand> BlockDevice for CardVolume<N> {
    fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn read(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        self.device()?.read(sector, data)
    }

    fn write(&mut self, sector: u64, data: &[u8]) -> Result<()> {
        self.device()?.write(sector, data)
    }

    fn trim(&mut self, sector: u64, count: u64) -> Result<()> {
        self.device()?.trim(sector, count)
    }

    fn flush(&mut self) -> Result<()> {
        self.device()?.flush()
    }
}

impl<N: Nand + Send> ServedDevice for CardVolume<N> {
    fn reopen(&mut self) -> Result<()> {
        let state = core::mem::replace(&mut self.state, VolumeState::Lost(Error::Failed));
        self.state = match state {
            VolumeState::Open(device) => match Device::open(device.into_chip(), self.options) {
                Ok(device) => VolumeState::Open(Box::new(device)),
                Err(error) => VolumeState::Lost(error),
            },
            lost @ VolumeState::Lost(_) => lost,
        };
        self.device().map(|_| ())
    }

    fn sync(&mut self) -> core::result::Result<(), String> {
        let sync = self.sync;
        sync(self.device().map_err(|error| error.to_string())?.chip_mut())
    }
}
