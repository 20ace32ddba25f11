//! The space budget: blocks that must be free before a caller's next block is taken, each term with its reason.
//!
//! Invariant: whatever an operation takes, and wherever the power fails in it, a recovery finds the blocks it needs, and
//! collection after it a destination.

use super::Region;
use super::space::{ChipSpace, SpaceView};

/// Chunks kept in memory before they are written out.
pub const BUFFERED_CHUNKS_MAX: u32 = 64;
/// Head room that is certain to be enough for one operation, slots.
const OPERATION_SLOTS: u32 = 8;
/// Inode nodes that fit a slot, at least.
const INODES_PER_SLOT: u32 = 32;
/// A head with room for so many times what a recovery copies has enough for it, and for others that are cut short.
const ROOMY: u32 = 6;
/// The least bytes of a node that is found by its key.
const NODE_BYTES: u64 = 48;
/// Nodes an inode has in common: itself, a name, a short tail, an attribute.
const NODES_EACH: u64 = 4;
/// A block for collection to write to.
const COLLECTION_BLOCKS: u32 = 1;
/// A block for one that fails: in an operation, or in the recovery after it.
const FAILING_BLOCKS: u32 = 1;

/// Blocks that must be free before a caller's next block is taken: wherever the power fails in what the call does, a
/// recovery finds the blocks it needs, and collection after it a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// What the call itself opens.
    pub host: u32,
    /// What collection writes to.
    pub collection: u32,
    /// The index pages of a checkpoint before room is made again.
    pub index: u32,
    /// What a recovery opens for its checkpoint, and for what it copies.
    pub recovery: u32,
    /// One that fails.
    pub spare: u32,
}

impl Budget {
    /// Blocks that must be free for a call to begin.
    pub fn for_call(&self) -> u32 {
        self.host + self.for_commit()
    }

    /// Blocks that must be free for a call to begin that opens none.
    pub fn for_commit(&self) -> u32 {
        self.index + self.for_collection()
    }

    /// Blocks that must be free for collection to begin.
    pub fn for_collection(&self) -> u32 {
        self.collection + self.in_collection()
    }

    /// Blocks that collection leaves free when it takes one.
    pub fn in_collection(&self) -> u32 {
        self.recovery + self.spare
    }
}

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
    pub fn gives_back(self) -> bool {
        self.gives_back
    }
}

/// A call to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaterCall {
    /// No log head has room left.
    HeadsFull,
    /// Nor has that of the index, and a checkpoint is due.
    CheckpointDue,
}

/// When room was made last: blocks that were kept for the index, and blocks that had failed by then. Each that fails
/// takes one that was kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reserve {
    index_blocks: u32,
    failed_blocks: u32,
}

impl Reserve {
    /// What is kept as room has just been made.
    pub fn of(space: &SpaceView<'_>) -> Self {
        Self { index_blocks: space.index_floor(), failed_blocks: space.failed_blocks }
    }

    /// Whether that is still enough for a call that opens no block.
    pub fn lasts(self, space: &SpaceView<'_>) -> bool {
        space.index_floor() <= self.index_blocks && space.failed_blocks <= self.failed_blocks
    }
}

impl SpaceView<'_> {
    /// The budget of the next call.
    pub fn budget(&self, call: Call) -> Budget {
        // Where a block has failed, the next may before collection has made up for that one.
        let failing = if self.has_failed() && !call.gives_back { FAILING_BLOCKS } else { 0 };
        let slots = self.checkpoint_slots(self.index_changes);
        Budget {
            host: self.host_blocks(call) + failing,
            collection: COLLECTION_BLOCKS,
            index: self.index_blocks(slots, 1),
            recovery: self.index_blocks(slots, ROOMY) + self.copy_blocks(self.copy_room()),
            spare: FAILING_BLOCKS,
        }
    }

    /// The budget of a call to come, where that of the next one is `now`: what is done ahead aims at this.
    pub fn budget_later(&self, call: Call, now: Budget, later: LaterCall) -> Budget {
        let copied = self.copy_blocks(0);
        match later {
            LaterCall::HeadsFull => {
                let slots = self.checkpoint_slots(self.index_changes);
                let opened = self.operation_slots(call).div_ceil(self.chip.slc_slots).max(1);
                let host = now.host + opened - self.host_blocks(call);
                Budget { host, recovery: self.index_blocks(slots, ROOMY) + copied, ..now }
            }
            LaterCall::CheckpointDue => {
                let changes = self.chip.changes_max.max(self.index_changes);
                let index = blocks_for(self.chip, self.checkpoint_slots(changes), 0, 1);
                Budget { index, recovery: index + copied, ..now }
            }
        }
    }

    /// Blocks that must stay free when a copy takes one: in it there is room for what a recovery copies.
    pub fn beside_copies(&self, target_slots: u32) -> u32 {
        let index = self.index_blocks(self.checkpoint_slots(self.index_changes), ROOMY);
        index + self.copy_blocks(self.copy_room().max(target_slots)) + FAILING_BLOCKS
    }

    /// Blocks a recovery would open if the power failed now.
    pub fn recovery_blocks(&self) -> u32 {
        let index = self.index_blocks(self.checkpoint_slots(self.index_changes), ROOMY);
        index + self.copy_blocks(self.copy_room())
    }

    /// Blocks the next operation may open, at least one.
    pub fn host_blocks(&self, call: Call) -> u32 {
        let slots = self.operation_slots(call).saturating_sub(self.host_room());
        slots.div_ceil(self.chip.slc_slots).max(1)
    }

    /// Whether the heads have the room that one more operation may take.
    pub fn heads_have_room(&self, call: Call) -> bool {
        self.host_room() >= self.operation_slots(call)
    }

    /// Slots one more operation and the commit after it may take.
    fn operation_slots(&self, call: Call) -> u32 {
        // What a call that failed left behind goes out with the next.
        let left = self.node_bytes / u64::from(self.chip.slot_bytes);
        call.slots + left as u32 + self.buffered_chunks + self.dirty_inodes / INODES_PER_SLOT
    }

    /// Slots the heads that callers write to have left. Where the policy writes to both regions, each head's room counts:
    /// what finds none in its own goes to another before it takes a block that a commit may need.
    fn host_room(&self) -> u32 {
        let room = self.room;
        match self.goes.host {
            Region::Native if self.goes.is_one => room.native,
            Region::Native => room.native.min(room.slc),
            Region::Slc if self.goes.is_both => room.slc + room.native + room.slc_hot,
            Region::Slc => room.slc,
        }
    }

    /// Whether blocks have failed on this chip, so that the next may soon.
    pub fn has_failed(&self) -> bool {
        self.failed_blocks > 0
    }

    /// Blocks for the index alone: a checkpoint may come before room is made again, and a recovery after it.
    pub fn index_floor(&self) -> u32 {
        let slots = self.checkpoint_slots(self.index_changes);
        self.index_blocks(slots, 1) + self.index_blocks(slots, ROOMY)
    }

    /// Whether a checkpoint would leave fewer blocks to be kept for the next one.
    pub fn checkpoint_would_help(&self) -> bool {
        self.index_blocks(self.checkpoint_slots(self.index_changes), ROOMY) > 1
    }

    /// Slots that the log heads have left for what a recovery copies.
    fn copy_room(&self) -> u32 {
        self.room.slc.max(self.room.native).max(self.room.slc_hot)
    }

    /// Blocks a recovery would open for what it copies, with so many slots left in the heads.
    fn copy_blocks(&self, room: u32) -> u32 {
        let hot = if self.room.has_hot_block { self.chip.lanes * self.chip.slc_doubtful_slots } else { 0 };
        let slots = copied_slots(self.chip) + hot + self.dirty_inodes / INODES_PER_SLOT;
        blocks_for(self.chip, slots, room, ROOMY)
    }

    /// Blocks that a checkpoint of so many pages opens, unless the head of the index has room for `times` as much.
    fn index_blocks(&self, slots: u32, times: u32) -> u32 {
        blocks_for(self.chip, slots, self.room.meta, times)
    }

    /// Pages that a checkpoint may write after so many changes, though a block be emptied before: those that changes fall
    /// into, those they fill, their parents and the block table.
    fn checkpoint_slots(&self, changes: u32) -> u32 {
        let touched = (u64::from(changes) + self.relocated()).min(self.index_pages) as u32;
        let grown = changes / self.chip.page_entries.max(1) + 1;
        // Every level begins a unit.
        touched + grown + self.index_levels * self.chip.unit_slots + self.chip.table_pages
    }

    /// Changes of the index that emptying one block may bring: a block full of nodes has many.
    fn relocated(&self) -> u64 {
        let slots = u64::from(self.chip.native_slots);
        let nodes = slots * u64::from(self.chip.slot_bytes) / NODE_BYTES;
        match self.chip.compresses {
            false => slots + nodes.min(self.files.saturating_mul(NODES_EACH)),
            true => nodes,
        }
    }

    /// Blocks the capacity leaves out for the index: three times what it fills, since a checkpoint writes the new index beside
    /// the old one, and so may a recovery after it. Where blocks have failed nothing else is in hand, and whole blocks count:
    /// each of the two may begin one, and the old index stands in one more than it fills.
    pub(super) fn index_reserve_blocks(&self) -> u64 {
        let per_block = u64::from(self.chip.slc_slots);
        let thrice = (3 * self.index_pages).div_ceil(per_block).max(1) + 1;
        if !self.has_failed() {
            return thrice;
        }
        let held = self.index_pages.div_ceil(per_block).max(1) + 1;
        let each = blocks_for(self.chip, self.checkpoint_slots(0), self.chip.slc_slots, ROOMY);
        thrice.max(held + 2 * u64::from(each))
    }

    /// Blocks the capacity leaves out for the budget, besides those for the index.
    pub(super) fn reserve_blocks(&self) -> u32 {
        let per_block = self.chip.slc_slots;
        let waiting = BUFFERED_CHUNKS_MAX.min(per_block);
        let copies = blocks_for(self.chip, copied_slots(self.chip), per_block, ROOMY);
        let failing = if self.has_failed() { 2 * FAILING_BLOCKS } else { 0 };
        (OPERATION_SLOTS + waiting).div_ceil(per_block) + COLLECTION_BLOCKS + failing + copies
    }

    /// Slots that the capacity leaves out of `blocks` until one has failed: a slot of each, and the block that may be the
    /// first. Of many blocks more stays unused.
    pub(super) fn failing_slots(&self, blocks: u64, per_block: u32) -> u64 {
        if self.has_failed() { 0 } else { blocks + u64::from(FAILING_BLOCKS * per_block) }
    }
}

/// Blocks for so many slots, unless there is `room` for `times` as many.
fn blocks_for(chip: &ChipSpace, slots: u32, room: u32, times: u32) -> u32 {
    if room >= times * slots { 0 } else { slots.div_ceil(chip.slc_slots) }
}

/// Slots a recovery may copy because they could be unreadable a second time: of each lane, as it cannot tell in which the power
/// failed.
fn copied_slots(chip: &ChipSpace) -> u32 {
    chip.lanes * (chip.slc_doubtful_slots + chip.native_doubtful_slots)
}

#[cfg(test)]
mod tests {
    use super::super::space::tests::{CHIP, empty_volume};
    use super::super::space::{HeadRoom, WriteRegions};
    use super::*;

    fn view() -> SpaceView<'static> {
        empty_volume(Region::Native)
    }

    #[test]
    fn a_call_needs_every_term_of_the_budget() {
        let budget = Budget { host: 1, collection: 2, index: 4, recovery: 8, spare: 16 };
        assert_eq!((budget.for_call(), budget.for_collection(), budget.in_collection()), (31, 26, 24));
    }

    #[test]
    fn roomy_heads_keep_no_block_for_a_recovery() {
        // A checkpoint takes 4 pages: that of the change, one that fills, one of the level, one of the table. Copies take 6.
        let space = SpaceView { room: HeadRoom { slc: 36, native: 0, meta: 24, ..HeadRoom::default() }, ..view() };
        assert_eq!(space.budget(Call::CHANGE), Budget { host: 1, collection: 1, index: 0, recovery: 0, spare: 1 });
        let no_copies = SpaceView { room: HeadRoom { slc: 35, ..space.room }, ..space };
        assert_eq!(no_copies.budget(Call::CHANGE).recovery, 1);
        let no_index = SpaceView { room: HeadRoom { meta: 23, ..space.room }, ..space };
        assert_eq!((no_index.budget(Call::CHANGE).index, no_index.budget(Call::CHANGE).recovery), (0, 1));
        let full = SpaceView { room: HeadRoom { meta: 3, ..space.room }, ..space };
        assert_eq!((full.budget(Call::CHANGE).index, full.index_floor()), (1, 2));
    }

    #[test]
    fn a_call_opens_blocks_where_its_heads_have_no_room() {
        let space = SpaceView { room: HeadRoom { slc: 8, native: 100, ..HeadRoom::default() }, ..view() };
        assert!(space.heads_have_room(Call::CHANGE) && !space.heads_have_room(Call::CHANGE.with_nodes(2)));
        // 8 slots, 60 chunks, and one slot for 32 inodes: 61 of them do not fit.
        let waiting = SpaceView { buffered_chunks: 60, dirty_inodes: 32, ..space };
        assert_eq!((waiting.host_blocks(Call::CHANGE), space.host_blocks(Call::CHANGE)), (1, 1));
        let more = SpaceView { buffered_chunks: 63, ..waiting };
        assert_eq!(more.host_blocks(Call::CHANGE), 2);
        let goes = WriteRegions { is_both: true, ..space.goes };
        assert!(SpaceView { goes, ..more }.heads_have_room(Call::CHANGE), "the other region's head counts");
    }

    #[test]
    fn where_a_block_has_failed_a_change_keeps_one_more() {
        let failed = SpaceView { failed_blocks: 1, ..view() };
        assert_eq!(failed.budget(Call::CHANGE).host, view().budget(Call::CHANGE).host + 1);
        assert_eq!(failed.budget(Call::REMOVAL).host, view().budget(Call::REMOVAL).host);
    }

    #[test]
    fn a_later_call_finds_full_heads_and_a_checkpoint_due() {
        let room = HeadRoom { native: 36, ..view().room };
        let (space, call) = (SpaceView { room, ..view() }, Call::CHANGE);
        let now = space.budget(call);
        let full = space.budget_later(call, now, LaterCall::HeadsFull);
        assert_eq!((full.host, full.index, full.recovery), (now.host, now.index, now.recovery + 1));
        let due = space.budget_later(call, now, LaterCall::CheckpointDue);
        assert_eq!((due.index, due.recovery), (1, 2), "a block for the pages of 256 changes, and one for copies");
    }

    #[test]
    fn a_reserve_lasts_until_the_index_grows_or_a_block_fails() {
        let space = SpaceView { room: HeadRoom { meta: 24, ..view().room }, ..view() };
        let reserve = Reserve::of(&space);
        assert!(reserve.lasts(&space));
        assert!(!reserve.lasts(&SpaceView { failed_blocks: 1, ..space }));
        assert!(!reserve.lasts(&SpaceView { room: HeadRoom { meta: 23, ..space.room }, ..space }));
        assert!(!Reserve::default().lasts(&SpaceView { room: HeadRoom::default(), ..space }));
    }

    #[test]
    fn a_block_of_compressed_chunks_changes_the_index_many_times() {
        let large = SpaceView { index_pages: 10_000, files: 10, ..view() };
        let packed = SpaceView { chip: &ChipSpace { compresses: true, ..CHIP }, ..large };
        // 126 slots and 40 nodes, or 10,752 nodes: and no more pages than there are.
        assert_eq!((large.checkpoint_slots(0), packed.checkpoint_slots(0)), (126 + 40 + 3, 10_000 + 3));
    }
}
