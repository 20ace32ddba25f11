//! Reading slots past the records: for whoever checks, shows or mends what is on the chip.

use alloc::sync::Arc;

use nand::{Cause, Nand};

use super::records::Records;
use crate::error::Result;
use crate::flash::slots::Slots;
use crate::format::inode::Ino;
use crate::format::page::Page;
use crate::format::place::Slot;
use crate::format::table::Use;
use crate::format::tag::{Kind, Tag};
use crate::index::tree;

/// A reader of slots.
pub struct SlotReader<'a, N: Nand> {
    slots: &'a mut Slots<N>,
}

impl<N: Nand> Records<N> {
    /// What reads slots past the records.
    pub fn slot_reader(&mut self) -> SlotReader<'_, N> {
        SlotReader { slots: self.log.slots_mut() }
    }
}

impl<N: Nand> SlotReader<'_, N> {
    /// The bytes of a slot of nodes.
    pub fn nodes(&mut self, slot: Slot) -> Result<Arc<[u8]>> {
        self.slots.read_slot(slot, Kind::Nodes, Cause::Metadata)
    }

    /// Reads a chunk of a file that has a slot of its own. Its length.
    pub fn chunk(&mut self, slot: Slot, ino: Ino, chunk: u64, data: &mut [u8]) -> Result<u32> {
        self.slots.read_data(slot, ino, chunk, data)
    }

    /// The page of the index that stands in a slot.
    pub fn page(&mut self, slot: Slot, level: u8) -> Result<Page> {
        tree::load(self.slots, slot, level)
    }

    /// Reads the slot of that number in a block, and gives its tag; `None` where nothing was programmed.
    pub fn tagged(&mut self, block: u32, index: u32, data: &mut [u8]) -> Result<Option<Tag>> {
        let found = self.slots.blocks().get(block);
        let seed = if found.entry.used_as == Use::Anchor { 0 } else { self.slots.seed() };
        let slot = self.slots.shape().slot(block, index);
        self.slots.read_seeded(slot, found.mode(), seed, data, Cause::Metadata)
    }
}
