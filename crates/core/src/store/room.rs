//! Making room before a change: checkpoints, collection, and blocks for anchors, until enough blocks are free. A little
//! of it is done ahead in each call once blocks are scarce, so that hardly a call has to do much.
//!
//! Invariant: a caller's data never takes the blocks that collection needs to make room again.

use nand::Nand;

use super::Store;
use super::collector::Why;
use super::records::Records;
use crate::error::{Error, Result};
use crate::flash::block_test::{ReadsBack, TestView, Tester};
use crate::manage::job::{Job, Progress, View};
use crate::policy::budget::{Budget, Call, Reserve};

/// Steps of a checkpoint that is due, or under way, before each call.
const CHECKPOINT_STEPS: u32 = 12;
/// Steps of work for room before a call that finds enough of it.
const PACED_STEPS_MAX: u32 = 64;

impl<N: Nand> Store<N> {
    /// Makes sure that the operation to come finds room on the chip. What gives space back may use blocks that are kept.
    pub(super) fn make_room(&mut self, call: Call) -> Result<()> {
        self.keep_pace(call)?;
        if self.look(call).is_overdue() {
            self.checkpoint_now()?;
        }
        self.keep_anchor_blocks()?;
        let space = self.records.space();
        let opens_none = space.heads_have_room(call);
        if opens_none && self.reserve.lasts(&space) {
            return Ok(());
        }
        let floor = if opens_none { Budget::for_commit } else { Budget::for_call };
        self.free_up(call, floor)?;
        if opens_none && self.records.flash().free_blocks() >= floor(&self.records.space().budget(call)) {
            self.reserve = Reserve::of(&self.records.space());
            return Ok(());
        }
        if self.look(call).headroom() < 0 && self.records.space().checkpoint_would_help() {
            self.checkpoint_now()?;
        }
        if self.look(call).headroom() >= 0 {
            self.reserve = Reserve::of(&self.records.space());
            return Ok(());
        }
        let for_removal =
            call.gives_back() && self.records.flash().free_blocks() >= self.records.space().host_blocks(call);
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
        let slot_bytes = self.records.flash().shape().slot_bytes as u64;
        let first = self.records.flash().numbers().copies();
        let failed_blocks = self.records.flash().blocks().failed_count();
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
            if self.records.flash().blocks().failed_count() > failed_blocks {
                return Ok(owed_bytes);
            }
            paid_bytes = (self.records.flash().numbers().copies() - first) * slot_bytes;
        }
        Ok(paid_bytes)
    }

    /// One step of a job done for room; what came of it is told when it is done.
    pub(super) fn room_step(&mut self, job: Job) -> Result<()> {
        let before = self.records.flash().free_blocks();
        let was_under_way = self.checkpointer.is_under_way();
        self.run(job)?;
        let done = match job {
            Job::Checkpoint => was_under_way && !self.checkpointer.is_under_way(),
            Job::Copy { victim } => self.collector.victim() != Some(victim),
            _ => true,
        };
        if done {
            self.records.manager.heard_of_gain(job, self.records.flash().free_blocks() > before);
        }
        Ok(())
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
            let space = records.space();
            records.flash().free_blocks() >= space.host_blocks(Call::REMOVAL) || space.heads_have_room(Call::REMOVAL)
        };
        if !has_room(&self.records) && TestView(self.records.flash()).next_suspect().is_some() {
            Tester(self.records.log.flash_mut()).finish_all(ReadsBack::Right)?;
        }
        if has_room(&self.records) { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// Does what there is to do until so many blocks are free, or too little comes of it.
    fn free_up(&mut self, call: Call, floor: fn(&Budget) -> u32) -> Result<()> {
        let live_bytes = self.records.flash().blocks().live_bytes();
        let patience = self.records.manager.begin_room(live_bytes);
        let (mut best, mut fruitless) = (self.records.flash().free_blocks(), 0);
        while self.records.flash().free_blocks() < floor(&self.records.space().budget(call)) {
            if fruitless == patience {
                let live_bytes = self.records.flash().blocks().live_bytes();
                self.records.manager.heard_of_room(false, live_bytes);
                return Ok(());
            }
            let job = self.records.manager.next_job_for_room(&self.look(call));
            if matches!(job, Job::Idle { .. }) {
                break;
            }
            let before = self.records.flash().free_blocks();
            self.run_to_end(job)?;
            let free = self.records.flash().free_blocks();
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
                self.records.log.flash_mut().flush_units()?;
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
        if self.records.flash().blocks().get(victim).entry.live_bytes > 0 {
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
