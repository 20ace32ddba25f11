//! How far a volume's chip is worn, said to its managers, and the life they follow, kept over a mount.
//!
//! Invariant: the writing budget that is left comes from the erase counts of the block table alone.

use nand::{CellMode, Nand};

use super::records::Records;
use crate::flash::head::HeadId;
use crate::format::manager::ManagerRecord;
use crate::format::table::Use;
use crate::manage::life::Wear;
use crate::policy::{Region, level, wear};

/// Native block capacity that can still be opened within the endurance, bytes. A block that was opened more often than it
/// endures has taken that of another. Blocks of anchors wear by themselves, and hardly.
pub(super) fn left_bytes<N: Nand>(records: &Records<N>) -> u64 {
    let endurance = records.flash.slots().nand().endurance(CellMode::Native);
    let blocks = records.flash.blocks().iter().map(|(_, block)| block);
    let (mut left, mut count) = (0i64, 0);
    for block in blocks.filter(|block| !matches!(block.entry.used_as, Use::Anchor | Use::Bad)) {
        left += i64::from(endurance) - i64::from(block.cycles());
        count += 1;
    }
    let behind = level::behind_at_end(endurance);
    wear::usable_cycles(u64::try_from(left).unwrap_or(0), count, behind) * block_bytes(records)
}

/// Capacity of a block, bytes.
fn block_bytes<N: Nand>(records: &Records<N>) -> u64 {
    records.flash.shape().geometry.block_bytes()
}

/// What of SLC blocks is to be moved to native ones, bytes. Hot data stays.
fn owed_bytes<N: Nand>(records: &Records<N>) -> u64 {
    let policy = records.manager.policy();
    if policy.relocated() == Region::Slc || policy.uses_one_region() {
        return 0;
    }
    let slc = records.flash.blocks().iter().map(|(_, block)| block.entry);
    let moving = slc.filter(|entry| entry.used_as == Use::Log && !entry.native && !entry.hot);
    moving.map(|entry| u64::from(entry.live_bytes)).sum()
}

/// What is live in native blocks, bytes.
fn settled_bytes<N: Nand>(records: &Records<N>) -> u64 {
    let entries = records.flash.blocks().iter().map(|(_, block)| block.entry);
    let native = entries.filter(|entry| entry.used_as == Use::Log && entry.native);
    native.map(|entry| u64::from(entry.live_bytes)).sum()
}

impl<N: Nand> Records<N> {
    /// Takes up the life of another record than the volume was mounted with.
    pub fn take_up_life(&mut self, record: ManagerRecord) {
        self.volume.manager = record;
        let page_bytes = self.flash.shape().slot_bytes as u64;
        self.manager.take_up_life(record, self.options.life, page_bytes, self.options.now_ns);
    }
}

/// Native block capacity of opened blocks that is not used yet, bytes.
fn begun_bytes<N: Nand>(records: &Records<N>) -> u64 {
    let (slots, shape) = (records.flash.slots(), records.flash.shape());
    let unused = |id: HeadId| {
        let content_slots = u64::from(shape.mode(id.mode()).content_slots().max(1));
        u64::from(slots.room(id)) * block_bytes(records) / content_slots
    };
    HeadId::ALL.into_iter().map(unused).sum()
}

/// Tells the managers how far the chip is worn, where they ask.
pub(super) fn tell<N: Nand>(records: &mut Records<N>) {
    if records.manager.asks_for_wear(block_bytes(records)) {
        tell_now(records);
    }
}

/// Tells them, asked or not.
pub fn tell_now<N: Nand>(records: &mut Records<N>) {
    let shape = records.flash.shape();
    let wear = Wear {
        left_bytes: left_bytes(records),
        owed_bytes: owed_bytes(records),
        settled_bytes: settled_bytes(records),
        begun_bytes: begun_bytes(records),
        bits_per_cell: (shape.native.content_slots() / shape.slc.content_slots().max(1)) as u8,
    };
    records.manager.heard_of_wear(wear);
    let settles = records.manager.settles();
    records.flash.slots_mut().blocks_mut().set_settling(settles);
}

/// What the next anchors say of the volume's life.
pub(super) fn record_life<N: Nand>(records: &mut Records<N>) {
    tell_now(records);
    records.volume.manager = records.manager.life_record();
}
