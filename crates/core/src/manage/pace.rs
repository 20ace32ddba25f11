//! The pace: callers make room ahead of need, a few copies a call, in the measure in which they use it up.
//!
//! A caller that found no room would have to wait until whole blocks are emptied; on a full volume one more free block
//! takes thousands of copies. Invariant: once blocks are scarce, every slot written owes its share of the copies that
//! gain the block it stands in.

use super::Manager;
use super::job::{Job, View};
use crate::policy::allocate::WHOLE;
use crate::policy::victim;

/// What callers owe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The sequence number up to which everything written is accounted for.
    pub seq: u64,
    /// Bytes to be copied for one more free block, as it was when the block being emptied was chosen.
    pub cost_bytes: u64,
    /// Bytes to be copied.
    pub owed_bytes: u64,
    /// The share of pages that may go to SLC at most, for the blocks to spare to last to the end of the window, millionths.
    pub slc_share_max: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { seq: 0, cost_bytes: 0, owed_bytes: 0, slc_share_max: WHOLE }
    }
}

/// Blocks gained for each block written, where one is wanting.
pub(super) const CATCH_UP: u64 = 3;
/// The same, however many are wanting.
const CATCH_UP_MAX: u64 = 12;

/// Blocks' worth of copies that one more free block may cost: dearer ones wear the chip far more than they gain, and are
/// made only when a call must have them.
const COST_BLOCKS_MAX: u64 = 8;

/// Blocks that are wanting, and what each takes.
struct Scarcity {
    short_blocks: u64,
    /// Bytes to be copied for one more free block.
    cost_bytes: u64,
}

impl Manager {
    /// What callers owe, with what was written since they paid last.
    pub fn owed(&self, view: &impl View) -> Pace {
        let seq = view.next_seq();
        let slc_share_max = self.slc_share_max(view);
        let Some(scarcity) = self.scarcity(view) else { return Pace { seq, slc_share_max, ..Pace::default() } };
        let Scarcity { short_blocks, cost_bytes } = scarcity;
        let written_bytes = seq.saturating_sub(self.pace.seq).saturating_mul(u64::from(view.slot_bytes()));
        let share_bytes = written_bytes.saturating_mul(cost_bytes) / u64::from(view.slc_block_bytes().max(1));
        // At a block for a block it would stay like that: the further behind, the more.
        let share_bytes = share_bytes.saturating_mul((CATCH_UP * short_blocks).min(CATCH_UP_MAX));
        // What a long call owes is not all put on the next one.
        let owed_bytes = (self.pace.owed_bytes + share_bytes).min(2 * cost_bytes);
        Pace { seq, cost_bytes, owed_bytes, slc_share_max }
    }

    /// Hears what callers owe, and how much of it they paid.
    pub fn heard_of_debt(&mut self, owed: Pace, paid_bytes: u64) {
        self.pace = Pace { owed_bytes: owed.owed_bytes.saturating_sub(paid_bytes), ..owed };
    }

    /// What to do next of that; `None` where it would take a block that a recovery may need.
    pub fn next_paced_job(&self, view: &impl View) -> Option<Job> {
        match self.next_job_for_room(view) {
            Job::Idle { .. } => None,
            Job::Copy { .. } if !view.may_copy() => None,
            job => Some(job),
        }
    }

    /// What one more free block may cost, bytes, and be paid for only when the last spare one was taken: a whole block's
    /// copies where idle time may yet pay for them, half of that elsewhere.
    fn cheap_bytes(&self, target_bytes: u32) -> u64 {
        u64::from(if self.policy.migrate().is_some() { target_bytes } else { target_bytes / 2 })
    }

    /// How scarce blocks are, if callers pay for them: for a cheap one when the last spare one was taken, for a dear one
    /// before.
    fn scarcity(&self, view: &impl View) -> Option<Scarcity> {
        let short = 1 - view.headroom_ahead();
        if short <= 0 || self.fruitless_at.is_some_and(|fruitless_at| view.live_bytes() >= fruitless_at) {
            return None;
        }
        let target_bytes = view.target_bytes();
        let cost_bytes = match view.victim() {
            Some(_) if self.pace.cost_bytes > 0 => self.pace.cost_bytes,
            _ => victim::cost_of_block_bytes(view.blocks(), target_bytes)?,
        };
        if cost_bytes > COST_BLOCKS_MAX * u64::from(target_bytes) {
            return None;
        }
        let short = if cost_bytes > self.cheap_bytes(target_bytes) { short } else { -view.supply().headroom() };
        (short > 0).then_some(Scarcity { short_blocks: short.unsigned_abs(), cost_bytes })
    }
}
