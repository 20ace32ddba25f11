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
pub mod shape;

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Failure, Nand, NandError};

use self::anchors::AnchorLog;
use self::blocks::{BlockTable, Horizon};
use self::cache::SlotCache;
use self::head::{Exposed, Head, HeadId};
use self::shape::Shape;
use crate::error::{Error, Result};
use crate::format::place::{Place, Slot};
use crate::format::summary::{self, Summary};
use crate::format::table::{BlockEntry, Use};
use crate::format::tag::{self, Kind, TAG_BYTES, Tag};

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
    /// Log blocks opened since the last checkpoint.
    pub opened: u32,
    /// Bytes programmed in the volume's life, by cause.
    pub written_bytes: [u64; Cause::ALL.len()],
    pub corrupt_reads: u64,
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
            opened: 0,
            written_bytes: [0; Cause::ALL.len()],
            corrupt_reads: 0,
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

    /// Counts a place as no longer needed, because of the record with sequence number `seq`.
    pub fn release(&mut self, place: Place, seq: u64) {
        if let Some(mut block) = self.drop_live(place) {
            block.kill_seq = block.kill_seq.max(seq);
        }
    }

    /// Counts a place as no longer needed, because a copy of it stands elsewhere.
    pub fn release_copied(&mut self, place: Place) {
        let copies = self.copies;
        if let Some(mut block) = self.drop_live(place) {
            block.copy_no = copies;
        }
    }

    fn drop_live(&mut self, place: Place) -> Option<blocks::Edit<'_>> {
        let bytes = i64::from(self.bytes_of(place));
        let (Place::Run { slot, .. } | Place::Node { slot, .. }) = place else { return None };
        let block = self.shape.block_of(slot);
        self.blocks.add_live(block, -bytes);
        let (holding, era) = (self.holding, self.era);
        let mut found = self.blocks.get_mut(block)?;
        if holding {
            found.era = era;
        }
        Some(found)
    }

    /// Reads a slot's bytes into `data` and gives its tag; `None` where nothing was programmed.
    pub fn read_tagged(&mut self, slot: Slot, data: &mut [u8], cause: Cause) -> Result<Option<Tag>> {
        let mode = self.blocks.get(self.shape.block_of(slot)).mode();
        self.read_tagged_as(slot, mode, data, cause)
    }

    /// The same for a block whose mode the table does not know yet.
    pub fn read_tagged_as(&mut self, slot: Slot, mode: CellMode, data: &mut [u8], cause: Cause) -> Result<Option<Tag>> {
        self.read_seeded(slot, mode, self.seed, data, cause)
    }

    /// The same where the checksum has a seed of its own, as an anchor's has.
    pub fn read_seeded(
        &mut self,
        slot: Slot,
        mode: CellMode,
        seed: u32,
        data: &mut [u8],
        cause: Cause,
    ) -> Result<Option<Tag>> {
        if let Some((bytes, raw)) = self.gathered(slot) {
            data.copy_from_slice(bytes);
            return Ok(Tag::decode(&raw, seed, data));
        }
        if let Some(stashed) = self.stash.iter().find(|stashed| stashed.slot == slot) {
            data.copy_from_slice(&stashed.bytes);
            return Ok(Tag::decode(&stashed.raw, seed, data));
        }
        let corrupt = Error::Corrupt { what: "slot", slot };
        let spot = self.shape.spot(slot, self.nand.layout(mode)).ok_or(corrupt.clone())?;
        let mut spare = [0; TAG_BYTES * 32];
        let spare = spare.get_mut(..spot.tag_at + TAG_BYTES).ok_or(corrupt.clone())?;
        match self.nand.read(spot.block, spot.page, spot.column, data, spare, cause) {
            Ok(_) => {}
            Err(NandError::Uncorrectable { .. } | NandError::OutOfRange { .. }) => return Err(corrupt),
            Err(error) => return Err(error.into()),
        }
        let raw = spare.get(spot.tag_at..).and_then(|tag| <&[u8; TAG_BYTES]>::try_from(tag).ok());
        let raw = raw.ok_or(corrupt.clone())?;
        if tag::is_blank(raw) && tag::is_blank(data) {
            return Ok(None);
        }
        Tag::decode(raw, seed, data).map(Some).ok_or(corrupt)
    }

    /// The bytes and tag of a slot that is gathered but not yet programmed.
    fn gathered(&self, slot: Slot) -> Option<(&[u8], [u8; TAG_BYTES])> {
        let (block, index) = (self.shape.block_of(slot), self.shape.index_of(slot));
        let id = HeadId::ALL.into_iter().find(|&id| self.head(id).block == Some(block))?;
        let head = self.head(id);
        let part = index.checked_sub(head.unit * self.shape.mode(id.mode()).unit_slots)?;
        if part >= head.filled {
            return None;
        }
        let bytes = head.data.get(part as usize * self.shape.slot_bytes..)?.get(..self.shape.slot_bytes)?;
        Some((bytes, *head.tags.get(index as usize)?))
    }

    /// Reads a slot that must hold `kind`, through the cache.
    pub fn read_slot(&mut self, slot: Slot, kind: Kind, cause: Cause) -> Result<Arc<[u8]>> {
        if let Some(bytes) = self.cache.get(slot) {
            return Ok(bytes);
        }
        let bytes = self.read_uncached(slot, kind, cause)?;
        self.cache.put(slot, bytes.clone());
        Ok(bytes)
    }

    /// Reads a slot that must hold `kind`, past the cache.
    pub fn read_uncached(&mut self, slot: Slot, kind: Kind, cause: Cause) -> Result<Arc<[u8]>> {
        let mut bytes: Arc<[u8]> = vec![0; self.shape.slot_bytes].into();
        let data = Arc::get_mut(&mut bytes).ok_or(Error::Corrupt { what: "slot", slot })?;
        match self.read_tagged(slot, data, cause) {
            Ok(Some(tag)) if tag.kind == kind => Ok(bytes),
            Ok(_) => self.corrupt("slot of another kind", slot),
            Err(Error::Corrupt { what, slot }) => self.corrupt(what, slot),
            Err(error) => Err(error),
        }
    }

    /// Reads the bare chunk `chunk` of inode `ino` at `slot` into `data`.
    pub fn read_data(&mut self, slot: Slot, ino: u64, chunk: u64, data: &mut [u8]) -> Result<u32> {
        match self.read_tagged(slot, data, Cause::Host) {
            Ok(Some(tag)) if tag.kind == Kind::Data && tag.ino == ino && tag.chunk == chunk => Ok(tag.len),
            Ok(_) => self.corrupt("data of another chunk", slot),
            Err(Error::Corrupt { what, slot }) => self.corrupt(what, slot),
            Err(error) => Err(error),
        }
    }

    /// Counts and reports a read that failed its check.
    pub fn corrupt<T>(&mut self, what: &'static str, slot: Slot) -> Result<T> {
        self.corrupt_reads += 1;
        Err(Error::Corrupt { what, slot })
    }

    /// The summary of a block programmed in `mode`, if it has one that was written at or after `since`.
    pub fn read_summary(&mut self, block: u32, mode: CellMode, since: u64, cause: Cause) -> Result<Option<Summary>> {
        let shape = self.shape.mode(mode);
        let (first, slots) = (shape.content_slots(), shape.summary_slots);
        let mut bytes = vec![0; self.shape.slot_bytes * slots as usize];
        for (part, data) in bytes.chunks_exact_mut(self.shape.slot_bytes).enumerate() {
            let slot = self.shape.slot(block, first + part as u32);
            match self.read_tagged_as(slot, mode, data, cause) {
                Ok(Some(tag)) if tag.kind == Kind::Summary && tag.seq >= since && tag.chunk == part as u64 => {}
                Ok(_) | Err(Error::Corrupt { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(summary::decode(block, &bytes))
    }

    /// Takes a free block, erased. It counts as open, so that nothing else takes it before its head has opened it.
    pub fn take_block(&mut self, cause: Cause) -> Result<u32> {
        loop {
            let block = self.blocks.pick(self.horizon()).ok_or(Error::NoSpace)?;
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
