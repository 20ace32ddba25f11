//! What is done next: in idle time, and where a call needs room.

use super::job::{Job, Progress, Refresh, View};
use super::{Manager, PASS_NS, Scrub};
use crate::policy::{BlockView, Holds, level, victim};

/// Fewer free blocks than this: background work makes room (FlexFS §3.1).
const FREE_SOFT: u32 = 5;
/// Blocks emptied in a row without one more free block, before the chip counts as full: what is left to gain is less
/// than what moving it around costs.
const FRUITLESS_MAX: u32 = 64;
/// The same where so much was done in vain before.
const FRUITLESS_AGAIN_MAX: u32 = 4;

impl Manager {
    /// What to do in idle time.
    pub fn next_job(&self, view: &impl View, mono_ns: i64) -> Job {
        let due_ns = view.commit_due_ns();
        let idle = Job::Idle { until_ns: due_ns };
        match due_ns {
            Some(due_ns) if mono_ns >= due_ns => return Job::Commit,
            // Callers are at it.
            Some(_) if view.has_buffered() => return idle,
            _ => {}
        }
        if view.checkpoint() == Progress::UnderWay {
            return Job::Checkpoint;
        }
        if let Some(victim) = view.victim() {
            return Job::Copy { victim };
        }
        if let Some(refresh) = self.next_look(view, mono_ns).or_else(|| next_renewal(view)) {
            return Job::Refresh(refresh);
        }
        if !view.is_own() {
            return idle;
        }
        if view.checkpoint() == Progress::Due {
            return Job::Checkpoint;
        }
        if view.has_retirable() {
            return Job::Retire;
        }
        if view.supply().free < FREE_SOFT
            && let Some(found) = victim::choose(view.blocks(), view.target_bytes())
            && !found.after_checkpoint
        {
            return Job::Copy { victim: found.block };
        }
        match level::choose(view.blocks(), || view.worn_erases(), view.endurance()) {
            Some(victim) => Job::Level { victim },
            None => idle,
        }
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

    /// What to do so that a block more becomes free; idle where nothing helps.
    pub fn next_job_for_room(&self, view: &impl View) -> Job {
        if view.has_retirable() {
            return Job::Retire;
        }
        if let Some(victim) = view.victim() {
            return Job::Copy { victim };
        }
        if view.checkpoint() == Progress::Due {
            return Job::Checkpoint;
        }
        let supply = view.supply();
        let waits = |view: &dyn Fn() -> bool| match supply.free_sealed > supply.free {
            true => Some(Job::Seal),
            false => view().then_some(Job::Checkpoint),
        };
        let kept = supply.budget.in_collection();
        // What the last victims gave must be free before collection takes one more block: recovery would miss it.
        if !self.waited_in_vain
            && supply.free_soon <= kept
            && let Some(job) = waits(&|| view.has_waiting())
        {
            return job;
        }
        // And they must be free for a recovery that cannot rely on the last pages.
        if supply.free_for_certain <= kept && supply.free_for_certain < supply.free {
            return Job::Checkpoint;
        }
        match victim::choose(view.blocks(), view.target_bytes()) {
            // The best one was written since the last checkpoint: with the next it can be used again.
            Some(found) if found.after_checkpoint => Job::Checkpoint,
            Some(found) => Job::Copy { victim: found.block },
            None if self.waited_in_vain => Job::Idle { until_ns: None },
            None => waits(&|| view.has_waiting()).unwrap_or(Job::Idle { until_ns: None }),
        }
    }

    /// Hears of a job that is being done in idle time.
    pub fn heard(&mut self, job: Job, mono_ns: i64) {
        let Scrub { passes, .. } = self.scrub;
        match job {
            Job::Refresh(Refresh::Look { block, .. }) => self.scrub.next = block + 1,
            Job::Refresh(Refresh::EndPass) => {
                self.scrub = Scrub { next: 0, passes: passes + 1, due_ns: mono_ns.saturating_add(PASS_NS) };
            }
            _ => {}
        }
    }

    /// Hears what came of a job done for room: whether there are more free blocks now.
    pub fn heard_of_gain(&mut self, job: Job, gained: bool) {
        self.collections += 1;
        self.waited_in_vain = matches!(job, Job::Seal | Job::Checkpoint) && !gained;
    }

    /// Jobs for room in a row that may gain nothing before the chip counts as full.
    pub fn patience(&self, view: &impl View) -> u32 {
        // With as much to keep as when nothing came of it, little will come of it again, and blocks wear.
        let hopeless = self.fruitless_at.is_some_and(|live_bytes| view.live_bytes() >= live_bytes);
        if hopeless { FRUITLESS_AGAIN_MAX } else { FRUITLESS_MAX }
    }

    /// Hears whether room was made, with so many live bytes in the log.
    pub fn heard_of_room(&mut self, made: bool, live_bytes: u64) {
        match made {
            true => self.fruitless_at = None,
            false => {
                self.fruitless_at.get_or_insert(live_bytes);
            }
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
