//! The state of a store as its managers see it.

use alloc::vec::Vec;
use core::cell::OnceCell;

use nand::{CellMode, Nand};

use super::Store;
use super::checkpoint::Checkpointer;
use super::collector::Collector;
use super::records::Records;
use crate::flash::block_test::TestView;
use crate::flash::blocks::Block;
use crate::format::anchor::names_max;
use crate::format::table::Use;
use crate::manage::job::{Progress, View};
use crate::manage::work::WorkKind;
use crate::policy::budget::{Budget, Call, LaterCall, Reserve};
use crate::policy::space::SpaceView;
use crate::policy::supply::Supply;
use crate::policy::{BlockView, Holds, Region, victim};

/// A look at a store.
pub(super) struct Look<'a, N: Nand> {
    records: &'a Records<N>,
    checkpointer: &'a Checkpointer,
    collector: &'a Collector,
    call: Call,
    /// What was kept free when room was made last.
    reserve: Reserve,
    // Each of these is asked for several times.
    free_blocks: OnceCell<u32>,
    free_by_die: OnceCell<Vec<u32>>,
    space: OnceCell<SpaceView<'a>>,
    budget: OnceCell<Budget>,
}

impl<'a, N: Nand> Look<'a, N> {
    fn free_blocks(&self) -> u32 {
        *self.free_blocks.get_or_init(|| self.records.flash().free_blocks())
    }

    fn budget(&self) -> Budget {
        *self.budget.get_or_init(|| self.space().budget(self.call))
    }

    fn space(&self) -> &SpaceView<'a> {
        self.space.get_or_init(|| self.records.space())
    }

    fn beyond(&self, budget: &Budget) -> i64 {
        i64::from(self.free_blocks()) - i64::from(budget.for_call())
    }

    /// How far the log has come since the last checkpoint began, in hundredths of the distance there should be: by blocks,
    /// by changes of the index, or by names given to blocks.
    fn distance(&self) -> u64 {
        let (flash, index) = (self.records.flash(), &self.records.index);
        let hundredths = |count: usize, most: usize| (count * 100 / most.max(1)) as u64;
        let blocks_max =
            victim::checkpoint_interval_blocks(flash.blocks().len(), flash.slots().lanes().count().into()) as usize;
        hundredths(flash.numbers().opened() as usize, blocks_max)
            .max(hundredths(index.fresh_changes(), self.records.options.changes_max()))
            .max(hundredths(flash.anchors().name_count(), names_max(flash.slots().lanes().count()) / 2))
    }

    /// Whether a checkpoint can wait no longer, though one may be under way.
    pub(super) fn is_overdue(&self) -> bool {
        self.distance() >= OVERDUE
    }

    /// Free blocks of each die, where heads have several lanes.
    fn free_by_die(&self) -> &[u32] {
        let flash = self.records.flash();
        let count = || {
            let several = flash.slots().lanes().are_several();
            if several { flash.free().by_die() } else { Vec::new() }
        };
        self.free_by_die.get_or_init(count)
    }

    fn headroom_of(&self, later: LaterCall) -> i64 {
        self.beyond(&self.space().budget_later(self.call, self.budget(), later))
    }
}

impl<N: Nand> Store<N> {
    /// What is said to the managers, where this call comes next.
    pub(super) fn look(&self, call: Call) -> Look<'_, N> {
        let Self { records, checkpointer, collector, .. } = self;
        let (space, free_blocks, budget) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let (reserve, free_by_die) = (self.reserve, OnceCell::new());
        Look { records, checkpointer, collector, call, reserve, free_blocks, free_by_die, space, budget }
    }
}

/// Hundredths of the distance between two checkpoints: from here on one is begun where nobody waits.
const WORTHWHILE: u64 = 50;
/// From here on callers do a few steps of it each.
const DUE: u64 = 80;
/// From here on it can wait no longer.
const OVERDUE: u64 = 100;

fn block_view(number: u32, block: &Block, durable_era: u64, free_beside: u32) -> BlockView {
    BlockView {
        number,
        holds: match block.entry.used_as {
            Use::Free => Holds::Nothing,
            Use::Log => Holds::Log,
            Use::Meta => Holds::Index,
            Use::Anchor => Holds::Anchors,
            Use::Bad => Holds::Bad,
        },
        region: if block.entry.native { Region::Native } else { Region::Slc },
        live_bytes: block.entry.live_bytes,
        erases: block.entry.erases,
        hot: block.entry.hot,
        open: block.open,
        stuck: block.stuck,
        failing: block.entry.failing,
        fading: block.fading,
        recent: block.era >= durable_era,
        opened_ns: block.opened_ns,
        free_beside,
    }
}

impl<N: Nand> View for Look<'_, N> {
    fn commit_due_ns(&self) -> Option<i64> {
        let since_ns = self.records.buffer.since_ns().filter(|_| !self.records.is_durable())?;
        Some(since_ns.saturating_add(self.records.options.commit_ns))
    }

    fn has_buffered(&self) -> bool {
        !self.records.buffer.is_empty() || !self.records.flash().numbers().is_ended()
    }

    fn checkpoint(&self) -> Progress {
        match self.checkpointer.is_under_way() {
            true => Progress::UnderWay,
            false => match self.distance() {
                OVERDUE.. => Progress::Overdue,
                DUE.. => Progress::Due,
                WORTHWHILE.. => Progress::Worthwhile,
                _ => Progress::Idle,
            },
        }
    }

    fn changes_left(&self) -> u64 {
        if self.checkpointer.is_under_way() || self.distance() >= DUE {
            return 0;
        }
        let due = self.records.options.changes_max() as u64 * DUE / 100;
        due.saturating_sub(self.records.index.fresh_changes() as u64)
    }

    fn victim(&self) -> Option<u32> {
        self.collector.victim()
    }

    fn emptied_for(&self) -> Option<WorkKind> {
        self.collector.work()
    }

    fn is_own(&self) -> bool {
        self.records.flash().anchors().is_own()
    }

    fn supply(&self) -> Supply {
        let free = self.records.flash().free();
        Supply {
            free: free.now(),
            free_soon: free.soon(),
            free_sealed: free.sealed(),
            free_for_certain: free.certain(),
            budget: self.budget(),
        }
    }

    fn headroom(&self) -> i64 {
        self.beyond(&self.budget())
    }

    fn headroom_ahead(&self) -> i64 {
        self.headroom_of(LaterCall::CheckpointDue)
    }

    fn headroom_full(&self) -> i64 {
        self.headroom_of(LaterCall::HeadsFull)
    }

    fn blocks(&self) -> impl Iterator<Item = BlockView> + Clone {
        let durable_era = self.records.flash().numbers().durable_era();
        let dies = self.free_by_die();
        let beside = move |number: u32| dies.get(number as usize % dies.len().max(1)).copied().unwrap_or(0);
        let blocks = self.records.flash().blocks().iter();
        blocks.map(move |(number, block)| block_view(number, block, durable_era, beside(number)))
    }

    fn block_count(&self) -> u32 {
        self.records.flash().blocks().len()
    }

    fn slc_blocks(&self) -> u32 {
        self.records.flash().blocks().slc_count()
    }

    fn has_weak_blocks(&self) -> bool {
        let blocks = self.records.flash().blocks();
        blocks.fading_count() > 0 || blocks.failing_count() > 0
    }

    fn needs_anchor_block(&self) -> bool {
        self.records.flash().anchors().needs_other(self.records.flash().shape().slc.units)
    }

    fn can_test_block(&self) -> bool {
        TestView(self.records.flash()).can_go_on()
    }

    fn has_waiting(&self) -> bool {
        self.records.flash().free().has_waiting()
    }

    fn commit_has_room(&self) -> bool {
        self.headroom() >= 0 || self.reserve.lasts(self.space()) && self.space().heads_have_room(self.call)
    }

    fn may_copy(&self) -> bool {
        let target_slots = self.target_bytes() / self.slot_bytes().max(1);
        self.collector.has_room(self.records)
            || self.records.flash().free_blocks() > self.space().beside_copies(target_slots)
    }

    fn needs_erase(&self, ahead_blocks: u32) -> bool {
        self.records.flash().free().next_to_erase(ahead_blocks).is_some()
    }

    fn live_bytes(&self) -> u64 {
        self.records.flash().blocks().live_bytes()
    }

    fn next_seq(&self) -> u64 {
        self.records.flash().numbers().next()
    }

    fn slot_bytes(&self) -> u32 {
        self.records.flash().shape().slot_bytes as u32
    }

    fn slc_block_bytes(&self) -> u32 {
        self.records.flash().shape().slc.content_slots() * self.slot_bytes()
    }

    fn target_bytes(&self) -> u32 {
        let shape = self.records.flash().shape();
        let native = self.records.manager.policy().relocated() == Region::Native || self.records.is_overfull();
        let target = if native { &shape.native } else { &shape.slc };
        target.content_slots() * shape.slot_bytes as u32
    }

    fn worn_erases(&self) -> u32 {
        self.records.flash().free().worn_erases()
    }

    fn endurance(&self) -> u32 {
        self.records.flash().slots().nand().endurance(CellMode::Native)
    }
}
