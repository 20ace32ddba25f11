//! The reserve: blocks that must be free before a caller's next block is taken.
//!
//! Invariant: whatever an operation takes, and wherever the power fails in it, a recovery finds the blocks it needs, and
//! collection after it a destination.

use nand::Nand;

use super::Fs;
use super::log::DIRTY_MAX;
use super::types::Compression;
use crate::flash::head::HeadId;
use crate::flash::shape::Shape;
use crate::format::page;

/// Head room that is certain to be enough for one operation, slots.
const OPERATION_SLOTS: u32 = 8;
/// Inode nodes that fit a slot, at least.
const INODES_PER_SLOT: u32 = 32;
/// A head with room for so many times what a recovery copies has enough for it, and for others that are cut short.
pub(super) const ROOMY: u32 = 6;
/// The least bytes of a node that is found by its key.
const NODE_BYTES: usize = 48;
/// Nodes an inode has in common: itself, a name, a short tail, an attribute.
const NODES_EACH: usize = 4;
/// A block for collection to write to.
const COLLECTION_BLOCKS: u32 = 1;
/// A block for one that fails: in an operation, or in the recovery after it.
const FAILING_BLOCKS: u32 = 1;

impl<N: Nand> Fs<N> {
    /// Slots one more operation and the commit after it may take.
    pub(super) fn operation_slots(&self) -> u32 {
        OPERATION_SLOTS + self.log.dirty_count() as u32 + self.inodes.dirty_count() as u32 / INODES_PER_SLOT
    }

    /// Blocks the next operation may open, at least one.
    pub(super) fn host_blocks(&self) -> u32 {
        let slots = self.operation_slots().saturating_sub(self.head_room());
        slots.div_ceil(self.flash.shape.slc.content_slots()).max(1)
    }

    /// Blocks that must be free before a caller's next block is taken, if the call gives space back in the end.
    pub(super) fn removal_floor(&self) -> u32 {
        self.host_blocks() + self.index_blocks(1) + self.recovery_floor()
    }

    /// The same for what takes space: where a block has failed, the next may before collection has made up for that one.
    pub(super) fn free_floor(&self) -> u32 {
        self.removal_floor() + if self.has_failed() { FAILING_BLOCKS } else { 0 }
    }

    /// Of those, the ones for the index: a checkpoint may come before room is made again, and a recovery after it.
    pub(super) fn index_floor(&self) -> u32 {
        self.index_blocks(1) + self.index_blocks(ROOMY)
    }

    /// Blocks that must be free for collection to begin, and for a recovery if the power fails in it.
    pub(super) fn recovery_floor(&self) -> u32 {
        COLLECTION_BLOCKS + self.kept_blocks()
    }

    /// Blocks that collection leaves free when it takes one.
    pub(super) fn kept_blocks(&self) -> u32 {
        FAILING_BLOCKS + self.recovery_blocks()
    }

    /// Whether blocks have failed on this chip, so that the next may soon.
    pub(super) fn has_failed(&self) -> bool {
        self.flash.blocks.bad + self.flash.blocks.failing_count() > 0
    }

    /// Blocks a recovery would open if the power failed now, for the index and for what it copies, unless a head has
    /// the room.
    pub(crate) fn recovery_blocks(&self) -> u32 {
        self.index_blocks(ROOMY) + self.copy_blocks()
    }

    /// Blocks a recovery would open for what it copies.
    fn copy_blocks(&self) -> u32 {
        let slots = copied_slots(&self.flash.shape) + self.inodes.dirty_count() as u32 / INODES_PER_SLOT;
        self.blocks_for(slots, self.room(HeadId::Slc).max(self.room(HeadId::Native)), ROOMY)
    }

    /// Slots a head has left in its block.
    fn room(&self, id: HeadId) -> u32 {
        self.flash.head(id).room(self.flash.shape.mode(id.mode()))
    }

    /// Blocks the next checkpoint may open, unless the head of the index has room for `times` as much as it writes.
    pub(super) fn index_blocks(&self, times: u32) -> u32 {
        self.blocks_for(self.checkpoint_slots(), self.room(HeadId::Meta), times)
    }

    /// Blocks for so many slots, unless there is `room` for `times` as many.
    fn blocks_for(&self, slots: u32, room: u32, times: u32) -> u32 {
        if room >= times * slots { 0 } else { slots.div_ceil(self.flash.shape.slc.content_slots()) }
    }

    /// Pages the next checkpoint may write, though a block be emptied before: those that changes fall into, those they
    /// fill, their parents and the block table.
    fn checkpoint_slots(&self) -> u32 {
        let frozen = self.index.frozen.as_ref().map_or(0, |frozen| frozen.len());
        let changes = self.index.delta.len() + frozen;
        let touched = (changes + self.relocated()).min(self.index.tree.pages as usize);
        let grown = changes / page::capacity(self.flash.shape.slot_bytes).max(1) + 1;
        // Every level begins a unit.
        let levels = u32::from(self.index.tree.levels()) * self.flash.shape.slc.unit_slots;
        (touched + grown) as u32 + levels + self.tables.slots.len() as u32
    }

    /// Changes of the index that emptying one block may bring: a block full of nodes has many.
    fn relocated(&self) -> usize {
        let slots = self.flash.shape.native.content_slots() as usize;
        let nodes = slots * self.flash.shape.slot_bytes / NODE_BYTES;
        match self.options.compression {
            Compression::None => slots + nodes.min((self.volume.files as usize).saturating_mul(NODES_EACH)),
            Compression::Lz4 => nodes,
        }
    }

    /// Blocks the capacity leaves out for the reserve, besides those for the index.
    pub(super) fn reserve_blocks(&self) -> u32 {
        let per_block = self.flash.shape.slc.content_slots();
        let waiting = (DIRTY_MAX as u32).min(per_block);
        let copies = self.blocks_for(copied_slots(&self.flash.shape), per_block, ROOMY);
        let failing = if self.has_failed() { 2 * FAILING_BLOCKS } else { 0 };
        (OPERATION_SLOTS + waiting).div_ceil(per_block) + COLLECTION_BLOCKS + failing + copies
    }

    /// Slots that the capacity leaves out of `blocks` until one has failed: a slot of each, and the block that may be the
    /// first. Of many blocks more stays unused.
    pub(super) fn failing_slots(&self, blocks: u64, per_block: u32) -> u64 {
        if self.has_failed() { 0 } else { blocks + u64::from(FAILING_BLOCKS * per_block) }
    }
}

/// Slots a recovery may copy because they could be unreadable a second time.
fn copied_slots(shape: &Shape) -> u32 {
    shape.slc.doubtful_slots + shape.native.doubtful_slots
}

#[cfg(test)]
pub(super) mod tests {
    use emulator::{Chip, Profile};

    use super::*;
    use crate::{FormatOptions, Mode, MountOptions, NewNode, ROOT_INO, kind};

    pub fn mounted(chip: Chip, mode: Mode) -> Fs<Chip> {
        let options = MountOptions { mode, ..MountOptions::default() };
        Fs::mount(chip, options).map_err(|(_, error)| error).unwrap()
    }

    pub fn formatted() -> Chip {
        let mut profile = Profile::builtin("flexfs-mlc").unwrap();
        (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 16);
        formatted_as(&profile)
    }

    pub fn formatted_as(profile: &Profile) -> Chip {
        let mut chip = Chip::new(profile, 1).unwrap();
        let (volume_id, label) = ([7; 16], "test".into());
        let options = FormatOptions { volume_id, label, root_mode: 0o755, root_uid: 0, root_gid: 0, now_ns: 1 };
        Fs::format(&mut chip, &options).unwrap();
        chip
    }

    /// Blocks that the last page had emptied once counted as free for a recovery, which keeps them, as that page may have
    /// been torn. With a block that failed, two cuts later there was none for the index.
    #[test]
    fn blocks_that_the_last_page_emptied_are_not_free_for_certain() {
        let mut fs = mounted(formatted(), Mode::SlcOnly);
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        let ino = fs.create(ROOT_INO, b"file", node, 1).unwrap().ino;
        fs.write(ino, 0, &[1; 40 * 4096], 1).unwrap();
        let (chip, done) = fs.unmount(1);
        done.unwrap();
        let mut fs = mounted(chip, Mode::SlcOnly);
        let before = fs.flash.free_blocks();
        assert_eq!(fs.flash.blocks_free_for_certain(), before);
        fs.punch(ino, 0, 40 * 4096, 1).unwrap();
        fs.sync(1).unwrap();
        assert!(fs.flash.free_blocks() >= before + 3, "{before} before, {} now", fs.flash.free_blocks());
        assert!(fs.flash.blocks_free_for_certain() <= before, "{}", fs.flash.blocks_free_for_certain());
        fs.checkpoint_now().unwrap();
        assert_eq!(fs.flash.blocks_free_for_certain(), fs.flash.free_blocks());
    }

    /// The same where a checkpoint was under way when the last page emptied them: it ended without the change.
    #[test]
    fn blocks_emptied_while_a_checkpoint_is_written_are_not_free_for_certain_after_it() {
        let mut fs = mounted(formatted(), Mode::SlcOnly);
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        let ino = fs.create(ROOT_INO, b"file", node, 1).unwrap().ino;
        fs.write(ino, 0, &[1; 40 * 4096], 1).unwrap();
        let (chip, done) = fs.unmount(1);
        done.unwrap();
        let mut fs = mounted(chip, Mode::SlcOnly);
        let before = fs.flash.free_blocks();
        fs.create(ROOT_INO, b"another", node, 1).unwrap();
        fs.begin_checkpoint(false).unwrap();
        fs.punch(ino, 0, 40 * 4096, 1).unwrap();
        fs.sync(1).unwrap();
        while fs.checkpoint.is_some() {
            fs.checkpoint_step().unwrap();
        }
        assert!(fs.flash.free_blocks() >= before + 3, "{before} before, {} now", fs.flash.free_blocks());
        assert!(fs.flash.blocks_free_for_certain() <= before, "{}", fs.flash.blocks_free_for_certain());
    }

    /// A block was kept for one that fails only on chips where some had. On a full TLC chip the first one failed in a
    /// recovery, collection after it took the last that was free, and the next recovery had none for the index.
    #[test]
    fn a_full_chip_keeps_a_block_for_the_first_that_fails() {
        let mut fs = mounted(formatted(), Mode::Baseline);
        let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
        let ino = fs.create(ROOT_INO, b"file", node, 1).unwrap().ino;
        let (mut chunks, mut least) = (0, u32::MAX);
        while fs.write(ino, chunks * 4096, &[1; 4096], 1).and_then(|_| fs.sync(1)).is_ok() {
            chunks += 1;
        }
        for chunk in 0..4 * chunks {
            fs.write(ino, (chunk * chunk + chunk / 3) % chunks * 4096, &[2; 4096], 1).and_then(|_| fs.sync(1)).unwrap();
            least = least.min(fs.flash.free_blocks().saturating_sub(fs.index_floor()));
        }
        assert_eq!(least, 4, "the caller's, one to collect into, one for what a recovery copies, one that may fail");
    }
}
