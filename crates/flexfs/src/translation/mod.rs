//! Images that hold a flash translation layer instead of the file system.
//!
//! Invariant: an opening writes, so that the layer is opened on a copy of the chip in memory; the image stays as it is
//! to the last byte.

pub mod figures;
pub mod live;
pub mod uses;

use std::path::Path;

use anyhow::anyhow;
use emulator::Chip;
use ftl::{Device, Options, PageState, Scheme, Volume};

pub use figures::FtlFigures;

/// The chip of an image with a translation layer, which is only read.
pub struct FtlImage {
    chip: Chip,
    volume: Volume,
}

impl FtlImage {
    /// The translation layer on a chip, if there is one.
    pub fn on(mut chip: Chip) -> Option<Self> {
        // The search for a file system, which comes first, tells of a chip that cannot be read.
        let volume = Volume::find(&mut chip).ok()?;
        Some(Self { chip, volume })
    }

    pub fn chip(&self) -> &Chip {
        &self.chip
    }

    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// The volume, and the chip that it stands on.
    pub fn parts_mut(&mut self) -> (&Volume, &mut Chip) {
        (&self.volume, &mut self.chip)
    }

    /// Visits the pages of a block, with the state of each, until `visit` says no more.
    pub fn pages(&mut self, block: u32, visit: &mut dyn FnMut(u32, PageState) -> bool) -> Result<(), ftl::Error> {
        self.volume.pages(&mut self.chip, block, visit)
    }

    /// The layer in a few words.
    pub fn described(&self) -> String {
        described(self.volume.scheme)
    }

    /// The reason why nothing can be done with files of this image.
    pub fn refusal(&self, path: &Path) -> anyhow::Error {
        let (path, layer) = (path.display(), self.described());
        anyhow!(
            "{path}: it holds {layer}, not a file system; `flexfs serve {path}` gives its sectors to hosts as a disk, \
             `flexfs mkfs {path} --size SIZE --force` makes it anew (all on it is lost)"
        )
    }

    /// The block device, opened on a copy of the chip.
    pub fn opened(&self) -> Result<Device<Chip>, ftl::Error> {
        Device::open(self.chip.snapshot(), Options::default())
    }
}

/// A translation layer of this scheme in a few words.
pub fn described(scheme: Scheme) -> String {
    format!("a {scheme} translation layer")
}
