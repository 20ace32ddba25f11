//! Reading slots.
//!
//! Invariant: what is given out has passed its checksum, or comes with the [`ChunkCheck`] that is still to be made.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError, PageRead};

use super::shape::Spot;
use super::slots::{Slots, Stashed};
use crate::error::{Error, Result};
use crate::format::place::Slot;
use crate::format::summary::{self, Summary};
use crate::format::tag::{self, Kind, TAG_BYTES, Tag};

/// What is wrong with a page that has more wrong bits than the chip corrects.
const UNCORRECTABLE: &str = "could not be corrected by the chip";

/// What a bare chunk that was read must prove to be.
#[derive(Clone, Copy, Debug)]
pub struct ChunkCheck {
    raw: [u8; TAG_BYTES],
    seed: u32,
    ino: u64,
    chunk: u64,
}

impl ChunkCheck {
    /// Checks the slot's bytes; what is behind the valid ones becomes zeros. `false`: they are not that chunk.
    pub fn make(&self, data: &mut [u8]) -> bool {
        match Tag::decode(&self.raw, self.seed, data) {
            Some(tag) if tag.kind == Kind::Data && tag.ino == self.ino && tag.chunk == self.chunk => {
                data.iter_mut().skip(tag.len as usize).for_each(|byte| *byte = 0);
                true
            }
            _ => false,
        }
    }
}

/// What stands in a slot.
pub enum SlotLook {
    /// Nothing was programmed.
    Blank,
    /// What was programmed cannot be read.
    Corrupt,
    Whole(Tag, Stashed),
}

impl SlotLook {
    /// What was read of a slot and of the spare bytes from its tag on, where checksums have this seed.
    fn of(seed: u32, slot: Slot, bytes: Vec<u8>, spare: Option<&[u8]>) -> Self {
        let Some(Ok(raw)) = spare.map(<[u8; TAG_BYTES]>::try_from) else { return Self::Corrupt };
        match Tag::decode(&raw, seed, &bytes) {
            _ if tag::is_blank(&raw) && tag::is_blank(&bytes) => Self::Blank,
            Some(tag) => Self::Whole(tag, Stashed { slot, raw, bytes: bytes.into() }),
            None => Self::Corrupt,
        }
    }
}

impl<N: Nand> Slots<N> {
    /// Looks at slots that are on the chip, those on different dies at once. Each is of a block that is programmed in this mode.
    pub fn look_at(&mut self, asked: &[(Slot, CellMode)]) -> Result<Vec<SlotLook>> {
        let spots = asked.iter().map(|&(slot, mode)| self.shape.spot(slot, self.nand.layout(mode)));
        let spots: Vec<Option<Spot>> = spots.collect();
        let slot_bytes = self.shape.slot_bytes;
        let buffers = spots.iter().flatten().map(|spot| (vec![0; slot_bytes], vec![0; spot.tag_at + TAG_BYTES]));
        let mut buffers: Vec<(Vec<u8>, Vec<u8>)> = buffers.collect();
        let reads = spots.iter().flatten().zip(&mut buffers).map(|(spot, (data, spare))| {
            PageRead::new(spot.block, spot.page, spot.column, data, spare, Cause::Metadata)
        });
        let mut reads: Vec<PageRead> = reads.collect();
        self.reads += reads.len() as u64;
        self.nand.read_many(&mut reads);
        let outcomes: Vec<_> = reads.into_iter().map(|read| read.outcome).collect();
        let mut answers = outcomes.into_iter().zip(buffers);
        let mut looks = Vec::with_capacity(asked.len());
        for (&(slot, _), spot) in asked.iter().zip(spots) {
            let answer = spot.and_then(|spot| Some((spot, answers.next()?)));
            looks.push(match answer {
                Some((spot, (Ok(info), (bytes, spare)))) => {
                    self.note_errors(spot.block, info);
                    SlotLook::of(self.seed, slot, bytes, spare.get(spot.tag_at..))
                }
                None | Some((_, (Err(NandError::Uncorrectable { .. } | NandError::OutOfRange { .. }), _))) => {
                    SlotLook::Corrupt
                }
                Some((_, (Err(error), _))) => return Err(error.into()),
            });
        }
        Ok(looks)
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
        let raw = self.read_raw(slot, mode, data, cause)?;
        if tag::is_blank(&raw) && tag::is_blank(data) {
            return Ok(None);
        }
        Tag::decode(&raw, seed, data).map(Some).ok_or(Error::Corrupt { what: "wrong checksum", slot })
    }

    /// Reads a slot's bytes into `data`, and its tag, of which nothing is checked.
    pub fn read_raw(&mut self, slot: Slot, mode: CellMode, data: &mut [u8], cause: Cause) -> Result<[u8; TAG_BYTES]> {
        if let Some((bytes, raw)) = self.gathered(slot) {
            data.copy_from_slice(bytes);
            return Ok(raw);
        }
        if let Some(stashed) = self.stash.iter().find(|stashed| stashed.slot == slot) {
            data.copy_from_slice(&stashed.bytes);
            return Ok(stashed.raw);
        }
        let corrupt = Error::Corrupt { what: "wrong checksum", slot };
        let spot = self.shape.spot(slot, self.nand.layout(mode)).ok_or(corrupt.clone())?;
        let mut spare = [0; TAG_BYTES * 32];
        let spare = spare.get_mut(..spot.tag_at + TAG_BYTES).ok_or(corrupt.clone())?;
        self.reads += 1;
        match self.nand.read(spot.block, spot.page, spot.column, data, spare, cause) {
            Ok(info) => self.note_errors(spot.block, info),
            Err(NandError::Uncorrectable { .. }) => return Err(Error::Corrupt { what: UNCORRECTABLE, slot }),
            Err(NandError::OutOfRange { .. }) => return Err(corrupt),
            Err(error) => return Err(error.into()),
        }
        spare.get(spot.tag_at..).and_then(|tag| tag.try_into().ok()).ok_or(corrupt)
    }

    /// The bytes and tag of a slot that is gathered but not yet programmed.
    fn gathered(&self, slot: Slot) -> Option<(&[u8], [u8; TAG_BYTES])> {
        let (block, index) = (self.shape.block_of(slot), self.shape.index_of(slot));
        let at = self.lanes.find(|head| head.block == Some(block))?;
        let head = self.head(at);
        let part = index.checked_sub(head.unit * self.shape.mode(at.mode()).unit_slots)?;
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
        let data = Arc::get_mut(&mut bytes).ok_or(Error::Corrupt { what: "wrong checksum", slot })?;
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

    /// Reads the bare chunk `chunk` of inode `ino` at `slot` into `data`, and leaves the check to the caller.
    pub fn read_unchecked(&mut self, slot: Slot, ino: u64, chunk: u64, data: &mut [u8]) -> Result<ChunkCheck> {
        let mode = self.blocks.get(self.shape.block_of(slot)).mode();
        let raw = self.read_raw(slot, mode, data, Cause::Host)?;
        Ok(ChunkCheck { raw, seed: self.seed, ino, chunk })
    }

    /// Counts and reports a read that failed its check.
    pub fn corrupt<T>(&mut self, what: &'static str, slot: Slot) -> Result<T> {
        self.corrupt_reads += 1;
        self.wrong_checksums += u64::from(what != UNCORRECTABLE);
        Err(Error::Corrupt { what, slot })
    }

    /// The summary of a block programmed in `mode`, if it has one that was written at or after `since`.
    pub fn read_summary(&mut self, block: u32, mode: CellMode, since: u64, cause: Cause) -> Result<Option<Summary>> {
        let mut bytes = Vec::new();
        for part in 0..self.shape.mode(mode).summary_slots {
            let Some(found) = self.read_summary_part(block, mode, part, since, cause)? else { return Ok(None) };
            bytes.extend_from_slice(&found);
        }
        Ok(summary::decode(block, &bytes))
    }

    /// The bytes of one slot of it.
    pub fn read_summary_part(
        &mut self,
        block: u32,
        mode: CellMode,
        part: u32,
        since: u64,
        cause: Cause,
    ) -> Result<Option<Vec<u8>>> {
        let slot = self.shape.slot(block, self.shape.mode(mode).content_slots() + part);
        let mut data = vec![0; self.shape.slot_bytes];
        match self.read_tagged_as(slot, mode, &mut data, cause) {
            Ok(Some(tag)) if tag.kind == Kind::Summary && tag.seq >= since && tag.chunk == u64::from(part) => {
                Ok(Some(data))
            }
            Ok(_) | Err(Error::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
