//! Making room before a change: checkpoints, collection, and blocks for anchors, until enough blocks are free. A little
//! of it is done ahead in each call once blocks are scarce, so that hardly a call has to do much.
//!
//! Invariant: a caller's data never takes the blocks that collection needs to make room again.

use nand::Nand;

use super::budget::{Call, Reserve};
use super::collector::Why;
use super::records::Records;
use super::{Store, budget, view};
use crate::error::{Error, Result};
use crate::flash::block_test::{ReadsBack, TestView, Tester};
use crate::manage::job::{Job, Progress, View};
use crate::policy::supply::Budget;

/// Steps of a checkpoint that is due, or under way, before each call.
const CHECKPOINT_STEPS: u32 = 12;
/// Steps of work for room before a call that finds enough of it.
const PACED_STEPS_MAX: u32 = 64;

impl<N: Nand> Store<N> {
    /// Makes sure that the operation to come finds room on the chip. What gives space back may use blocks that are kept.
    pub(super) fn make_room(&mut self, call: Call) -> Result<()> {
        self.keep_pace(call)?;
        if view::checkpoint_is_overdue(&self.records) {
            self.checkpoint_now()?;
        }
        self.keep_anchor_blocks()?;
        let opens_none = budget::heads_have_room(&self.records, call);
        if opens_none && self.reserve.lasts(&self.records) {
            return Ok(());
        }
        let floor = if opens_none { Budget::for_commit } else { Budget::for_call };
        self.free_up(call, floor)?;
        if opens_none && self.records.flash.free_blocks() >= floor(&budget::of(&self.records, call)) {
            self.reserve = Reserve::now(&self.records);
            return Ok(());
        }
        if self.headroom(call) < 0 && budget::checkpoint_would_help(&self.records) {
            self.checkpoint_now()?;
        }
        if self.headroom(call) >= 0 {
            self.reserve = Reserve::now(&self.records);
            return Ok(());
        }
        let for_removal =
            call.gives_back() && self.records.flash.free_blocks() >= budget::host_blocks(&self.records, call);
        if for_removal { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Does what callers owe before they go on: a few steps of a checkpoint that is due, and copies for what was written.
    fn keep_pace(&mut self, call: Call) -> Result<()> {
        for _ in 0..CHECKPOINT_STEPS {
            if !matches!(self.look(call).checkpoint(), Progress::Due | Progress::UnderWay) {
                break;
            }
            self.run(Job::Checkpoint)?;
        }
        let owed = self.records.manager.owed(&self.look(call));
        let paid_bytes = self.pay(call, owed.owed_bytes)?;
        self.records.manager.heard_of_debt(owed, paid_bytes);
        Ok(())
    }

    /// Copies so many bytes to make room, a slot at least, or as many as may keep a caller waiting; how many of them are paid.
    /// Where a block fails in that, all are: copies made ahead must not take the blocks that calls need.
    fn pay(&mut self, call: Call, owed_bytes: u64) -> Result<u64> {
        let slot_bytes = self.records.flash.shape().slot_bytes as u64;
        let first = self.records.flash.numbers().copies();
        let failed_blocks = budget::failed_blocks(&self.records);
        let mut paid_bytes = 0;
        for _ in 0..PACED_STEPS_MAX {
            if paid_bytes + slot_bytes > owed_bytes {
                break;
            }
            let Some(job) = self.records.manager.next_paced_job(&self.look(call)) else { break };
            match self.room_step(job) {
                // What cannot be done ahead may be done when it must.
                Err(Error::NoSpace | Error::Corrupt { .. }) => break,
                outcome => outcome?,
            }
            if budget::failed_blocks(&self.records) > failed_blocks {
                return Ok(owed_bytes);
            }
            paid_bytes = (self.records.flash.numbers().copies() - first) * slot_bytes;
        }
        Ok(paid_bytes)
    }

    /// One step of a job done for room; what came of it is told when it is done.
    pub(super) fn room_step(&mut self, job: Job) -> Result<()> {
        let before = self.records.flash.free_blocks();
        let was_under_way = self.checkpointer.is_under_way();
        self.run(job)?;
        let done = match job {
            Job::Checkpoint => was_under_way && !self.checkpointer.is_under_way(),
            Job::Copy { victim } => self.collector.victim() != Some(victim),
            _ => true,
        };
        if done {
            self.records.manager.heard_of_gain(job, self.records.flash.free_blocks() > before);
        }
        Ok(())
    }

    /// Free blocks less the budget of the next call.
    fn headroom(&self, call: Call) -> i64 {
        self.look(call).headroom()
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
        let has_room = |records: &Records<N>| {
            records.flash.free_blocks() >= budget::host_blocks(records, Call::REMOVAL)
                || budget::heads_have_room(records, Call::REMOVAL)
        };
        if !has_room(&self.records) && TestView(&self.records.flash).next_suspect().is_some() {
            Tester(&mut self.records.flash).finish_all(ReadsBack::Right)?;
        }
        if has_room(&self.records) { Ok(()) } else { Err(Error::NoSpace) }
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
            Job::Checkpoint if self.checkpointer.is_under_way() => self.finish_checkpoint(),
            Job::Checkpoint => self.checkpoint_now(),
            Job::Seal => {
                self.records.flash.flush_units()?;
                self.run(job)
            }
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
