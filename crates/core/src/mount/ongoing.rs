//! A checkpoint under way, and the block table on flash, as data.
//!
//! Invariant: until it is done the volume points to nothing of what it wrote.

use alloc::vec;
use alloc::vec::Vec;

use crate::format::anchor::HeadAt;
use crate::format::place::{NO_SLOT, Slot};
use crate::format::table::{BLOCK_BYTES, BlockEntry};
use crate::index::merge::Merge;
use crate::index::tree::Tree;

/// The block table as it stands on flash.
#[derive(Default)]
pub struct Tables {
    /// Its pages; [`NO_SLOT`] for one that was never written.
    pub slots: Vec<Slot>,
    /// Its entries, encoded.
    pub entries: Vec<u64>,
}

impl Tables {
    /// A table of `blocks` entries that was never written.
    pub fn empty(blocks: u32, slot_bytes: usize) -> Self {
        let per_page = slot_bytes / BLOCK_BYTES;
        Self { slots: vec![NO_SLOT; (blocks as usize).div_ceil(per_page)], entries: vec![0; blocks as usize] }
    }
}

/// A checkpoint under way.
pub struct Checkpoint {
    /// The point of the log it stands for: the sequence number to come, and the last copy's number.
    pub(super) seq: u64,
    pub(super) copies: u64,
    pub(super) era: u64,
    pub(super) clean: bool,
    pub(super) heads: Vec<HeadAt>,
    pub(super) entries: Vec<BlockEntry>,
    pub(super) next_ino: u64,
    pub(super) files: u64,
    pub(super) reserved_chunks: u64,
    pub(super) merge: Merge,
    /// The new tree, once it is written.
    pub(super) tree: Option<Tree>,
    /// Table pages replaced, and their replacements' contents.
    pub(super) dead_tables: Vec<Slot>,
    pub(super) tables: Tables,
    pub(super) now_ns: i64,
}

impl Checkpoint {
    /// The pages written so far that the volume does not point to yet.
    pub fn written(&self, tables: &Tables) -> Vec<Slot> {
        let fresh = self.tables.slots.iter().zip(&tables.slots).filter(|(new, old)| new != old);
        let replaced = self.dead_tables.iter().filter(|slot| !tables.slots.contains(slot));
        self.merge.new.iter().chain(fresh.map(|(new, _)| new)).chain(replaced).copied().collect()
    }
}
