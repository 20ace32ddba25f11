//! How far a volume's chip is worn, said to its managers, and the life they follow, kept over a mount.
//!
//! Invariant: the writing budget that is left comes from the erase counts of the block table alone.

use nand::{CellMode, Nand};

use super::Store;
use super::records::Records;
use crate::format::manager::ManagerRecord;
use crate::format::table::Use;
use crate::manage::life::Wear;
use crate::policy::Region;

/// Native block capacity that can still be opened within the endurance, bytes.
pub(super) fn left_bytes<N: Nand>(records: &Records<N>) -> u64 {
    let blocks = records.flash.blocks();
    let good = u64::from(blocks.len().saturating_sub(blocks.bad()));
    let endurance = u64::from(records.flash.slots().nand().endurance(CellMode::Native));
    (good * endurance).saturating_sub(blocks.cycles()) * block_bytes(records)
}

/// Capacity of a block, bytes.
fn block_bytes<N: Nand>(records: &Records<N>) -> u64 {
    records.flash.shape().geometry.block_bytes()
}

/// What of SLC blocks is to be moved to native ones, bytes. Hot data stays.
fn owed_bytes<N: Nand>(records: &Records<N>) -> u64 {
    if records.manager.policy().relocated() == Region::Slc {
        return 0;
    }
    let slc = records.flash.blocks().iter().map(|(_, block)| block.entry);
    let moving = slc.filter(|entry| entry.used_as == Use::Log && !entry.native && !entry.hot);
    moving.map(|entry| u64::from(entry.live_bytes)).sum()
}

impl<N: Nand> Records<N> {
    /// Takes up the life of another record than the volume was mounted with.
    pub fn take_up_life(&mut self, record: ManagerRecord) {
        self.volume.manager = record;
        let page_bytes = self.flash.shape().slot_bytes as u64;
        self.manager.take_up_life(record, self.options.life, page_bytes, self.options.now_ns);
    }
}

impl<N: Nand> Store<N> {
    /// Tells the managers how far the chip is worn, where they ask.
    pub(super) fn tell_wear(&mut self) {
        if self.records.manager.asks_for_wear(block_bytes(&self.records)) {
            self.tell_wear_now();
        }
    }

    /// Tells them, asked or not.
    pub fn tell_wear_now(&mut self) {
        let records = &mut self.records;
        let shape = records.flash.shape();
        let wear = Wear {
            left_bytes: left_bytes(records),
            owed_bytes: owed_bytes(records),
            bits_per_cell: (shape.native.content_slots() / shape.slc.content_slots().max(1)) as u8,
        };
        records.manager.heard_of_wear(wear);
    }

    /// What the next anchors say of the volume's life.
    pub(super) fn record_life(&mut self) {
        self.tell_wear_now();
        self.records.volume.manager = self.records.manager.life_record();
    }
}
