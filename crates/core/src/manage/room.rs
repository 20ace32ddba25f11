//! What is done so that a block more becomes free, for callers that need one.
//!
//! Invariant: collection takes a block only while as many stay free as a recovery may need, or where nothing else is left.

use super::Manager;
use super::job::{Job, Progress, View};
use crate::policy::victim;

/// Blocks emptied in a row without one more free block, before the chip counts as full: what is left to gain is less
/// than what moving it around costs.
const FRUITLESS_MAX: u32 = 64;
/// The same where so much was done in vain before.
const FRUITLESS_AGAIN_MAX: u32 = 4;

impl Manager {
    /// What to do so that a block more becomes free; idle where nothing helps.
    pub fn next_job_for_room(&self, view: &impl View) -> Job {
        if let Some(victim) = view.victim()
            && view.may_copy()
        {
            return Job::Copy { victim };
        }
        if matches!(view.checkpoint(), Progress::Due | Progress::Overdue | Progress::UnderWay) {
            return Job::Checkpoint;
        }
        let supply = view.supply();
        let release = || match supply.free_sealed > supply.free {
            true => Some(Job::Seal),
            false => view.has_waiting().then_some(Job::Checkpoint),
        };
        let kept = supply.budget.in_collection();
        // What the last victims gave must be free before collection takes one more block: recovery would miss it.
        if !self.waited_in_vain
            && supply.free_soon <= kept
            && let Some(job) = release()
        {
            return job;
        }
        // And they must be free for a recovery that cannot rely on the last pages.
        if supply.free_for_certain <= kept && supply.free_for_certain < supply.free {
            return Job::Checkpoint;
        }
        if let Some(victim) = view.victim() {
            return Job::Copy { victim };
        }
        match victim::choose(view.blocks(), view.target_bytes()) {
            // The best one was written since the last checkpoint: with the next it can be used again.
            Some(found) if found.after_checkpoint => Job::Checkpoint,
            Some(found) => Job::Copy { victim: found.block },
            None if self.waited_in_vain => Job::Idle { until_ns: None },
            None => release().unwrap_or(Job::Idle { until_ns: None }),
        }
    }

    /// Hears what came of a job done for room: whether there are more free blocks now.
    pub fn heard_of_gain(&mut self, job: Job, gained: bool) {
        self.collections += 1;
        self.waited_in_vain = matches!(job, Job::Seal | Job::Checkpoint) && !gained;
    }

    /// Room is to be made, with so many live bytes in the log: how many jobs in a row may gain nothing before the chip
    /// counts as full.
    pub fn begin_room(&mut self, live_bytes: u64) -> u32 {
        // Callers may have emptied blocks since, which wait now.
        self.waited_in_vain = false;
        // With as much to keep as when nothing came of it, little will come of it again, and blocks wear.
        let hopeless = self.fruitless_at.is_some_and(|fruitless_at| live_bytes >= fruitless_at);
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
