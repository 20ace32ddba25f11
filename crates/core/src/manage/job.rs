//! What there is to do, and what whoever decides on it is told.

use super::work::WorkKind;
use crate::policy::BlockView;
use crate::policy::supply::Supply;

/// A piece of internal work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Make everything durable.
    Commit,
    /// Begin a checkpoint, or write its next page.
    Checkpoint,
    /// Copy what is live in the next slot of a block, to make room.
    Copy { victim: u32 },
    /// The same, to empty the SLC region in idle time.
    Migrate { victim: u32 },
    /// Program what is gathered, and give up the pages whose programs could destroy copies: what those emptied is free.
    Seal,
    /// Keep what is stored readable.
    Refresh(Refresh),
    /// Copy what is live in a block that is hardly erased to worn ones.
    Level { victim: u32 },
    /// Make the block ready that anchors go on in next.
    ReadyAnchors,
    /// Erase one of the so many blocks that are taken next.
    EraseAhead { blocks: u32 },
    /// Go on with the test of a block that failed and that nothing needs any more.
    TestBlock,
    /// Nothing before this time, or before a call.
    Idle { until_ns: Option<i64> },
}

impl Job {
    /// The kind of work that a step of it is a part of; `None`: nothing is done.
    pub(super) fn work(self) -> Option<WorkKind> {
        Some(match self {
            Job::Commit => WorkKind::Commit,
            Job::Checkpoint => WorkKind::Checkpoint,
            Job::Copy { .. } | Job::Seal => WorkKind::Collection,
            Job::Migrate { .. } => WorkKind::Migration,
            Job::Refresh(_) => WorkKind::Refresh,
            Job::Level { .. } => WorkKind::Levelling,
            Job::ReadyAnchors | Job::EraseAhead { .. } | Job::TestBlock => WorkKind::Preparation,
            Job::Idle { .. } => return None,
        })
    }
}

/// How something is kept readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Read one of a block's pages, to see how many bit errors it has; each pass reads another.
    Look { block: u32, pass: u32 },
    /// Every block has been looked at.
    EndPass,
    /// Write to blocks that fade no more.
    LeaveHeads,
    /// Write anew elsewhere what a block holds.
    Rewrite { block: u32 },
}

/// How far something has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It need not be begun.
    Idle,
    /// It may be begun where nobody waits.
    Worthwhile,
    /// It is to be begun; callers do a few steps of it each.
    Due,
    /// It can wait no longer.
    Overdue,
    UnderWay,
}

/// The state of a volume, as far as it decides on what is done next. What costs a look at every block is a method, so
/// that it is asked only where it matters.
pub trait View {
    /// When what is not durable is to be.
    fn commit_due_ns(&self) -> Option<i64>;
    /// Whether something waits in memory.
    fn has_buffered(&self) -> bool;
    fn checkpoint(&self) -> Progress;
    /// Changes of the index until a checkpoint is due, if no block is opened; 0 where one is, or under way.
    fn changes_left(&self) -> u64;
    /// The block that is being emptied.
    fn victim(&self) -> Option<u32>;
    /// What that is emptied for.
    fn emptied_for(&self) -> Option<WorkKind>;
    /// Whether this mount has written anything.
    fn is_own(&self) -> bool;
    fn supply(&self) -> Supply;
    /// Free blocks less the budget of the call that comes next.
    fn headroom(&self) -> i64;
    /// Free blocks less the budget of a call that comes when the log heads are full and a checkpoint is due.
    fn headroom_ahead(&self) -> i64;
    /// Free blocks less the budget of a call that comes when the log heads are full.
    fn headroom_full(&self) -> i64;
    fn blocks(&self) -> impl Iterator<Item = BlockView> + Clone;
    /// How many blocks there are.
    fn block_count(&self) -> u32;
    /// SLC blocks that hold something, or are being filled.
    fn slc_blocks(&self) -> u32;
    /// Whether any block is failing or fading.
    fn has_weak_blocks(&self) -> bool;
    /// Whether the block that anchors go on in next is to be made ready.
    fn needs_anchor_block(&self) -> bool;
    /// Whether a block that failed can be tested.
    fn can_test_block(&self) -> bool;
    /// Whether blocks wait for a checkpoint to be free.
    fn has_waiting(&self) -> bool;
    /// Whether the heads have the room that a commit may take.
    fn commit_has_room(&self) -> bool;
    /// Whether the next copy, though it take a block, leaves as many free as a recovery may need.
    fn may_copy(&self) -> bool;
    /// Whether one of the so many blocks to be taken next is not erased yet.
    fn needs_erase(&self, ahead_blocks: u32) -> bool;
    /// Live bytes in the log.
    fn live_bytes(&self) -> u64;
    /// Sequence number of the next slot of the log.
    fn next_seq(&self) -> u64;
    fn slot_bytes(&self) -> u32;
    /// Bytes an SLC block takes: the smallest that callers write to, whatever the policy.
    fn slc_block_bytes(&self) -> u32;
    /// Bytes a destination block takes.
    fn target_bytes(&self) -> u32;
    /// Erases of the most worn block that can be taken.
    fn worn_erases(&self) -> u32;
    /// Erases a block endures.
    fn endurance(&self) -> u32;
}
