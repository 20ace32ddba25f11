//! A disk as a client sees it: bytes that can be read, written and given up.
//!
//! Invariant: the errors are those that the protocol has, each with its reason in words.

use crate::protocol::DiskCommand;

/// The size and the abilities of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskShape {
    pub bytes: u64,
    /// Bytes of a sector: requests of whole sectors need no other read first.
    pub sector_bytes: u32,
    pub is_read_only: bool,
}

/// Why a disk did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    #[error("the disk is served read-only")]
    ReadOnly,
    #[error("{length} bytes at {offset}: the disk has {bytes}")]
    BeyondEnd { command: DiskCommand, offset: u64, length: u64, bytes: u64 },
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(&'static str),
    /// The translation layer, or the medium below it, failed.
    #[error("{0}")]
    Failed(String),
}

impl DiskError {
    /// The error's number in the protocol.
    pub fn errno(&self) -> u32 {
        const EPERM: u32 = 1;
        const EIO: u32 = 5;
        const EINVAL: u32 = 22;
        const ENOSPC: u32 = 28;
        match self {
            Self::ReadOnly => EPERM,
            Self::BeyondEnd { command: DiskCommand::Write | DiskCommand::WriteZeroes, .. } => ENOSPC,
            Self::BeyondEnd { .. } | Self::Invalid(_) => EINVAL,
            Self::Failed(_) => EIO,
        }
    }
}

/// A disk that several clients use at once. A request that returned is durable, unless the disk has a write cache: then
/// after a flush, or where the request itself `is_durable`.
pub trait Disk: Send + Sync {
    fn shape(&self) -> DiskShape;

    /// Reads bytes from an offset on.
    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), DiskError>;

    /// Writes bytes from an offset on.
    fn write(&self, offset: u64, data: &[u8], is_durable: bool) -> Result<(), DiskError>;

    /// Gives up the whole sectors of a range; the rest of it is left as it is.
    fn trim(&self, offset: u64, length: u64, is_durable: bool) -> Result<(), DiskError>;

    /// Makes a range read as zeros; where it `keeps_room`, zeros are written, and not given up.
    fn write_zeroes(&self, offset: u64, length: u64, keeps_room: bool, is_durable: bool) -> Result<(), DiskError>;

    /// Makes everything durable that was done before.
    fn flush(&self) -> Result<(), DiskError>;
}
