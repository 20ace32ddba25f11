//! The mount of a chip: of the file system on it, or of the file system over the drive on it.
//!
//! Invariant: an image says by itself which of them it holds; the search for a drive only reads.

use flexfs_core::{Error, Fs, MountOptions};

use crate::any_chip::AnyChip;

/// Mounts the file system on a chip. Where there is none, and a drive is found, it is mounted over that; the drive stays with the
/// chip that a refusal gives back.
pub fn mount(chip: AnyChip, options: MountOptions) -> Result<Fs<AnyChip>, (AnyChip, Error)> {
    match Fs::mount(chip, options.clone()) {
        // A drive has fewer blocks than its chip, so that a volume over one is never taken for a volume on the chip.
        Err((chip, error)) if !matches!(error, Error::Nand(_)) => match chip.with_drive() {
            Ok(drive) => Fs::mount(drive, options),
            Err(chip) => Err((chip, error)),
        },
        mounted => mounted,
    }
}
