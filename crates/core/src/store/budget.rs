//! The space budget: blocks that must be free before a caller's next block is taken, each term with its reason.
//!
//! Invariant: whatever an operation takes, and wherever the power fails in it, a recovery finds the blocks it needs, and
//! collection after it a destination.

use nand::Nand;

use super::options::Compression;
use super::records::Records;
use super::write_buffer::DIRTY_MAX;
use crate::flash::head::HeadId;
use crate::flash::shape::Shape;
use crate::format::page;
use crate::format::table::BLOCK_BYTES;
use crate::policy::Region;
use crate::policy::supply::Budget;

/// Head room that is certain to be enough for one operation, slots.
const OPERATION_SLOTS: u32 = 8;
/// Inode nodes that fit a slot, at least.
const INODES_PER_SLOT: u32 = 32;
/// A head with room for so many times what a recovery copies has enough for it, and for others that are cut short.
const ROOMY: u32 = 6;
/// The least bytes of a node that is found by its key.
const NODE_BYTES: usize = 48;
/// Nodes an inode has in common: itself, a name, a short tail, an attribute.
const NODES_EACH: usize = 4;
/// A block for collection to write to.
const COLLECTION_BLOCKS: u32 = 1;
/// A block for one that fails: in an operation, or in the recovery after it.
const FAILING_BLOCKS: u32 = 1;

/// Space that the next call may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// It gives space back in the end, and may use blocks that are kept free.
    gives_back: bool,
    /// Slots it may take, beside what waits in memory.
    slots: u32,
}

impl Call {
    /// A call that may take space.
    pub const CHANGE: Self = Self { gives_back: false, slots: OPERATION_SLOTS };
    /// A call that gives space back in the end.
    pub const REMOVAL: Self = Self { gives_back: true, slots: OPERATION_SLOTS };

    /// The same with so many nodes as large as a slot. One of them is among what any call may take.
    pub fn with_nodes(self, nodes: u64) -> Self {
        Self { slots: self.slots + nodes.saturating_sub(1) as u32, ..self }
    }

    /// Whether it gives space back in the end.
    pub(super) fn gives_back(self) -> bool {
        self.gives_back
    }
}

/// A call to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaterCall {
    /// No log head has room left.
    HeadsFull,
    /// Nor has that of the index, and a checkpoint is due.
    CheckpointDue,
}

/// The budget of a call to come, where that of the next one is `now`: what is done ahead aims at this.
pub(super) fn later<N: Nand>(records: &Records<N>, call: Call, now: Budget, later: LaterCall) -> Budget {
    let copied = copy_blocks(records, 0);
    match later {
        LaterCall::HeadsFull => {
            let slots = checkpoint_slots(records, records.index.all_changes());
            let opened = operation_slots(records, call).div_ceil(records.flash.shape().slc.content_slots()).max(1);
            let host = now.host + opened - host_blocks(records, call);
            Budget { host, recovery: index_blocks(records, slots, ROOMY) + copied, ..now }
        }
        LaterCall::CheckpointDue => {
            let changes = records.options.changes_max().max(records.index.all_changes());
            let index = blocks_for(records.flash.shape(), checkpoint_slots(records, changes), 0, 1);
            Budget { index, recovery: index + copied, ..now }
        }
    }
}

/// Blocks that must stay free when a copy takes one: in it there is room for what a recovery copies.
pub(super) fn beside_copies<N: Nand>(records: &Records<N>, target_slots: u32) -> u32 {
    let index = index_blocks(records, checkpoint_slots(records, records.index.all_changes()), ROOMY);
    index + copy_blocks(records, copy_room(records).max(target_slots)) + FAILING_BLOCKS
}

/// The budget of the next call.
pub(super) fn of<N: Nand>(records: &Records<N>, call: Call) -> Budget {
    // Where a block has failed, the next may before collection has made up for that one.
    let failing = if has_failed(records) && !call.gives_back { FAILING_BLOCKS } else { 0 };
    let slots = checkpoint_slots(records, records.index.all_changes());
    Budget {
        host: host_blocks(records, call) + failing,
        collection: COLLECTION_BLOCKS,
        index: index_blocks(records, slots, 1),
        recovery: index_blocks(records, slots, ROOMY) + copy_blocks(records, copy_room(records)),
        spare: FAILING_BLOCKS,
    }
}

/// Blocks a recovery would open if the power failed now.
pub(super) fn recovery_blocks<N: Nand>(records: &Records<N>) -> u32 {
    index_blocks(records, checkpoint_slots(records, records.index.all_changes()), ROOMY)
        + copy_blocks(records, copy_room(records))
}

/// Blocks the next operation may open, at least one.
pub(super) fn host_blocks<N: Nand>(records: &Records<N>, call: Call) -> u32 {
    let slots = operation_slots(records, call).saturating_sub(head_room(records));
    slots.div_ceil(records.flash.shape().slc.content_slots()).max(1)
}

/// Whether the heads have the room that one more operation may take.
pub(super) fn heads_have_room<N: Nand>(records: &Records<N>, call: Call) -> bool {
    head_room(records) >= operation_slots(records, call)
}

/// Slots one more operation and the commit after it may take.
fn operation_slots<N: Nand>(records: &Records<N>, call: Call) -> u32 {
    // What a call that failed left behind goes out with the next.
    let left = records.buffer.pending_bytes() / records.flash.shape().slot_bytes;
    call.slots
        + left as u32
        + records.buffer.dirty_count() as u32
        + records.inodes.dirty_count() as u32 / INODES_PER_SLOT
}

/// Slots the heads that callers write to have left. Where the policy writes to both regions, each head's room counts: what
/// finds none in its own goes to another before it takes a block that a commit may need.
fn head_room<N: Nand>(records: &Records<N>) -> u32 {
    let (slots, policy) = (records.flash.slots(), records.manager.policy());
    let (slc, native) = (slots.room(HeadId::Slc), slots.room(HeadId::Native));
    match policy.host() {
        Region::Native if policy.uses_one_region() => native,
        Region::Native => native.min(slc),
        Region::Slc if records.manager.writes_to_both() => slc + native + slots.room(HeadId::SlcHot),
        Region::Slc => slc,
    }
}

/// Whether blocks have failed on this chip, so that the next may soon.
pub(super) fn has_failed<N: Nand>(records: &Records<N>) -> bool {
    failed_blocks(records) > 0
}

/// Blocks that have failed.
pub(super) fn failed_blocks<N: Nand>(records: &Records<N>) -> u32 {
    let blocks = records.flash.blocks();
    blocks.bad() + blocks.failing_count()
}

/// When room was made last: blocks that were kept for the index, and blocks that had failed by then. Each that fails
/// takes one that was kept.
#[derive(Clone, Copy, Default)]
pub struct Reserve {
    index_blocks: u32,
    failed_blocks: u32,
}

impl Reserve {
    /// What is kept as room has just been made.
    pub(super) fn now<N: Nand>(records: &Records<N>) -> Self {
        Self { index_blocks: index_floor(records), failed_blocks: failed_blocks(records) }
    }

    /// Whether that is still enough for a call that opens no block.
    pub(super) fn lasts<N: Nand>(self, records: &Records<N>) -> bool {
        index_floor(records) <= self.index_blocks && failed_blocks(records) <= self.failed_blocks
    }
}

/// Blocks for the index alone: a checkpoint may come before room is made again, and a recovery after it.
pub(super) fn index_floor<N: Nand>(records: &Records<N>) -> u32 {
    let slots = checkpoint_slots(records, records.index.all_changes());
    index_blocks(records, slots, 1) + index_blocks(records, slots, ROOMY)
}

/// Whether a checkpoint would leave fewer blocks to be kept for the next one.
pub(super) fn checkpoint_would_help<N: Nand>(records: &Records<N>) -> bool {
    index_blocks(records, checkpoint_slots(records, records.index.all_changes()), ROOMY) > 1
}

/// Slots that the log heads have left for what a recovery copies.
fn copy_room<N: Nand>(records: &Records<N>) -> u32 {
    let slots = records.flash.slots();
    HeadId::LOG.map(|id| slots.room(id)).into_iter().max().unwrap_or(0)
}

/// Blocks a recovery would open for what it copies, with so many slots left in the heads.
fn copy_blocks<N: Nand>(records: &Records<N>, room: u32) -> u32 {
    let shape = records.flash.shape();
    let hot = records.flash.slots().head(HeadId::SlcHot).block().map_or(0, |_| shape.slc.doubtful_slots);
    let slots = copied_slots(shape) + hot + records.inodes.dirty_count() as u32 / INODES_PER_SLOT;
    blocks_for(shape, slots, room, ROOMY)
}

/// Blocks that a checkpoint of so many pages opens, unless the head of the index has room for `times` as much.
fn index_blocks<N: Nand>(records: &Records<N>, slots: u32, times: u32) -> u32 {
    blocks_for(records.flash.shape(), slots, records.flash.slots().room(HeadId::Meta), times)
}

/// Blocks for so many slots, unless there is `room` for `times` as many.
fn blocks_for(shape: &Shape, slots: u32, room: u32, times: u32) -> u32 {
    if room >= times * slots { 0 } else { slots.div_ceil(shape.slc.content_slots()) }
}

/// Pages that a checkpoint may write after so many changes, though a block be emptied before: those that changes fall into, those they
/// fill, their parents and the block table.
fn checkpoint_slots<N: Nand>(records: &Records<N>, changes: usize) -> u32 {
    let (shape, tree) = (records.flash.shape(), records.index.tree());
    let touched = (changes + relocated(records)).min(tree.pages as usize);
    let grown = changes / page::capacity(shape.slot_bytes).max(1) + 1;
    // Every level begins a unit.
    let levels = u32::from(tree.levels()) * shape.slc.unit_slots;
    let tables = records.flash.blocks().len().div_ceil((shape.slot_bytes / BLOCK_BYTES) as u32);
    (touched + grown) as u32 + levels + tables
}

/// Changes of the index that emptying one block may bring: a block full of nodes has many.
fn relocated<N: Nand>(records: &Records<N>) -> usize {
    let shape = records.flash.shape();
    let slots = shape.native.content_slots() as usize;
    let nodes = slots * shape.slot_bytes / NODE_BYTES;
    match records.options.compression {
        Compression::None => slots + nodes.min((records.volume.files as usize).saturating_mul(NODES_EACH)),
        Compression::Lz4 => nodes,
    }
}

/// Blocks the capacity leaves out for the index: three times what it fills, since a checkpoint writes the new index beside the
/// old one, and so may a recovery after it. Where blocks have failed nothing else is in hand, and whole blocks count: each of
/// the two may begin one, and the old index stands in one more than it fills.
pub(super) fn index_reserve_blocks<N: Nand>(records: &Records<N>) -> u64 {
    let per_block = records.flash.shape().slc.content_slots();
    let pages = records.index.tree().pages;
    let thrice = (3 * pages).div_ceil(u64::from(per_block)).max(1) + 1;
    if !has_failed(records) {
        return thrice;
    }
    let held = pages.div_ceil(u64::from(per_block)).max(1) + 1;
    let each = blocks_for(records.flash.shape(), checkpoint_slots(records, 0), per_block, ROOMY);
    thrice.max(held + 2 * u64::from(each))
}

/// Blocks the capacity leaves out for the budget, besides those for the index.
pub(super) fn reserve_blocks<N: Nand>(records: &Records<N>) -> u32 {
    let shape = records.flash.shape();
    let per_block = shape.slc.content_slots();
    let waiting = (DIRTY_MAX as u32).min(per_block);
    let copies = blocks_for(shape, copied_slots(shape), per_block, ROOMY);
    let failing = if has_failed(records) { 2 * FAILING_BLOCKS } else { 0 };
    (OPERATION_SLOTS + waiting).div_ceil(per_block) + COLLECTION_BLOCKS + failing + copies
}

/// Slots that the capacity leaves out of `blocks` until one has failed: a slot of each, and the block that may be the
/// first. Of many blocks more stays unused.
pub(super) fn failing_slots<N: Nand>(records: &Records<N>, blocks: u64, per_block: u32) -> u64 {
    if has_failed(records) { 0 } else { blocks + u64::from(FAILING_BLOCKS * per_block) }
}

/// Slots a recovery may copy because they could be unreadable a second time.
fn copied_slots(shape: &Shape) -> u32 {
    shape.slc.doubtful_slots + shape.native.doubtful_slots
}
