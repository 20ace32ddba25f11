//! The figures of a translation layer and its chip, as a table and as JSON.
//!
//! Invariant: they are those of the moment after an opening, as its next user will find it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, anyhow};
use emulator::Chip;
use ftl::{BlockDevice, BlockUse, Device, Volume};
use serde_json::{Value, json};

use super::live::LiveCard;
use super::{FtlImage, uses};
use crate::chip_figures::ChipFigures;
use crate::monitor::Form;
use crate::output::{grouped, listed, table};
use crate::size;

/// All there is to tell of a translation layer.
pub struct FtlFigures {
    image: String,
    chip: ChipFigures,
    volume: Volume,
    sectors: u64,
    sector_bytes: u64,
    uses: Vec<BlockUse>,
    /// Memory that the scheme takes.
    ram_bytes: u64,
    /// Pages read to open it, where an opening shows that.
    opening_reads: Option<u64>,
    /// The figures of a layer that is served.
    live: Option<LiveCard>,
}

impl FtlFigures {
    /// The figures of the translation layer in an image.
    pub fn of(layer: &FtlImage, path: &Path) -> Result<Self> {
        let told = |error: ftl::Error| {
            let (path, what) = (path.display(), layer.described());
            anyhow!("{path}: {what} that cannot be opened: {error}; `flexfs fsck {path}` tells more")
        };
        let mut device = layer.opened().map_err(told)?;
        let opening_reads = device.counts().all_reads();
        let figures = Self::of_device(&mut device, &layer.volume, path).map_err(told)?;
        // The opening of the copy is not to be seen in the image's wear.
        let chip = chip_figures(&layer.chip, &figures.uses);
        Ok(Self { chip, opening_reads: Some(opening_reads), ..figures })
    }

    /// The figures of an open device, the volume of which is in that image.
    pub fn of_device(device: &mut Device<Chip>, volume: &Volume, path: &Path) -> Result<Self, ftl::Error> {
        let uses = device.uses()?;
        Ok(Self {
            image: path.display().to_string(),
            chip: chip_figures(device.chip(), &uses),
            volume: volume.clone(),
            sectors: device.sectors(),
            sector_bytes: device.sector_bytes() as u64,
            uses,
            ram_bytes: device.ram_bytes() as u64,
            opening_reads: None,
            live: None,
        })
    }

    /// The same, of a layer that is served.
    pub fn with_live(self, live: LiveCard) -> Self {
        Self { live: Some(live), ..self }
    }

    /// The text to show.
    pub fn shown(&self, form: Form) -> String {
        match form {
            Form::Table => self.table(),
            Form::Json => self.json().to_string(),
        }
    }

    fn json(&self) -> Value {
        let volume = &self.volume;
        json!({
            "image": self.image,
            "profile": self.chip.profile,
            "chip": self.chip.json(),
            "scheme": volume.scheme.name(),
            "letters": volume.scheme.letters(),
            "volume": volume.number,
            "sectors": self.sectors,
            "sector_bytes": self.sector_bytes,
            "capacity_bytes": self.sectors * self.sector_bytes,
            "blocks": uses::counted(&self.uses).collect::<BTreeMap<_, _>>(),
            "logs_max": volume.logs,
            "map_blocks": volume.map_blocks,
            "map_blocks_max": volume.map_blocks_max,
            "ram_bytes": self.ram_bytes,
            "opening_reads": self.opening_reads,
            "wear": self.chip.wear_json(),
            "served": self.live.as_ref().map(|live| live.json(self.sector_bytes, &self.uses)),
        })
    }

    fn table(&self) -> String {
        let volume = &self.volume;
        let (scheme, bytes) = (volume.scheme, self.sectors * self.sector_bytes);
        let mut rows = vec![
            ("image", self.image.clone()),
            ("scheme", format!("{scheme}, {} in the paper: a translation layer, not a file system", scheme.letters())),
            ("volume", volume.number.to_string()),
            ("chip", self.chip.line()),
            (
                "sectors",
                format!("{} of {} ({})", grouped(self.sectors), size::human(self.sector_bytes), size::human(bytes)),
            ),
            ("blocks", listed(uses::counted(&self.uses))),
        ];
        if volume.logs > 0 {
            rows.push(("log blocks", format!("{} at most", grouped(volume.logs.into()))));
        }
        rows.extend(map_blocks(volume).map(|blocks| ("map blocks", blocks)));
        rows.push(("memory", format!("{} for the scheme", size::human(self.ram_bytes))));
        rows.extend(self.opening_reads.map(|reads| ("opening", format!("{} page reads", grouped(reads)))));
        rows.extend(self.live.iter().flat_map(LiveCard::rows));
        rows.push(("erases", self.chip.wear_line()));
        table(&rows) + &self.chip.bars()
    }
}

/// The figures of a chip, of the wear those of the blocks that are not bad.
fn chip_figures(chip: &Chip, uses: &[BlockUse]) -> ChipFigures {
    let erases = chip.erase_counts().zip(uses).filter(|(_, used)| **used != BlockUse::Bad);
    ChipFigures::of(chip, &chip.profile().name, erases.map(|(erases, _)| erases).collect())
}

/// A volume's map blocks: which they are, or how many at most.
pub fn map_blocks(volume: &Volume) -> Option<String> {
    let blocks: Vec<String> = volume.map_blocks.iter().map(u32::to_string).collect();
    match volume.map_blocks_max {
        0 => None,
        most if blocks.is_empty() => Some(format!("{} at most", grouped(most.into()))),
        _ => Some(blocks.join(", ")),
    }
}
