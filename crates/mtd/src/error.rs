//! Why a device is not to be used as a chip.

use std::io;
use std::path::PathBuf;

/// Why there is no chip.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MtdError {
    /// The name leads to something else than an MTD device.
    #[error("{}: no MTD device", path.display())]
    NotMtd { path: PathBuf },
    /// By this name the device can only be read, and it was to be written.
    #[error("{}: a read-only device; name /dev/mtd{number}", path.display())]
    ReadOnly { path: PathBuf, number: u32 },
    /// Someone else has it open as a chip.
    #[error("{}: in use by another process", path.display())]
    InUse { path: PathBuf },
    /// It is flash of another kind.
    #[error("{}: flash of the type {kind}; FlexFS needs raw NAND, of the type nand or mlc-nand", path.display())]
    NotNand { path: PathBuf, kind: String },
    /// It is NAND, but something of its shape does not fit.
    #[error("{}: {why}", path.display())]
    Shape { path: PathBuf, why: String },
    /// Linux does not tell something that has to be known.
    #[error("{}: {why}", path.display())]
    Attribute { path: PathBuf, why: String },
    /// The device could not be opened or asked.
    #[error("{}: {what}: {source}", path.display())]
    Io { path: PathBuf, what: &'static str, source: io::Error },
}
