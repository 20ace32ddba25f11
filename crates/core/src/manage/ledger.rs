//! What idle time has done since mount, by kind, for whoever watches a volume.
//!
//! Invariant: every step of idle time is counted once, under the kind of work it is a part of.

use super::job::Job;

/// A kind of internal work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Old changes are made durable.
    Commit,
    /// The index on flash is brought up to date.
    Checkpoint,
    /// Blocks are emptied to make room.
    Collection,
    /// The SLC region is emptied to native blocks.
    Migration,
    /// What fades, or stands in a block that failed, is looked for and written anew.
    Refresh,
    /// What does not change moves to worn blocks.
    Levelling,
    /// Blocks are erased, retired or made ready for anchors, before anybody needs that.
    Preparation,
}

impl Work {
    /// All kinds, in the order they are shown in.
    pub const ALL: [Self; 7] = [
        Self::Commit,
        Self::Checkpoint,
        Self::Collection,
        Self::Migration,
        Self::Refresh,
        Self::Levelling,
        Self::Preparation,
    ];

    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Checkpoint => "checkpoint",
            Self::Collection => "collection",
            Self::Migration => "migration",
            Self::Refresh => "refresh",
            Self::Levelling => "levelling",
            Self::Preparation => "preparation",
        }
    }
}

impl Job {
    /// What a step of it is a part of; `None`: nothing is done.
    fn work(self) -> Option<Work> {
        Some(match self {
            Job::Commit => Work::Commit,
            Job::Checkpoint => Work::Checkpoint,
            Job::Copy { .. } | Job::Seal => Work::Collection,
            Job::Migrate { .. } => Work::Migration,
            Job::Refresh(_) => Work::Refresh,
            Job::Level { .. } => Work::Levelling,
            Job::ReadyAnchors | Job::EraseAhead { .. } | Job::Retire => Work::Preparation,
            Job::Idle { .. } => return None,
        })
    }
}

/// What has been done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger {
    /// Steps done in idle time, in the order of [`Work::ALL`].
    steps: [u64; Work::ALL.len()],
    /// Blocks of the SLC region that were emptied in idle time.
    migrated_blocks: u64,
}

impl Ledger {
    pub fn steps(&self) -> [u64; Work::ALL.len()] {
        self.steps
    }

    pub fn migrated_blocks(&self) -> u64 {
        self.migrated_blocks
    }

    pub(super) fn count_step(&mut self, job: Job) {
        for (steps, work) in self.steps.iter_mut().zip(Work::ALL) {
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
