//! A log head: the block being filled, the program unit being gathered, and which programmed units a later torn
//! program could still destroy.

use alloc::vec::Vec;

use nand::{Cause, CellMode};

use super::Purpose;
use super::shape::ModeShape;
use crate::format::anchor::HEADS;
use crate::format::table::{BlockEntry, Use};
use crate::format::tag::TAG_BYTES;

/// The heads, by number on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadId {
    /// Content in SLC blocks.
    Slc = 0,
    /// Content in native blocks, and what is relocated.
    Native = 1,
    /// Index and table pages, in SLC blocks.
    Meta = 2,
    /// Content that is likely to be written again soon, in SLC blocks of its own.
    SlcHot = 3,
}

impl HeadId {
    /// All heads.
    pub const ALL: [HeadId; HEADS] = [HeadId::Slc, HeadId::Native, HeadId::Meta, HeadId::SlcHot];
    /// Those that write the log.
    pub const LOG: [HeadId; 3] = [HeadId::Slc, HeadId::Native, HeadId::SlcHot];

    /// The mode its blocks are programmed in.
    pub fn mode(self) -> CellMode {
        match self {
            HeadId::Slc | HeadId::Meta | HeadId::SlcHot => CellMode::Slc,
            HeadId::Native => CellMode::Native,
        }
    }

    /// The head of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        HeadId::ALL.into_iter().find(|&id| id as u8 == number)
    }

    /// The log head of that number.
    pub fn log_head(number: u8) -> Option<Self> {
        Self::from_number(number).filter(|&id| id != HeadId::Meta)
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            HeadId::Slc => "slc",
            HeadId::Native => "native",
            HeadId::Meta => "index",
            HeadId::SlcHot => "slc-hot",
        }
    }

    /// What its blocks are used for.
    fn used_as(self) -> Use {
        if self == HeadId::Meta { Use::Meta } else { Use::Log }
    }

    /// Changes an entry of the block table to that of a block of this head.
    pub fn mark(self, entry: &mut BlockEntry) {
        entry.used_as = self.used_as();
        (entry.native, entry.hot, entry.erased) = (self == HeadId::Native, self == HeadId::SlcHot, false);
    }

    /// Whether the block table says that a block is one of this head's.
    pub fn owns(self, entry: &BlockEntry) -> bool {
        (entry.used_as, entry.native, entry.hot) == (self.used_as(), self == HeadId::Native, self == HeadId::SlcHot)
    }
}

/// A lane of a head: what it writes there goes to an open block of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneId {
    pub head: HeadId,
    pub lane: u8,
}

impl LaneId {
    /// The mode its blocks are programmed in.
    pub fn mode(self) -> CellMode {
        self.head.mode()
    }
}

impl From<HeadId> for LaneId {
    /// The first lane of a head.
    fn from(head: HeadId) -> Self {
        Self { head, lane: 0 }
    }
}

/// Where a lane of a head can go on: a block that it stood in, and the next unit of that.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    pub head: HeadId,
    pub block: u32,
    pub unit: u32,
}

/// A programmed unit that a later program of the same word line could destroy.
#[derive(Clone, Copy, Debug)]
pub struct Exposed {
    pub unit: u32,
    /// Least sequence number of an original in it; `u64::MAX` if it has none.
    pub content_seq: u64,
    /// Where the group of that original began: if it is lost, nothing from there on counts.
    pub group_seq: u64,
    /// Least number of a copy in it; `u64::MAX` if it has none.
    pub copy_no: u64,
    /// Its partners will be skipped whatever it holds.
    pub keep: bool,
}

impl Exposed {
    fn none(unit: u32) -> Self {
        Self { unit, content_seq: u64::MAX, group_seq: u64::MAX, copy_no: u64::MAX, keep: false }
    }

    /// What two units hold together.
    pub fn with(self, other: Self) -> Self {
        Self {
            content_seq: self.content_seq.min(other.content_seq),
            group_seq: self.group_seq.min(other.group_seq),
            copy_no: self.copy_no.min(other.copy_no),
            ..self
        }
    }
}

/// A lane of a head.
pub struct Head {
    pub(super) block: Option<u32>,
    /// The block it goes on in: taken, erased, and not open yet.
    pub(super) next: Option<u32>,
    /// An anchor names that block, together with one of another lane.
    pub(super) next_is_named: bool,
    /// Slots of the block's summary that are written.
    pub(super) sealed_slots: u32,
    /// The unit to program next.
    pub(super) unit: u32,
    /// Slots gathered for that unit.
    pub(super) filled: u32,
    /// The gathered unit's data, page after page, and its spare areas.
    pub(super) data: Vec<u8>,
    pub(super) spare: Vec<u8>,
    pub(super) purpose: Purpose,
    /// What the gathered unit holds.
    pub(super) gathering: Exposed,
    /// Tags of the block so far, for its summary.
    pub(super) tags: Vec<[u8; TAG_BYTES]>,
    pub(super) exposed: Vec<Exposed>,
    /// What the unit programmed last holds, also if the head went on in another block since.
    last: Exposed,
    /// The tags of an earlier mount are missing: the block gets no summary.
    pub(super) incomplete: bool,
    /// Units programmed since mount.
    programs: u64,
}

impl Head {
    /// A head without a block.
    pub fn new() -> Self {
        Self {
            block: None,
            next: None,
            next_is_named: false,
            sealed_slots: 0,
            unit: 0,
            filled: 0,
            data: Vec::new(),
            spare: Vec::new(),
            purpose: Purpose::of(Cause::Host),
            gathering: Exposed::none(0),
            tags: Vec::new(),
            exposed: Vec::new(),
            last: Exposed::none(0),
            incomplete: false,
            programs: 0,
        }
    }

    /// Units programmed since mount.
    pub fn programs(&self) -> u64 {
        self.programs
    }

    /// The block it stands in.
    pub fn block(&self) -> Option<u32> {
        self.block
    }

    /// The unit of that block to program next.
    pub fn unit(&self) -> u32 {
        self.unit
    }

    /// Whether it stands in no block.
    pub fn is_vacant(&self) -> bool {
        self.block.is_none()
    }

    /// Whether slots wait for others of their unit.
    pub fn is_gathering(&self) -> bool {
        self.filled > 0
    }

    /// Starts a fresh block.
    pub fn start(&mut self, block: u32) {
        (self.block, self.next, self.next_is_named, self.sealed_slots) = (Some(block), None, false, 0);
        self.unit = 0;
        self.filled = 0;
        self.gathering = Exposed::none(0);
        self.tags.clear();
        self.exposed.clear();
        self.incomplete = false;
    }

    /// Records what a slot of the gathered unit holds.
    pub fn gather(&mut self, content_seq: u64, group_seq: u64, copy_no: u64) {
        self.gathering.content_seq = self.gathering.content_seq.min(content_seq);
        self.gathering.group_seq = self.gathering.group_seq.min(group_seq);
        self.gathering.copy_no = self.gathering.copy_no.min(copy_no);
    }

    /// The gathered unit is on flash: go to the next one.
    pub fn advance(&mut self, shape: &ModeShape) {
        let unit = self.unit;
        self.exposed.retain(|exposed| shape.threat(exposed.unit) > unit);
        if shape.threat(unit) > unit {
            self.exposed.push(Exposed { unit, ..self.gathering });
        }
        self.last = self.gathering;
        self.programs += 1;
        self.skip(shape);
    }

    /// What is on pages that a recovery cannot be sure of: the one programmed last, and those that it may have endangered.
    pub fn uncertain(&self) -> Exposed {
        self.exposed.iter().fold(self.last, |all, exposed| all.with(*exposed))
    }

    /// A checkpoint covers all that is on its pages, so that no recovery reads them again. Those that a torn program
    /// could destroy stay so.
    pub fn cover(&mut self) {
        self.last = Exposed::none(0);
        for exposed in self.exposed.iter_mut().filter(|exposed| exposed.keep) {
            *exposed = Exposed { keep: true, ..Exposed::none(exposed.unit) };
        }
    }

    /// Leaves the next unit unprogrammed.
    pub fn skip(&mut self, shape: &ModeShape) {
        let unit = self.unit;
        self.exposed.retain(|exposed| shape.threat(exposed.unit) > unit);
        self.unit += 1;
        self.filled = 0;
        self.gathering = Exposed::none(self.unit);
    }

    /// The number of the oldest copy that a torn program could still take; `u64::MAX` for none.
    pub fn oldest_exposed_copy(&self) -> u64 {
        let exposed = self.exposed.iter().filter(|exposed| !exposed.keep).map(|exposed| exposed.copy_no);
        exposed.chain((self.filled > 0).then_some(self.gathering.copy_no)).min().unwrap_or(u64::MAX)
    }

    /// Where the oldest group begins that a torn program could still take from: originals from `promised_seq` on are
    /// not protected by skipping. `u64::MAX` for none.
    pub fn oldest_exposed_group(&self, promised_seq: u64) -> u64 {
        let at_risk = self.exposed.iter().filter(|exposed| !exposed.keep && exposed.content_seq != u64::MAX);
        at_risk.filter(|e| e.content_seq >= promised_seq).map(|e| e.group_seq).min().unwrap_or(u64::MAX)
    }

    /// Content slots of the block that are still free.
    pub fn room(&self, shape: &ModeShape) -> u32 {
        match self.block {
            Some(_) => (shape.content_units.saturating_sub(self.unit) * shape.unit_slots).saturating_sub(self.filled),
            None => 0,
        }
    }
}
