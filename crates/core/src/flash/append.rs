//! Appending to a log head: claim a slot, gather a unit, program it.

use nand::Nand;

use super::head::{Exposed, Head, HeadId, LaneId};
use super::outage::Operation;
use super::roll::BLANK;
use super::{Flash, Moved, Purpose};
use crate::error::Result;
use crate::format::place::Slot;
use crate::format::tag::{Kind, TAG_BYTES, Tag};

/// What a caller says of a slot it appends; the flash manager adds place and number.
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    kind: Kind,
    end: bool,
    copy: bool,
    ino: u64,
    chunk: u64,
    len: u32,
    time_ns: i64,
    dated: bool,
    source: Slot,
}

impl Draft {
    /// A chunk of data, `len` bytes of it, of a file that changed at `time_ns`; `end`: with it its group ends.
    pub fn data(ino: u64, chunk: u64, len: u32, time_ns: i64, end: bool) -> Self {
        Self { kind: Kind::Data, end, copy: false, ino, chunk, len, time_ns, dated: false, source: 0 }
    }

    /// The same chunk; where `dated`, the file's times become `time_ns` with it.
    pub fn dated(self, dated: bool) -> Self {
        Self { dated, ..self }
    }

    /// Nodes, `len` bytes of them; `end`: with them their group ends.
    pub fn nodes(len: u32, end: bool) -> Self {
        Self { kind: Kind::Nodes, end, copy: false, ino: 0, chunk: 0, len, time_ns: 0, dated: false, source: 0 }
    }

    /// A copy of the data at `source`, whose tag is `tag`.
    pub fn copy_of_data(tag: &Tag, source: Slot) -> Self {
        Self { copy: true, source, ..Self::data(tag.ino, tag.chunk, tag.len, tag.time_ns, false) }
    }

    /// Copies of nodes, which say each whose, `len` bytes of them.
    pub fn copies_of_nodes(len: u32) -> Self {
        Self { copy: true, ..Self::nodes(len, false) }
    }

    /// Whether it is data of a caller.
    pub fn is_of_caller(&self) -> bool {
        self.kind == Kind::Data && !self.copy
    }

    /// A page of the index or of the block table; `number` is its level, or which page it is.
    pub fn page(kind: Kind, number: u64, len: u32) -> Self {
        Self { kind, ..Self { chunk: number, ..Self::nodes(len, false) } }
    }
}

impl<N: Nand> Flash<N> {
    /// Appends a slot. Originals take a sequence number of their own, copies and index pages the one to come.
    pub fn append(&mut self, at: LaneId, draft: Draft, data: &[u8], purpose: Purpose) -> Result<Slot> {
        self.claim(at, purpose)?;
        let original = matches!(draft.kind, Kind::Data | Kind::Nodes) && !draft.copy;
        let seq = if original { self.numbers.take_original() } else { self.numbers.next() };
        let copy_no = if draft.copy { self.numbers.take_copy() } else { u64::MAX };
        let tag = Tag {
            kind: draft.kind,
            end: draft.end,
            copy: draft.copy,
            seq,
            ino: draft.ino,
            chunk: draft.chunk,
            len: draft.len,
            erases: None,
            unlogged: !self.phase.is_logged(),
            time_ns: draft.time_ns,
            dated: draft.dated,
            source: draft.source,
        };
        let content_seq = if original { seq } else { u64::MAX };
        self.slots.count_written(purpose.cause, data.len());
        let outcome = self.put(at, tag, content_seq, copy_no, data, purpose);
        // A number that is missing in the log would end it there for replay.
        if let Err(error) = outcome.as_ref()
            && original
        {
            self.fail(error);
        }
        outcome
    }

    /// Puts a numbered slot into the head's unit, and programs the unit when it is full.
    fn put(
        &mut self,
        at: LaneId,
        tag: Tag,
        content_seq: u64,
        copy_no: u64,
        data: &[u8],
        purpose: Purpose,
    ) -> Result<Slot> {
        loop {
            let (block, index) = self.claim(at, purpose)?;
            let unit_slots = self.slots.shape.mode(at.mode()).unit_slots;
            let tag = tag.placed(index, self.slots.blocks.get(block).entry.erases);
            let raw = tag.encode(self.slots.seed, data);
            let group_seq = if content_seq == u64::MAX { u64::MAX } else { self.numbers.ended() };
            let head = self.slots.head_mut(at);
            head.tags.resize(index as usize, BLANK);
            head.tags.push(raw);
            head.gather(content_seq, group_seq, copy_no);
            head.purpose = purpose;
            let slot = self.slots.shape.slot(block, index);
            if unit_slots == 1 {
                if self.program(at, data, &raw)? {
                    return Ok(slot);
                }
                self.slots.abandon_block(at);
                continue;
            }
            self.slots.gather(at, data, &raw);
            if self.slots.head(at).filled < unit_slots {
                return Ok(slot);
            }
            let Some(to) = self.flush_head(at)? else { return Ok(slot) };
            // The caller knows no other place of this slot yet.
            self.moved.retain(|moved| moved.to != to);
            return Ok(to);
        }
    }

    /// Programs the gathered unit, full or not. The last slot's new address, if the unit had to go elsewhere.
    fn flush_head(&mut self, at: LaneId) -> Result<Option<Slot>> {
        let mut last = None;
        while self.slots.head(at).filled > 0 {
            let head = self.slots.head_mut(at);
            let (data, spare) = (core::mem::take(&mut head.data), core::mem::take(&mut head.spare));
            let done = self.program(at, &data, &spare);
            let head = self.slots.head_mut(at);
            (head.data, head.spare) = (data, spare);
            if done? {
                break;
            }
            last = self.regather(at)?;
        }
        Ok(last)
    }

    /// Moves a gathered unit whose program failed to a fresh block, slot for slot.
    fn regather(&mut self, at: LaneId) -> Result<Option<Slot>> {
        let unit_slots = self.slots.shape.mode(at.mode()).unit_slots;
        let head = self.slots.head(at);
        let Some(from) = head.block.map(|block| self.slots.shape.slot(block, head.unit * unit_slots)) else {
            return Ok(None);
        };
        let (filled, gathering, purpose) = (head.filled, head.gathering, head.purpose);
        let data = head.data.clone();
        let first = (head.unit * unit_slots) as usize;
        let tags: alloc::vec::Vec<_> = head.tags.get(first..).unwrap_or(&[]).to_vec();
        self.slots.abandon_block(at);
        // Naming a fresh block may program another head's unit, which may fail too.
        let others = self.homeless;
        self.homeless = Some(others.map_or(gathering, |others| others.with(gathering)));
        let outcome = self.gather_again(at, from, (&data, &tags), filled, (gathering, purpose));
        self.homeless = others;
        if let Err(error) = &outcome {
            self.fail(error);
        }
        outcome
    }

    fn gather_again(
        &mut self,
        at: LaneId,
        from: Slot,
        (data, tags): (&[u8], &[[u8; TAG_BYTES]]),
        filled: u32,
        (gathering, purpose): (Exposed, Purpose),
    ) -> Result<Option<Slot>> {
        let mut last = None;
        for (part, (bytes, raw)) in
            data.chunks_exact(self.slots.shape.slot_bytes).zip(tags).enumerate().take(filled as usize)
        {
            let (block, index) = self.claim(at, purpose)?;
            let Some(tag) = Tag::decode_unchecked(raw) else { continue };
            let tag = tag.placed_again(index, self.slots.blocks.get(block).entry.erases);
            let raw = tag.encode(self.slots.seed, bytes);
            let head = self.slots.head_mut(at);
            head.tags.resize(index as usize, BLANK);
            head.tags.push(raw);
            head.gather(gathering.content_seq, gathering.group_seq, gathering.copy_no);
            self.slots.gather(at, bytes, &raw);
            let to = self.slots.shape.slot(block, index);
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
    pub(super) fn program(&mut self, at: LaneId, data: &[u8], spare: &[u8]) -> Result<bool> {
        let head = self.slots.head(at);
        let (Some(block), unit, purpose) = (head.block, head.unit, head.purpose) else { return Ok(false) };
        let outcome = self.slots.nand.program(block, unit, at.mode(), data, spare, purpose.cause);
        let programmed = self.slots.outcome_of(Operation::Program, block, outcome)?;
        if programmed {
            Head::advance(self.slots.lanes.get_mut(at), self.slots.shape.mode(at.mode()));
        }
        Ok(programmed)
    }

    /// Programs one gathered unit. `false`: there is none, and what was appended before is on flash.
    pub fn flush_unit(&mut self) -> Result<bool> {
        if let Some(at) = self.slots.lanes.find(|head| head.filled > 0) {
            return self.flush_head(at).map(|_| true);
        }
        if self.homeless.is_none() {
            self.numbers.commit();
        }
        Ok(false)
    }

    /// Programs every gathered unit: what was appended before is on flash afterwards.
    pub fn flush_units(&mut self) -> Result<()> {
        while self.flush_unit()? {}
        Ok(())
    }

    /// Programs the gathered unit of index pages, if there is any. Whether there was.
    pub fn flush_pages(&mut self) -> Result<bool> {
        let gathers = self.slots.lanes().of_head(HeadId::Meta).find(|&at| self.slots.head(at).filled > 0);
        match gathers {
            Some(at) => self.flush_head(at).map(|_| true),
            None => Ok(false),
        }
    }

    /// Closes the current group: everything appended so far counts.
    pub fn end_group(&mut self) {
        self.numbers.end_group();
        if self.slots.lanes.iter().all(|head| head.filled == 0) {
            self.numbers.commit();
        }
    }

    /// Makes sure that no copy made so far can be destroyed by a torn program: partners will be skipped.
    pub fn settle(&mut self) {
        for at in self.slots.lanes().all() {
            self.slots.head_mut(at).exposed.iter_mut().for_each(|exposed| exposed.keep = true);
        }
    }
}
