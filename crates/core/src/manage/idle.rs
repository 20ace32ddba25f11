//! What is done in idle time: what callers would have to wait for otherwise, and what keeps the chip readable.
//!
//! Invariant: a job is one step, of one copy, one program, one erase or a few reads.

use super::job::{Job, Progress, Refresh, View};
use super::work::WorkKind;
use super::{Manager, PASS_NS, Scrub};
use crate::policy::{BlockView, Holds, gc, level};

/// Blocks more than the budget that idle time keeps free.
const AHEAD_BLOCKS: i64 = 4;
/// Blocks that idle time keeps erased for bursts, where it migrates. After a cut they are erased once more.
const ERASED_BLOCKS: u32 = 32;
/// Steps that make room for a commit that is due, before it makes room itself at once.
const LATE_STEPS_MAX: u32 = 4096;

impl Manager {
    /// What to do in idle time.
    pub fn next_job(&self, view: &impl View, mono_ns: i64) -> Job {
        let due_ns = view.commit_due_ns();
        let idle = Job::Idle { until_ns: due_ns };
        match due_ns {
            Some(due_ns) if mono_ns >= due_ns => return self.commit_or_room(view),
            // Callers are at it.
            Some(_) if view.has_buffered() => return idle,
            _ => {}
        }
        if view.needs_anchor_block() {
            return Job::ReadyAnchors;
        }
        if view.checkpoint() == Progress::UnderWay {
            return Job::Checkpoint;
        }
        // The migration that callers began stays theirs where the policy does none in idle time.
        if let Some(victim) = view.victim()
            && !self.migration.is_emptying(victim)
            && (self.policy.empties_slc() || view.emptied_for() != Some(WorkKind::Migration))
            && view.may_copy()
        {
            return Job::Copy { victim };
        }
        if let Some(refresh) = self.next_look(view, mono_ns).or_else(|| next_renewal(view)) {
            return Job::Refresh(refresh);
        }
        if !view.is_own() {
            return idle;
        }
        match self.next_ahead(view).or_else(|| self.next_migration(view, mono_ns)).unwrap_or(idle) {
            Job::Idle { until_ns } => Job::Idle { until_ns: until_ns.into_iter().chain(due_ns).min() },
            job => job,
        }
    }

    /// A commit is due: what makes room for it comes first, a step at a time.
    fn commit_or_room(&self, view: &impl View) -> Job {
        if view.needs_anchor_block() {
            return Job::ReadyAnchors;
        }
        if view.commit_has_room() || self.late_steps >= LATE_STEPS_MAX {
            return Job::Commit;
        }
        match self.next_job_for_room(view) {
            Job::Idle { .. } => Job::Commit,
            job => job,
        }
    }

    /// What callers would have to do, or wait for, before long.
    fn next_ahead(&self, view: &impl View) -> Option<Job> {
        if matches!(view.checkpoint(), Progress::Worthwhile | Progress::Due | Progress::Overdue) {
            return Some(Job::Checkpoint);
        }
        if view.can_test_block() {
            return Some(Job::TestBlock);
        }
        let blocks = if self.policy.migrate().is_some() { ERASED_BLOCKS } else { 1 };
        if view.needs_erase(blocks) {
            return Some(Job::EraseAhead { blocks });
        }
        if view.headroom_ahead() < AHEAD_BLOCKS {
            match gc::choose(view.blocks(), view.target_bytes(), self.policy.collect()) {
                Some(found) if found.after_checkpoint => return Some(Job::Checkpoint),
                Some(found) if view.may_copy() => return Some(Job::Copy { victim: found.block }),
                _ => {}
            }
        }
        // Migration may be at the block that levelling would choose.
        let migrates = view.victim().is_some_and(|victim| self.migration.is_emptying(victim));
        if !self.policy.levels() || migrates {
            return None;
        }
        let victim = level::choose(view.blocks(), || view.worn_erases(), view.endurance())?;
        Some(Job::Level { victim })
    }

    /// The next block that holds something, if a pass is due.
    fn next_look(&self, view: &impl View, mono_ns: i64) -> Option<Refresh> {
        if mono_ns < self.scrub.due_ns {
            return None;
        }
        let holds_something = |block: &BlockView| match block.holds {
            Holds::Anchors => true,
            Holds::Log | Holds::Index => block.live_bytes > 0,
            Holds::Nothing | Holds::Bad => false,
        };
        let next = view.blocks().find(|block| block.number >= self.scrub.next && holds_something(block));
        let pass = self.scrub.passes;
        Some(next.map_or(Refresh::EndPass, |block| Refresh::Look { block: block.number, pass }))
    }

    /// Hears of a job that is being done in idle time; `late`: while a commit is due.
    pub fn heard(&mut self, job: Job, late: bool, mono_ns: i64) {
        self.ledger.count_step(job);
        let Scrub { passes, .. } = self.scrub;
        self.late_steps = if job == Job::Commit || !late { 0 } else { self.late_steps + 1 };
        match job {
            Job::Refresh(Refresh::Look { block, .. }) => self.scrub.next = block + 1,
            Job::Refresh(Refresh::EndPass) => {
                self.scrub = Scrub { next: 0, passes: passes + 1, due_ns: mono_ns.saturating_add(PASS_NS) };
            }
            _ => {}
        }
    }
}

/// Something that is to be written anew elsewhere.
fn next_renewal(view: &impl View) -> Option<Refresh> {
    if !view.has_weak_blocks() {
        return None;
    }
    if view.blocks().any(|block| block.open && block.fading) {
        return Some(Refresh::LeaveHeads);
    }
    let supply = view.supply();
    // What has to wait for space holds nothing else up.
    let space = supply.free > supply.budget.for_collection();
    let due = |block: &BlockView| match block.holds {
        Holds::Log => space && block.is_movable() && (block.fading || block.failing),
        Holds::Index => block.fading && block.live_bytes > 0 && !block.open,
        Holds::Anchors => block.fading,
        Holds::Nothing | Holds::Bad => false,
    };
    view.blocks().find(due).map(|block| Refresh::Rewrite { block: block.number })
}
