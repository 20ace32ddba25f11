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
        if view.needs_anchor_block() {
            return Job::ReadyAnchors;
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
        match victim::choose(view.blocks(), view.target_bytes()) {
            // The best one was written since the last checkpoint: with the next it can be used again.
            Some(found) if found.after_checkpoint => Job::Checkpoint,
            Some(found) => Job::Copy { victim: found.block },
            None if self.waited_in_vain => Job::Idle { until_ns: None },
            None => release().unwrap_or(Job::Idle { until_ns: None }),
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::policy::Policy;
    use crate::policy::supply::{Budget, Supply};

    /// A store at rest, with blocks to spare.
    #[derive(Clone)]
    struct Seen {
        due_ns: Option<i64>,
        buffered: bool,
        checkpoint: Progress,
        waiting: bool,
        supply: Supply,
        blocks: Vec<BlockView>,
    }

    impl Seen {
        fn new(blocks: &[(u32, Holds, u32)]) -> Self {
            let block = |&(number, holds, live_bytes)| BlockView {
                number,
                holds,
                live_bytes,
                erases: 0,
                open: false,
                stuck: false,
                failing: false,
                fading: false,
                recent: false,
            };
            let supply =
                Supply { free: 9, free_soon: 9, free_sealed: 9, free_for_certain: 9, budget: Budget::default() };
            let blocks = blocks.iter().map(block).collect();
            Self { due_ns: None, buffered: false, checkpoint: Progress::Idle, waiting: false, supply, blocks }
        }
    }

    impl View for Seen {
        fn commit_due_ns(&self) -> Option<i64> {
            self.due_ns
        }

        fn has_buffered(&self) -> bool {
            self.buffered
        }

        fn checkpoint(&self) -> Progress {
            self.checkpoint
        }

        fn victim(&self) -> Option<u32> {
            None
        }

        fn is_own(&self) -> bool {
            true
        }

        fn supply(&self) -> Supply {
            self.supply
        }

        fn blocks(&self) -> impl Iterator<Item = BlockView> + Clone {
            self.blocks.iter().copied()
        }

        fn has_weak_blocks(&self) -> bool {
            false
        }

        fn needs_anchor_block(&self) -> bool {
            false
        }

        fn has_retirable(&self) -> bool {
            false
        }

        fn has_waiting(&self) -> bool {
            self.waiting
        }

        fn target_bytes(&self) -> u32 {
            100
        }

        fn worn_erases(&self) -> u32 {
            0
        }

        fn endurance(&self) -> u32 {
            1000
        }
    }

    #[test]
    fn work_goes_on_before_a_commit_is_due_unless_callers_have_something_in_memory() {
        let manager = Manager::new(Policy::BASELINE);
        let seen = Seen { due_ns: Some(50), checkpoint: Progress::UnderWay, ..Seen::new(&[]) };
        assert_eq!(manager.next_job(&seen, 49), Job::Checkpoint);
        assert_eq!(manager.next_job(&seen, 50), Job::Commit);
        let busy = Seen { buffered: true, ..seen };
        assert_eq!(manager.next_job(&busy, 49), Job::Idle { until_ns: Some(50) });
        assert_eq!(manager.next_job(&busy, 50), Job::Commit);
    }

    #[test]
    fn every_block_that_holds_something_is_looked_at_once_in_each_pass() {
        let mut manager = Manager::new(Policy::BASELINE);
        let seen = Seen::new(&[(0, Holds::Anchors, 0), (1, Holds::Log, 0), (2, Holds::Index, 7), (3, Holds::Bad, 0)]);
        let mut pass = |now_ns| {
            let mut looks = Vec::new();
            while let job @ Job::Refresh(refresh) = manager.next_job(&seen, now_ns) {
                manager.heard(job, now_ns);
                looks.push(refresh);
            }
            looks
        };
        let looks = |pass| [0, 2].map(|block| Refresh::Look { block, pass }).into_iter().chain([Refresh::EndPass]);
        assert_eq!(pass(5), looks(0).collect::<Vec<_>>());
        assert_eq!(pass(5 + PASS_NS - 1), []);
        assert_eq!(pass(5 + PASS_NS), looks(1).collect::<Vec<_>>());
    }

    /// A checkpoint that freed nothing was remembered until the next block was emptied. On a volume without a victim the
    /// blocks that callers emptied since then waited for ever, and there was no space.
    #[test]
    fn a_checkpoint_in_vain_is_forgotten_when_room_is_made_again() {
        let mut manager = Manager::new(Policy::BASELINE);
        let full = Seen { waiting: true, ..Seen::new(&[(1, Holds::Log, 100)]) };
        manager.begin_room(0);
        assert_eq!(manager.next_job_for_room(&full), Job::Checkpoint);
        manager.heard_of_gain(Job::Checkpoint, false);
        assert_eq!(manager.next_job_for_room(&full), Job::Idle { until_ns: None });
        manager.begin_room(0);
        assert_eq!(manager.next_job_for_room(&full), Job::Checkpoint);
    }

    #[test]
    fn blocks_that_a_seal_frees_need_no_checkpoint() {
        let supply = Supply { free: 1, free_soon: 1, free_sealed: 2, ..Supply::default() };
        let budget = Budget { recovery: 1, spare: 1, ..Budget::default() };
        let seen = Seen { supply: Supply { budget, ..supply }, waiting: true, ..Seen::new(&[(1, Holds::Log, 10)]) };
        assert_eq!(Manager::new(Policy::BASELINE).next_job_for_room(&seen), Job::Seal);
    }
}
