//! The one executor of jobs, for idle time and for room; and whole checkpoints, for whoever cannot wait.

use nand::{Cause, Nand, NandError};

use super::Store;
use super::collector::Why;
use super::commit::Commit;
use crate::error::Result;
use crate::flash::block_test::Tester;
use crate::format::table::Use;
use crate::manage::job::{Job, Refresh, View};
use crate::manage::migration::Migrated;
use crate::policy::budget::{Call, Reserve};

/// Between two steps of background work, ns.
const STEP_NS: i64 = 1_000_000;

impl<N: Nand> Store<N> {
    /// Does at most one page's worth of internal work; returns when to call again, or `None` when idle.
    pub fn background(&mut self, mono_ns: i64, wall_ns: i64) -> Result<Option<i64>> {
        if self.writable().is_err() {
            return Ok(None);
        }
        self.records.set_mono_ns(mono_ns);
        self.records.set_wall_ns(wall_ns);
        let mono_ns = self.records.mono_ns;
        self.records.manager.clock(mono_ns);
        self.records.review_wear();
        let look = self.look(Call::REMOVAL);
        let job = self.records.manager.next_job(&look, mono_ns);
        if let Job::Idle { until_ns } = job {
            return Ok(until_ns);
        }
        let late = look.commit_due_ns().is_some_and(|due_ns| mono_ns >= due_ns);
        self.records.manager.heard(job, late, mono_ns);
        let outcome = match job {
            Job::Migrate { victim } => self.migrate_step(victim),
            job if late => self.room_step(job),
            job => self.run(job),
        };
        self.noted(outcome)?;
        Ok(Some(mono_ns.saturating_add(STEP_NS)))
    }

    /// Does a job, or the next step of one under way.
    pub(super) fn run(&mut self, job: Job) -> Result<()> {
        match job {
            Job::Commit if self.commit.is_some() => self.commit_step(),
            Job::Commit => self.begin_commit(),
            Job::Checkpoint if self.checkpointer.is_under_way() => self.checkpoint_step(),
            Job::Checkpoint => self.approach_checkpoint(),
            Job::Copy { victim } | Job::Migrate { victim } if self.collector.victim() == Some(victim) => {
                self.collector.step(&mut self.records)
            }
            Job::Copy { victim } | Job::Migrate { victim } => self.begin_emptying(victim, Why::Room),
            Job::Level { victim } => self.begin_emptying(victim, Why::Levelling),
            Job::Seal => {
                if self.records.log.commit_unit()? {
                    return self.records.follow_moved();
                }
                self.records.log.flash_mut().settle();
                Ok(())
            }
            Job::Refresh(refresh) => self.refresh(refresh),
            Job::ReadyAnchors => self.ready_anchor_step(),
            Job::EraseAhead { blocks } => self.erase_ahead(blocks),
            Job::TestBlock => Tester(self.records.log.flash_mut()).step(),
            Job::Idle { .. } => Ok(()),
        }
    }

    /// Makes room for a commit, if there is too little, and begins it.
    fn begin_commit(&mut self) -> Result<()> {
        if !self.records.log.flash_mut().own_step()? {
            return self.records.follow_moved();
        }
        self.keep_anchor_blocks()?;
        if !self.look(Call::REMOVAL).commit_has_room() {
            self.make_room(Call::REMOVAL)?;
        }
        self.commit_step()
    }

    /// One step of a commit.
    fn commit_step(&mut self) -> Result<()> {
        if !self.records.log.flash_mut().own_step()? {
            return self.records.follow_moved();
        }
        let commit = *self.commit.get_or_insert(Commit::of(&self.records, true));
        if commit.step(&mut self.records)? {
            self.commit = None;
        }
        Ok(())
    }

    /// One step towards the beginning of a checkpoint, which then takes none itself: everything in memory goes into the log,
    /// and the pages of the index that it is to write anew are found.
    fn approach_checkpoint(&mut self) -> Result<()> {
        let reads = self.records.log.reads();
        if !self.checkpointer.survey(&mut self.records)? || self.records.log.reads() > reads {
            return Ok(());
        }
        if !self.records.is_durable() {
            return self.commit_step();
        }
        if self.records.write_some_inodes()? {
            return Ok(());
        }
        if self.records.log.commit_unit()? {
            return self.records.follow_moved();
        }
        self.begin_checkpoint(false)
    }

    /// Erases one of the so many blocks that are taken next, so that whoever takes it need not wait for that.
    fn erase_ahead(&mut self, blocks: u32) -> Result<()> {
        let next = self.records.flash().free().next_to_erase(blocks);
        let slots = self.records.log.slots_mut();
        match next {
            Some(next) if slots.look_for_pages(next, Cause::Gc)? => slots.erase(next, Cause::Gc).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// One step towards emptying a block of the SLC region; the managers hear what it did.
    fn migrate_step(&mut self, victim: u32) -> Result<()> {
        let (start_ns, copies) = (self.records.mono_ns, self.records.flash().numbers().copies());
        let outcome = self.run(Job::Migrate { victim });
        let moved = self.records.flash().numbers().copies() > copies;
        let emptied = self.collector.victim() != Some(victim);
        self.records.manager.heard_of_migration(victim, Migrated { start_ns, moved, emptied });
        outcome
    }

    fn begin_emptying(&mut self, victim: u32, why: Why) -> Result<()> {
        self.collector.start(&self.records, victim, why);
        Ok(())
    }

    fn refresh(&mut self, refresh: Refresh) -> Result<()> {
        match refresh {
            Refresh::Look { block, pass } => self.look_at(block, pass),
            Refresh::EndPass => Ok(()),
            Refresh::LeaveHeads => self.leave_fading_heads(),
            Refresh::Rewrite { block } => self.rewrite(block),
        }
    }

    /// Reads a page of a block.
    fn look_at(&mut self, number: u32, pass: u32) -> Result<()> {
        let slots = self.records.log.slots_mut();
        let block = slots.blocks().get(number);
        let units = slots.shape().mode(block.mode()).content_units.max(1);
        let unit = if block.entry.sealed { pass % units } else { 0 };
        let Some(&page) = slots.nand().layout(block.mode()).unit_pages(unit).first() else { return Ok(()) };
        match slots.nand_mut().read(number, page, 0, &mut [], &mut [], Cause::WearLevel) {
            Ok(info) => slots.note_errors(number, info),
            // Whoever needs it will be told.
            Err(NandError::Uncorrectable { .. } | NandError::Medium { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// What fades is not written to any more.
    fn leave_fading_heads(&mut self) -> Result<()> {
        for at in self.records.flash().slots().lanes().all() {
            let flash = self.records.log.flash_mut();
            let fades = flash.slots().head(at).block().is_some_and(|block| flash.blocks().get(block).fading);
            if fades {
                flash.flush_units()?;
                self.records.follow_moved()?;
                self.records.log.slots_mut().leave_block(at);
            }
        }
        Ok(())
    }

    /// Begins to write anew what stands in a block: by emptying it, by a checkpoint, or by an anchor.
    fn rewrite(&mut self, number: u32) -> Result<()> {
        match self.records.flash().blocks().get(number).entry.used_as {
            Use::Log => {
                if !self.records.log.flash_mut().own_step()? {
                    return self.records.follow_moved();
                }
                self.begin_emptying(number, Why::Renewal)
            }
            Use::Anchor => {
                self.records.log.slots_mut().blocks_mut().forget_fading(number);
                self.records.log.flash_mut().leave_anchor_block(number)?;
                self.records.follow_moved()
            }
            _ => self.approach_checkpoint(),
        }
    }

    /// Brings everything in memory into the log and fixes the point of the log a checkpoint stands for.
    fn begin_checkpoint(&mut self, clean: bool) -> Result<()> {
        self.checkpointer.begin(&mut self.records, clean)?;
        self.records.record_life();
        Ok(())
    }

    /// Writes at most one page of the checkpoint.
    fn checkpoint_step(&mut self) -> Result<()> {
        let opened = self.records.flash().numbers().opened_for_pages();
        let done = self.checkpointer.step(&mut self.records)?;
        if done || self.records.flash().numbers().opened_for_pages() != opened {
            self.reserve = Reserve::default();
        }
        if done {
            self.records.manager.heard_of_checkpoint();
        }
        Ok(())
    }

    /// Finishes the checkpoint that is under way.
    pub fn finish_checkpoint(&mut self) -> Result<()> {
        while self.checkpointer.is_under_way() {
            self.checkpoint_step()?;
        }
        Ok(())
    }

    /// Writes a whole checkpoint of a volume that is not clean.
    pub fn checkpoint_now(&mut self) -> Result<()> {
        self.checkpoint_as(false)
    }

    /// Writes a whole checkpoint, clean or not, once the one that is under way is complete.
    pub fn checkpoint_as(&mut self, clean: bool) -> Result<()> {
        self.finish_checkpoint()?;
        self.begin_checkpoint(clean)?;
        self.finish_checkpoint()
    }
}
