//! Images that hold a flash translation layer instead of the file system: making one, telling of one, checking one.
//!
//! Invariant: an opening writes, so that what only looks opens a copy of the chip in memory; the image stays as it is to the
//! last byte.

pub mod check;
pub mod dump;
pub mod figures;
pub mod make;
mod uses;

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use emulator::Chip;
use ftl::{Device, Options, Scheme, Volume};

use crate::image;

/// An image with a translation layer, opened for reading only.
pub struct Held {
    chip: Chip,
    volume: Volume,
}

impl Held {
    /// The translation layer on a chip, if there is one.
    pub fn on(mut chip: Chip) -> Option<Self> {
        // What stands in the way of finding one is told by whoever looked for a file system before.
        let volume = Volume::find(&mut chip).ok()?;
        Some(Self { chip, volume })
    }

    /// The same of an image that is known to hold one.
    pub fn of(path: &Path) -> Result<Self> {
        let chip = image::open_chip(path, true)?;
        let Some(held) = Self::on(chip) else { bail!("{}: it holds no translation layer any more", path.display()) };
        Ok(held)
    }

    /// What it is, in a few words.
    fn what(&self) -> String {
        what(self.volume.scheme)
    }

    /// Why nothing can be done with files of this image.
    pub fn refusal(&self, path: &Path) -> anyhow::Error {
        let (path, what) = (path.display(), self.what());
        anyhow!(
            "{path}: it holds {what}, not a file system; `flexfs info {path}` tells more, \
             `flexfs mkfs {path} --size SIZE --force` makes it anew (all on it is lost)"
        )
    }

    /// The block device, opened on a copy of the chip.
    fn opened(&self) -> Result<Device<Chip>, ftl::Error> {
        Device::open(self.chip.snapshot(), Options::default())
    }
}

/// What a translation layer of this scheme is called.
fn what(scheme: Scheme) -> String {
    format!("a {scheme} translation layer")
}
