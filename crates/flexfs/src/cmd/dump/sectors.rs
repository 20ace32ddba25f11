//! `flexfs dump` of a translation layer: its anchor, the use of every block, the tag of every page.
//!
//! Invariant: pages are shown as they stand in the image, uses as an opening finds them; what cannot be read is shown as
//! such and ends nothing.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use emulator::Chip;
use ftl::{BlockDevice, BlockUse, PageState, PageTag, Scheme, Volume};
use nand::Nand;
use serde_json::{Value, json};

use super::block_map;
use crate::cli;
use crate::monitor::Form;
use crate::output::{grouped, table};
use crate::translation::figures::map_blocks;
use crate::translation::{FtlImage, uses};

/// The uses of a volume's blocks, as far as they are known.
pub struct KnownUses {
    uses: Vec<BlockUse>,
    /// Sectors of the device; or why it cannot be opened, so that no use is known.
    sectors: Result<u64, ftl::Error>,
}

impl KnownUses {
    /// Those of a device that is open, with so many sectors.
    pub fn known(uses: Vec<BlockUse>, sectors: u64) -> Self {
        Self { uses, sectors: Ok(sectors) }
    }

    /// Those of an image, which is opened on a copy of its chip.
    pub fn of(layer: &FtlImage) -> Self {
        let opened = layer.opened().and_then(|mut device| Ok((device.uses()?, device.sectors())));
        match opened {
            Ok((uses, sectors)) => Self::known(uses, sectors),
            Err(error) => {
                let used = |block| if layer.chip().is_bad(block) { BlockUse::Bad } else { BlockUse::Unknown };
                Self { uses: (0..layer.chip().geometry().blocks).map(used).collect(), sectors: Err(error) }
            }
        }
    }
}

/// A translation layer on a chip, to be shown.
pub struct ShownLayer<'a> {
    pub image: &'a Path,
    pub volume: &'a Volume,
    pub chip: &'a mut Chip,
    pub blocks: KnownUses,
    pub form: Form,
}

/// Refuses what a translation layer does not have.
pub fn check(layer: &FtlImage, args: &cli::Dump) -> Result<()> {
    if let Some(file) = &args.path {
        let (path, what, file) = (args.image.display(), layer.described(), file.display());
        bail!("{path}: it holds {what}, which has no files, so no {file}");
    }
    if args.index || args.ino.is_some() {
        let (path, what) = (args.image.display(), layer.described());
        bail!("{path}: it holds {what}, which has no index; `flexfs dump {path}` shows its blocks");
    }
    Ok(())
}

impl ShownLayer<'_> {
    /// Writes an overview, or a block.
    pub fn write(&mut self, block: Option<u32>, out: &mut impl Write) -> Result<()> {
        match block {
            Some(block) => self.pages(block, out),
            None => self.overview(out),
        }
    }

    /// The newest anchor and the map of blocks.
    fn overview(&self, out: &mut impl Write) -> Result<()> {
        let Self { image, volume, chip, blocks, form } = self;
        if *form == Form::Json {
            let each = (0..).zip(&blocks.uses).map(|(block, used)| uses::json(block, used, chip.erase_count(block)));
            let object = json!({
                "image": image,
                "anchor": anchor_json(volume),
                "sectors": blocks.sectors.as_ref().ok(),
                "blocks": each.collect::<Vec<_>>(),
            });
            writeln!(out, "{object}")?;
            return Ok(());
        }
        writeln!(out, "{}\n", anchor_table(volume, &blocks.sectors))?;
        block_map(blocks.uses.iter().map(uses::letter), out)?;
        writeln!(out, "\n{}", uses::legend())?;
        Ok(())
    }

    /// The pages of one block.
    fn pages(&mut self, block: u32, out: &mut impl Write) -> Result<()> {
        let Self { image, volume, chip, blocks, form } = self;
        let Some(used) = blocks.uses.get(block as usize) else {
            bail!("{}: there is no block {block}; the last one is {}", image.display(), blocks.uses.len() - 1)
        };
        let erases = chip.erase_count(block);
        match form {
            Form::Json => writeln!(out, "{}", uses::json(block, used, erases))?,
            Form::Table => writeln!(out, "block {block}: {used}, {erases} erases")?,
        }
        let mut lines = PageLines { out, scheme: volume.scheme, blank_from: None };
        let (mut outcome, mut count) = (Ok(()), 0);
        let shown = volume.pages(chip, block, &mut |page, state| {
            count = page + 1;
            outcome = match form {
                Form::Json => writeln!(lines.out, "{}", page_json(page, &state)),
                Form::Table => lines.page(page, &state),
            };
            outcome.is_ok()
        });
        shown.map_err(|error| anyhow!("{}: {error}", image.display()))?;
        outcome?;
        Ok(lines.end_blank(count)?)
    }
}

fn anchor_json(volume: &Volume) -> Value {
    json!({
        "block": volume.anchor_block,
        "volume": volume.number,
        "scheme": volume.scheme.name(),
        "data_blocks": volume.data_blocks,
        "logs_max": volume.logs,
        "map_blocks": volume.map_blocks,
        "map_blocks_max": volume.map_blocks_max,
    })
}

fn anchor_table(volume: &Volume, sectors: &Result<u64, ftl::Error>) -> String {
    let logs = match volume.logs {
        0 => "none".to_owned(),
        logs => format!("{} at most", grouped(logs.into())),
    };
    let sectors = match sectors {
        Ok(count) => grouped(*count),
        Err(error) => format!("it cannot be opened: {error}"),
    };
    table(&[
        ("anchor", format!("in block {}", volume.anchor_block)),
        ("volume", volume.number.to_string()),
        ("scheme", volume.scheme.to_string()),
        ("sectors", sectors),
        ("data blocks", grouped(volume.data_blocks.into())),
        ("log blocks", logs),
        ("map blocks", map_blocks(volume).unwrap_or_else(|| "none".to_owned())),
    ])
}

fn page_json(page: u32, state: &PageState) -> Value {
    match state {
        PageState::Erased => json!({ "page": page, "state": "blank" }),
        PageState::Unreadable => json!({ "page": page, "state": "unreadable" }),
        PageState::Holds(tag) => {
            json!({ "page": page, "state": tag.kind, "logical": tag.logical, "stamp": tag.stamp, "end": tag.ends })
        }
    }
}

/// Pages as lines, blank ones that follow each other in one.
struct PageLines<'a, W> {
    out: &'a mut W,
    scheme: Scheme,
    /// The first of the blank pages that are not written yet.
    blank_from: Option<u32>,
}

impl<W: Write> PageLines<'_, W> {
    fn page(&mut self, page: u32, state: &PageState) -> io::Result<()> {
        if *state == PageState::Erased {
            self.blank_from.get_or_insert(page);
            return Ok(());
        }
        self.end_blank(page)?;
        match state {
            PageState::Holds(tag) => writeln!(self.out, "{page:>11}  {}", tag_text(tag, self.scheme)),
            _ => writeln!(self.out, "{page:>11}  UNREADABLE"),
        }
    }

    /// Writes the blank pages before `page`.
    fn end_blank(&mut self, page: u32) -> io::Result<()> {
        match self.blank_from.take() {
            Some(from) if from + 1 < page => writeln!(self.out, "{:>11}  blank", format!("{from}-{}", page - 1)),
            Some(from) => writeln!(self.out, "{from:>11}  blank"),
            None => Ok(()),
        }
    }
}

fn tag_text(tag: &PageTag, scheme: Scheme) -> String {
    let logical = match (tag.kind, scheme) {
        ("data" | "log" | "merged" | "hole" | "lost", _) | ("trim", Scheme::Fast) => {
            format!("  sector {}", tag.logical)
        }
        ("trim", Scheme::PageGreedy | Scheme::PageCostBenefit) => format!("  {} ranges", tag.logical),
        ("trim", _) => format!("  from sector {} on", tag.logical),
        ("map", _) => format!("  fragment {}", tag.logical),
        _ => String::new(),
    };
    let end = if tag.ends { "  end" } else { "" };
    format!("{:7} {:>8}{logical}{end}", tag.kind, tag.stamp)
}
