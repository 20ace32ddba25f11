//! What a translation layer can answer besides success.

use nand::NandError;

/// Why a request, or the opening of a volume, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request goes beyond the device's end; nothing was done.
    #[error("sectors {sector} to {}: the device has {sectors}", sector.saturating_add(*count))]
    OutOfRange { sector: u64, count: u64, sectors: u64 },
    /// The buffer is not a whole number of sectors; nothing was done.
    #[error("{bytes} bytes are not a whole number of sectors of {sector_bytes}")]
    Length { bytes: usize, sector_bytes: usize },
    /// More was to be written at once than the free blocks hold; nothing was done.
    #[error("{count} sectors cannot be written at once: that takes {needed} free blocks, and {free} can be had")]
    TooLarge { count: u64, needed: u32, free: u32 },
    /// The chip lost what the sector held.
    #[error("sector {sector}: what the chip reads is not what was written")]
    Unreadable { sector: u64 },
    /// So many blocks have gone bad that nothing more can be written.
    #[error("no free block is left: too many have gone bad")]
    WornOut,
    /// The map's blocks have no room for a change of so many pages.
    #[error("the map's blocks have no room for {pages} pages more")]
    MapFull { pages: u32 },
    /// An earlier write failed half way; what is stored can still be read, after the device is opened again.
    #[error("an earlier write failed: open the device again")]
    Failed,
    /// The chip holds no volume, or another one than was asked for.
    #[error("no volume: {0}")]
    NoVolume(&'static str),
    /// The chip, or what is to be made on it, does not fit.
    #[error("this does not fit the chip: {0}")]
    Unfit(&'static str),
    /// The chip refused an operation.
    #[error(transparent)]
    Nand(#[from] NandError),
}

/// The outcome of a request.
pub type Result<T, E = Error> = core::result::Result<T, E>;
