//! What can go wrong around a chip, as opposed to in it.
//!
//! Operations on a chip report [`nand::NandError`]; making, opening and syncing one reports [`EmulatorError`]. Each
//! variant about an image names the file, what was expected of it, and what its owner can do.

use std::{io, path::PathBuf};

use nand::{LayoutError, NandError};

/// Why a text or a set of numbers does not describe a chip.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No built-in profile has that name.
    #[error("no chip profile is named \"{name}\"; there are {known}")]
    Unknown { name: String, known: String },
    /// The text is not a profile.
    #[error("the chip profile cannot be read: {0}")]
    Parse(String),
    /// A field's value makes no chip.
    #[error("chip profile: {field} {why}")]
    Field { field: &'static str, why: String },
    /// The pages of a block contradict each other.
    #[error("chip profile: {0}")]
    Layout(#[from] LayoutError),
    /// The capacity asked for is not a whole number of erase blocks.
    #[error(
        "a capacity of {bytes} bytes does not fit this chip: it must be a multiple of {multiple} bytes, from {least} to {most}"
    )]
    Capacity { bytes: u64, multiple: u64, least: u64, most: u64 },
}

/// Why a chip could not be made, opened or synced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The profile does not describe a chip.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// An image is to be made where a file already stands.
    #[error(
        "{}: a file of that name exists and is left alone; remove it, choose another name, or ask for it to be replaced",
        path.display()
    )]
    Exists { path: PathBuf },
    /// There is no such image.
    #[error("{}: no such chip image; make one first", path.display())]
    Missing { path: PathBuf },
    /// Another process, or another chip in this one, has the image open.
    #[error("{}: the chip image is in use; stop whatever has it open, then try again", path.display())]
    InUse { path: PathBuf },
    /// The file is something else.
    #[error(
        "{}: not a chip image (a file beginning with \"FLXCHIP\" was expected); it is left alone, check the name",
        path.display()
    )]
    Foreign { path: PathBuf },
    /// The image's making was interrupted.
    #[error(
        "{}: the chip image has no header: where its making was interrupted it is half made and holds nothing, remove it \
         and make it again; where something was stored in it, restore a backup",
        path.display()
    )]
    HalfMade { path: PathBuf },
    /// The image is shorter than its header says.
    #[error(
        "{}: the chip image was cut short: {expected_bytes} bytes were expected, {found_bytes} are there; copy it again \
         whole or restore a backup",
        path.display()
    )]
    Short { path: PathBuf, expected_bytes: u64, found_bytes: u64 },
    /// The image is of a format this version does not know.
    #[error(
        "{}: the chip image has format version {version}, this program knows version {supported}; use a newer program",
        path.display()
    )]
    Version { path: PathBuf, version: u32, supported: u32 },
    /// The image's header or tables contradict themselves.
    #[error("{}: the chip image is damaged ({what}); restore a backup or make it again", path.display())]
    Damaged { path: PathBuf, what: String },
    /// There is no room for the image's tables.
    #[error("{}: no space is left on the disk under the chip image while {what}; free some", path.display())]
    DiskFull { path: PathBuf, what: &'static str },
    /// The host's file system failed.
    #[error("{}: {what} failed: {source}; check the file's permissions and its disk", path.display())]
    Io { path: PathBuf, what: &'static str, source: io::Error },
    /// A block that cannot be made bad: outside the chip, or one of the two that makers guarantee.
    #[error("block {block} cannot be bad from the factory: it must lie inside 2..{blocks}")]
    FactoryBad { block: u32, blocks: u32 },
}

/// An error of the medium under the chip, `ENOSPC` and its like, as the chip's user sees it.
pub(crate) fn medium(what: &'static str, error: &std::io::Error) -> NandError {
    NandError::Medium { what, errno: error.raw_os_error().unwrap_or(0) }
}
