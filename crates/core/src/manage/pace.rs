//! The pace: callers make room ahead of need, a few copies a call, in the measure in which they use it up.
//!
//! A caller that found no room would have to wait until whole blocks are emptied; on a full volume one more free block
//! takes thousands of copies. Invariant: once blocks are scarce, every slot written owes its share of the copies that
//! gain the block it stands in.

use super::Manager;
use super::admission::slc_pages;
use super::job::{Job, Progress, View};
use crate::policy::admission::{COPIED_OF_WRITTEN, SlcRule};
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
    /// Pages that SLC blocks hold, at most.
    pub slc_pages: u64,
    /// The share of pages that may go to SLC at most, for the blocks to spare to last to the end of the window, millionths.
    pub slc_share_max: u32,
    /// The rule by which pages go to SLC meanwhile.
    pub slc_rule: SlcRule,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            seq: 0,
            cost_bytes: 0,
            pressed_seq: 0,
            owed_bytes: 0,
            slc_pages: 0,
            slc_share_max: WHOLE,
            slc_rule: SlcRule::IdleTime,
        }
    }
}

impl Pace {
    /// What is owed next of the pages that were let into SLC blocks, before blocks are scarce, where `nothing` else is: copies for
    /// what was written, many at once.
    fn instalment(self, view: &impl View, nothing: Self) -> Self {
        let written_slots = nothing.seq.saturating_sub(self.seq);
        if written_slots < INSTALMENT_SLOTS {
            return Self { seq: self.seq, owed_bytes: self.owed_bytes, ..nothing };
        }
        let (copied, written) = COPIED_OF_WRITTEN;
        let share_bytes = written_slots.saturating_mul(u64::from(view.slot_bytes())) * copied / written;
        Self { owed_bytes: (self.owed_bytes + share_bytes).min(2 * u64::from(view.target_bytes())), ..nothing }
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

/// Slots that are written before callers copy some of what was let into SLC blocks: copies that stand between every two pages
/// of a file would make the index long.
const INSTALMENT_SLOTS: u64 = 16;

/// Changes of the index that one page may bring.
const CHANGES_A_PAGE: u64 = 4;
/// Blocks to spare that a page may cost without one being opened: the budget has another term for the index.
const STEADY_BLOCKS: i64 = 4;

/// A pace that stays the same for some pages.
#[derive(Clone, Copy, Debug)]
pub struct SteadyPace {
    pub pace: Pace,
    /// So many pages may be written until something may be owed, or other pages may go to SLC, as long as no block is
    /// opened or fails.
    pub pages: u64,
}

/// The pace of the next pages, if it stays the same for any.
pub fn steady_pace(view: &impl View, manager: &Manager) -> Option<SteadyPace> {
    let ahead_blocks = view.headroom_ahead();
    if ahead_blocks <= STEADY_BLOCKS || manager.has_goal() {
        return None;
    }
    let for_index = view.changes_left() / CHANGES_A_PAGE;
    let in_window = match manager.policy.allocate() {
        Some(allocate) => manager.allocation.pages_left(allocate, view, view.headroom() - STEADY_BLOCKS),
        None => u64::MAX,
    };
    let let_in = match manager.policy.admission() {
        Some(_) => manager.let_in.pages_left(view, ahead_blocks - STEADY_BLOCKS),
        None => u64::MAX,
    };
    let pages = for_index.min(in_window).min(let_in);
    if pages == 0 {
        return None;
    }
    // Nothing is owed: not as blocks are scarce, nor for what was let in.
    let pace = manager.owed(view);
    (pace.slc_rule != SlcRule::LongPause).then_some(SteadyPace { pace, pages })
}

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
        let (seq, pressed_seq, ahead_blocks) = (view.next_seq(), self.pace.pressed_seq, view.headroom_ahead());
        let slc_share_max = self.slc_share_max(view);
        let slc_rule = self.slc_rule(view, ahead_blocks, slc_share_max);
        let nothing = Pace { seq, pressed_seq, slc_pages: slc_pages(view), slc_share_max, slc_rule, ..Pace::default() };
        if ahead_blocks > 0 {
            let overdrawn = self.policy.admission().is_some() && self.let_in.is_overdrawn(view, ahead_blocks);
            return if overdrawn { self.pace.instalment(view, nothing) } else { nothing };
        }
        let Some(scarcity) = self.scarcity(view, ahead_blocks) else { return nothing };
        let Scarcity { short_blocks, cost_bytes, is_pressing } = scarcity;
        let bytes_since = |from: u64| seq.saturating_sub(from).saturating_mul(u64::from(view.slot_bytes()));
        let block_bytes = u64::from(view.slc_block_bytes().max(1));
        let share_bytes = bytes_since(self.pace.seq).saturating_mul(cost_bytes) / block_bytes;
        // At a block for a block it would stay like that: the further behind, the more.
        let share_bytes = share_bytes.saturating_mul((CATCH_UP * short_blocks).min(CATCH_UP_MAX));
        // What a long call owes is not all put on the next one.
        let owed_bytes = (self.pace.owed_bytes + share_bytes).min(2 * cost_bytes);
        if is_pressing && bytes_since(pressed_seq).saturating_mul(PRESSED_A_BLOCK) >= block_bytes {
            return Pace { cost_bytes, pressed_seq: seq, owed_bytes: owed_bytes.max(cost_bytes), ..nothing };
        }
        Pace { cost_bytes, owed_bytes, ..nothing }
    }

    /// Hears what callers owe, and how much of it they paid.
    pub fn heard_of_debt(&mut self, owed: Pace, paid_bytes: u64) {
        let owed_bytes = owed.owed_bytes.saturating_sub(paid_bytes);
        self.pace = Pace { owed_bytes, ..owed };
        self.let_in.bound(owed.slc_pages);
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
    fn scarcity(&self, view: &impl View, ahead_blocks: i64) -> Option<Scarcity> {
        if self.fruitless_at.is_some_and(|fruitless_at| view.live_bytes() >= fruitless_at) {
            return None;
        }
        let short = 1 - ahead_blocks;
        let target_bytes = view.target_bytes();
        let cost_bytes = match view.victim() {
            Some(_) if self.pace.cost_bytes > 0 => self.pace.cost_bytes,
            _ => victim::cost_of_block_bytes(view.blocks(), target_bytes)?,
        };
        // Where there is one log head, no other has room for what a recovery copies when that is full.
        let one_head = self.policy.uses_one_region();
        let headroom = if one_head { view.headroom_full() } else { view.headroom() };
        if cost_bytes > COST_BLOCKS_MAX * u64::from(target_bytes) && headroom > 0 {
            return None;
        }
        let is_dear = cost_bytes > self.cheap_bytes(target_bytes);
        let short = if is_dear { short } else { -headroom };
        let is_pressing = is_dear && headroom <= 0;
        (short > 0).then_some(Scarcity { short_blocks: short.unsigned_abs(), cost_bytes, is_pressing })
    }
}
