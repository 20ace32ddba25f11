//! `flexfs info`: what an image holds and how worn its chip is. Reads only.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use flexfs_core::Info;
use nand::{CellMode, Geometry, Nand};
use serde_json::{Value, json};

use crate::output::{grouped, table};
use crate::{cli, image, output, size};

pub fn run(args: &cli::Info) -> Result<ExitCode> {
    let path = &args.image;
    let mut fs = image::open_to_look(path).map_err(|refused| refused.into_error(path))?;
    let info = fs.info().map_err(|error| anyhow!("{}: {}", path.display(), image::explain(&error, path)))?;
    let chip = fs.chip();
    let figures = Figures {
        image: path.display().to_string(),
        profile: chip.profile().name.clone(),
        geometry: chip.geometry().clone(),
        endurance: CellMode::ALL.map(|mode| chip.endurance(mode)),
        info,
    };
    output::say(&if args.json { figures.json().to_string() } else { figures.table() })?;
    Ok(ExitCode::SUCCESS)
}

/// A volume's identity as people write one.
pub fn volume_id(id: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in id.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

struct Figures {
    image: String,
    profile: String,
    geometry: Geometry,
    /// Erases a block endures: as SLC, natively.
    endurance: [u32; 2],
    info: Info,
}

impl Figures {
    /// The mean erase count over the blocks that are not bad.
    fn mean_erases(&self) -> f64 {
        let good = self.geometry.blocks.saturating_sub(self.info.blocks.bad).max(1);
        self.info.erases_total as f64 / f64::from(good)
    }

    fn json(&self) -> Value {
        let (info, geometry) = (&self.info, &self.geometry);
        json!({
            "image": self.image,
            "profile": self.profile,
            "chip": {
                "bytes": geometry.native_bytes(),
                "blocks": geometry.blocks,
                "pages_per_block": geometry.pages_per_block,
                "page_bytes": geometry.page_bytes,
                "spare_bytes": geometry.spare_bytes,
                "bits_per_cell": geometry.bits_per_cell,
                "dies": geometry.dies(),
            },
            "volume_id": volume_id(&info.volume_id),
            "label": info.label,
            "version": info.version,
            "epoch": info.epoch,
            "clean": info.clean,
            "checkpoints": info.checkpoints,
            "chunk_bytes": info.chunk_bytes,
            "capacity_bytes": info.capacity_bytes,
            "used_bytes": info.used_bytes,
            "files": info.files,
            "blocks": {
                "free": info.blocks.free,
                "slc": info.blocks.slc,
                "native": info.blocks.native,
                "metadata": info.blocks.metadata,
                "bad": info.blocks.bad,
            },
            "wear": {
                "min": info.erases_min,
                "mean": self.mean_erases(),
                "max": info.erases_max,
                "total": info.erases_total,
                "endurance_slc": self.endurance[0],
                "endurance_native": self.endurance[1],
            },
        })
    }

    fn table(&self) -> String {
        let (info, geometry) = (&self.info, &self.geometry);
        let blocks = &info.blocks;
        let percent = 100.0 * info.used_bytes as f64 / (info.capacity_bytes.max(1)) as f64;
        table(&[
            ("image", self.image.clone()),
            ("label", if info.label.is_empty() { "(none)".into() } else { info.label.clone() }),
            ("volume", volume_id(&info.volume_id)),
            (
                "chip",
                format!(
                    "{}: {}, {} blocks of {} pages of {}, {} bits a cell, {} spare bytes",
                    self.profile,
                    size::human(geometry.native_bytes()),
                    grouped(geometry.blocks.into()),
                    geometry.pages_per_block,
                    size::human(geometry.page_bytes.into()),
                    geometry.bits_per_cell,
                    geometry.spare_bytes,
                ),
            ),
            (
                "state",
                format!(
                    "{}; format {}, epoch {}, checkpoint {}",
                    if info.clean { "clean" } else { "not unmounted cleanly: the next mount recovers it" },
                    info.version,
                    info.epoch,
                    grouped(info.checkpoints),
                ),
            ),
            (
                "space",
                format!(
                    "{} of {} used ({percent:.1} %), {} inodes",
                    size::human(info.used_bytes),
                    size::human(info.capacity_bytes),
                    grouped(info.files),
                ),
            ),
            (
                "blocks",
                format!(
                    "{} free, {} SLC, {} native, {} metadata, {} bad",
                    grouped(blocks.free.into()),
                    grouped(blocks.slc.into()),
                    grouped(blocks.native.into()),
                    grouped(blocks.metadata.into()),
                    grouped(blocks.bad.into()),
                ),
            ),
            (
                "erases",
                format!(
                    "{} least, {:.1} mean, {} most (a block endures {} as SLC, {} natively)",
                    grouped(info.erases_min.into()),
                    self.mean_erases(),
                    grouped(info.erases_max.into()),
                    grouped(self.endurance[0].into()),
                    grouped(self.endurance[1].into()),
                ),
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_id_is_written_like_a_uuid() {
        let id: [u8; 16] = std::array::from_fn(|index| index as u8 * 16);
        assert_eq!(volume_id(&id), "00102030-4050-6070-8090-a0b0c0d0e0f0");
    }
}
