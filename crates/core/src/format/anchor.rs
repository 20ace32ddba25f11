//! The anchor: the one slot that makes a checkpoint valid.
//!
//! It holds what a mount needs to find everything else: the root of the index, the pages of the block table and
//! what has changed since they were written, where each log head stood, and the volume's own figures. Invariant: a
//! decoded anchor fits the slot it came from; whether it fits the chip is for the mount to check.

use alloc::string::String;
use alloc::vec::Vec;

use nand::Cause;
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::cells::CellRecord;
use super::manager::{ManagerRecord, RawRecord};
use super::page::LEVELS_MAX;
use super::place::Slot;
use super::tag::{low, wide};

/// "FlexFS" and two bytes that text transfers would break.
const MAGIC: [u8; 8] = *b"FlexFS\r\n";
/// The format this program writes, and the only one it reads.
pub const VERSION: u32 = 3;
/// Heads that are written to on one chip.
pub const HEADS: usize = 4;
/// Longest label, bytes.
pub const LABEL_BYTES: usize = 32;
/// Names given between checkpoints that space is kept for beside the names for lanes.
const NAMES_BESIDE: usize = 28;
/// Heads that every anchor has space for, and names given between checkpoints, beside some changes.
const HEADS_FIT: usize = 32;
const NAMES_FIT: usize = 64;
const CHANGES_FIT: usize = 16;

/// Anchors stand somewhere in the first so many blocks.
pub const ANCHOR_BLOCKS: u32 = 16;
/// Anchors that can be written after the newest one where its block is the only one left.
pub const MAKESHIFT_UNITS: u32 = 6;

/// Units of a block of this many that anchors are written to, as long as there are two blocks.
pub fn ordinary_units(units: u32) -> u32 {
    units - MAKESHIFT_UNITS.min(units / 2)
}

/// Units used of a block of this many when the other one is made ready.
pub fn half_used(units: u32) -> u32 {
    (ordinary_units(units) / 2).max(1)
}

/// In the number of a block that is named: it is none to be followed, but where a chain ends.
const CHAIN_END: u32 = 1 << 31;

/// Names given between checkpoints that space is kept for where each head has so many lanes.
pub fn names_max(lanes: u8) -> usize {
    NAMES_BESIDE + HEADS * usize::from(lanes)
}

/// Where a head will write next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadAt {
    pub head: u8,
    pub block: u32,
    pub unit: u32,
}

/// A block that a head may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    pub head: u8,
    pub block: u32,
}

impl Named {
    /// Says that the chain which ends in `block` goes on in the block named next.
    pub fn after(head: u8, block: u32) -> Self {
        Self { head, block: block | CHAIN_END }
    }

    /// The end of the chain that goes on in the block named next, if this is said here.
    pub fn chain_end(self) -> Option<u32> {
        (self.block & CHAIN_END != 0).then_some(self.block & !CHAIN_END)
    }
}

/// What an anchor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    pub volume_id: [u8; 16],
    pub label: String,
    pub blocks: u32,
    pub slot_bytes: u32,
    pub slots_per_block: u32,
    /// Grows when a recovery dropped something.
    pub epoch: u32,
    /// Grows with every checkpoint.
    pub checkpoint: u64,
    /// Grows with every anchor written: the greatest is the newest.
    pub serial: u64,
    /// Nothing was written since.
    pub clean: bool,
    /// The other block of the pair was erased, and did not fail.
    pub other_erased: bool,
    /// Recoveries begun since the checkpoint: each may have left one torn page that looks erased in every head.
    pub recoveries: u32,
    /// The log counts from this sequence number on.
    pub seq: u64,
    pub next_ino: u64,
    pub files: u64,
    /// Chunks that space is reserved for.
    pub reserved_chunks: u64,
    pub index_pages: u64,
    /// Root page and the number of levels; `None` for an empty index.
    pub root: Option<(Slot, u8)>,
    pub pair: [u32; 2],
    /// Bytes programmed in the volume's life by cause, in the order of [`Cause::ALL`]: what the wear budget counts.
    pub written_bytes: [u64; Cause::ALL.len()],
    pub erases: u64,
    /// When the volume was formatted, and when the anchor was written.
    pub created_ns: i64,
    pub now_ns: i64,
    /// What the wear manager knows of the volume's life.
    pub manager: ManagerRecord,
    /// What was told of the chip's cells when the volume was made.
    pub cells: CellRecord,
    pub heads: Vec<HeadAt>,
    /// Blocks named since the checkpoint for heads whose last block could not name one.
    pub names: Vec<Named>,
    /// Pages of the block table ([`super::place::NO_SLOT`]: never written, all entries are defaults).
    pub tables: Vec<Slot>,
    /// Blocks whose entry differs from the table pages.
    pub changes: Vec<(u32, u64)>,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct Fixed {
    magic: [u8; 8],
    version: U32,
    flags: U32,
    volume_id: [u8; 16],
    label: [u8; LABEL_BYTES],
    blocks: U32,
    slot_bytes: U32,
    slots_per_block: U32,
    epoch: U32,
    checkpoint: U64,
    serial: U64,
    seq: U64,
    next_ino: U64,
    files: U64,
    index_pages: U64,
    root: U64,
    root_levels: U32,
    pair: [U32; 2],
    written_bytes: U64,
    erases: U64,
    created_ns: I64,
    now_ns: I64,
    reserved_chunks: U64,
    /// Of `written_bytes`, what was not written for callers.
    written_otherwise: [U64; Cause::ALL.len() - 1],
    manager: RawRecord,
    head_count: U16,
    name_count: U16,
    recoveries: U16,
    table_count: U16,
    change_count: U32,
    cells: [u8; 8],
}

const FIXED_BYTES: usize = size_of::<Fixed>();
const HEAD_BYTES: usize = 9;
const NAME_BYTES: usize = 5;
const TABLE_BYTES: usize = 5;
const CHANGE_BYTES: usize = 12;
const FLAG_CLEAN: u32 = 1;
const FLAG_OTHER_ERASED: u32 = 2;

/// Why bytes are no anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAnchor {
    /// They never were one.
    Foreign,
    /// One of another format.
    Version(u32),
}

/// How many changed block entries fit beside `tables` table pages where each head has so many lanes.
pub fn changes_max(slot_bytes: usize, tables: usize, lanes: u8) -> usize {
    changes_beside(slot_bytes, tables, HEADS * usize::from(lanes), names_max(lanes))
}

/// Whether some changes fit beside them.
pub fn fits_lanes(slot_bytes: usize, tables: usize, lanes: u8) -> bool {
    changes_max(slot_bytes, tables, lanes) >= CHANGES_FIT
}

/// Whether the pages of a block table fit an anchor beside as many heads and names as there may ever be, and some changes.
pub fn fits_tables(slot_bytes: usize, tables: usize) -> bool {
    changes_beside(slot_bytes, tables, HEADS_FIT, NAMES_FIT) >= CHANGES_FIT
}

fn changes_beside(slot_bytes: usize, tables: usize, heads: usize, names: usize) -> usize {
    let others = FIXED_BYTES + heads * HEAD_BYTES + names * NAME_BYTES + tables * TABLE_BYTES;
    slot_bytes.saturating_sub(others) / CHANGE_BYTES
}

/// Bytes programmed by cause; what was written for callers is what no other cause accounts for.
fn written_by_cause(fixed: &Fixed) -> [u64; Cause::ALL.len()] {
    let mut by_cause = [0; Cause::ALL.len()];
    let [host, otherwise @ ..] = &mut by_cause;
    *host = fixed.written_bytes.get();
    for (to, from) in otherwise.iter_mut().zip(&fixed.written_otherwise) {
        *to = from.get();
        *host = host.saturating_sub(from.get());
    }
    by_cause
}

impl Anchor {
    /// The anchor's bytes, `slot_bytes` long.
    pub fn encode(&self, slot_bytes: usize) -> Vec<u8> {
        let mut fixed = Fixed {
            magic: MAGIC,
            version: U32::new(VERSION),
            flags: U32::new(self.flags()),
            volume_id: self.volume_id,
            label: [0; LABEL_BYTES],
            blocks: U32::new(self.blocks),
            slot_bytes: U32::new(self.slot_bytes),
            slots_per_block: U32::new(self.slots_per_block),
            epoch: U32::new(self.epoch),
            checkpoint: U64::new(self.checkpoint),
            serial: U64::new(self.serial),
            seq: U64::new(self.seq),
            next_ino: U64::new(self.next_ino),
            files: U64::new(self.files),
            index_pages: U64::new(self.index_pages),
            root: U64::new(self.root.map_or(0, |root| root.0)),
            root_levels: U32::new(self.root.map_or(0, |root| u32::from(root.1))),
            pair: self.pair.map(U32::new),
            written_bytes: U64::new(self.written_bytes.iter().fold(0, |sum, bytes| sum.wrapping_add(*bytes))),
            erases: U64::new(self.erases),
            created_ns: I64::new(self.created_ns),
            now_ns: I64::new(self.now_ns),
            reserved_chunks: U64::new(self.reserved_chunks),
            written_otherwise: [U64::new(0); Cause::ALL.len() - 1],
            manager: self.manager.encode(),
            head_count: U16::new(self.heads.len() as u16),
            name_count: U16::new(self.names.len() as u16),
            recoveries: U16::new(self.recoveries.min(u32::from(u16::MAX)) as u16),
            table_count: U16::new(self.tables.len() as u16),
            change_count: U32::new(self.changes.len() as u32),
            cells: self.cells.encode(),
        };
        let [_, otherwise @ ..] = self.written_bytes;
        fixed.written_otherwise = otherwise.map(U64::new);
        fixed.label.iter_mut().zip(self.label.bytes()).for_each(|(to, from)| *to = from);
        let mut out = Vec::with_capacity(slot_bytes);
        out.extend_from_slice(fixed.as_bytes());
        for &HeadAt { head, block, unit } in &self.heads {
            out.push(head);
            out.extend_from_slice(&block.to_le_bytes());
            out.extend_from_slice(&unit.to_le_bytes());
        }
        for &Named { head, block } in &self.names {
            out.push(head);
            out.extend_from_slice(&block.to_le_bytes());
        }
        for &table in &self.tables {
            out.extend_from_slice(&low::<TABLE_BYTES>(table));
        }
        for &(block, entry) in &self.changes {
            out.extend_from_slice(&block.to_le_bytes());
            out.extend_from_slice(&entry.to_le_bytes());
        }
        out.resize(slot_bytes, 0);
        out
    }

    /// The same where heads have several lanes: with one entry or none of a head, whoever reads it would take its names for one
    /// chain, so the first of them are listed as heads that stand at the beginning of their blocks.
    pub fn listing_chains(mut self) -> Self {
        for head in 0..HEADS as u8 {
            while self.heads.iter().filter(|at| at.head == head).count() < 2
                && let Some(first) = self.names.iter().position(|named| named.head == head)
            {
                let Named { block, .. } = self.names.remove(first);
                if block & CHAIN_END == 0 {
                    self.heads.push(HeadAt { head, block, unit: 0 });
                }
            }
        }
        self
    }

    fn flags(&self) -> u32 {
        let clean = if self.clean { FLAG_CLEAN } else { 0 };
        clean | if self.other_erased { FLAG_OTHER_ERASED } else { 0 }
    }

    /// The anchor in `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotAnchor> {
        let (fixed, rest) = Fixed::ref_from_prefix(bytes).map_err(|_| NotAnchor::Foreign)?;
        if fixed.magic != MAGIC || fixed.version.get() == 0 {
            return Err(NotAnchor::Foreign);
        }
        if fixed.version.get() != VERSION {
            return Err(NotAnchor::Version(fixed.version.get()));
        }
        Self::from_parts(fixed, rest).ok_or(NotAnchor::Foreign)
    }

    fn from_parts(fixed: &Fixed, rest: &[u8]) -> Option<Self> {
        let (heads, rest) = rest.split_at_checked(usize::from(fixed.head_count.get()) * HEAD_BYTES)?;
        let (names, rest) = rest.split_at_checked(usize::from(fixed.name_count.get()) * NAME_BYTES)?;
        let (tables, rest) = rest.split_at_checked(usize::from(fixed.table_count.get()) * TABLE_BYTES)?;
        let changes = rest.get(..(fixed.change_count.get() as usize).checked_mul(CHANGE_BYTES)?)?;
        let label = fixed.label.iter().copied().take_while(|&byte| byte != 0).collect();
        let levels = u8::try_from(fixed.root_levels.get()).ok().filter(|&levels| levels <= LEVELS_MAX)?;
        Some(Self {
            volume_id: fixed.volume_id,
            label: String::from_utf8(label).unwrap_or_default(),
            blocks: fixed.blocks.get(),
            slot_bytes: fixed.slot_bytes.get(),
            slots_per_block: fixed.slots_per_block.get(),
            epoch: fixed.epoch.get(),
            checkpoint: fixed.checkpoint.get(),
            serial: fixed.serial.get(),
            clean: fixed.flags.get() & FLAG_CLEAN != 0,
            other_erased: fixed.flags.get() & FLAG_OTHER_ERASED != 0,
            recoveries: u32::from(fixed.recoveries.get()),
            seq: fixed.seq.get(),
            next_ino: fixed.next_ino.get(),
            files: fixed.files.get(),
            reserved_chunks: fixed.reserved_chunks.get(),
            index_pages: fixed.index_pages.get(),
            root: (levels > 0).then_some((fixed.root.get(), levels)),
            pair: fixed.pair.map(|block| block.get()),
            written_bytes: written_by_cause(fixed),
            erases: fixed.erases.get(),
            created_ns: fixed.created_ns.get(),
            now_ns: fixed.now_ns.get(),
            manager: ManagerRecord::decode(&fixed.manager),
            cells: CellRecord::decode(fixed.cells),
            heads: heads.chunks_exact(HEAD_BYTES).filter_map(head_at).collect(),
            names: names.chunks_exact(NAME_BYTES).filter_map(named).collect(),
            tables: tables.chunks_exact(TABLE_BYTES).map(wide).collect(),
            changes: changes
                .chunks_exact(CHANGE_BYTES)
                .filter_map(|change| change.split_at_checked(4))
                .map(|(block, entry)| (wide(block) as u32, wide(entry)))
                .collect(),
        })
    }
}

fn named(bytes: &[u8]) -> Option<Named> {
    bytes.split_first().map(|(&head, block)| Named { head, block: wide(block) as u32 })
}

fn head_at(bytes: &[u8]) -> Option<HeadAt> {
    let (of_block, unit) = bytes.split_at_checked(NAME_BYTES)?;
    let Named { head, block } = named(of_block)?;
    Some(HeadAt { head, block, unit: wide(unit) as u32 })
}
