//! What idle time has done since mount, by kind, for whoever watches a volume.
//!
//! Invariant: every step of idle time is counted once, under the kind of work it is a part of.

use super::job::Job;
use super::work::WorkKind;

/// What has been done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger {
    /// Steps done in idle time, in the order of [`WorkKind::ALL`].
    steps: [u64; WorkKind::ALL.len()],
    /// Blocks of the SLC region that were emptied in idle time.
    migrated_blocks: u64,
}

impl Ledger {
    pub fn steps(&self) -> [u64; WorkKind::ALL.len()] {
        self.steps
    }

    pub fn migrated_blocks(&self) -> u64 {
        self.migrated_blocks
    }

    pub(super) fn count_step(&mut self, job: Job) {
        for (steps, work) in self.steps.iter_mut().zip(WorkKind::ALL) {
            *steps += u64::from(job.work() == Some(work));
        }
    }

    pub(super) fn count_migrated_block(&mut self) {
        self.migrated_blocks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_counts_for_its_kind_of_work_alone() {
        let mut ledger = Ledger::default();
        for job in [Job::Migrate { victim: 3 }, Job::Idle { until_ns: None }, Job::Seal, Job::Copy { victim: 3 }] {
            ledger.count_step(job);
        }
        assert_eq!(ledger.steps(), [0, 0, 2, 1, 0, 0, 0]);
    }
}
