//! The content of an image: files, sectors, or neither.
//!
//! Invariant: an image with no file system to mount stays as it is to the last byte, opened for writing or not.

use std::path::Path;

use anyhow::{Result, anyhow};
use flexfs_core::{Error, Fs, MountOptions};

use super::chip::open_chip;
use super::explain;
use super::volume::mount;
use crate::any_chip::AnyChip;
use crate::clock::now_ns;
use crate::translation::FtlImage;

/// The content of an image.
pub enum Content {
    /// A file system, mounted.
    Files(Box<Fs<AnyChip>>),
    /// The sectors of a translation layer.
    Sectors(Box<FtlImage>),
    /// Neither: the chip has no translation layer, and this keeps a file system from being mounted.
    Unmountable(Error),
}

/// The content of an image, opened for reading only.
pub fn probe(path: &Path) -> Result<Content> {
    let chip = open_chip(path, true)?;
    Ok(Content::on(chip, MountOptions { read_only: true, now_ns: now_ns(), ..MountOptions::default() }))
}

impl Content {
    /// The content of a chip; a file system is mounted with these options.
    pub(super) fn on(chip: AnyChip, options: MountOptions) -> Self {
        let (mut chip, error) = match mount(chip, options) {
            Ok(fs) => return Content::Files(Box::new(fs)),
            Err(refused) => refused,
        };
        // Where a volume is refused the chip was only read, and so it is by the search for a translation layer.
        chip.forget_reads();
        match error {
            // A translation layer may stand on chips that carry no file system.
            Error::NotFlexfs(_) | Error::Unsuitable(_) => {
                let layer = chip.into_emulated().ok().and_then(FtlImage::on);
                layer.map_or(Content::Unmountable(error), |image| Content::Sectors(Box::new(image)))
            }
            _ => Content::Unmountable(error),
        }
    }

    /// The file system; where there is none, the reason in one line.
    pub fn into_files(self, path: &Path) -> Result<Fs<AnyChip>> {
        match self {
            Content::Files(fs) => Ok(*fs),
            Content::Sectors(image) => Err(image.refusal(path)),
            Content::Unmountable(error) => Err(anyhow!("{}: {}", path.display(), explain(&error, path))),
        }
    }
}
