//! `flexfs dump` of a file system: its checkpoint, the map of blocks, the slots of a block, the index, the spread of a file.
//!
//! Invariant: a slot that cannot be read is shown as unreadable and ends nothing.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use anyhow::{Result, anyhow, bail};
use flexfs_core::dump::{AnchorInfo, BlockInfo, ChannelPages, IndexEntry, SlotState, SlotTag};
use flexfs_core::{Attr, Error, Fs, ManagerRecord, kind};
use jiff::Timestamp;
use nand::Nand;
use serde_json::{Value, json};

use super::block_map;
use crate::any_chip::AnyChip;
use crate::output::{grouped, table};
use crate::tree::{Tree, shown};
use crate::{cli, drive_figures, image, spread_figures};

/// Writes the part of a file system that was asked for.
pub fn write(fs: &mut Fs<AnyChip>, args: &cli::Dump, out: &mut impl Write) -> Result<()> {
    if let Some(path) = &args.path {
        file_spread(fs, args, path.as_bytes(), out)
    } else if let Some(block) = args.block {
        block_slots(fs, args, block, out)
    } else if args.index || args.ino.is_some() {
        index(fs, args, out)
    } else {
        overview(fs, args, out)
    }
}

/// The newest anchor and the map of blocks.
fn overview(fs: &mut Fs<AnyChip>, args: &cli::Dump, out: &mut impl Write) -> Result<()> {
    let info = fs.info()?;
    let blocks: Vec<BlockInfo> = fs.blocks().collect();
    let anchor = fs.anchor().ok_or_else(|| anyhow!("{}: no anchor was read", args.image.display()))?;
    if args.json {
        let blocks: Vec<Value> = blocks.iter().map(block_json).collect();
        let drive = fs.chip().drive().map(|drive| drive_figures::json(&drive.report()));
        writeln!(
            out,
            "{}",
            json!({
                "image": args.image,
                "anchor": anchor_json(&anchor),
                "drive": drive,
                "lanes": spread_figures::lanes_json(&info),
                "dies": spread_figures::dies_json(&info),
                "blocks": blocks,
            })
        )?;
        return Ok(());
    }
    writeln!(out, "{}", anchor_table(&anchor))?;
    if let Some(drive) = fs.chip().drive() {
        writeln!(out, "{}", table(&drive_figures::rows(&drive.report())))?;
    }
    let spread = spread_figures::rows(&info);
    if !spread.is_empty() {
        writeln!(out, "{}", table(&spread))?;
    }
    writeln!(out)?;
    block_map(blocks.iter().map(letter), out)?;
    writeln!(
        out,
        "\n. free   S SLC log   H hot SLC log   N native log   i index   a anchors   x bad   ! failing   lower case: emptied"
    )?;
    Ok(())
}

/// A block in the map.
fn letter(block: &BlockInfo) -> char {
    let letter = match (block.used_as, block.native) {
        _ if block.failing => '!',
        ("log", false) if block.hot => 'H',
        ("log", false) => 'S',
        ("log", true) => 'N',
        ("index", _) => 'i',
        ("anchor", _) => 'a',
        ("bad", _) => 'x',
        _ => '.',
    };
    if block.live_bytes == 0 && block.head.is_none() { letter.to_ascii_lowercase() } else { letter }
}

fn block_json(block: &BlockInfo) -> Value {
    json!({
        "block": block.number,
        "used_as": block.used_as,
        "native": block.native,
        "erased": block.erased,
        "sealed": block.sealed,
        "failing": block.failing,
        "hot": block.hot,
        "head": block.head,
        "lane": block.lane,
        "erases": block.erases,
        "live_bytes": block.live_bytes,
    })
}

fn anchor_json(anchor: &AnchorInfo) -> Value {
    let heads: Vec<Value> =
        anchor.heads.iter().map(|(head, block, unit)| json!({ "head": head, "block": block, "unit": unit })).collect();
    json!({
        "serial": anchor.serial,
        "checkpoint": anchor.checkpoint,
        "epoch": anchor.epoch,
        "clean": anchor.clean,
        "other_erased": anchor.other_erased,
        "seq": anchor.seq,
        "next_ino": anchor.next_ino,
        "files": anchor.files,
        "reserved_chunks": anchor.reserved_chunks,
        "root_slot": anchor.root.map(|(slot, _)| slot),
        "levels": anchor.root.map_or(0, |(_, levels)| levels),
        "index_pages": anchor.index_pages,
        "anchor_blocks": anchor.pair,
        "heads": heads,
        "table_slots": anchor.tables,
        "created_ns": anchor.created_ns,
        "written_ns": anchor.written_ns,
        "manager": manager_json(&anchor.manager),
    })
}

fn manager_json(manager: &ManagerRecord) -> Value {
    json!({
        "life_start_ns": manager.life_start_ns,
        "life_ns": manager.life_ns,
        "window_ns": manager.window_ns,
        "elapsed_ns": manager.elapsed_ns,
        "budget_bytes": manager.budget_bytes,
        "wear_index": f64::from(manager.wear_index) / 1e6,
        "recent_kib": manager.recent_kib,
        "arrived_bytes": manager.arrived_bytes,
        "arriving_bytes": manager.arriving_bytes,
        "total_bytes": manager.total_bytes,
        "slc_bytes": manager.slc_bytes,
    })
}

fn manager_text(manager: &ManagerRecord) -> String {
    let seconds = |ns: u64| grouped(ns / 1_000_000_000);
    match manager.life_ns {
        0 => "no lifetime is asked for".into(),
        ns => format!("{} s of a lifetime of {} s are over", seconds(manager.elapsed_ns), seconds(ns)),
    }
}

fn anchor_table(anchor: &AnchorInfo) -> String {
    let heads: Vec<String> =
        anchor.heads.iter().map(|(head, block, unit)| format!("{head} in block {block} at unit {unit}")).collect();
    let root = anchor.root.map_or("(empty)".into(), |(slot, levels)| {
        format!("root at slot {slot:#x}, {levels} levels, {} pages", grouped(anchor.index_pages))
    });
    let state = if anchor.clean { "clean" } else { "in use" };
    table(&[
        (
            "anchor",
            format!("{state}; serial {}, in blocks {} and {}", grouped(anchor.serial), anchor.pair[0], anchor.pair[1]),
        ),
        ("checkpoint", format!("{}, epoch {}", grouped(anchor.checkpoint), anchor.epoch)),
        ("log", format!("from number {} on", grouped(anchor.seq))),
        ("heads", heads.join(", ")),
        ("index", root),
        ("table pages", grouped(anchor.tables.len() as u64)),
        ("inodes", format!("{}, the next is {}", grouped(anchor.files), grouped(anchor.next_ino))),
        ("reserved", format!("{} chunks", grouped(anchor.reserved_chunks))),
        ("wear", manager_text(&anchor.manager)),
        ("written", time(anchor.written_ns)),
    ])
}

fn time(ns: i64) -> String {
    Timestamp::from_nanosecond(ns.into()).map_or_else(|_| format!("{ns} ns"), |time| time.to_string())
}

/// What a block's number says: the channel and the die stand in its low digits.
struct BlockAddress {
    channel: u32,
    die: u32,
    block_on_die: u32,
    /// The block of the chip that a drive gave it; `None` while it holds nothing, or on a bare chip.
    physical_block: Option<u32>,
}

impl BlockAddress {
    fn of(chip: &AnyChip, block: u32) -> Self {
        let geometry = chip.geometry();
        Self {
            channel: geometry.channel_of(block),
            die: geometry.die_of(block),
            block_on_die: geometry.block_on_die(block),
            physical_block: chip.drive().and_then(|drive| drive.physical(block)),
        }
    }

    fn line(&self) -> String {
        let Self { channel, die, block_on_die, physical_block } = self;
        let physical = physical_block.map_or_else(String::new, |physical| format!("; physical block {physical}"));
        format!("address: channel {channel}, die {die}, block {block_on_die} of the die{physical}")
    }
}

/// The slots of one block.
fn block_slots(fs: &mut Fs<AnyChip>, args: &cli::Dump, block: u32, out: &mut impl Write) -> Result<()> {
    let blocks = fs.blocks().count();
    let Some(info) = fs.blocks().nth(block as usize) else {
        bail!("{}: there is no block {block}; the last one is {}", args.image.display(), blocks - 1)
    };
    let address = BlockAddress::of(fs.chip(), block);
    if args.json {
        let mut object = block_json(&info);
        object["address"] = json!({
            "channel": address.channel,
            "die": address.die,
            "block_on_die": address.block_on_die,
            "physical_block": address.physical_block,
        });
        writeln!(out, "{object}")?;
    } else {
        let mode = if info.native { "native" } else { "SLC" };
        let (used_as, live) = (info.used_as, grouped(info.live_bytes.into()));
        writeln!(out, "block {block}: {used_as}, {mode}, {} erases, {live} bytes live", info.erases)?;
        writeln!(out, "{}", address.line())?;
    }
    let mut outcome = Ok(());
    fs.slots(block, &mut |slot, state| {
        outcome = if args.json { writeln!(out, "{}", slot_json(slot, &state)) } else { slot_line(out, slot, &state) };
        outcome.is_ok()
    })
    .map_err(|error| read_failed(args, &error))?;
    Ok(outcome?)
}

fn read_failed(args: &cli::Dump, error: &Error) -> anyhow::Error {
    anyhow!("{}: {}", args.image.display(), image::explain(error, &args.image))
}

fn slot_json(slot: u64, state: &SlotState) -> Value {
    match state {
        SlotState::Blank => json!({ "slot": slot, "state": "blank" }),
        SlotState::Unreadable => json!({ "slot": slot, "state": "unreadable" }),
        SlotState::Holds(tag) => {
            let nodes: Vec<Value> =
                tag.nodes.iter().map(|(at, said)| json!({ "at_bytes": at, "node": said })).collect();
            json!({
                "slot": slot,
                "state": tag.kind,
                "seq": tag.seq,
                "end": tag.end,
                "unlogged": tag.unlogged,
                "ino": tag.ino,
                "chunk": tag.chunk,
                "bytes": tag.len,
                "erases": tag.erases,
                "time_ns": tag.time_ns,
                "copy_of": tag.copy_of,
                "nodes": nodes,
            })
        }
    }
}

fn slot_line(out: &mut impl Write, slot: u64, state: &SlotState) -> io::Result<()> {
    match state {
        SlotState::Blank => writeln!(out, "{slot:#08x}  blank"),
        SlotState::Unreadable => writeln!(out, "{slot:#08x}  UNREADABLE"),
        SlotState::Holds(tag) => {
            writeln!(out, "{slot:#08x}  {}", tag_text(tag))?;
            tag.nodes.iter().try_for_each(|(at, said)| writeln!(out, "          + {at:>4}  {said}"))
        }
    }
}

fn tag_text(tag: &SlotTag) -> String {
    let mut text = format!("{:7} {:>8}", tag.kind, tag.seq);
    if tag.kind == "data" {
        text.push_str(&format!("  inode {} chunk {}, {} bytes", tag.ino, tag.chunk, tag.len));
    }
    if let Some(slot) = tag.copy_of {
        text.push_str(&format!(", copy of {slot:#x}"));
    }
    if tag.end {
        text.push_str("  end");
    }
    if tag.unlogged {
        text.push_str("  unlogged");
    }
    text
}

/// How the pages of a file are spread over the channels of the chip.
fn file_spread(fs: &mut Fs<AnyChip>, args: &cli::Dump, path: &[u8], out: &mut impl Write) -> Result<()> {
    let mut tree = Tree { fs, image: &args.image };
    let Attr { ino, size, mode, .. } = tree.find(path)?.attr;
    if mode & kind::MASK != kind::FILE {
        bail!(tree.error(path, "not a regular file"));
    }
    let mut pages = ChannelPages::on(fs.chip().geometry());
    fs.index_entries(&mut |entry| {
        if entry.ino == ino {
            pages.count(&entry);
        }
        entry.ino <= ino
    })
    .map_err(|error| read_failed(args, &error))?;
    let imbalance = pages.imbalance();
    if args.json {
        let object = json!({
            "image": args.image,
            "file": shown(path),
            "ino": ino,
            "bytes": size,
            "pages_by_channel": pages.by_channel(),
            "imbalance": imbalance,
        });
        return Ok(writeln!(out, "{object}")?);
    }
    let counts: Vec<String> = pages.by_channel().iter().copied().map(grouped).collect();
    let rows = [
        ("file", format!("{}, inode {ino}, {} bytes", shown(path), grouped(size))),
        ("pages by channel", counts.join(", ")),
        ("imbalance", format!("{imbalance:.3}: the greatest less the least, over the greatest of an even spread")),
    ];
    Ok(writeln!(out, "{}", table(&rows))?)
}

/// The entries of the index, or those of one inode.
fn index(fs: &mut Fs<AnyChip>, args: &cli::Dump, out: &mut impl Write) -> Result<()> {
    let (mut outcome, mut found) = (Ok(()), false);
    fs.index_entries(&mut |entry| {
        let belongs = args.ino.is_none_or(|ino| ino == entry.ino);
        if belongs {
            found = true;
            outcome = if args.json { writeln!(out, "{}", entry_json(&entry)) } else { entry_line(out, &entry) };
        }
        outcome.is_ok()
    })
    .map_err(|error| read_failed(args, &error))?;
    match args.ino {
        Some(ino) if !found => bail!("{}: there is no inode {ino}", args.image.display()),
        _ => Ok(outcome?),
    }
}

fn entry_json(entry: &IndexEntry) -> Value {
    json!({
        "ino": entry.ino,
        "kind": entry.kind,
        "offset": entry.offset,
        "count": entry.count,
        "slot": entry.slot,
        "node_at_bytes": entry.node.map(|(at, _)| at),
        "node_bytes": entry.node.map(|(_, bytes)| bytes),
    })
}

fn entry_line(out: &mut impl Write, entry: &IndexEntry) -> io::Result<()> {
    let place = match (entry.slot, entry.node) {
        (Some(slot), Some((at, bytes))) => format!("slot {slot:#x} + {at}, {bytes} bytes"),
        (Some(slot), None) => format!("slots {slot:#x} and on, {} chunks", entry.count),
        (None, _) if entry.kind == "data" => format!("reserved, {} chunks", entry.count),
        (None, _) => "marked".into(),
    };
    writeln!(out, "{:>10}  {:9} {:#18x}  {place}", entry.ino, entry.kind, entry.offset)
}
