//! The pace: callers make room ahead of need, a few copies a call, in the measure in which they use it up.
//!
//! A caller that found no room would have to wait until whole blocks are emptied; on a full volume one more free block
//! takes thousands of copies. Invariant: once blocks are scarce, every slot written owes its share of the copies that
//! gain the block it stands in.

use super::Manager;
use super::job::{Job, Progress, View};
use crate::policy::allocate::WHOLE;
use crate::policy::victim;

/// What callers owe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The sequence number up to which everything written is accounted for.
    pub seq: u64,
    /// Bytes to be copied for one more free block, as it was when the block being emptied was chosen.
    pub cost_bytes: u64,
    /// The sequence number at which the whole of what a block costs was owed at once last.
    pub pressed_seq: u64,
    /// Bytes to be copied.
    pub owed_bytes: u64,
    /// The share of pages that may go to SLC at most, for the blocks to spare to last to the end of the window, millionths.
    pub slc_share_max: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { seq: 0, cost_bytes: 0, pressed_seq: 0, owed_bytes: 0, slc_share_max: WHOLE }
    }
}

/// Blocks gained for each block written, where one is wanting.
pub(super) const CATCH_UP: u64 = 3;
/// The same, however many are wanting.
const CATCH_UP_MAX: u64 = 12;

/// Blocks' worth of copies that one more free block may cost: dearer ones wear the chip far more than they gain, and are
/// made only where the next block that is opened cannot do without.
const COST_BLOCKS_MAX: u64 = 8;

/// How often the whole of what a block costs is owed at once while callers fill one: where little comes of it, more of it
/// would only wear the chip.
const PRESSED_A_BLOCK: u64 = 2;

/// Blocks that are wanting, and what each takes.
struct Scarcity {
    short_blocks: u64,
    /// Bytes to be copied for one more free block.
    cost_bytes: u64,
    /// Whether the next block that is opened forces all of it.
    is_pressing: bool,
}

impl Manager {
    /// What callers owe, with what was written since they paid last.
    pub fn owed(&self, view: &impl View) -> Pace {
        let seq = view.next_seq();
        let slc_share_max = self.slc_share_max(view);
        let pressed_seq = self.pace.pressed_seq;
        let nothing = Pace { seq, pressed_seq, slc_share_max, ..Pace::default() };
        let Some(Scarcity { short_blocks, cost_bytes, is_pressing }) = self.scarcity(view) else { return nothing };
        let block_bytes = u64::from(view.slc_block_bytes().max(1));
        let bytes_since = |from: u64| seq.saturating_sub(from).saturating_mul(u64::from(view.slot_bytes()));
        let share_bytes = bytes_since(self.pace.seq).saturating_mul(cost_bytes) / block_bytes;
        // At a block for a block it would stay like that: the further behind, the more.
        let share_bytes = share_bytes.saturating_mul((CATCH_UP * short_blocks).min(CATCH_UP_MAX));
        // What a long call owes is not all put on the next one.
        let owed_bytes = (self.pace.owed_bytes + share_bytes).min(2 * cost_bytes);
        if is_pressing && bytes_since(pressed_seq).saturating_mul(PRESSED_A_BLOCK) >= block_bytes {
            return Pace { seq, cost_bytes, pressed_seq: seq, owed_bytes: owed_bytes.max(cost_bytes), slc_share_max };
        }
        Pace { seq, cost_bytes, pressed_seq, owed_bytes, slc_share_max }
    }

    /// Hears what callers owe, and how much of it they paid.
    pub fn heard_of_debt(&mut self, owed: Pace, paid_bytes: u64) {
        self.pace = Pace { owed_bytes: owed.owed_bytes.saturating_sub(paid_bytes), ..owed };
    }

    /// What to do next of that; `None` where it would take a block that a recovery may need.
    pub fn next_paced_job(&self, view: &impl View) -> Option<Job> {
        // Every copy changes the index: a checkpoint that waited for copies would be overdue before long.
        if matches!(view.checkpoint(), Progress::Due | Progress::Overdue | Progress::UnderWay) {
            return Some(Job::Checkpoint);
        }
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
        let headroom = view.supply().headroom();
        if cost_bytes > COST_BLOCKS_MAX * u64::from(target_bytes) && headroom > 0 {
            return None;
        }
        let is_dear = cost_bytes > self.cheap_bytes(target_bytes);
        let short = if is_dear { short } else { -headroom };
        let is_pressing = is_dear && headroom <= 0;
        (short > 0).then_some(Scarcity { short_blocks: short.unsigned_abs(), cost_bytes, is_pressing })
    }
}
