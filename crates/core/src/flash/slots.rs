//! The chip as slots: counted as live, gathered before they are programmed, and noted where they fade or fail.
//!
//! Invariant: a slot that is gathered or stashed is kept in memory with the tag and bytes that it has, or will have, on the
//! chip.

use alloc::sync::Arc;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Failure, Nand, NandError, ReadInfo};

use super::blocks::{self, BlockTable};
use super::cache::SlotCache;
use super::head::{Head, LaneId};
use super::lanes::Lanes;
use super::outage::{Operation, OutageWatch};
use super::shape::Shape;
use crate::error::Result;
use crate::format::place::{NODE_UNIT, Place, Slot};
use crate::format::table::{BlockEntry, Use};
use crate::format::tag::TAG_BYTES;

/// Bits that an ECC corrects, from which on how many it did correct tells of the block.
const FEW_BITS: u32 = 4;
/// What was written less than this ago has had no time to age.
const SOON_NS: i64 = 60 * 60 * 1_000_000_000;

/// A slot kept in memory: its tag and bytes.
#[derive(Clone, Debug)]
pub struct Stashed {
    pub slot: Slot,
    pub raw: [u8; TAG_BYTES],
    pub bytes: Arc<[u8]>,
}

/// Why a place of the log is not needed any more.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// The record with this sequence number says so.
    Record(u64),
    /// The copy with this number stands elsewhere.
    Copy(u64),
}

/// A place of the log that is not needed any more.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    pub by: By,
    /// Should the power fail, what says so may not count: the block is kept until a checkpoint later than this era.
    pub held: Option<u64>,
}

impl Release {
    /// By a record that counts.
    pub fn by_record(seq: u64) -> Self {
        Self { by: By::Record(seq), held: None }
    }
}

/// A chip before its block table is read, and the lanes it is written in.
pub struct ChipSetup {
    pub shape: Shape,
    /// Seeds every checksum but the anchors'.
    pub seed: u32,
    pub entries: Vec<BlockEntry>,
    /// Lanes of each head.
    pub lanes: u8,
}

/// The slots of a chip.
pub struct Slots<N: Nand> {
    pub(super) nand: N,
    pub(super) shape: Shape,
    /// Seeds every checksum but the anchors'.
    pub(super) seed: u32,
    pub(super) blocks: BlockTable,
    pub(super) cache: SlotCache,
    pub(super) lanes: Lanes,
    /// Slots a recovery has read and may not be able to read again.
    pub(super) stash: Vec<Stashed>,
    /// Bytes programmed in the volume's life, by cause.
    pub(super) written_bytes: [u64; Cause::ALL.len()],
    pub(super) corrupt_reads: u64,
    /// Those of them that the chip read well.
    pub(super) wrong_checksums: u64,
    /// Reads of the chip since mount.
    pub(super) reads: u64,
    /// When the last request or step of background work came, by a clock that never jumps.
    pub(super) mono_ns: i64,
    pub(super) outage: OutageWatch,
    failures: Vec<Failure>,
}

impl<N: Nand> Slots<N> {
    pub(super) fn new(nand: N, chip: ChipSetup, cache_slots: usize) -> Self {
        let ChipSetup { shape, seed, entries, lanes } = chip;
        let endurance = nand.endurance(CellMode::Native);
        Self {
            lanes: Lanes::new(lanes, shape.geometry.dies()),
            nand,
            shape,
            seed,
            blocks: BlockTable::new(entries, endurance),
            cache: SlotCache::new(cache_slots),
            stash: Vec::new(),
            written_bytes: [0; Cause::ALL.len()],
            corrupt_reads: 0,
            wrong_checksums: 0,
            reads: 0,
            mono_ns: 0,
            outage: OutageWatch::default(),
            failures: Vec::new(),
        }
    }

    /// The chip.
    pub fn nand(&self) -> &N {
        &self.nand
    }

    /// The chip, to read from it past the slots, or to change its faults or its clock.
    pub fn nand_mut(&mut self) -> &mut N {
        &mut self.nand
    }

    /// The chip's shape in slots.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What seeds every checksum but the anchors'.
    pub fn seed(&self) -> u32 {
        self.seed
    }

    /// The volume is another one, with this seed.
    pub fn set_seed(&mut self, seed: u32) {
        self.seed = seed;
    }

    /// The block table.
    pub fn blocks(&self) -> &BlockTable {
        &self.blocks
    }

    /// The block table, to fill it in from what is found on the chip.
    pub fn blocks_mut(&mut self) -> &mut BlockTable {
        &mut self.blocks
    }

    /// The block table is this one.
    pub fn set_blocks(&mut self, blocks: BlockTable) {
        self.blocks = blocks;
    }

    /// A slot's bytes that are in memory.
    pub fn cached(&mut self, slot: Slot) -> Option<Arc<[u8]>> {
        self.cache.get(slot)
    }

    /// Keeps a slot's checked bytes in memory for a while.
    pub fn keep(&mut self, slot: Slot, bytes: Arc<[u8]>) {
        self.cache.put(slot, bytes);
    }

    /// Slots a recovery has read and may not be able to read again.
    pub fn stash(&self) -> &[Stashed] {
        &self.stash
    }

    /// Keeps slots that may not be readable again.
    pub fn set_stash(&mut self, stash: Vec<Stashed>) {
        self.stash = stash;
    }

    /// Reads whose checksum failed or that the chip could not correct, since mount.
    pub fn corrupt_reads(&self) -> u64 {
        self.corrupt_reads
    }

    /// Reads of the chip since mount.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Those of them that the chip read well: a bit of the slot is wrong that its ECC does not cover, as may be in spare bytes.
    pub fn wrong_checksums(&self) -> u64 {
        self.wrong_checksums
    }

    /// Bytes programmed in the volume's life, in the order of [`Cause::ALL`].
    pub fn written_bytes(&self) -> [u64; Cause::ALL.len()] {
        self.written_bytes
    }

    /// A lane.
    pub fn head(&self, at: impl Into<LaneId>) -> &Head {
        self.lanes.get(at.into())
    }

    /// A lane, to change it.
    pub(super) fn head_mut(&mut self, at: LaneId) -> &mut Head {
        self.lanes.get_mut(at)
    }

    /// The lanes of all heads.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Copies a slot into the unit that a head gathers.
    pub(super) fn gather(&mut self, lane: LaneId, data: &[u8], raw: &[u8; TAG_BYTES]) {
        let (slot_bytes, per_page) = (self.shape.slot_bytes, self.shape.slots_per_page);
        let pages = self.shape.mode(lane.mode()).unit_slots / per_page;
        let (page_bytes, spare_bytes) =
            (self.shape.geometry.page_bytes as usize, self.shape.geometry.spare_bytes as usize);
        let head = self.head_mut(lane);
        if head.filled == 0 {
            head.data.clear();
            head.data.resize(pages as usize * page_bytes, 0xff);
            head.spare.clear();
            head.spare.resize(pages as usize * spare_bytes, 0xff);
        }
        let at = head.filled as usize * slot_bytes;
        if let Some(to) = head.data.get_mut(at..at + slot_bytes) {
            to.copy_from_slice(data);
        }
        let at = (head.filled / per_page) as usize * spare_bytes + (head.filled % per_page) as usize * TAG_BYTES;
        if let Some(to) = head.spare.get_mut(at..at + TAG_BYTES) {
            to.copy_from_slice(raw);
        }
        head.filled += 1;
    }

    /// Whether a torn program of this unit could destroy the only copy of something promised.
    pub(super) fn must_skip(&self, at: LaneId, unit: u32, promised_seq: u64) -> bool {
        let exposed = &self.head(at).exposed;
        if exposed.is_empty() {
            return false;
        }
        let victims = self.nand.layout(at.mode()).endangers(unit);
        exposed.iter().any(|e| victims.contains(&e.unit) && (e.keep || e.content_seq < promised_seq))
    }

    /// Slots a lane has left in its block.
    pub fn room(&self, at: LaneId) -> u32 {
        self.head(at).room(self.shape.mode(at.mode()))
    }

    /// Bytes that a place keeps alive.
    pub fn bytes_of(&self, place: Place) -> u32 {
        match place {
            Place::Run { count, .. } => count * self.shape.slot_bytes as u32,
            Place::Node { units, .. } => u32::from(units) * NODE_UNIT as u32,
            Place::Mark | Place::Reserved { .. } | Place::Pending { .. } => 0,
        }
    }

    /// Counts a place as needed.
    pub fn retain(&mut self, place: Place) {
        let bytes = i64::from(self.bytes_of(place));
        if let Place::Run { slot, .. } | Place::Node { slot, .. } = place {
            self.blocks.add_live(self.shape.block_of(slot), bytes);
        }
    }

    /// Counts a place of the log as no longer needed.
    ///
    /// Replay may release what stood in a block that has since become one of the index: it had been released when the
    /// block was taken, and the table lists such a block with its pages alone.
    pub fn release(&mut self, place: Place, release: Release) {
        let (Place::Run { slot, .. } | Place::Node { slot, .. }) = place else { return };
        if self.blocks.get(self.shape.block_of(slot)).entry.used_as == Use::Meta {
            return;
        }
        let Some(mut block) = self.drop_live(slot, self.bytes_of(place)) else { return };
        match release.by {
            By::Record(seq) => block.kill_seq = block.kill_seq.max(seq),
            By::Copy(number) => block.copy_no = number,
        }
        if let Some(era) = release.held {
            block.era = era;
        }
    }

    /// Counts a page of the index or of the block table as no longer needed.
    pub fn release_page(&mut self, slot: Slot, held: Option<u64>) {
        let dropped = self.drop_live(slot, self.shape.slot_bytes as u32);
        if let (Some(mut block), Some(era)) = (dropped, held) {
            block.era = era;
        }
    }

    fn drop_live(&mut self, slot: Slot, bytes: u32) -> Option<blocks::Edit<'_>> {
        let block = self.shape.block_of(slot);
        self.blocks.add_live(block, -i64::from(bytes));
        self.blocks.get_mut(block)
    }

    /// Gives a block up that holds something live that cannot be read: it is never emptied.
    pub fn give_up(&mut self, block: u32) {
        if self.blocks.get(block).entry.live_bytes > 0
            && let Some(mut block) = self.blocks.get_mut(block)
        {
            block.stuck = true;
        }
    }

    /// Notes a block of which reading took much of what the ECC can do. If that is so soon after it was written, the block
    /// is weak and not the data old: it is to be tested.
    pub fn note_errors(&mut self, block: u32, info: ReadInfo) {
        if !info.is_strained() || self.blocks.get(block).fading {
            return;
        }
        let opened_ns = self.blocks.get(block).opened_ns;
        let fresh = opened_ns.is_some_and(|opened_ns| self.mono_ns.saturating_sub(opened_ns) < SOON_NS);
        let nearly_lost = is_nearly_lost(info);
        let Some(mut found) = self.blocks.get_mut(block) else { return };
        match fresh {
            true => found.entry.failing |= nearly_lost && !found.open && found.entry.used_as == Use::Log,
            false => found.fading = true,
        }
    }

    /// Leaves a block that failed a program.
    pub(super) fn fail_block(&mut self, block: u32) {
        if let Some(mut found) = self.blocks.get_mut(block) {
            found.open = false;
            found.entry.failing = true;
        }
    }

    /// Counts bytes that are programmed.
    pub(super) fn count_written(&mut self, cause: Cause, bytes: usize) {
        let counts = Cause::ALL.iter().zip(&mut self.written_bytes);
        counts.filter(|(of, _)| **of == cause).for_each(|(_, count)| *count = count.saturating_add(bytes as u64));
    }

    /// Waits for what a block was asked to do, with this outcome so far. Whether it succeeded.
    pub(super) fn outcome_of(
        &mut self,
        operation: Operation,
        block: u32,
        outcome: core::result::Result<(), NandError>,
    ) -> Result<bool> {
        self.failures.clear();
        self.nand.barrier(&mut self.failures)?;
        match outcome {
            Ok(()) if self.failures.is_empty() => {
                self.outage.succeeded(operation);
                if operation == Operation::Program {
                    self.lanes.count_program(block);
                }
                Ok(true)
            }
            Ok(()) | Err(NandError::ProgramFailed { .. } | NandError::EraseFailed { .. }) => {
                // That worn blocks fail says nothing of the chip.
                if !self.blocks.is_worn_out(block) {
                    self.outage.failed(operation, block)?;
                }
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a read took nearly all that the ECC can do. Of an ECC of few bits a single one says nothing of a block.
pub(super) fn is_nearly_lost(info: ReadInfo) -> bool {
    info.correctable_bits >= FEW_BITS && 4 * info.corrected_bits >= 3 * info.correctable_bits
}
