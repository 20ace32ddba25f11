//! `flexfs dump` of a translation layer: its anchor, the use of every block, the tag of every page.
//!
//! Invariant: pages are shown as they stand in the image, uses as an opening finds them; what cannot be read is shown as
//! such and ends nothing.

use std::io::{self, Write};

use anyhow::{Result, anyhow, bail};
use ftl::{BlockDevice, BlockUse, PageState, PageTag, Scheme, Volume};
use nand::Nand;
use serde_json::{Value, json};

use super::block_map;
use crate::cli;
use crate::output::{grouped, table};
use crate::translation::figures::map_blocks;
use crate::translation::{FtlImage, uses};

/// The uses of a volume's blocks, as far as they are known.
struct KnownUses {
    uses: Vec<BlockUse>,
    /// Sectors of the device; or why it cannot be opened, so that no use is known.
    sectors: Result<u64, ftl::Error>,
}

impl KnownUses {
    fn of(layer: &FtlImage) -> Self {
        let opened = layer.opened().and_then(|mut device| Ok((device.uses()?, device.sectors())));
        match opened {
            Ok((uses, sectors)) => Self { uses, sectors: Ok(sectors) },
            Err(error) => {
                let used = |block| if layer.chip().is_bad(block) { BlockUse::Bad } else { BlockUse::Unknown };
                Self { uses: (0..layer.chip().geometry().blocks).map(used).collect(), sectors: Err(error) }
            }
        }
    }
}

/// Writes what was asked for.
pub fn write(layer: &mut FtlImage, args: &cli::Dump, out: &mut impl Write) -> Result<()> {
    if let Some(file) = &args.path {
        let (path, what, file) = (args.image.display(), layer.described(), file.display());
        bail!("{path}: it holds {what}, which has no files, so no {file}");
    }
    if args.index || args.ino.is_some() {
        let (path, what) = (args.image.display(), layer.described());
        bail!("{path}: it holds {what}, which has no index; `flexfs dump {path}` shows its blocks");
    }
    let blocks = KnownUses::of(layer);
    match args.block {
        Some(block) => pages(layer, &blocks, args, block, out),
        None => overview(layer, &blocks, args, out),
    }
}

/// The newest anchor and the map of blocks.
fn overview(layer: &FtlImage, blocks: &KnownUses, args: &cli::Dump, out: &mut impl Write) -> Result<()> {
    if args.json {
        let each =
            (0..).zip(&blocks.uses).map(|(block, used)| uses::json(block, used, layer.chip().erase_count(block)));
        let object = json!({
            "image": args.image,
            "anchor": anchor_json(layer.volume()),
            "sectors": blocks.sectors.as_ref().ok(),
            "blocks": each.collect::<Vec<_>>(),
        });
        writeln!(out, "{object}")?;
        return Ok(());
    }
    writeln!(out, "{}\n", anchor_table(layer.volume(), &blocks.sectors))?;
    block_map(blocks.uses.iter().map(uses::letter), out)?;
    writeln!(out, "\n{}", uses::legend())?;
    Ok(())
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

/// The pages of one block.
fn pages(layer: &mut FtlImage, blocks: &KnownUses, args: &cli::Dump, block: u32, out: &mut impl Write) -> Result<()> {
    let Some(used) = blocks.uses.get(block as usize) else {
        bail!("{}: there is no block {block}; the last one is {}", args.image.display(), blocks.uses.len() - 1)
    };
    let erases = layer.chip().erase_count(block);
    if args.json {
        writeln!(out, "{}", uses::json(block, used, erases))?;
    } else {
        writeln!(out, "block {block}: {used}, {erases} erases")?;
    }
    let mut lines = PageLines { out, scheme: layer.volume().scheme, blank_from: None };
    let (mut outcome, mut count) = (Ok(()), 0);
    layer
        .pages(block, &mut |page, state| {
            count = page + 1;
            outcome =
                if args.json { writeln!(lines.out, "{}", page_json(page, &state)) } else { lines.page(page, &state) };
            outcome.is_ok()
        })
        .map_err(|error| anyhow!("{}: {error}", args.image.display()))?;
    outcome?;
    Ok(lines.end_blank(count)?)
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
