//! Making room before a change: checkpoints, collection, and blocks for anchors, until enough blocks are free.
//!
//! Invariant: a caller's data never takes the blocks that collection needs to make room again.

use nand::Nand;

use super::budget::Call;
use super::collector::Why;
use super::{Store, budget, view};
use crate::error::{Error, Result};
use crate::manage::job::{Job, View};
use crate::policy::supply::Budget;

impl<N: Nand> Store<N> {
    /// Makes sure that the operation to come finds room on the chip. What gives space back may use blocks that are kept.
    pub(super) fn make_room(&mut self, call: Call) -> Result<()> {
        if view::needs_checkpoint(&self.records) {
            self.checkpoint_now()?;
        }
        self.keep_anchor_blocks()?;
        if budget::heads_have_room(&self.records, call) && budget::index_floor(&self.records) <= self.index_reserve {
            return Ok(());
        }
        self.free_up(call, Budget::for_call)?;
        if self.headroom(call) < 0 && budget::checkpoint_would_help(&self.records) {
            self.checkpoint_now()?;
        }
        if self.headroom(call) >= 0 {
            self.index_reserve = budget::index_floor(&self.records);
            return Ok(());
        }
        let for_removal =
            call.gives_back() && self.records.flash.free_blocks() >= budget::host_blocks(&self.records, call);
        if for_removal { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Free blocks less the budget of the next call.
    fn headroom(&self, call: Call) -> i64 {
        self.look(call).supply().headroom()
    }

    /// Whether more blocks are free than a recovery opens, so that it need not go on in those its heads stood in.
    pub fn can_recover_in_fresh_blocks(&self) -> bool {
        self.records.flash.free_blocks() > budget::of(&self.records, Call::REMOVAL).recovery
    }

    /// After a recovery, whose blocks the next one would miss. No space: not even a removal would find any.
    pub fn restore_reserve(&mut self) -> Result<()> {
        self.keep_anchor_blocks()?;
        match self.free_up(Call::REMOVAL, Budget::for_collection) {
            // What is there can be read; whoever writes next is told.
            Err(Error::NoSpace | Error::Corrupt { .. }) => {}
            outcome => outcome?,
        }
        let room = self.records.flash.free_blocks() >= budget::host_blocks(&self.records, Call::REMOVAL)
            || budget::heads_have_room(&self.records, Call::REMOVAL);
        if room { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Does what there is to do until so many blocks are free, or too little comes of it.
    fn free_up(&mut self, call: Call, floor: fn(&Budget) -> u32) -> Result<()> {
        let live_bytes = self.records.flash.blocks().live_bytes();
        let patience = self.records.manager.begin_room(live_bytes);
        let (mut best, mut fruitless) = (self.records.flash.free_blocks(), 0);
        while self.records.flash.free_blocks() < floor(&budget::of(&self.records, call)) {
            if fruitless == patience {
                let live_bytes = self.records.flash.blocks().live_bytes();
                self.records.manager.heard_of_room(false, live_bytes);
                return Ok(());
            }
            let job = self.records.manager.next_job_for_room(&self.look(call));
            if matches!(job, Job::Idle { .. }) {
                break;
            }
            let before = self.records.flash.free_blocks();
            self.run_to_end(job)?;
            let free = self.records.flash.free_blocks();
            self.records.manager.heard_of_gain(job, free > before);
            fruitless = if free > best { 0 } else { fruitless + 1 };
            best = best.max(free);
        }
        self.records.manager.heard_of_room(true, 0);
        Ok(())
    }

    /// Does a whole piece of work: a checkpoint to its anchor, a block until it is empty.
    fn run_to_end(&mut self, job: Job) -> Result<()> {
        match job {
            Job::Checkpoint => self.checkpoint_now(),
            Job::Copy { victim } if self.collector.victim() == Some(victim) => self.finish_emptying(),
            Job::Copy { victim } => self.empty_block(victim, Why::Room),
            job => self.run(job),
        }
    }

    /// Empties a block to the end; the one being emptied first, if that is another.
    pub(super) fn empty_block(&mut self, victim: u32, why: Why) -> Result<()> {
        self.finish_emptying()?;
        if self.records.flash.blocks().get(victim).entry.live_bytes > 0 {
            self.collector.start(&self.records, victim, why);
        }
        self.finish_emptying()
    }

    /// Goes on with the block being emptied until it is.
    pub(super) fn finish_emptying(&mut self) -> Result<()> {
        while self.collector.victim().is_some() {
            self.collector.step(&mut self.records)?;
        }
        Ok(())
    }
}
