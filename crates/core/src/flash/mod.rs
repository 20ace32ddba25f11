//! The flash manager: slots are read and appended here, blocks taken, erased and retired.
//!
//! Invariants: what is read has passed its checksum; a log head opens only blocks that the last anchor or a durable
//! summary names; a lower page that holds the only copy of something promised is never put at risk.

pub mod anchors;
pub mod append;
pub mod blocks;
pub mod cache;
pub mod head;
pub mod newest;
pub mod read;
pub mod shape;

use alloc::sync::Arc;
use alloc::vec::Vec;

use nand::{Cause, Failure, Nand, NandError};

use self::anchors::AnchorLog;
use self::blocks::{BlockTable, Horizon};
use self::cache::SlotCache;
use self::head::{Exposed, Head, HeadId};
use self::shape::Shape;
use crate::error::{Error, Result};
use crate::format::place::{Place, Slot};
use crate::format::table::{BlockEntry, Use};
use crate::format::tag::{TAG_BYTES, Tag};

/// A slot that moved because its block failed while its unit was being programmed.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    pub tag: Tag,
    pub from: Slot,
    pub to: Slot,
}

/// A slot kept in memory: its tag and bytes.
#[derive(Clone, Debug)]
pub struct Stashed {
    pub slot: Slot,
    pub raw: [u8; TAG_BYTES],
    pub bytes: Arc<[u8]>,
}

/// The flash manager.
pub struct Flash<N: Nand> {
    pub nand: N,
    pub shape: Shape,
    /// Seeds every checksum but the anchors'.
    pub seed: u32,
    pub blocks: BlockTable,
    pub cache: SlotCache,
    pub anchors: AnchorLog,
    heads: [Head; 3],
    /// Sequence number of the next original.
    pub next_seq: u64,
    /// Everything below is in complete groups.
    pub ended_seq: u64,
    /// Everything below is in complete groups and on flash.
    pub committed_seq: u64,
    /// Everything below was promised to a caller, or is in a checkpoint.
    pub promised_seq: u64,
    /// Checkpoints begun since mount, and the last durable one of them.
    pub era: u64,
    pub durable_era: u64,
    /// Copies made since mount.
    pub copies: u64,
    /// What takes live bytes from a block now may not count should the power fail: such a block is kept until the
    /// next checkpoint.
    pub holding: bool,
    /// Whether blocks must be named before they are opened: not while formatting or recovering.
    pub naming: bool,
    /// Slots a recovery has read and may not be able to read again.
    pub stash: Vec<Stashed>,
    /// The chip failed under a change, or something that has its number found no place: nothing more is written, and
    /// this is said instead.
    pub broken: Option<Error>,
    /// What units hold whose program failed, while they are gathered again elsewhere.
    pub homeless: Option<Exposed>,
    /// Slots whose address changed; the index must follow.
    pub moved: Vec<Moved>,
    /// Whether what is written now has not changed for long: a block opened for it is a worn one.
    pub cold: bool,
    /// Log blocks opened since the last checkpoint.
    pub opened: u32,
    /// Bytes programmed in the volume's life, by cause.
    pub written_bytes: [u64; Cause::ALL.len()],
    pub corrupt_reads: u64,
    /// The time of the last operation.
    pub now_ns: i64,
    failures: Vec<Failure>,
}

impl<N: Nand> Flash<N> {
    /// A flash manager over a chip whose blocks are as `entries` says.
    pub fn new(nand: N, shape: Shape, seed: u32, entries: Vec<BlockEntry>, cache_slots: usize) -> Self {
        Self {
            nand,
            shape,
            seed,
            blocks: BlockTable::new(entries),
            cache: SlotCache::new(cache_slots),
            anchors: AnchorLog::default(),
            heads: HeadId::ALL.map(|_| Head::new()),
            next_seq: 1,
            ended_seq: 1,
            committed_seq: 1,
            promised_seq: 1,
            era: 1,
            durable_era: 1,
            copies: 0,
            holding: false,
            naming: false,
            stash: Vec::new(),
            broken: None,
            homeless: None,
            moved: Vec::new(),
            cold: false,
            opened: 0,
            written_bytes: [0; Cause::ALL.len()],
            corrupt_reads: 0,
            now_ns: 0,
            failures: Vec::new(),
        }
    }

    /// A head.
    pub fn head(&self, id: HeadId) -> &Head {
        let [slc, native, meta] = &self.heads;
        match id {
            HeadId::Slc => slc,
            HeadId::Native => native,
            HeadId::Meta => meta,
        }
    }

    /// A head, to change it.
    pub fn head_mut(&mut self, id: HeadId) -> &mut Head {
        let [slc, native, meta] = &mut self.heads;
        match id {
            HeadId::Slc => slc,
            HeadId::Native => native,
            HeadId::Meta => meta,
        }
    }

    /// Lets nothing more be written, because of this.
    pub fn fail(&mut self, error: &Error) {
        // Space that comes free later would not mend it.
        let lasting = if *error == Error::NoSpace { Error::ReadOnly } else { error.clone() };
        self.broken.get_or_insert(lasting);
    }

    /// How far the log has got.
    pub fn horizon(&self) -> Horizon {
        let oldest = HeadId::ALL.iter().map(|&id| self.head(id).oldest_exposed_copy()).min().unwrap_or(u64::MAX);
        let groups = HeadId::ALL.iter().map(|&id| self.head(id).oldest_exposed_group(self.promised_seq));
        let homeless = self.homeless.map_or((u64::MAX, u64::MAX), |unit| (unit.copy_no, unit.group_seq));
        Horizon {
            era: self.durable_era,
            committed_seq: groups.min().unwrap_or(u64::MAX).min(homeless.1).min(self.committed_seq),
            safe_copy: self.copies.min(oldest.min(homeless.0).saturating_sub(1)),
        }
    }

    /// Keeps the blocks the heads stand in until the next checkpoint but one: this one names them, so replay reads
    /// them for the heads it knows, even if they are left at once with nothing in them.
    pub fn hold_head_blocks(&mut self) {
        let era = self.era;
        for id in HeadId::ALL {
            if let Some(mut found) = self.head(id).block.and_then(|block| self.blocks.get_mut(block)) {
                found.era = era;
            }
        }
    }

    /// Blocks that can be taken.
    pub fn free_blocks(&self) -> u32 {
        self.blocks.reusable_count(self.horizon())
    }

    /// Blocks that can be taken once the log heads have filled the blocks they stand in.
    pub fn blocks_free_soon(&self) -> u32 {
        let committed_seq = self.committed_seq;
        self.blocks.reusable_count(Horizon { committed_seq, safe_copy: self.copies, ..self.horizon() })
    }

    /// Blocks that a recovery could take if the power failed now: not those that only the last pages emptied.
    pub fn blocks_free_for_certain(&self) -> u32 {
        self.blocks.reusable_count(self.certain_horizon())
    }

    /// Whether a recovery would find a block for anchors beside the pair, if the power failed now.
    pub fn has_spare_anchor_block(&self) -> bool {
        self.blocks.free_for_anchors(self.certain_horizon()).next().is_some()
    }

    /// How far the log has got without the last pages, which a cut may take.
    fn certain_horizon(&self) -> Horizon {
        let horizon = self.horizon();
        let uncertain = HeadId::ALL.map(|id| self.head(id).uncertain());
        let seq = uncertain.iter().map(|pages| pages.group_seq).min().unwrap_or(u64::MAX);
        let copy = uncertain.iter().map(|pages| pages.copy_no).min().unwrap_or(u64::MAX);
        Horizon {
            committed_seq: horizon.committed_seq.min(seq),
            safe_copy: horizon.safe_copy.min(copy.saturating_sub(1)),
            ..horizon
        }
    }

    /// Bytes that a place keeps alive.
    pub fn bytes_of(&self, place: Place) -> u32 {
        match place {
            Place::Run { count, .. } => count * self.shape.slot_bytes as u32,
            Place::Node { units, .. } => u32::from(units) * crate::format::place::NODE_UNIT as u32,
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

    /// Counts a place of the log as no longer needed, because of the record with sequence number `seq`.
    pub fn release(&mut self, place: Place, seq: u64) {
        if let Some(mut block) = self.drop_record(place) {
            block.kill_seq = block.kill_seq.max(seq);
        }
    }

    /// Counts a place of the log as no longer needed, because a copy of it stands elsewhere.
    pub fn release_copied(&mut self, place: Place) {
        let copies = self.copies;
        if let Some(mut block) = self.drop_record(place) {
            block.copy_no = copies;
        }
    }

    /// Counts a page of the index or of the block table as no longer needed.
    pub fn release_page(&mut self, slot: Slot) {
        self.drop_live(slot, self.shape.slot_bytes as u32);
    }

    /// Replay may release what stood in a block that has since become one of the index: it had been released when the
    /// block was taken, and the table lists such a block with its pages alone.
    fn drop_record(&mut self, place: Place) -> Option<blocks::Edit<'_>> {
        let (Place::Run { slot, .. } | Place::Node { slot, .. }) = place else { return None };
        let used_as = self.blocks.get(self.shape.block_of(slot)).entry.used_as;
        if used_as == Use::Meta { None } else { self.drop_live(slot, self.bytes_of(place)) }
    }

    fn drop_live(&mut self, slot: Slot, bytes: u32) -> Option<blocks::Edit<'_>> {
        let block = self.shape.block_of(slot);
        self.blocks.add_live(block, -i64::from(bytes));
        let (holding, era) = (self.holding, self.era);
        let mut found = self.blocks.get_mut(block)?;
        if holding {
            found.era = era;
        }
        Some(found)
    }

    /// Takes a free block, erased. It counts as open, so that nothing else takes it before its head has opened it.
    pub fn take_block(&mut self, cause: Cause) -> Result<u32> {
        loop {
            let block = self.blocks.pick(self.horizon(), self.cold).ok_or(Error::NoSpace)?;
            if self.blocks.get(block).entry.erased || self.erase(block, cause)? {
                if let Some(mut found) = self.blocks.get_mut(block) {
                    found.open = true;
                }
                return Ok(block);
            }
        }
    }

    /// Erases a block. `false`: it went bad and is retired.
    pub fn erase(&mut self, block: u32, cause: Cause) -> Result<bool> {
        let from = self.shape.slot(block, 0);
        self.cache.forget(from, from + self.shape.stride);
        let outcome = self.nand.erase(block, cause);
        let failed = self.wait()? || matches!(outcome, Err(NandError::EraseFailed { .. }));
        match outcome {
            Ok(()) | Err(NandError::EraseFailed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if failed {
            self.retire(block)?;
            return Ok(false);
        }
        if let Some(mut found) = self.blocks.get_mut(block) {
            let erases = found.entry.erases + 1;
            *found = blocks::Block::erased(erases);
        }
        Ok(true)
    }

    /// Marks a block bad for good.
    pub fn retire(&mut self, block: u32) -> Result<()> {
        if let Some(mut found) = self.blocks.get_mut(block) {
            let erases = found.entry.erases;
            found.entry = BlockEntry { used_as: Use::Bad, erases, ..BlockEntry::default() };
            found.open = false;
        }
        self.blocks.recount();
        Ok(self.nand.mark_bad(block)?)
    }

    /// Retires failing blocks that nothing needs any more.
    pub fn retire_emptied(&mut self) -> Result<()> {
        if self.blocks.failing_count() == 0 {
            return Ok(());
        }
        let horizon = self.horizon();
        let emptied =
            |(number, block): &(u32, &blocks::Block)| block.entry.failing && self.blocks.reusable(*number, horizon);
        let emptied: Vec<u32> = self.blocks.iter().filter(emptied).map(|(number, _)| number).collect();
        emptied.into_iter().try_for_each(|block| self.retire(block))
    }

    /// Counts bytes that are programmed.
    fn count_written(&mut self, cause: Cause, bytes: usize) {
        let counts = Cause::ALL.iter().zip(&mut self.written_bytes);
        counts.filter(|(of, _)| **of == cause).for_each(|(_, count)| *count = count.saturating_add(bytes as u64));
    }

    /// Waits for posted operations; whether any failed.
    fn wait(&mut self) -> Result<bool> {
        self.failures.clear();
        self.nand.barrier(&mut self.failures)?;
        Ok(!self.failures.is_empty())
    }
}
