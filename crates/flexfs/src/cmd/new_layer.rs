//! Making a translation layer on a new chip, as `flexfs mkfs --ftl` and `flexfs serve --create` do.
//!
//! Invariant: every sector of the device that is made reads as zeros; an error names the image and the option to change.

use std::path::Path;

use anyhow::{Result, anyhow, bail, ensure};
use emulator::{Chip, Profile};
use ftl::{Device, Format, Options, Scheme};
use nand::Nand;

use crate::new_image;
use crate::output::grouped;
use crate::translation::described;
use crate::{chips, cli};

/// A translation layer to make.
pub struct NewLayer<'a> {
    /// The image, for errors.
    pub image: &'a Path,
    /// The option that says the chip's size.
    pub size_option: &'static str,
    pub scheme: Scheme,
    pub asked: &'a cli::LayerCounts,
    /// The number of the volume.
    pub number: u32,
}

/// Refuses counts that the scheme does not have, or a chip of so many blocks.
pub fn check_counts(asked: &cli::LayerCounts, scheme: Scheme, blocks: u32) -> Result<()> {
    let has_logs = matches!(scheme, Scheme::LogBlock | Scheme::LogBlockScanned | Scheme::Fast);
    let counts = [
        ("--extra-blocks", asked.extra_blocks, true),
        ("--logs", asked.logs, has_logs),
        ("--map-blocks", asked.map_blocks, scheme == Scheme::LogBlock),
    ];
    for (option, count, applies) in counts {
        let Some(count) = count else { continue };
        if !applies {
            bail!("{} has none of those; leave out {option}", described(scheme));
        }
        let has = grouped(blocks.into());
        ensure!(count < blocks, "{option} {count} is too many: the chip has {has} blocks");
    }
    Ok(())
}

/// A number for a new volume, by chance.
pub fn volume_number() -> Result<u32> {
    new_image::by_chance().map(u32::from_le_bytes)
}

impl NewLayer<'_> {
    /// A chip of that kind and size.
    pub fn profile(&self, kind: &Profile, bytes: u64) -> Result<Profile> {
        chips::fitted(kind, bytes, self.size_option).map_err(|why| anyhow!("{}: {why}", self.image.display()))
    }

    /// Makes it on a new chip.
    pub fn on_chip(&self, chip: Chip) -> Result<Device<Chip>> {
        let told = |error: ftl::Error| anyhow!("{}: {error}; {}", self.image.display(), self.remedy());
        let format = self.format(&chip, Format::usual(&chip, self.scheme, self.number).map_err(told)?)?;
        Device::format(chip, self.scheme, &format, Options::default()).map_err(told)
    }

    /// The usual format, changed as was asked for.
    fn format(&self, chip: &Chip, usual: Format) -> Result<Format> {
        let asked = self.asked;
        check_counts(asked, self.scheme, chip.geometry().blocks)
            .map_err(|error| error.context(self.image.display().to_string()))?;
        Ok(Format {
            extra_blocks: asked.extra_blocks.unwrap_or(usual.extra_blocks),
            logs: asked.logs.unwrap_or(usual.logs),
            map_blocks: asked.map_blocks.unwrap_or(usual.map_blocks),
            ..usual
        })
    }

    /// An action for a translation layer that does not fit its chip.
    fn remedy(&self) -> String {
        match (self.asked.extra_blocks, self.asked.logs, self.asked.map_blocks) {
            (None, None, None) => format!("take another {} or another --profile", self.size_option),
            _ => "choose other --extra-blocks, --logs and --map-blocks, or leave them out".to_owned(),
        }
    }
}
