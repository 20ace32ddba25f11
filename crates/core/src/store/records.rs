//! Records, found by their keys: in memory, in the write buffer, or on flash.
//!
//! Invariant: what the index points to can be read, or is told as corrupt; nothing here takes a block that room was not
//! made for.

use alloc::string::String;
use alloc::sync::Arc;

use nand::{Cause, Nand};

use super::file_spread::FileSpreads;
use super::inodes::{Cached, Inodes};
use super::log::Log;
use super::options::MountOptions;
use super::write_buffer::WriteBuffer;
use crate::error::{Error, Result};
use crate::flash::{Flash, MovedPage, STEP_READS};
use crate::format::cells::CellRecord;
use crate::format::inode::{Ino, Inode};
use crate::format::key::{Key, KeyKind, ino_of, key, whole_inode};
use crate::format::manager::ManagerRecord;
use crate::format::node::{self, Body};
use crate::format::page::Entry;
use crate::format::place::{Place, Slot};
use crate::format::tag::{CHUNKS_MAX, Kind};
use crate::index::delta::Change;
use crate::index::{Index, Relocation, Replaced};
use crate::manage::Manager;
use crate::policy::migrate::Power;
use crate::policy::space::{ChipSpace, WriteRegions};

/// What is fixed for the life of a volume, or changes only at checkpoints, and its counts.
#[derive(Clone, Debug)]
pub struct Volume {
    pub id: [u8; 16],
    pub label: String,
    pub created_ns: i64,
    pub epoch: u32,
    pub checkpoint: u64,
    pub next_ino: u64,
    pub files: u64,
    /// Seeds the name hash.
    pub hash_seed: u64,
    /// Nothing was written since the last checkpoint of the mount before.
    pub clean: bool,
    /// What the wear manager knows of the volume's life.
    pub manager: ManagerRecord,
    /// What was told of the chip's cells when the volume was made.
    pub cells: CellRecord,
}

/// The records of a volume.
pub struct Records<N: Nand> {
    pub(super) log: Log<N>,
    pub(super) index: Index,
    pub(super) buffer: WriteBuffer,
    pub(super) inodes: Inodes,
    pub(super) spreads: FileSpreads,
    pub(super) volume: Volume,
    pub(super) options: MountOptions,
    /// What the chip offers, which does not change.
    pub(super) chip_space: ChipSpace,
    /// Where the managers let data and copies go, which does not change either.
    pub(super) write_regions: WriteRegions,
    pub(super) manager: Manager,
    /// When the last request or step of background work came, by a clock that never jumps.
    pub(super) mono_ns: i64,
}

impl<N: Nand> Records<N> {
    pub(super) fn new(
        flash: Flash<N>,
        index: Index,
        volume: Volume,
        options: MountOptions,
        chip_space: ChipSpace,
    ) -> Self {
        let one_bit = flash.shape().geometry.bits_per_cell == 1;
        let policy = if one_bit { options.policy.on_one_bit_cells() } else { options.policy };
        let geometry = &flash.shape().geometry;
        let (dies, channels) = (geometry.dies(), flash.slots().lanes().channels(geometry));
        let mut manager = Manager::new(policy);
        manager.take_up_life(volume.manager, options.life, flash.shape().slot_bytes as u64, options.now_ns);
        Self {
            chip_space,
            write_regions: manager.write_regions(),
            log: Log::new(flash, channels, policy.channel()),
            index,
            buffer: WriteBuffer::default(),
            inodes: Inodes::new(options.cache_bytes / 4 / 256),
            spreads: FileSpreads::new(dies, channels),
            volume,
            manager,
            options,
            mono_ns: 0,
        }
    }

    /// The flash manager.
    pub fn flash(&self) -> &Flash<N> {
        self.log.flash()
    }

    /// The chip, to change its faults or its clock.
    pub fn chip_mut(&mut self) -> &mut N {
        self.log.slots_mut().nand_mut()
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Hears where the power comes from.
    pub fn heard_of_power(&mut self, power: Power) {
        self.manager.heard_of_power(power);
    }

    /// The volume's identity and counts.
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// How the volume is mounted.
    pub fn options(&self) -> &MountOptions {
        &self.options
    }

    /// The time of day, which the next checkpoint's anchor bears.
    pub fn set_wall_ns(&mut self, wall_ns: i64) {
        self.options.now_ns = wall_ns;
    }

    /// The time by a clock that never jumps.
    pub(super) fn set_mono_ns(&mut self, mono_ns: i64) {
        self.mono_ns = self.mono_ns.max(mono_ns);
        self.log.flash_mut().set_mono_ns(self.mono_ns);
    }

    /// An inode that is in memory.
    pub fn held_inode(&mut self, ino: Ino) -> Option<Inode> {
        self.inodes.get(ino).map(Cached::inode)
    }

    /// Open handles of an inode.
    pub fn handles(&mut self, ino: Ino) -> u32 {
        self.inodes.get(ino).map_or(0, Cached::opens)
    }

    /// Counts a handle of an inode in or out; how many are left.
    pub fn count_handle(&mut self, ino: Ino, change: i32) -> u32 {
        self.inodes.count_open(ino, change)
    }

    /// Whether more inodes are newer than their nodes than memory should hold.
    pub fn holds_many_dirty_inodes(&self) -> bool {
        self.inodes.is_strained()
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.flash().shape().slot_bytes as u64
    }

    /// The largest size of a file, bytes.
    pub fn size_max(&self) -> u64 {
        CHUNKS_MAX.saturating_mul(self.chunk_bytes()).min(i64::MAX as u64)
    }

    /// Where a key's content stands.
    pub fn get(&mut self, key: Key) -> Result<Option<Place>> {
        self.index.get(self.log.slots_mut(), key)
    }

    /// The first entry of the index that reaches into `from..to`, cut to that range.
    pub fn next(&mut self, from: Key, to: Key) -> Result<Option<Entry>> {
        self.index.next(self.log.slots_mut(), from, to)
    }

    /// Changes what keys map to, because of the record to come.
    pub fn set(&mut self, key: Key, change: Change) -> Result<Replaced> {
        let release = self.flash().by_record();
        self.index.set(self.log.slots_mut(), key, change, release, false)
    }

    /// The same where nothing is mapped yet.
    pub(super) fn set_fresh(&mut self, key: Key, change: Change) -> Result<Replaced> {
        let release = self.flash().by_record();
        self.index.set(self.log.slots_mut(), key, change, release, true)
    }

    /// Takes a key out of the index, because of the record to come.
    pub fn remove(&mut self, key: Key) -> Result<()> {
        self.set(key, Change::Cut(1)).map(|_| ())
    }

    /// Makes a key point to a copy, if it still points to the original that it pointed to in this generation of the index:
    /// nothing is read for it.
    pub(super) fn relocate_known(&mut self, relocation: Relocation) {
        if let (Place::Run { slot: from, .. }, Place::Run { slot: to, .. }) = (relocation.from, relocation.to) {
            let block_of = |slot| self.log.flash().shape().block_of(slot);
            self.spreads.heard_of_page(ino_of(relocation.key), Some(block_of(from)), block_of(to));
        }
        let release = self.flash().by_copy();
        self.index.relocate_known(self.log.slots_mut(), relocation, release);
    }

    /// An inode, from memory or flash.
    pub fn inode(&mut self, ino: Ino) -> Result<Inode> {
        if let Some(cached) = self.inodes.get(ino) {
            return Ok(cached.inode);
        }
        let place = self.get(key(ino, KeyKind::Inode, 0))?.ok_or(Error::NotFound)?;
        let inode = self.with_node(place, |found, node| match node.body {
            Body::Inode(inode) if found == ino => Some(inode),
            _ => None,
        })?;
        self.inodes.insert(ino, inode);
        Ok(inode)
    }

    /// Looks at the node at `place`: `look` gets its inode number and the node.
    pub fn with_node<T>(&mut self, place: Place, look: impl FnOnce(u64, &node::Node<'_>) -> Option<T>) -> Result<T> {
        let slots = self.log.slots_mut();
        let (bytes, slot): (Arc<[u8]>, Slot) = match place {
            Place::Pending { number } => {
                let bytes = self.buffer.pending(number).unwrap_or(&[]);
                let found = node::node_at(bytes, 0).and_then(|node| look(node.ino, &node));
                return found.ok_or(Error::Corrupt { what: "pending node", slot: 0 });
            }
            Place::Node { slot, .. } => (slots.read_slot(slot, Kind::Nodes, Cause::Metadata)?, slot),
            Place::Run { slot, .. } => return slots.corrupt("node", slot),
            Place::Mark | Place::Reserved { .. } => return slots.corrupt("node", 0),
        };
        let Place::Node { at, .. } = place else { return slots.corrupt("node", slot) };
        match node::node_at(&bytes, at).and_then(|node| look(node.ino, &node)) {
            Some(found) => Ok(found),
            None => slots.corrupt("node", slot),
        }
    }

    /// Changes an inode in memory only: replay derives the change from what is logged anyway.
    pub fn derive_inode(&mut self, ino: Ino, inode: Inode) {
        self.inodes.update(ino, inode);
    }

    /// Changes an inode and logs it. What it has is counted elsewhere: that stays.
    pub fn put_inode(&mut self, ino: Ino, mut inode: Inode) -> Result<()> {
        // Its attributes are about to be set apart from its data.
        while let Some(chunk) = self.buffer.oldest_of(ino) {
            self.chunks(ino).store(chunk, None, false)?;
        }
        if let Some(Cached { inode: held, .. }) = self.inodes.get(ino) {
            (inode.chunks, inode.entries) = (held.chunks, held.entries);
        }
        self.inodes.update(ino, inode);
        let pending = self.index.pending_at(key(ino, KeyKind::Inode, 0)).is_some();
        if pending { Ok(()) } else { self.push(ino, Body::Inode(inode)) }
    }

    /// Makes a new inode, which is logged with its first names and contents.
    pub fn new_inode(&mut self, inode: Inode) -> Result<Ino> {
        let ino = self.volume.next_ino;
        self.volume.next_ino += 1;
        self.volume.files += 1;
        self.inodes.update(ino, inode);
        self.push_new(ino, Body::Inode(inode))?;
        Ok(ino)
    }

    /// Logs every inode that is newer in memory than on flash.
    pub(super) fn write_inodes(&mut self) -> Result<()> {
        let mut from = 0;
        while let Some((ino, inode)) = self.inodes.next_dirty(from) {
            from = ino + 1;
            self.put_inode(ino, inode)?;
        }
        Ok(())
    }

    /// Logs inodes that are newer in memory than on flash, as many as a step may. Whether there was any.
    pub(super) fn write_some_inodes(&mut self) -> Result<bool> {
        let (reads, mut from) = (self.log.reads(), 0);
        while let Some((ino, inode)) = self.inodes.next_dirty(from) {
            let spent = self.log.reads() - reads;
            let full = self.buffer.pending_bytes() >= self.flash().shape().slot_bytes;
            if full || (spent > 0 && spent + u64::from(self.index.tree().levels()) > STEP_READS) {
                return Ok(true);
            }
            from = ino + 1;
            self.put_inode(ino, inode)?;
        }
        Ok(from > 0)
    }

    /// Changes an inode in memory only, wherever it is: replay derives the change from what is logged anyway.
    pub fn change_inode(&mut self, ino: Ino, change: impl FnOnce(&mut Inode)) -> Result<()> {
        if let Some(inode) = self.inodes.change(ino) {
            change(inode);
            return Ok(());
        }
        let mut inode = self.inode(ino)?;
        change(&mut inode);
        self.derive_inode(ino, inode);
        Ok(())
    }

    /// Removes an inode with everything it has. Where any of it cannot be read, all of it stays.
    pub fn forget(&mut self, ino: Ino) -> Result<()> {
        let (from, to) = whole_inode(ino);
        self.set(from, Change::Cut(to - from))?;
        self.buffer.drop_range(ino, 0, u64::MAX);
        self.inodes.remove(ino);
        self.spreads.forget(ino);
        self.volume.files = self.volume.files.saturating_sub(1);
        self.push(ino, Body::Forget)
    }

    /// Pages of the index and of the block table that stand elsewhere now, and that the checkpoint under way has not followed
    /// yet.
    pub fn moved_pages(&self) -> &[MovedPage] {
        self.log.moved_pages()
    }

    /// Chunks of an inode that are in memory only.
    pub fn fresh_chunks(&self, ino: Ino) -> u64 {
        self.buffer.fresh_chunks(ino)
    }

    /// Whether everything issued before is durable.
    pub fn is_durable(&self) -> bool {
        self.buffer.is_empty() && self.log.is_acknowledged()
    }

    /// Lets the index follow slots that moved because their block failed under a unit of several slots.
    #[inline]
    pub(super) fn follow_moved(&mut self) -> Result<()> {
        if !self.flash().has_moved() {
            return Ok(());
        }
        self.spreads.forget_all();
        self.log.follow_moved(&mut self.index)
    }
}
