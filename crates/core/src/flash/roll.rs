//! A head goes on: in its block, or in the next one, which is taken, erased and named first.
//!
//! Each of these is one flash operation, so that they can be done ahead of whoever appends. Invariant: a log head opens
//! only a block that the last anchor, a durable summary or the next checkpoint names.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand};

use super::blocks::Take;
use super::dies::HomeDies;
use super::head::{Exposed, Head, HeadId, LaneId, Tail};
use super::slots::Slots;
use super::{Flash, Purpose};
use crate::error::{Error, Result};
use crate::format::anchor::{Named, names_max};
use crate::format::summary;
use crate::format::tag::{Kind, TAG_BYTES, Tag};

/// Of so many blocks one is to be free where blocks are taken for lanes that do not need them yet.
const PLENTY_PART: u32 = 4;

/// The tag of a slot that was left out.
pub(super) const BLANK: [u8; TAG_BYTES] = [0xff; TAG_BYTES];

impl<N: Nand> Flash<N> {
    /// The place the next slot of a head goes to: block and index.
    pub(super) fn claim(&mut self, at: LaneId, purpose: Purpose) -> Result<(u32, u32)> {
        while !self.prepare(at, purpose)? {}
        let head = self.slots.head(at);
        let shape = self.slots.shape.mode(at.mode());
        Ok((head.block.ok_or(Error::NoSpace)?, head.unit * shape.unit_slots + head.filled))
    }

    /// Brings a head nearer to having a place for its next slot, by at most one operation of the chip. Whether it has one.
    pub fn prepare(&mut self, at: LaneId, purpose: Purpose) -> Result<bool> {
        let content_units = self.slots.shape.mode(at.mode()).content_units;
        loop {
            let head = self.slots.head(at);
            match head.block {
                Some(_) if head.filled > 0 => return Ok(true),
                Some(full) if head.unit >= content_units => return self.go_on(at, Some(full), purpose),
                Some(_) if self.slots.must_skip(at, head.unit, self.numbers.promised()) => {
                    Head::skip(self.slots.lanes.get_mut(at), self.slots.shape.mode(at.mode()));
                }
                Some(_) => return Ok(true),
                None => return self.go_on(at, None, purpose),
            }
        }
    }

    /// One step towards the next block of a head, whose last one is full or was left. Whether the head stands there.
    fn go_on(&mut self, at: LaneId, full: Option<u32>, purpose: Purpose) -> Result<bool> {
        let next = match self.slots.head(at).next {
            Some(next) => next,
            None => match self.take_next(at, purpose)? {
                Some(next) => next,
                None => return Ok(false),
            },
        };
        // One anchor names the first blocks of all lanes of a head, if there are plenty.
        let is_named = self.phase.is_logged() && at.head != HeadId::Meta && !self.slots.head(at).next_is_named;
        let lanes = &self.slots.lanes;
        if full.is_none()
            && lanes.are_several()
            && is_named
            && let Some(beside) = lanes.vacant_beside(at)
            && self.free_blocks() >= self.slots.blocks.len() / PLENTY_PART
        {
            self.take_next(beside, purpose)?;
            return Ok(false);
        }
        let sealed = match full {
            Some(full) if self.slots.can_seal(at, self.numbers.promised()) => {
                if !self.seal_part(at, full, next, purpose)? {
                    return Ok(false);
                }
                true
            }
            _ => false,
        };
        if !sealed {
            match self.name(at, full, next) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    self.slots.head_mut(at).next = None;
                    return Err(error);
                }
            }
        }
        if let Some(mut found) = full.and_then(|full| self.slots.blocks.get_mut(full)) {
            found.open = false;
            found.entry.sealed = sealed;
        }
        self.open(at, next);
        Ok(false)
    }

    /// Takes a free block for a head to go on in, once it is erased. It counts as open, so that nothing else takes it.
    fn take_next(&mut self, at: LaneId, purpose: Purpose) -> Result<Option<u32>> {
        if self.anchors.pair_changed && self.phase.is_logged() {
            // A block taken out of the pair must not be used while an anchor still lists it.
            self.ready_step()?;
            return Ok(None);
        }
        // What goes to native cells stays longer than what waits in SLC cells to be moved there.
        let take = match purpose.take {
            Take::LeastWorn if at.head == HeadId::Native => Take::Settling,
            take => take,
        };
        // Levelling takes the most worn block of any die.
        let home = match take {
            Take::MostWorn => HomeDies::ALL,
            Take::LeastWorn | Take::Settling => self.slots.lanes.home(&self.slots.shape.geometry, at),
        };
        let next = self.slots.blocks.pick(self.horizon(), take, home);
        let Some(next) = next else { return Err(self.slots.outage.ran_out()) };
        if !self.slots.blocks.get(next).entry.erased {
            // One that is erased is picked again, unless that failed.
            if self.slots.look_for_pages(next, purpose.cause)? {
                self.slots.erase(next, purpose.cause)?;
            }
            return Ok(None);
        }
        if let Some(mut found) = self.slots.blocks.get_mut(next) {
            found.open = true;
        }
        self.slots.blocks.note_taken(next);
        self.slots.head_mut(at).next = Some(next);
        Ok(Some(next))
    }

    /// Programs the next part of a full block's summary. Whether that was the last; where it fails, there is none.
    fn seal_part(&mut self, at: LaneId, full: u32, next: u32, purpose: Purpose) -> Result<bool> {
        let shape = self.slots.shape.mode(at.mode());
        let (unit_slots, summary_slots, content_slots) = (shape.unit_slots, shape.summary_slots, shape.content_slots());
        let (slot_bytes, erases) = (self.slots.shape.slot_bytes, self.slots.blocks.get(full).entry.erases);
        let head = self.slots.head_mut(at);
        head.tags.resize(content_slots as usize, BLANK);
        head.purpose = purpose;
        let bytes = summary::encode(full, next, &head.tags, slot_bytes);
        let mut slot = Vec::with_capacity(slot_bytes);
        loop {
            let part = self.slots.head(at).sealed_slots;
            let rest = bytes.get(part as usize * slot_bytes..).unwrap_or(&[]);
            slot.clear();
            slot.extend_from_slice(rest.get(..slot_bytes).unwrap_or(rest));
            slot.resize(slot_bytes, 0);
            let tag = Tag {
                kind: Kind::Summary,
                end: false,
                copy: false,
                unlogged: false,
                seq: self.numbers.next(),
                ino: 0,
                chunk: u64::from(part),
                len: slot_bytes as u32,
                erases: Some(erases),
                time_ns: 0,
                dated: false,
                source: 0,
            };
            let raw = tag.encode(self.slots.seed, &slot);
            self.slots.count_written(purpose.cause, slot_bytes);
            self.slots.head_mut(at).sealed_slots = part + 1;
            let programmed = if unit_slots == 1 {
                self.program(at, &slot, &raw)?
            } else {
                self.slots.gather(at, &slot, &raw);
                if self.slots.head(at).filled < unit_slots {
                    continue;
                }
                let head = self.slots.head_mut(at);
                let (data, spare) = (core::mem::take(&mut head.data), core::mem::take(&mut head.spare));
                self.program(at, &data, &spare)?
            };
            if !programmed {
                self.slots.fail_block(full);
                let head = self.slots.head_mut(at);
                (head.filled, head.incomplete) = (0, true);
            }
            return Ok(programmed && part + 1 >= summary_slots);
        }
    }

    /// Goes on in a fresh block at once; nothing is gathered for the one before.
    pub fn open_fresh(&mut self, at: LaneId, purpose: Purpose) -> Result<()> {
        self.slots.leave_block(at);
        self.claim(at, purpose).map(|_| ())
    }

    /// Makes `block` the one a head writes to.
    fn open(&mut self, at: LaneId, block: u32) {
        let (era, mono_ns) = (self.numbers.era(), self.slots.mono_ns);
        if let Some(mut found) = self.slots.blocks.get_mut(block) {
            found.open = true;
            found.opened_ns = Some(mono_ns);
            found.era = era;
            at.head.mark(&mut found.entry);
        }
        self.slots.head_mut(at).start(block);
        match at.head {
            HeadId::Meta => self.numbers.open_block_of_pages(),
            _ => self.numbers.open_block(),
        }
    }

    /// One step towards naming a block in an anchor, so that replay finds it: everything that is gathered is programmed before,
    /// a unit in a step. Where the head has several lanes, the anchor says of which block this is the next. Whether it is
    /// named.
    fn name(&mut self, at: LaneId, full: Option<u32>, block: u32) -> Result<bool> {
        if !self.phase.is_logged() || at.head == HeadId::Meta || self.slots.head(at).next_is_named {
            return Ok(true);
        }
        let (head, era, named) = (at.head as u8, self.numbers.era(), self.anchors.names.len());
        let lanes = &self.slots.lanes;
        let left = full.filter(|_| lanes.are_several()).map(|full| Named::after(head, full));
        let beside = lanes.of_head(at.head).filter(|&lane| lane != at && full.is_none() && lanes.get(lane).is_vacant());
        let beside: Vec<(LaneId, u32)> = beside.filter_map(|lane| Some((lane, lanes.get(lane).next?))).collect();
        let blocks = beside.iter().map(|&(_, block)| block).chain([block]);
        let names = left.into_iter().chain(blocks.map(|block| Named { head, block }));
        let outcome = match self.flush_unit() {
            Ok(true) => return Ok(false),
            Ok(false) if named + names.clone().count() <= names_max(self.slots.lanes.count()) => {
                self.anchors.names.extend(names.map(|named| (named, era)));
                let outcome = self.rewrite_anchor();
                beside.iter().for_each(|&(lane, _)| self.slots.head_mut(lane).next_is_named = outcome.is_ok());
                outcome
            }
            Ok(false) => Err(Error::NoSpace),
            Err(error) => Err(error),
        };
        if outcome.is_err() {
            self.anchors.names.truncate(named);
            if let Some(mut found) = self.slots.blocks.get_mut(block) {
                found.open = false;
            }
        }
        outcome.map(|()| true)
    }
}

impl<N: Nand> Slots<N> {
    /// Goes on in a block that an earlier mount left open, by a lane of the head that has none; not where the block table says
    /// that it is no block of that head, or that it failed.
    pub fn reopen(&mut self, tail: Tail) {
        let Tail { head, block, unit } = tail;
        let entry = self.blocks.get(block).entry;
        let Some(at) = self.lanes.vacant(head, &self.shape.geometry, block) else { return };
        if !head.owns(&entry) || entry.failing {
            return;
        }
        let shape = self.shape.mode(at.mode());
        let exposed = (0..unit.min(shape.units)).filter(|&earlier| shape.threat(earlier) >= unit);
        let exposed = exposed
            .map(|unit| Exposed { unit, content_seq: u64::MAX, copy_no: u64::MAX, group_seq: u64::MAX, keep: true })
            .collect();
        let head = self.head_mut(at);
        head.start(block);
        head.unit = unit;
        head.exposed = exposed;
        head.incomplete = unit > 0;
        if let Some(mut found) = self.blocks.get_mut(block) {
            found.open = true;
        }
    }

    /// Where the head of the index can go on that stood at `tail`, `recoveries` having begun since: behind all that was
    /// certainly never programmed.
    pub fn end_of_pages(&mut self, tail: Tail, recoveries: u32) -> Result<Tail> {
        let shape = self.shape.slc.clone();
        let mut data = vec![0; self.shape.slot_bytes];
        let (mut past, mut blanks) = (tail.unit, 0);
        for unit in tail.unit..shape.content_units {
            let slot = self.shape.slot(tail.block, unit * shape.unit_slots);
            match self.read_tagged_as(slot, CellMode::Slc, &mut data, Cause::Metadata) {
                Ok(None) if blanks > recoveries => break,
                Ok(None) => blanks += 1,
                Ok(Some(_)) | Err(Error::Corrupt { .. }) => (past, blanks) = (unit + 1, 0),
                Err(error) => return Err(error),
            }
        }
        Ok(Tail { unit: past + 1 + recoveries, ..tail })
    }

    /// Leaves a block whose program failed.
    pub(super) fn abandon_block(&mut self, at: LaneId) {
        if let Some(block) = self.head(at).block {
            self.fail_block(block);
        }
        self.leave_block(at);
    }

    /// Leaves a block to go on in another; what was gathered is forgotten.
    pub fn leave_block(&mut self, at: LaneId) {
        if let Some(mut found) = self.head(at).block.and_then(|block| self.blocks.get_mut(block)) {
            found.open = false;
        }
        let head = self.head_mut(at);
        head.block = None;
        (head.filled, head.sealed_slots) = (0, 0);
        head.exposed.clear();
    }

    /// Leaves the full blocks of log heads that have not gone on: a head may not be written to for long, and an open block
    /// is never emptied. They get no summary.
    pub fn leave_full_blocks(&mut self) {
        for at in self.lanes().of_log() {
            let content_units = self.shape.mode(at.mode()).content_units;
            let head = self.head(at);
            if head.unit >= content_units && head.filled == 0 && head.sealed_slots == 0 && head.next.is_none() {
                self.leave_block(at);
            }
        }
    }

    /// Whether what is left of a head's full block can take, or go on taking, its summary.
    fn can_seal(&self, at: LaneId, promised_seq: u64) -> bool {
        let (head, shape) = (self.head(at), self.shape.mode(at.mode()));
        !head.incomplete && !(head.unit..shape.units).any(|unit| self.must_skip(at, unit, promised_seq))
    }
}
