//! The flash manager: slots are read and appended here, blocks taken, erased and tested.
//!
//! Invariants: what is read has passed its checksum; a log head opens only blocks that the last anchor or a durable
//! summary names; a lower page that holds the only copy of something promised is never put at risk.

pub mod anchor_log;
pub mod anchors;
pub mod append;
pub mod block_test;
pub mod blocks;
pub mod cache;
pub mod dies;
mod erase;
pub mod free;
pub mod head;
mod lanes;
pub mod newest;
pub mod numbers;
mod outage;
pub mod read;
pub mod roll;
pub mod shape;
pub mod slots;
pub mod takeover;

use alloc::vec::Vec;

use nand::{Cause, Nand};

use self::anchor_log::AnchorLog;
use self::block_test::BlockTest;
use self::blocks::{BlockTable, Horizon, Take};
use self::free::Free;
use self::head::{Exposed, Head, LaneId};
use self::numbers::Numbers;
use self::shape::Shape;
use self::slots::{By, ChipSetup, Release, Slots};
use crate::error::Error;
use crate::format::anchor::HeadAt;
use crate::format::place::Slot;
use crate::format::tag::Tag;

/// Pages that a step of internal work reads at most. One that programs a page reads one.
pub const STEP_READS: u64 = 4;

/// A slot that moved because its block failed while its unit was being programmed.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    pub tag: Tag,
    pub from: Slot,
    pub to: Slot,
}

/// A page of the index or of the block table that stands elsewhere now.
#[derive(Clone, Copy, Debug)]
pub struct MovedPage {
    pub from: Slot,
    pub to: Slot,
}

/// Where a lane stood at a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct LaneAt {
    pub lane: LaneId,
    pub at: HeadAt,
}

/// In which part of its life a mount is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A volume is being made: nothing of it counts before its first checkpoint.
    Formatting,
    /// The log is applied, or a volume mended. What is written counts only with the checkpoint that follows.
    Recovering,
    /// Callers' changes are logged.
    Mounted,
    /// Nothing is programmed or erased.
    ReadOnly,
}

impl Phase {
    /// Whether replay reads what is written, from blocks that are named before they are opened.
    pub fn is_logged(self) -> bool {
        self == Phase::Mounted
    }

    /// Whether what takes live bytes from a block now may not count should the power fail.
    fn is_held(self) -> bool {
        self == Phase::Recovering
    }
}

/// What a slot is appended for.
#[derive(Clone, Copy, Debug)]
pub struct Purpose {
    pub cause: Cause,
    /// Which block is taken for it, if one must be.
    pub take: Take,
}

impl Purpose {
    /// Written for `cause`, to the least worn block.
    pub fn of(cause: Cause) -> Self {
        Self { cause, take: Take::LeastWorn }
    }
}

/// The flash manager.
pub struct Flash<N: Nand> {
    slots: Slots<N>,
    anchors: AnchorLog,
    numbers: Numbers,
    phase: Phase,
    /// The chip failed under a change, or something that has its number found no place: nothing more is written, and
    /// this is said instead.
    broken: Option<Error>,
    /// What units hold whose program failed, while they are gathered again elsewhere.
    homeless: Option<Exposed>,
    /// Slots whose address changed; the index must follow.
    moved: Vec<Moved>,
    /// The test of a block that failed, while it is under way.
    test: Option<BlockTest>,
}

impl<N: Nand> Flash<N> {
    /// A flash manager over a chip.
    pub fn new(nand: N, chip: ChipSetup, cache_slots: usize, phase: Phase) -> Self {
        Self {
            slots: Slots::new(nand, chip, cache_slots),
            anchors: AnchorLog::default(),
            numbers: Numbers::default(),
            phase,
            broken: None,
            homeless: None,
            moved: Vec::new(),
            test: None,
        }
    }

    /// The chip's slots.
    pub fn slots(&self) -> &Slots<N> {
        &self.slots
    }

    /// The chip's slots, to read them, or to count them as needed or not.
    pub fn slots_mut(&mut self) -> &mut Slots<N> {
        &mut self.slots
    }

    /// The chip's shape in slots.
    pub fn shape(&self) -> &Shape {
        &self.slots.shape
    }

    /// The block table.
    pub fn blocks(&self) -> &BlockTable {
        &self.slots.blocks
    }

    /// Gives the chip back.
    pub fn into_nand(self) -> N {
        self.slots.nand
    }

    /// How far the log has got, in numbers.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The same, to promise what is on flash, or to go on elsewhere.
    pub fn numbers_mut(&mut self) -> &mut Numbers {
        &mut self.numbers
    }

    /// Where anchors are written.
    pub fn anchors(&self) -> &AnchorLog {
        &self.anchors
    }

    /// In which part of its life the mount is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The mount goes on to another part of its life.
    pub fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Says what time it is, by a clock that never jumps.
    pub fn set_mono_ns(&mut self, mono_ns: i64) {
        self.slots.mono_ns = mono_ns;
    }

    /// Why nothing more can be written.
    pub fn broken(&self) -> Option<&Error> {
        if self.slots.outage.is_outage() { Some(&Error::WriteOutage) } else { self.broken.as_ref() }
    }

    /// Slots whose address changed since the index followed last.
    pub fn take_moved(&mut self) -> Vec<Moved> {
        core::mem::take(&mut self.moved)
    }

    /// Whether there are any.
    pub fn has_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    /// What a record with the next sequence number makes of what it replaces.
    pub fn by_record(&self) -> Release {
        Release { by: By::Record(self.numbers.next()), held: self.held_era() }
    }

    /// What the copy made last makes of its source.
    pub fn by_copy(&self) -> Release {
        Release { by: By::Copy(self.numbers.copies()), held: self.held_era() }
    }

    /// The era that a block must outlast, if what empties it now may not count.
    pub fn held_era(&self) -> Option<u64> {
        self.phase.is_held().then_some(self.numbers.era())
    }

    /// Lets nothing more be written, because of this.
    pub fn fail(&mut self, error: &Error) {
        // Space that comes free later would not mend it.
        let lasting = if *error == Error::NoSpace { Error::ReadOnly } else { error.clone() };
        self.broken.get_or_insert(lasting);
    }

    /// How far the log has got.
    fn horizon(&self) -> Horizon {
        let (lanes, promised) = (&self.slots.lanes, self.numbers.promised());
        let oldest = lanes.least(Head::oldest_exposed_copy);
        let group = lanes.least(|head| head.oldest_exposed_group(promised));
        let homeless = self.homeless.map_or((u64::MAX, u64::MAX), |unit| (unit.copy_no, unit.group_seq));
        Horizon {
            era: self.numbers.durable_era(),
            committed_seq: group.min(homeless.1).min(self.numbers.committed()),
            safe_copy: self.numbers.copies().min(oldest.min(homeless.0).saturating_sub(1)),
        }
    }

    /// A checkpoint begins, and names the blocks the heads stand in: replay reads them for the heads it knows, so they
    /// are kept until the next checkpoint but one, even if they are left at once with nothing in them.
    pub fn begin_era(&mut self) {
        self.numbers.begin_era();
        self.hold_head_blocks();
        // What is sealed before this point is not read after it: such a summary would lack its beginning.
        for at in self.slots.lanes().all() {
            let head = self.slots.head_mut(at);
            head.incomplete |= head.sealed_slots > 0;
            // The anchor of the checkpoint names no block that was named before.
            head.next_is_named = false;
        }
    }

    /// Keeps the blocks the heads stand in until the next checkpoint but one.
    pub fn hold_head_blocks(&mut self) {
        let era = self.numbers.era();
        for at in self.slots.lanes().all() {
            if let Some(mut found) = self.slots.head(at).block.and_then(|block| self.slots.blocks.get_mut(block)) {
                found.era = era;
            }
        }
    }

    /// Which blocks can be taken.
    pub fn free(&self) -> Free<'_> {
        Free::of(self)
    }

    /// Blocks that can be taken.
    pub fn free_blocks(&self) -> u32 {
        self.slots.blocks.reusable_count(self.horizon())
    }

    /// A checkpoint is durable that stands for the log up to this record and this copy, where the heads stood there: what
    /// those emptied is free, and what is on pages before is certain.
    pub fn free_up_to(&mut self, seq: u64, copy: u64, heads: &[LaneAt]) {
        let horizon = self.horizon();
        self.slots.blocks.settle(Horizon {
            committed_seq: horizon.committed_seq.min(seq),
            safe_copy: horizon.safe_copy.min(copy),
            ..horizon
        });
        for lane in self.slots.lanes().of_log() {
            let then = heads.iter().find(|then| then.lane == lane).map(|then| then.at);
            if self.slots.lanes().stands_at(lane) == then {
                self.slots.head_mut(lane).cover();
            }
        }
    }
}
