//! Appending to a log head: claim a slot, gather a unit, program it, roll over to the next block.

use alloc::vec;

use nand::{Cause, CellMode, Nand, NandError};

use super::head::{Exposed, HeadId};
use super::{Flash, Moved};
use crate::error::{Error, Result};
use crate::format::anchor::NAMES_MAX;
use crate::format::place::Slot;
use crate::format::summary;
use crate::format::table::Use;
use crate::format::tag::{Kind, TAG_BYTES, Tag};

const BLANK: [u8; TAG_BYTES] = [0xff; TAG_BYTES];

/// What a caller says of a slot it appends; the flash manager adds place and number.
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    pub kind: Kind,
    pub end: bool,
    /// A copy: `stamp` is its source slot.
    pub copy: bool,
    pub ino: u64,
    pub chunk: u64,
    pub len: u32,
    pub stamp: u64,
}

impl<N: Nand> Flash<N> {
    /// Appends a slot. Originals take a sequence number of their own, copies and index pages the one to come.
    pub fn append(&mut self, id: HeadId, draft: Draft, data: &[u8], cause: Cause) -> Result<Slot> {
        self.claim(id, cause)?;
        let original = matches!(draft.kind, Kind::Data | Kind::Nodes) && !draft.copy;
        let seq = self.next_seq;
        if original {
            self.next_seq += 1;
        }
        if draft.copy {
            self.copies += 1;
        }
        let tag = Tag {
            kind: draft.kind,
            end: draft.end,
            copy: draft.copy,
            seq,
            ino: draft.ino,
            chunk: draft.chunk,
            len: draft.len,
            erases: 0,
            unlogged: !self.naming,
            stamp: draft.stamp,
        };
        let content_seq = if original { seq } else { u64::MAX };
        let copy_no = if draft.copy { self.copies } else { u64::MAX };
        self.count_written(cause, data.len());
        let outcome = self.put(id, tag, content_seq, copy_no, data, cause);
        // A number that is missing in the log would end it there for replay.
        if let Err(error) = outcome.as_ref()
            && original
        {
            self.fail(error);
        }
        outcome
    }

    /// Puts a numbered slot into the head's unit, and programs the unit when it is full.
    fn put(&mut self, id: HeadId, tag: Tag, content_seq: u64, copy_no: u64, data: &[u8], cause: Cause) -> Result<Slot> {
        loop {
            let (block, index) = self.claim(id, cause)?;
            let unit_slots = self.shape.mode(id.mode()).unit_slots;
            let tag = Tag { erases: self.blocks.get(block).entry.erases, ..tag };
            let raw = tag.encode(self.seed, data);
            let group_seq = if content_seq == u64::MAX { u64::MAX } else { self.ended_seq };
            let head = self.head_mut(id);
            head.tags.resize(index as usize, BLANK);
            head.tags.push(raw);
            head.gather(content_seq, group_seq, copy_no);
            head.cause = cause;
            let slot = self.shape.slot(block, index);
            if unit_slots == 1 {
                if self.program(id, data, &raw)? {
                    return Ok(slot);
                }
                self.abandon_block(id);
                continue;
            }
            self.gather(id, data, &raw);
            if self.head(id).filled < unit_slots {
                return Ok(slot);
            }
            let Some(to) = self.flush_head(id)? else { return Ok(slot) };
            // The caller knows no other place of this slot yet.
            self.moved.retain(|moved| moved.to != to);
            return Ok(to);
        }
    }

    /// Copies a slot into the unit being gathered.
    fn gather(&mut self, id: HeadId, data: &[u8], raw: &[u8; TAG_BYTES]) {
        let (slot_bytes, per_page) = (self.shape.slot_bytes, self.shape.slots_per_page);
        let pages = self.shape.mode(id.mode()).unit_slots / per_page;
        let (page_bytes, spare_bytes) =
            (self.shape.geometry.page_bytes as usize, self.shape.geometry.spare_bytes as usize);
        let head = self.head_mut(id);
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

    /// Programs the gathered unit, full or not. The last slot's new address, if the unit had to go elsewhere.
    fn flush_head(&mut self, id: HeadId) -> Result<Option<Slot>> {
        let mut last = None;
        while self.head(id).filled > 0 {
            let head = self.head_mut(id);
            let (data, spare) = (core::mem::take(&mut head.data), core::mem::take(&mut head.spare));
            let done = self.program(id, &data, &spare);
            let head = self.head_mut(id);
            (head.data, head.spare) = (data, spare);
            if done? {
                break;
            }
            last = self.regather(id)?;
        }
        Ok(last)
    }

    /// Moves a gathered unit whose program failed to a fresh block, slot for slot.
    fn regather(&mut self, id: HeadId) -> Result<Option<Slot>> {
        let unit_slots = self.shape.mode(id.mode()).unit_slots;
        let head = self.head(id);
        let Some(from) = head.block.map(|block| self.shape.slot(block, head.unit * unit_slots)) else {
            return Ok(None);
        };
        let (filled, gathering, cause) = (head.filled, head.gathering, head.cause);
        let data = head.data.clone();
        let first = (head.unit * unit_slots) as usize;
        let tags: alloc::vec::Vec<_> = head.tags.get(first..).unwrap_or(&[]).to_vec();
        self.abandon_block(id);
        // Naming a fresh block may program another head's unit, which may fail too.
        let others = self.homeless;
        self.homeless = Some(others.map_or(gathering, |others| others.with(gathering)));
        let outcome = self.gather_again(id, from, (&data, &tags), filled, (gathering, cause));
        self.homeless = others;
        if let Err(error) = &outcome {
            self.fail(error);
        }
        outcome
    }

    fn gather_again(
        &mut self,
        id: HeadId,
        from: Slot,
        (data, tags): (&[u8], &[[u8; TAG_BYTES]]),
        filled: u32,
        (gathering, cause): (Exposed, Cause),
    ) -> Result<Option<Slot>> {
        let mut last = None;
        for (part, (bytes, raw)) in data.chunks_exact(self.shape.slot_bytes).zip(tags).enumerate().take(filled as usize)
        {
            let (block, index) = self.claim(id, cause)?;
            let Some(tag) = Tag::decode_unchecked(raw) else { continue };
            let tag = Tag { erases: self.blocks.get(block).entry.erases, ..tag };
            let raw = tag.encode(self.seed, bytes);
            let head = self.head_mut(id);
            head.tags.resize(index as usize, BLANK);
            head.tags.push(raw);
            head.gather(gathering.content_seq, gathering.group_seq, gathering.copy_no);
            self.gather(id, bytes, &raw);
            let to = self.shape.slot(block, index);
            let from = from + part as u64;
            match self.moved.iter_mut().find(|moved| moved.to == from) {
                Some(moved) => moved.to = to,
                None => self.moved.push(Moved { tag, from, to }),
            }
            last = Some(to);
        }
        Ok(last)
    }

    /// Programs one unit and advances the head. `false`: the program failed, the block must be left.
    fn program(&mut self, id: HeadId, data: &[u8], spare: &[u8]) -> Result<bool> {
        let head = self.head(id);
        let (Some(block), unit, cause) = (head.block, head.unit, head.cause) else { return Ok(false) };
        let outcome = self.nand.program(block, unit, id.mode(), data, spare, cause);
        let failed = self.wait()?;
        match outcome {
            Ok(()) if !failed => {}
            Ok(()) | Err(NandError::ProgramFailed { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let era = self.era;
        if let Some(mut found) = self.blocks.get_mut(block) {
            found.era = era;
        }
        let [slc, native, meta] = &mut self.heads;
        let head = match id {
            HeadId::Slc => slc,
            HeadId::Native => native,
            HeadId::Meta => meta,
        };
        head.advance(self.shape.mode(id.mode()));
        Ok(true)
    }

    /// Programs every gathered unit: what was appended before is on flash afterwards.
    pub fn flush_units(&mut self) -> Result<()> {
        for id in HeadId::ALL {
            if self.head(id).filled > 0 {
                self.flush_head(id)?;
            }
        }
        if self.homeless.is_none() {
            self.committed_seq = self.ended_seq;
        }
        Ok(())
    }

    /// Programs the gathered unit of index pages.
    pub fn flush_pages(&mut self) -> Result<()> {
        self.flush_head(HeadId::Meta).map(|_| ())
    }

    /// Closes the current group: everything appended so far counts.
    pub fn end_group(&mut self) {
        self.ended_seq = self.next_seq;
        if HeadId::ALL.iter().all(|&id| self.head(id).filled == 0) {
            self.committed_seq = self.ended_seq;
        }
    }

    /// Makes sure that no copy made so far can be destroyed by a torn program: partners will be skipped.
    pub fn settle(&mut self) {
        for id in HeadId::ALL {
            self.head_mut(id).exposed.iter_mut().for_each(|exposed| exposed.keep = true);
        }
    }

    /// The place the next slot of a head goes to: block and index.
    fn claim(&mut self, id: HeadId, cause: Cause) -> Result<(u32, u32)> {
        loop {
            let head = self.head(id);
            let Some(block) = head.block else {
                let next = self.take_block(cause)?;
                self.name(id, next)?;
                self.open(id, next);
                continue;
            };
            let shape = self.shape.mode(id.mode());
            if head.filled == 0 && head.unit >= shape.content_units {
                self.roll(id, block, cause)?;
            } else if head.filled == 0 && self.must_skip(id, head.unit) {
                let [slc, native, meta] = &mut self.heads;
                let head = match id {
                    HeadId::Slc => slc,
                    HeadId::Native => native,
                    HeadId::Meta => meta,
                };
                head.skip(self.shape.mode(id.mode()));
            } else {
                return Ok((block, head.unit * shape.unit_slots + head.filled));
            }
        }
    }

    /// Whether a torn program of this unit could destroy the only copy of something promised.
    fn must_skip(&self, id: HeadId, unit: u32) -> bool {
        let victims = self.nand.layout(id.mode()).endangers(unit);
        let exposed = &self.head(id).exposed;
        exposed.iter().any(|e| victims.contains(&e.unit) && (e.keep || e.content_seq < self.promised_seq))
    }

    /// Goes on in a fresh block, which the full one's summary names.
    fn roll(&mut self, id: HeadId, full: u32, cause: Cause) -> Result<()> {
        let next = self.take_block(cause)?;
        let sealed = self.seal(id, full, next, cause)?;
        if let Some(mut found) = self.blocks.get_mut(full) {
            found.open = false;
            found.entry.sealed = sealed;
        }
        if !sealed {
            self.name(id, next)?;
        }
        self.open(id, next);
        Ok(())
    }

    /// Writes the summary of a full block. `false`: it could not be, or must not be, written.
    fn seal(&mut self, id: HeadId, full: u32, next: u32, cause: Cause) -> Result<bool> {
        let shape = self.shape.mode(id.mode()).clone();
        if self.head(id).incomplete || (shape.content_units..shape.units).any(|unit| self.must_skip(id, unit)) {
            return Ok(false);
        }
        self.head_mut(id).tags.resize(shape.content_slots() as usize, BLANK);
        let bytes = summary::encode(full, next, &self.head(id).tags, self.shape.slot_bytes);
        let mut slot = vec![0; self.shape.slot_bytes];
        let erases = self.blocks.get(full).entry.erases;
        for part in 0..shape.summary_slots {
            slot.fill(0);
            let from = part as usize * slot.len();
            if let Some(rest) = bytes.get(from..) {
                slot.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            }
            let tag = Tag {
                kind: Kind::Summary,
                end: false,
                copy: false,
                unlogged: false,
                seq: self.next_seq,
                ino: 0,
                chunk: u64::from(part),
                len: slot.len() as u32,
                erases,
                stamp: 0,
            };
            let raw = tag.encode(self.seed, &slot);
            self.count_written(cause, slot.len());
            self.head_mut(id).cause = cause;
            if shape.unit_slots == 1 {
                if !self.program(id, &slot, &raw)? {
                    self.fail_block(full);
                    return Ok(false);
                }
                continue;
            }
            self.gather(id, &slot, &raw);
            if self.head(id).filled == shape.unit_slots {
                let head = self.head_mut(id);
                let (data, spare) = (core::mem::take(&mut head.data), core::mem::take(&mut head.spare));
                if !self.program(id, &data, &spare)? {
                    self.fail_block(full);
                    self.head_mut(id).filled = 0;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Makes `block` the one a head writes to.
    fn open(&mut self, id: HeadId, block: u32) {
        let (era, now_ns) = (self.era, self.now_ns);
        if let Some(mut found) = self.blocks.get_mut(block) {
            found.open = true;
            found.opened_ns = now_ns;
            found.era = era;
            found.entry.erased = false;
            found.entry.native = id == HeadId::Native;
            found.entry.used_as = if id == HeadId::Meta { Use::Meta } else { Use::Log };
        }
        self.head_mut(id).start(block);
        if id != HeadId::Meta {
            self.opened += 1;
        }
    }

    /// The first unit of an index block, from `unit` on, that was certainly never programmed, `recoveries` having
    /// begun since the last anchor.
    pub fn end_of_meta(&mut self, block: u32, unit: u32, recoveries: u32) -> Result<u32> {
        let shape = self.shape.slc.clone();
        let mut data = vec![0; self.shape.slot_bytes];
        let (mut past, mut blanks) = (unit, 0);
        for unit in unit..shape.content_units {
            let slot = self.shape.slot(block, unit * shape.unit_slots);
            match self.read_tagged_as(slot, CellMode::Slc, &mut data, Cause::Metadata) {
                Ok(None) if blanks > recoveries => break,
                Ok(None) => blanks += 1,
                Ok(Some(_)) | Err(Error::Corrupt { .. }) => (past, blanks) = (unit + 1, 0),
                Err(error) => return Err(error),
            }
        }
        Ok(past + 1 + recoveries)
    }

    /// Goes on at `unit` in a block an earlier mount left open.
    pub fn reopen(&mut self, id: HeadId, block: u32, unit: u32) {
        let shape = self.shape.mode(id.mode());
        let exposed = (0..unit.min(shape.units)).filter(|&earlier| shape.threat(earlier) >= unit);
        let exposed = exposed
            .map(|unit| Exposed { unit, content_seq: u64::MAX, copy_no: u64::MAX, group_seq: u64::MAX, keep: true })
            .collect();
        let head = self.head_mut(id);
        head.start(block);
        head.unit = unit;
        head.exposed = exposed;
        head.incomplete = unit > 0;
        if let Some(mut found) = self.blocks.get_mut(block) {
            found.open = true;
        }
    }

    /// Leaves a block whose program failed.
    fn abandon_block(&mut self, id: HeadId) {
        if let Some(block) = self.head(id).block {
            self.fail_block(block);
        }
        self.leave_block(id);
    }

    /// Leaves a block to go on in another; what was gathered is forgotten.
    pub fn leave_block(&mut self, id: HeadId) {
        if let Some(mut found) = self.head(id).block.and_then(|block| self.blocks.get_mut(block)) {
            found.open = false;
        }
        let head = self.head_mut(id);
        head.block = None;
        head.filled = 0;
        head.exposed.clear();
    }

    pub(super) fn fail_block(&mut self, block: u32) {
        if let Some(mut found) = self.blocks.get_mut(block) {
            found.open = false;
            found.entry.failing = true;
        }
    }

    /// Names a block in an anchor, so that replay finds it.
    fn name(&mut self, id: HeadId, block: u32) -> Result<()> {
        if !self.naming || id == HeadId::Meta {
            return Ok(());
        }
        let outcome = if self.anchors.names.len() < NAMES_MAX {
            self.anchors.names.push((id as u8, block, self.era));
            self.rewrite_anchor()
        } else {
            Err(Error::NoSpace)
        };
        if outcome.is_err() {
            self.anchors.names.retain(|&(_, named, _)| named != block);
            if let Some(mut found) = self.blocks.get_mut(block) {
                found.open = false;
            }
        }
        outcome
    }
}
