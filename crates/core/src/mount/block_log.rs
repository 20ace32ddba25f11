//! What a block holds of the log; and the reading of blocks that have no summary, slot by slot, until nothing more can
//! stand in them.
//!
//! Invariants: what a torn program may have left half readable is kept, as it may not be readable a second time. Blocks
//! are read together, a slot of each at a time, and each to the slot at which it would end alone.

use alloc::sync::Arc;
use alloc::vec::Vec;

use nand::{CellMode, Layout, Nand};

use crate::error::Result;
use crate::flash::head::{HeadId, Tail};
use crate::flash::read::SlotLook;
use crate::flash::shape::Shape;
use crate::flash::slots::{Slots, Stashed};
use crate::format::place::Slot;
use crate::format::tag::{Kind, Tag};

/// One past the greatest sequence number that is believed: the anchor after a recovery must still hold what follows.
pub const SEQ_END: u64 = (1 << 47) - (1 << 20);

/// What a block holds of the log.
pub struct BlockLog {
    pub head: HeadId,
    pub block: u32,
    /// The unit from which on it may hold something.
    pub from: u32,
    pub sealed: bool,
    /// The number from which on a slot is the log's.
    pub since: u64,
    /// Its slots that are the log's, in the order of the block.
    pub slots: Vec<(Tag, Slot)>,
    /// Its erase count, where a slot tells.
    pub erases: Option<u32>,
    /// The slots that may not be readable again.
    pub doubtful: Vec<Stashed>,
    /// Where its head can go on: past what was, or may have been, programmed.
    pub tail: Option<Tail>,
}

impl BlockLog {
    /// Before anything is found in the block.
    pub fn new(head: HeadId, block: u32, from: u32, since: u64) -> Self {
        let (slots, doubtful) = (Vec::new(), Vec::new());
        Self { head, block, from, sealed: false, since, slots, erases: None, doubtful, tail: None }
    }

    /// Whether any of its slots is the log's.
    pub fn counts(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Takes in a slot, if it is the log's.
    pub fn take(&mut self, tag: Tag, slot: Slot) {
        if (self.since..SEQ_END).contains(&tag.seq) && !tag.unlogged && matches!(tag.kind, Kind::Data | Kind::Nodes) {
            self.erases = tag.erases.or(self.erases);
            self.slots.push((tag, slot));
        }
    }
}

/// A block without a summary, as far as it has been read.
pub struct OpenBlock {
    log: BlockLog,
    /// Recoveries begun before this one: pages that look erased but may be torn.
    recoveries: u32,
    /// The slot to be read next: its unit, and which of the unit's.
    unit: u32,
    part: u32,
    /// Whether nothing was found in that unit so far.
    is_blank: bool,
    /// Units in a row in which nothing was found.
    blanks: u32,
    /// One past the last unit in which anything was found.
    past: u32,
    /// The last unit with a slot of the log.
    last: Option<u32>,
    /// The last slots of the log, each with its unit.
    recent: Vec<(u32, Stashed)>,
    reading: BlockReading,
}

/// How far a block has been read.
#[derive(PartialEq, Eq)]
enum BlockReading {
    GoesOn,
    Over,
    /// The block was named but not opened: it holds what it held before.
    HoldsOld,
}

impl OpenBlock {
    /// Before anything is read.
    pub fn new(log: BlockLog, recoveries: u32) -> Self {
        let (from, recent) = (log.from, Vec::new());
        let reading = BlockReading::GoesOn;
        Self {
            log,
            recoveries,
            unit: from,
            part: 0,
            is_blank: true,
            blanks: 0,
            past: from,
            last: None,
            recent,
            reading,
        }
    }

    /// How it is programmed.
    fn mode(&self) -> CellMode {
        self.log.head.mode()
    }

    /// The slot that must be read next.
    fn wanted(&self, shape: &Shape) -> Option<Slot> {
        let mode = shape.mode(self.mode());
        let goes_on = self.reading == BlockReading::GoesOn && self.unit < mode.content_units;
        goes_on.then(|| shape.slot(self.log.block, self.unit * mode.unit_slots + self.part))
    }

    /// Takes in the slot that was wanted. The bytes of it that are worth keeping in memory: nodes of the log.
    fn take(&mut self, shape: &Shape, slot: Slot, look: SlotLook) -> Option<Arc<[u8]>> {
        let mut nodes = None;
        let mode = shape.mode(self.mode());
        self.is_blank &= matches!(look, SlotLook::Blank);
        match look {
            SlotLook::Whole(tag, _) if tag.seq < self.log.since => self.reading = BlockReading::HoldsOld,
            SlotLook::Whole(tag, stashed) if !tag.unlogged => {
                self.log.take(tag, slot);
                self.last = Some(self.unit);
                if self.recent.len() >= (mode.pair_slots + mode.unit_slots) as usize {
                    self.recent.remove(0);
                }
                nodes = (tag.kind == Kind::Nodes).then(|| stashed.bytes.clone());
                self.recent.push((self.unit, stashed));
            }
            SlotLook::Whole(..) | SlotLook::Blank | SlotLook::Corrupt => {}
        }
        self.part += 1;
        if self.part >= mode.unit_slots {
            self.end_unit((mode.pair_slots / mode.unit_slots.max(1) + 1) * (1 + self.recoveries));
        }
        nodes
    }

    /// The unit is read; after more than so many in a row without anything the block is over.
    fn end_unit(&mut self, blanks_max: u32) {
        match self.is_blank {
            true => self.blanks += 1,
            false => (self.past, self.blanks) = (self.unit + 1, 0),
        }
        if self.blanks > blanks_max && self.reading == BlockReading::GoesOn {
            self.reading = BlockReading::Over;
        }
        (self.unit, self.part, self.is_blank) = (self.unit + 1, 0, true);
    }

    /// What the block holds. Doubtful are the slots of the last unit seen, and those that it or one after it endangers.
    pub fn end(mut self, shape: &Shape, layout: &Layout) -> BlockLog {
        if self.reading == BlockReading::HoldsOld {
            return self.log;
        }
        let (from, mode) = (self.log.from, shape.mode(self.mode()));
        if self.last.is_some() || from > 0 {
            let unit = mode.past_torn(self.past, self.recoveries, layout);
            self.log.tail = Some(Tail { head: self.log.head, block: self.log.block, unit });
        }
        let end = mode.past_torn(self.last.map_or(from, |last| last + 1), 0, layout);
        let torn = self.last.unwrap_or(from)..if end > mode.content_units { mode.units } else { end };
        let mut doubtful = endangered(layout, torn);
        doubtful.extend(self.last);
        self.recent.retain(|(unit, _)| doubtful.contains(unit));
        self.log.doubtful = self.recent.into_iter().map(|(_, stashed)| stashed).collect();
        self.log
    }
}

/// Slots that are read at once, at most.
const READ_TOGETHER: usize = 8;

/// Blocks without a summary that are read together.
pub struct OpenBlocks<'a>(pub Vec<&'a mut OpenBlock>);

impl OpenBlocks<'_> {
    /// Reads the blocks to their ends: at once, of each die the first block that has not been read to its end, of as many dies as
    /// heads have lanes. With one lane the blocks are read in their order. The nodes of the log are kept in memory.
    pub fn read<N: Nand>(self, slots: &mut Slots<N>) -> Result<()> {
        let mut blocks = self.0;
        let shape = slots.shape().clone();
        let most = usize::from(slots.lanes().count()).min(READ_TOGETHER);
        loop {
            let (mut asking, mut asked, mut dies) = (Vec::new(), Vec::new(), Vec::new());
            for block in &mut blocks {
                let Some(slot) = block.wanted(&shape) else { continue };
                let die = shape.geometry.die_of(block.log.block);
                if dies.len() < most && !dies.contains(&die) {
                    dies.push(die);
                    asked.push((slot, block.mode()));
                    asking.push(block);
                }
            }
            if asked.is_empty() {
                return Ok(());
            }
            for ((block, &(slot, _)), look) in asking.into_iter().zip(&asked).zip(slots.look_at(&asked)?) {
                if let Some(nodes) = block.take(&shape, slot, look) {
                    slots.keep(slot, nodes);
                }
            }
        }
    }
}

/// The units that torn programs of these may destroy.
pub fn endangered(layout: &Layout, units: core::ops::Range<u32>) -> Vec<u32> {
    units.flat_map(|unit| layout.endangers(unit).iter().copied()).collect()
}
