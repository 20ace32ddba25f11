//! Reading the log: every head is followed from where the last anchor says it stood, block after block.
//!
//! Invariants: a block belongs to the log only if the anchor or a summary names it and what stands in it is new; what a
//! torn program may have left half readable is kept in memory, as it may not be readable a second time.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, Layout, Nand};

use crate::error::{Error, Result};
use crate::flash::head::{HeadId, Tail};
use crate::flash::slots::{Slots, Stashed};
use crate::format::anchor::{Anchor, Named};
use crate::format::place::Slot;
use crate::format::summary::Summary;
use crate::format::tag::{Kind, Tag};

/// One past the greatest sequence number that is believed: the anchor after a recovery must still hold what follows.
pub const SEQ_END: u64 = (1 << 47) - (1 << 20);

/// A block the log went through.
pub struct Visited {
    pub id: HeadId,
    /// Whether any of its slots is the log's.
    pub counts: bool,
    /// Its erase count, where a slot tells.
    pub erases: Option<u32>,
    pub sealed: bool,
}

/// The end of a chain of blocks.
struct ChainEnd {
    head: HeadId,
    /// The block that it ends in.
    block: u32,
    /// The slots of its last block that may not be readable again, if it is the one the power failed in.
    doubtful: Vec<Stashed>,
}

/// What the log holds since the checkpoint.
pub struct Scan {
    pub(super) seq: u64,
    pub(super) slots: Vec<(Tag, Slot)>,
    pub(super) visited: BTreeMap<u32, Visited>,
    followed: BTreeSet<u32>,
    /// Recoveries begun before this one: pages that look erased but may be torn.
    recoveries: u32,
    /// Where each head can go on: past what was, or may have been, programmed.
    pub(super) tails: Vec<Tail>,
    /// The greatest sequence number seen, counted or not.
    pub(super) last_seq: u64,
    pub(super) last_ino: u64,
}

impl Scan {
    /// Follows every log head from where the anchor says it stood. What may not be readable again is in the stash.
    pub fn new<N: Nand>(slots: &mut Slots<N>, anchor: &Anchor) -> Result<Self> {
        let mut scan = Self {
            seq: anchor.seq,
            slots: Vec::new(),
            visited: BTreeMap::new(),
            followed: BTreeSet::new(),
            recoveries: anchor.recoveries,
            tails: Vec::new(),
            last_seq: anchor.seq,
            last_ino: 0,
        };
        let mut ends = scan.follow_all(slots, anchor)?;
        ends.sort_by_key(|end| end.head as u8);
        slots.set_stash(ends.into_iter().flat_map(|end| end.doubtful).collect());
        Ok(scan)
    }

    /// Follows every chain of blocks. The ends of the chains that no other chain goes on.
    fn follow_all<N: Nand>(&mut self, slots: &mut Slots<N>, anchor: &Anchor) -> Result<Vec<ChainEnd>> {
        let (mut ends, mut before) = (Vec::<ChainEnd>::new(), None);
        let heads = anchor.heads.iter().map(|&at| (Named { head: at.head, block: at.block }, at.unit));
        let names = anchor.names.iter().map(|&named| (named, 0));
        for (named, unit) in heads.chain(names) {
            let Some(head) = HeadId::log_head(named.head) else { continue };
            if let Some(block) = named.chain_end() {
                before = Some((head, block));
                continue;
            }
            let before = before.take();
            let Some(end) = self.follow(slots, head, named.block, unit)? else { continue };
            let several = anchor.heads.iter().filter(|at| at.head == named.head).count() > 1;
            // The lane went on to this block: its programs in those before had ended.
            let has_ended = |end: &ChainEnd| match several {
                true => before == Some((end.head, end.block)),
                false => end.head == head,
            };
            if several {
                let ended = ends.iter().filter(|end| has_ended(end));
                ended.for_each(|end| self.tails.retain(|tail| tail.block != end.block));
            }
            ends.retain(|end| !has_ended(end));
            ends.push(end);
        }
        Ok(ends)
    }

    /// Follows a chain of blocks, some of which belong to the log; its end.
    fn follow<N: Nand>(
        &mut self,
        slots: &mut Slots<N>,
        id: HeadId,
        mut block: u32,
        mut unit: u32,
    ) -> Result<Option<ChainEnd>> {
        let mut end: Option<ChainEnd> = None;
        loop {
            if block >= slots.blocks().len() || !self.followed.insert(block) {
                return Ok(end);
            }
            let summary = slots.read_summary(block, id.mode(), self.seq, Cause::Metadata)?;
            let next = summary.as_ref().map(|summary| summary.next);
            let mut visited = Visited { id, counts: false, erases: None, sealed: summary.is_some() };
            let doubtful = match summary {
                Some(summary) => self.read_sealed(slots, block, unit, &summary, &mut visited)?,
                None => self.read_unsealed(slots, block, unit, &mut visited)?,
            };
            match &mut end {
                _ if visited.counts => end = Some(ChainEnd { head: id, block, doubtful }),
                Some(end) => end.block = block,
                None => {}
            }
            // A block that was named but not written to is not the log's.
            if visited.counts || unit > 0 {
                self.visited.insert(block, visited);
            }
            match next {
                Some(named) => (block, unit) = (named, 0),
                None => return Ok(end),
            }
        }
    }

    /// Takes a sealed block's tags from its summary. Of the slots that the torn program of the summary may have
    /// destroyed, only what can be read is taken; those are returned.
    fn read_sealed<N: Nand>(
        &mut self,
        slots: &mut Slots<N>,
        block: u32,
        unit: u32,
        summary: &Summary,
        visited: &mut Visited,
    ) -> Result<Vec<Stashed>> {
        let id = visited.id;
        let shape = slots.shape().mode(id.mode()).clone();
        let at_risk = match self.went_on(slots, id, summary.next)? {
            true => Vec::new(),
            false => victims(slots.nand().layout(id.mode()), shape.content_units..shape.units),
        };
        let mut doubtful = Vec::new();
        for (index, raw) in (0u32..).zip(&summary.tags).skip((unit * shape.unit_slots) as usize) {
            let Some(tag) = Tag::decode_unchecked(raw) else { continue };
            let slot = slots.shape().slot(block, index);
            if at_risk.contains(&(index / shape.unit_slots)) {
                match read_stash(slots, id, slot)? {
                    Looked::Slot(_, stashed) => doubtful.push(stashed),
                    Looked::Blank | Looked::Corrupt => continue,
                }
            }
            self.found(tag, slot, visited);
        }
        Ok(doubtful)
    }

    /// Whether the head was seen to write to the block a summary names.
    fn went_on<N: Nand>(&self, slots: &mut Slots<N>, id: HeadId, next: u32) -> Result<bool> {
        let first = slots.shape().slot(next, 0);
        Ok(matches!(read_stash(slots, id, first)?, Looked::Slot(tag, _) if tag.seq >= self.seq && !tag.unlogged))
    }

    fn found(&mut self, tag: Tag, slot: Slot, visited: &mut Visited) {
        if !(self.seq..SEQ_END).contains(&tag.seq) || tag.unlogged || !matches!(tag.kind, Kind::Data | Kind::Nodes) {
            return;
        }
        visited.counts = true;
        visited.erases = tag.erases.or(visited.erases);
        self.last_seq = self.last_seq.max(tag.seq);
        self.last_ino = self.last_ino.max(tag.ino);
        self.slots.push((tag, slot));
    }

    /// Reads a block without a summary slot by slot, and notes where its head can go on. Returns the slots that a torn
    /// program may have left half readable: those of the last unit seen, and those it or one after it endangers.
    fn read_unsealed<N: Nand>(
        &mut self,
        slots: &mut Slots<N>,
        block: u32,
        from: u32,
        visited: &mut Visited,
    ) -> Result<Vec<Stashed>> {
        let id = visited.id;
        let shape = slots.shape().mode(id.mode()).clone();
        let mut recent: Vec<(u32, Stashed)> = Vec::new();
        let (mut blanks, mut past, mut last) = (0, from, None);
        for unit in from..shape.content_units {
            let mut blank = true;
            for part in 0..shape.unit_slots {
                let slot = slots.shape().slot(block, unit * shape.unit_slots + part);
                match read_stash(slots, id, slot)? {
                    Looked::Blank => continue,
                    Looked::Corrupt => {}
                    // The block was named but not opened: this is what it held before.
                    Looked::Slot(tag, _) if tag.seq < self.seq => return Ok(Vec::new()),
                    Looked::Slot(tag, _) if tag.unlogged => {}
                    Looked::Slot(tag, stashed) => {
                        self.found(tag, slot, visited);
                        last = Some(unit);
                        if recent.len() >= (shape.pair_slots + shape.unit_slots) as usize {
                            recent.remove(0);
                        }
                        if tag.kind == Kind::Nodes {
                            slots.keep(slot, stashed.bytes.clone());
                        }
                        recent.push((unit, stashed));
                    }
                }
                blank = false;
            }
            if !blank {
                past = unit + 1;
            }
            blanks = if blank { blanks + 1 } else { 0 };
            if blanks > (shape.pair_slots / shape.unit_slots.max(1) + 1) * (1 + self.recoveries) {
                break;
            }
        }
        let layout = slots.nand().layout(id.mode());
        if last.is_some() || from > 0 {
            self.tails.push(Tail { head: id, block, unit: shape.past_torn(past, self.recoveries, layout) });
        }
        let end = shape.past_torn(last.map_or(from, |last| last + 1), 0, layout);
        let torn = last.unwrap_or(from)..if end > shape.content_units { shape.units } else { end };
        let mut doubtful = victims(layout, torn);
        doubtful.extend(last);
        recent.retain(|(unit, _)| doubtful.contains(unit));
        Ok(recent.into_iter().map(|(_, stashed)| stashed).collect())
    }
}

/// What a look at a slot showed.
enum Looked {
    Blank,
    Corrupt,
    Slot(Tag, Stashed),
}

fn read_stash<N: Nand>(slots: &mut Slots<N>, id: HeadId, slot: Slot) -> Result<Looked> {
    let mut bytes: Arc<[u8]> = vec![0; slots.shape().slot_bytes].into();
    let Some(data) = Arc::get_mut(&mut bytes) else { return Ok(Looked::Corrupt) };
    match slots.read_tagged_as(slot, id.mode(), data, Cause::Metadata) {
        Ok(Some(tag)) => {
            let raw = tag.encode(slots.seed(), &bytes);
            Ok(Looked::Slot(tag, Stashed { slot, raw, bytes }))
        }
        Ok(None) => Ok(Looked::Blank),
        Err(Error::Corrupt { .. }) => Ok(Looked::Corrupt),
        Err(error) => Err(error),
    }
}

/// The units that torn programs of these may destroy.
fn victims(layout: &Layout, units: core::ops::Range<u32>) -> Vec<u32> {
    units.flat_map(|unit| layout.endangers(unit).iter().copied()).collect()
}
