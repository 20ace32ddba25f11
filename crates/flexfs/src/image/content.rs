//! The content of an image: files, sectors, or neither.
//!
//! Invariant: a probe reads only, so that an image that a command refuses stays as it is to the last byte.

use std::path::Path;

use anyhow::{Result, anyhow};
use emulator::Chip;
use flexfs_core::{Error, Fs, MountOptions};

use super::chip::open_chip_unless;
use super::explain;
use crate::clock::now_ns;
use crate::interrupt::Interrupt;
use crate::translation::FtlImage;

/// The content of an image.
pub enum Content {
    /// A file system, mounted.
    Files(Box<Fs<Chip>>),
    /// The sectors of a translation layer.
    Sectors(Box<FtlImage>),
    /// Neither: the chip has no translation layer, and this keeps a file system from being mounted.
    Unmountable(Error),
}

/// The content of an image, opened for reading only.
pub fn probe(path: &Path) -> Result<Content> {
    probe_unless(path, &Interrupt::by_default())
}

/// The same, unless a signal comes while the image is in use.
pub fn probe_unless(path: &Path, interrupt: &Interrupt) -> Result<Content> {
    let chip = open_chip_unless(path, true, interrupt)?;
    Ok(Content::on(chip, MountOptions { read_only: true, now_ns: now_ns(), ..MountOptions::default() }))
}

impl Content {
    /// The content of a chip; a file system is mounted with these options.
    pub(super) fn on(chip: Chip, options: MountOptions) -> Self {
        match Fs::mount(chip, options) {
            Ok(fs) => Content::Files(Box::new(fs)),
            // A translation layer may stand on chips that carry no file system.
            Err((chip, error @ (Error::NotFlexfs(_) | Error::Unsuitable(_)))) => {
                FtlImage::on(chip).map_or(Content::Unmountable(error), |image| Content::Sectors(Box::new(image)))
            }
            Err((_, error)) => Content::Unmountable(error),
        }
    }

    /// The file system; where there is none, the reason in one line.
    pub fn into_files(self, path: &Path) -> Result<Fs<Chip>> {
        match self {
            Content::Files(fs) => Ok(*fs),
            Content::Sectors(image) => Err(image.refusal(path)),
            Content::Unmountable(error) => Err(anyhow!("{}: {}", path.display(), explain(&error, path))),
        }
    }
}
