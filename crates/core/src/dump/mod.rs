//! A look at the structures of a volume as they stand: blocks, the slots in them, the index, the newest anchor.
//!
//! For people and tools that want to see; nothing here changes anything. Invariant: what cannot be read is told as such,
//! and ends nothing.

mod channel_pages;

pub use channel_pages::{ChannelPages, imbalance_rate};

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use nand::Nand;

use crate::error::{Error, Result};
use crate::flash::head::HeadId;
use crate::format::key::{KEY_END, ino_of, kind_name, kind_of, offset_of};
use crate::format::manager::ManagerRecord;
use crate::format::node::{self, Body, Order};
use crate::format::place::{NO_SLOT, NODE_UNIT, Place};
use crate::format::table::Use;
use crate::format::tag::{Kind, Tag};
use crate::store::records::Records;

/// A block, as the table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    pub number: u32,
    /// `free`, `log`, `index`, `anchor` or `bad`.
    pub used_as: &'static str,
    /// Programmed natively since its last erase, else as SLC.
    pub native: bool,
    /// Known to be fully erased.
    pub erased: bool,
    /// Its last slots hold a summary.
    pub sealed: bool,
    /// Failed a program or an erase; it is emptied, then tested.
    pub failing: bool,
    /// It holds what was likely to be written again soon.
    pub hot: bool,
    /// The log head that stands in it: `slc`, `native`, `index` or `slc-hot`.
    pub head: Option<&'static str>,
    /// Which of the head's lanes.
    pub lane: Option<u8>,
    pub erases: u32,
    pub live_bytes: u32,
}

/// An entry of the index: where what belongs to an inode stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    pub ino: u64,
    /// `inode`, `entry`, `attribute`, `data` or `orphan`.
    pub kind: &'static str,
    /// The chunk, or the offset of the name's hash.
    pub offset: u64,
    /// Chunks it covers.
    pub count: u64,
    /// The slot it begins in, unless it has none.
    pub slot: Option<u64>,
    /// Where in the slot a node begins, and how long it is, bytes.
    pub node: Option<(u32, u32)>,
}

/// What stands in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Nothing was programmed.
    Blank,
    /// It cannot be read, or its checksum does not hold.
    Unreadable,
    Holds(SlotTag),
}

/// A slot's tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotTag {
    /// `data`, `nodes`, `summary`, `index`, `table` or `anchor`.
    pub kind: &'static str,
    pub seq: u64,
    /// It ends a group.
    pub end: bool,
    /// Written while formatting or recovering.
    pub unlogged: bool,
    pub ino: u64,
    pub chunk: u64,
    pub len: u32,
    pub erases: Option<u32>,
    /// When it was written, ns since 1970, for bare data: of a copy, when the original was, to 134 s.
    pub time_ns: Option<i64>,
    /// The slot it is a copy of.
    pub copy_of: Option<u64>,
    /// Its nodes: where each begins (bytes into the slot) and what it says.
    pub nodes: Vec<(u32, String)>,
}

/// The newest anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorInfo {
    pub serial: u64,
    pub checkpoint: u64,
    pub epoch: u32,
    pub clean: bool,
    /// The other block of the pair is erased.
    pub other_erased: bool,
    /// The log counts from here.
    pub seq: u64,
    pub next_ino: u64,
    pub files: u64,
    pub reserved_chunks: u64,
    /// The root of the index, and its levels.
    pub root: Option<(u64, u8)>,
    pub index_pages: u64,
    /// The blocks that anchors are written to.
    pub pair: [u32; 2],
    /// Where each head stood: name, block, program unit.
    pub heads: Vec<(&'static str, u32, u32)>,
    /// Pages of the block table that were ever written.
    pub tables: Vec<u64>,
    pub created_ns: i64,
    pub written_ns: i64,
    /// What the wear manager knows of the volume's life.
    pub manager: ManagerRecord,
}

/// Every block.
pub fn blocks<N: Nand>(records: &Records<N>) -> impl Iterator<Item = BlockInfo> + '_ {
    records.flash().blocks().iter().map(|(number, block)| {
        let slots = records.flash().slots();
        let lane = slots.lanes().find(|head| head.block() == Some(number));
        BlockInfo {
            number,
            used_as: match block.entry.used_as {
                Use::Free => "free",
                Use::Log => "log",
                Use::Meta => "index",
                Use::Anchor => "anchor",
                Use::Bad => "bad",
            },
            native: block.entry.native,
            erased: block.entry.erased,
            sealed: block.entry.sealed,
            failing: block.entry.failing,
            hot: block.entry.hot,
            head: lane.map(|at| at.head.name()),
            lane: lane.map(|at| at.lane),
            erases: block.entry.erases,
            live_bytes: block.entry.live_bytes,
        }
    })
}

/// The entries of the index in order, until `each` returns false.
pub fn index_entries<N: Nand>(records: &mut Records<N>, each: &mut dyn FnMut(IndexEntry) -> bool) -> Result<()> {
    let mut from = 0;
    while let Some(entry) = records.next(from, KEY_END)? {
        let (slot, node) = match entry.place {
            Place::Run { slot, .. } => (Some(slot), None),
            Place::Node { slot, at, units } => {
                let unit = NODE_UNIT as u32;
                (Some(slot), Some((u32::from(at) * unit, u32::from(units) * unit)))
            }
            Place::Mark | Place::Reserved { .. } | Place::Pending { .. } => (None, None),
        };
        let told = IndexEntry {
            ino: ino_of(entry.key),
            kind: kind_name(kind_of(entry.key)),
            offset: offset_of(entry.key),
            count: entry.place.span(),
            slot,
            node,
        };
        if !each(told) {
            break;
        }
        from = entry.end();
    }
    Ok(())
}

/// The slots of a block in programming order, each with its address, until `each` returns false.
pub fn slots<N: Nand>(
    records: &mut Records<N>,
    block: u32,
    each: &mut dyn FnMut(u64, SlotState) -> bool,
) -> Result<()> {
    let shape = records.flash().shape().clone();
    let mode = shape.mode(records.flash().blocks().get(block).mode());
    let mut data = vec![0; shape.slot_bytes];
    for index in 0..mode.units * mode.unit_slots {
        let slot = shape.slot(block, index);
        let state = match records.slot_reader().tagged(block, index, &mut data) {
            Ok(Some(tag)) => SlotState::Holds(describe(&tag, &data)),
            Ok(None) => SlotState::Blank,
            Err(Error::Corrupt { .. }) => SlotState::Unreadable,
            Err(error) => return Err(error),
        };
        if !each(slot, state) {
            break;
        }
    }
    Ok(())
}

/// The newest anchor, as it was found or written last.
pub fn anchor<N: Nand>(records: &Records<N>) -> Option<AnchorInfo> {
    let anchor = records.flash().anchors().last()?;
    let heads = anchor.heads.iter().filter_map(|at| Some((HeadId::from_number(at.head)?.name(), at.block, at.unit)));
    Some(AnchorInfo {
        serial: anchor.serial,
        checkpoint: anchor.checkpoint,
        epoch: anchor.epoch,
        clean: anchor.clean,
        other_erased: anchor.other_erased,
        seq: anchor.seq,
        next_ino: anchor.next_ino,
        files: anchor.files,
        reserved_chunks: anchor.reserved_chunks,
        root: anchor.root,
        index_pages: anchor.index_pages,
        pair: anchor.pair,
        heads: heads.collect(),
        tables: anchor.tables.iter().copied().filter(|&slot| slot != NO_SLOT).collect(),
        created_ns: anchor.created_ns,
        written_ns: anchor.now_ns,
        manager: anchor.manager,
    })
}

fn describe(tag: &Tag, data: &[u8]) -> SlotTag {
    let kind = match tag.kind {
        Kind::Data => "data",
        Kind::Nodes => "nodes",
        Kind::Summary => "summary",
        Kind::Index => "index",
        Kind::Table => "table",
        Kind::Anchor => "anchor",
    };
    let bare = tag.kind == Kind::Data;
    let nodes = match tag.kind {
        Kind::Nodes => node::nodes(data, tag.len as usize).collect(),
        _ => Vec::new(),
    };
    SlotTag {
        kind,
        seq: tag.seq,
        end: tag.end,
        unlogged: tag.unlogged,
        ino: tag.ino,
        chunk: tag.chunk,
        len: tag.len,
        erases: tag.erases,
        time_ns: (bare && tag.time_ns != 0).then_some(tag.time_ns),
        copy_of: (bare && tag.copy).then_some(tag.source),
        nodes: nodes.into_iter().map(|(at, _, node)| (u32::from(at) * NODE_UNIT as u32, say(&node))).collect(),
    }
}

/// A node in words.
fn say(node: &node::Node<'_>) -> String {
    let ino = node.ino;
    let what = match node.body {
        Body::Inode(inode) => {
            format!("inode {ino}: mode {:o}, {} links, {} bytes", inode.mode, inode.nlink, inode.size)
        }
        Body::Entry { child, name, .. } => {
            format!("entry of {ino}: \"{}\" is {child}", String::from_utf8_lossy(name).escape_debug())
        }
        Body::EntryGone { offset, .. } => format!("entry of {ino} gone: {offset:#x}"),
        Body::Data { chunk, len, lz4, bytes, .. } => {
            let packed = if lz4 { "compressed, " } else { "" };
            format!("data of {ino}: chunk {chunk}, {len} bytes ({packed}{} stored)", bytes.len())
        }
        Body::Cut { from, count } => format!("cut of {ino}: {count} chunks from {from}"),
        Body::Reserve { from, count } => format!("reserve of {ino}: {count} chunks from {from}"),
        Body::Xattr { name, value_len, .. } => {
            format!("attribute of {ino}: \"{}\", {value_len} bytes", String::from_utf8_lossy(name).escape_debug())
        }
        Body::XattrPart { part, bytes, .. } => format!("attribute of {ino}: part {part}, {} bytes", bytes.len()),
        Body::XattrGone { offset, count } => format!("attribute of {ino} gone: {offset:#x}, {count} offsets"),
        Body::Forget => format!("forget {ino}"),
    };
    match node.order {
        Order::Back(_) => what,
        Order::CopyOf { slot, at } => format!("{what}; copy of {slot:#x} + {}", u32::from(at) * NODE_UNIT as u32),
    }
}
