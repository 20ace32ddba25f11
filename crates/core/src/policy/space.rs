//! Space in numbers: what the chip offers, what a volume takes of it, and how many bytes can be stored.
//!
//! Invariant (reserve): a caller's data never takes the blocks that collection needs to make room again.

use super::Region;

/// Blocks that hold anchors.
const ANCHOR_BLOCKS: u64 = 2;
/// What a chunk's place in the index may take, twice over, since a checkpoint writes the new index beside the old.
const INDEX_BYTES: u64 = 96;

/// What a chip offers to a mount. It stays the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChipSpace {
    /// Lanes of each head.
    pub lanes: u32,
    pub blocks: u32,
    pub slot_bytes: u32,
    /// Content slots of an SLC block, and of a native one.
    pub slc_slots: u32,
    pub native_slots: u32,
    /// Slots that an SLC program takes.
    pub unit_slots: u32,
    /// Slots that a torn program may leave half readable in an SLC block, and in a native one.
    pub slc_doubtful_slots: u32,
    pub native_doubtful_slots: u32,
    /// Entries of a page of the index.
    pub page_entries: u32,
    /// Pages of the block table.
    pub table_pages: u32,
    /// Changes of the index between two checkpoints, at most.
    pub changes_max: u32,
    /// Whether chunks are compressed to nodes.
    pub compresses: bool,
}

/// Where callers' data and copies go. It stays the same in a mount.
#[derive(Clone, Copy, Debug)]
pub struct WriteRegions {
    /// The region of callers' data.
    pub host: Region,
    /// The region of copies.
    pub copies: Region,
    /// Everything goes to one region.
    pub is_one: bool,
    /// Callers' data goes to both, as there is time, room or life.
    pub is_both: bool,
}

/// Slots that each log head has left in the blocks of its lanes.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadRoom {
    pub slc: u32,
    pub native: u32,
    pub meta: u32,
    pub slc_hot: u32,
    /// Whether hot data has blocks of its own.
    pub has_hot_block: bool,
}

/// A volume's space in numbers: everything that its budget and its capacity follow from.
#[derive(Clone, Copy, Debug)]
pub struct SpaceView<'a> {
    pub chip: &'a ChipSpace,
    pub goes: WriteRegions,
    pub room: HeadRoom,
    /// Blocks that went bad, or failed and wait for their test.
    pub failed_blocks: u32,
    /// Bytes that are live on flash.
    pub live_bytes: u64,
    /// Bytes in the write buffer, and those of them that are nodes.
    pub buffered_bytes: u64,
    pub node_bytes: u64,
    /// Chunks in the write buffer.
    pub buffered_chunks: u32,
    /// Inodes that are newer in memory than on flash.
    pub dirty_inodes: u32,
    /// Inodes in use.
    pub files: u64,
    /// Changes of the index that are not in the tree.
    pub index_changes: u32,
    /// Pages and levels of the tree.
    pub index_pages: u64,
    pub index_levels: u32,
    /// Chunks that space is reserved for.
    pub reserved_chunks: u64,
}

impl SpaceView<'_> {
    /// Bytes that can be stored: all blocks but those that are bad or failed, the anchors', the index's, the heads' and the
    /// reserve, less the slots that stay unused in full ones.
    pub fn capacity_bytes(&self) -> u64 {
        // Blocks that log heads stand in.
        let heads = u64::from(self.chip.lanes) * if self.goes.is_one { 1 } else { 2 };
        let reserve = self.index_reserve_blocks() + u64::from(self.reserve_blocks());
        let fixed = u64::from(self.failed_blocks) + ANCHOR_BLOCKS + heads + reserve;
        let blocks = u64::from(self.chip.blocks).saturating_sub(fixed);
        let per_block = match self.goes.copies {
            Region::Native => self.chip.native_slots,
            Region::Slc => self.chip.slc_slots,
        };
        let slots = blocks * u64::from(per_block);
        let unused = blocks.max(slots / 80).max(self.failing_slots(blocks, per_block));
        slots.saturating_sub(unused) * u64::from(self.chip.slot_bytes)
    }

    /// Bytes that are taken, on flash, in the write buffer, and by reservation.
    pub fn used_bytes(&self) -> u64 {
        self.live_bytes + self.buffered_bytes + self.reserved_chunks.saturating_mul(self.reserved_bytes_each())
    }

    /// Bytes that can still be stored.
    pub fn free_bytes(&self) -> u64 {
        self.capacity_bytes().saturating_sub(self.used_bytes())
    }

    /// Whether `bytes` more can be stored.
    pub fn takes(&self, bytes: u64) -> bool {
        self.used_bytes() + bytes <= self.capacity_bytes()
    }

    /// Whether space is left for the blocks of one more head than the capacity leaves out: where hot data has blocks of its
    /// own.
    pub fn takes_block_of_hot_data(&self) -> bool {
        let slots = self.chip.lanes * self.chip.native_slots;
        self.takes(u64::from(slots) * u64::from(self.chip.slot_bytes))
    }

    /// Whether more is stored than SLC cells have space for, where copies go to those: another policy stored some of it
    /// natively.
    pub fn is_too_full_for_slc(&self) -> bool {
        self.goes.copies == Region::Slc && !self.takes(0)
    }

    /// What reserving a chunk takes: its bytes, and what its place in the index may take.
    pub fn reserved_bytes_each(&self) -> u64 {
        u64::from(self.chip.slot_bytes) + INDEX_BYTES
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A hundred blocks of 63 SLC and 126 native slots of 4 KiB.
    pub const CHIP: ChipSpace = ChipSpace {
        lanes: 1,
        blocks: 100,
        slot_bytes: 4096,
        slc_slots: 63,
        native_slots: 126,
        unit_slots: 1,
        slc_doubtful_slots: 1,
        native_doubtful_slots: 5,
        page_entries: 170,
        table_pages: 1,
        changes_max: 256,
        compresses: false,
    };

    /// That chip with nothing stored.
    pub fn empty_volume(copies: Region) -> SpaceView<'static> {
        SpaceView {
            chip: &CHIP,
            goes: WriteRegions { host: Region::Slc, copies, is_one: false, is_both: false },
            room: HeadRoom { slc: 20, native: 30, meta: 40, slc_hot: 0, has_hot_block: false },
            failed_blocks: 0,
            live_bytes: 0,
            buffered_bytes: 0,
            node_bytes: 0,
            buffered_chunks: 0,
            dirty_inodes: 0,
            files: 1,
            index_changes: 0,
            index_pages: 1,
            index_levels: 1,
            reserved_chunks: 0,
        }
    }

    #[test]
    fn what_is_stored_buffered_and_reserved_takes_space() {
        let empty = empty_volume(Region::Native);
        let capacity_bytes = empty.capacity_bytes();
        assert_eq!((empty.used_bytes(), empty.free_bytes()), (0, capacity_bytes));
        let used = SpaceView { live_bytes: 10_000, buffered_bytes: 500, reserved_chunks: 2, ..empty };
        assert_eq!(used.used_bytes(), 10_500 + 2 * (4096 + 96));
        assert!(used.takes(capacity_bytes - used.used_bytes()) && !used.takes(capacity_bytes - used.used_bytes() + 1));
    }

    #[test]
    fn native_copies_double_the_capacity_of_slc() {
        let (native, slc) = (empty_volume(Region::Native), empty_volume(Region::Slc));
        // 100 blocks less 2 of anchors, 2 of heads, 2 of the index, and 3 of the reserve: a slot of each stays unused, and
        // those of the block that may fail first.
        assert_eq!(native.capacity_bytes(), (91 * 126 - (91 + 126)) * 4096);
        assert_eq!(slc.capacity_bytes(), (91 * 63 - (91 + 63)) * 4096);
    }

    #[test]
    fn each_block_that_fails_takes_capacity() {
        let sound = empty_volume(Region::Native);
        let failed = |failed_blocks| SpaceView { failed_blocks, ..sound }.capacity_bytes();
        assert!(sound.capacity_bytes() > failed(1));
        assert_eq!(failed(1) - failed(2), (126 - 1) * 4096);
    }

    #[test]
    fn slc_copies_are_too_many_only_past_the_capacity() {
        let full = SpaceView { live_bytes: empty_volume(Region::Slc).capacity_bytes(), ..empty_volume(Region::Slc) };
        assert!(!full.is_too_full_for_slc());
        assert!(SpaceView { live_bytes: full.live_bytes + 1, ..full }.is_too_full_for_slc());
        let goes = WriteRegions { copies: Region::Native, ..full.goes };
        assert!(!SpaceView { live_bytes: u64::MAX / 4, goes, ..full }.is_too_full_for_slc());
    }
}
