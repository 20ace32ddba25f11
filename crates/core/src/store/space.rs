//! The space of a volume in numbers, gathered for its budget and its capacity.

use nand::Nand;

use super::options::{Compression, MountOptions};
use super::records::Records;
use crate::error::{Error, Result};
use crate::flash::head::HeadId;
use crate::flash::slots::Slots;
use crate::format::page;
use crate::format::table::BLOCK_BYTES;
use crate::policy::space::{ChipSpace, HeadRoom, SpaceView};

/// What a chip offers to a mount.
pub(super) fn of_chip<N: Nand>(options: &MountOptions, slots: &Slots<N>) -> ChipSpace {
    let shape = slots.shape();
    ChipSpace {
        lanes: u32::from(slots.lanes().count()),
        blocks: shape.geometry.blocks,
        slot_bytes: shape.slot_bytes as u32,
        slc_slots: shape.slc.content_slots(),
        native_slots: shape.native.content_slots(),
        unit_slots: shape.slc.unit_slots,
        slc_doubtful_slots: shape.slc.doubtful_slots,
        native_doubtful_slots: shape.native.doubtful_slots,
        page_entries: page::capacity(shape.slot_bytes) as u32,
        table_pages: shape.geometry.blocks.div_ceil((shape.slot_bytes / BLOCK_BYTES) as u32),
        changes_max: options.changes_max() as u32,
        compresses: options.compression == Compression::Lz4,
    }
}

impl<N: Nand> Records<N> {
    /// The space in numbers, as it is now.
    pub fn space(&self) -> SpaceView<'_> {
        let (shape, lanes) = (self.flash().slots().shape(), self.flash().slots().lanes());
        let [slc, native, meta, slc_hot] = lanes.rooms(shape);
        self.space_beside(HeadRoom { slc, native, meta, slc_hot, has_hot_block: lanes.stands(HeadId::SlcHot) })
    }

    /// The space in numbers, beside so much room in the blocks of the heads.
    fn space_beside(&self, room: HeadRoom) -> SpaceView<'_> {
        let (blocks, tree) = (self.flash().blocks(), self.index.tree());
        SpaceView {
            chip: &self.chip_space,
            goes: self.write_regions,
            room,
            failed_blocks: blocks.failed_count(),
            live_bytes: blocks.live_bytes(),
            buffered_bytes: self.buffer.bytes(),
            node_bytes: self.buffer.pending_bytes() as u64,
            buffered_chunks: self.buffer.dirty_count() as u32,
            dirty_inodes: self.inodes.dirty_count() as u32,
            files: self.volume.files,
            index_changes: self.index.all_changes() as u32,
            index_pages: tree.pages,
            index_levels: u32::from(tree.levels()),
            reserved_chunks: self.index.reserved_chunks(),
        }
    }

    /// Whether `bytes` more can be stored.
    pub fn need_bytes(&self, bytes: u64) -> Result<()> {
        // What can be stored does not depend on the room of the heads.
        if self.space_beside(HeadRoom::default()).takes(bytes) { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Whether more is stored than SLC cells have space for, some of it natively: another policy did that.
    pub(super) fn is_overfull(&self) -> bool {
        let holds_native =
            || self.flash().blocks().iter().any(|(_, block)| block.entry.native && block.entry.live_bytes > 0);
        self.space().is_too_full_for_slc() && holds_native()
    }
}
