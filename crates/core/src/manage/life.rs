//! The life to be guaranteed, as it goes on: what came, what that cost, and the share that may go to SLC next.
//!
//! Its clock is how long the volume has been mounted since the life began, and the time between two mounts as far as the
//! wall clock is to be believed. Invariants: that clock never goes back, and a wall clock that jumps to and fro does not
//! advance it; the writing budget that is left is what the erase counts say, so that a cut loses nothing of it.

use super::Manager;
use crate::format::manager::{ManagerRecord, WINDOWS};
use crate::policy::Region;
use crate::policy::allocate::WHOLE;
use crate::policy::wear::{self, Controller, Course, Goal};

/// Parts of a window in which what arrives is counted, and how many of them are now.
const PARTS: u64 = 64;
const PARTS_NOW: usize = 8;
/// Time between two mounts that is believed, ns: 31 days.
const AWAY_MAX_NS: u64 = 31 * 24 * 60 * 60 * 1_000_000_000;
/// Of a window, the part before the end of the life in which the budget may run out without a word: one in so many.
const SOON: u64 = 16;
/// What data costs beyond the arithmetic is told once it has taken one part in so many of the budget.
const TOLD_FROM: u64 = 100;
/// Before a life has seen much, it is taken to have had the rate that SLC alone would allow, for one part in so many of it:
/// what comes in the first minutes of three years says little of them.
const PRIOR_PART: f64 = 100.0;

/// A chip's wear, as far as it is asked for.
pub trait WearView {
    /// Native capacity of a block, bytes.
    fn block_bytes(&self) -> u64;
    /// Native block capacity that can still be opened within the endurance, bytes.
    fn left_bytes(&self) -> u64;
    /// Live bytes of SLC blocks that are to be moved to native ones.
    fn owed_bytes(&self) -> u64;
    /// Live bytes of native blocks.
    fn settled_bytes(&self) -> u64;
    /// Room that is left in blocks that were opened, bytes: it was paid for, and what comes next goes there.
    fn begun_bytes(&self) -> u64;
    fn bits_per_cell(&self) -> u8;
}

/// The figures of a [`WearView`] by which one decision is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wear {
    left_bytes: u64,
    owed_bytes: u64,
    settled_bytes: u64,
    begun_bytes: u64,
    bits_per_cell: u8,
}

impl Wear {
    fn of(view: &impl WearView) -> Self {
        Self {
            left_bytes: view.left_bytes(),
            owed_bytes: view.owed_bytes(),
            settled_bytes: view.settled_bytes(),
            begun_bytes: view.begun_bytes(),
            bits_per_cell: view.bits_per_cell(),
        }
    }
}

/// How a life stands, for whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    pub goal: Goal,
    /// How much of the life is over, ns.
    pub elapsed_ns: u64,
    /// When it began by the wall clock, ns since 1970.
    pub start_ns: i64,
    /// The share of callers' pages that may go to SLC (δ), millionths.
    pub wear_index: u32,
    /// The writing budget of the whole life, and what is left of it, bytes.
    pub budget_bytes: u64,
    pub left_bytes: u64,
    /// Where the goal cannot be met even without SLC if data comes as in the mean: how much of the life will be over when
    /// the budget is spent, ns.
    pub ends_ns: Option<u64>,
}

/// What a mount wants of a life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Another goal than before; `life_ns` 0: none.
    pub goal: Option<Goal>,
    pub controller: Controller,
}

/// A life, and how data has come lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Life {
    controller: Controller,
    record: ManagerRecord,
    page_bytes: u64,
    /// Up to when time was counted, ns by the clock of requests.
    counted_ns: Option<i64>,
    /// What ended since the last decision: the first one has both before it.
    window_ended: bool,
    part_ended: bool,
    /// Bytes in the last parts of a window, the current one first.
    parts: [u64; PARTS_NOW],
    /// Arrived since the last decision, bytes.
    fresh_bytes: u64,
    left_bytes: u64,
    ends_ns: Option<u64>,
    /// Less is to come in the life than is stored: native blocks that are opened now are not opened again in it.
    settles: bool,
}

impl Life {
    fn goal(&self) -> Option<Goal> {
        let ManagerRecord { life_ns, window_ns, .. } = self.record;
        (life_ns > 0).then_some(Goal { life_ns, window_ns: window_ns.max(PARTS) })
    }

    /// Takes a life up at a mount, at `wall_ns` since 1970; a goal that is not the one of before begins a new life.
    fn take_up(record: ManagerRecord, wanted: Wanted, page_bytes: u64, wall_ns: i64) -> Self {
        let Wanted { goal, controller } = wanted;
        let mut record = match goal {
            Some(goal) if goal != (Goal { life_ns: record.life_ns, window_ns: record.window_ns }) => {
                ManagerRecord::new(goal.life_ns, goal.window_ns, wall_ns)
            }
            _ => record,
        };
        let away_ns = wall_ns.saturating_sub(record.life_start_ns).saturating_sub_unsigned(record.elapsed_ns);
        if away_ns.unsigned_abs() > AWAY_MAX_NS {
            record.life_start_ns = wall_ns.saturating_sub_unsigned(record.elapsed_ns);
        }
        let parts = [u64::from(record.recent_kib) * 1024 / PARTS_NOW as u64; PARTS_NOW];
        let begins = record.budget_bytes == 0;
        let mut life =
            Self { controller, record, parts, page_bytes, window_ended: begins, part_ended: true, ..Self::default() };
        let believed_ns = u64::try_from(away_ns).ok().filter(|&away_ns| away_ns <= AWAY_MAX_NS);
        if let (Some(goal), Some(away_ns)) = (life.goal(), believed_ns) {
            life.pass(goal, away_ns);
        }
        life
    }

    /// Time passes: windows end, and parts of them.
    fn pass(&mut self, goal: Goal, passed_ns: u64) {
        let before_ns = self.record.elapsed_ns;
        let now_ns = before_ns.saturating_add(passed_ns);
        self.record.elapsed_ns = now_ns;
        let ended = |each_ns: u64| now_ns / each_ns - before_ns / each_ns;
        self.window_ended |= ended(goal.window_ns) > 0;
        self.part_ended |= ended(goal.window_ns / PARTS) > 0;
        for _ in 0..ended(goal.window_ns).min(WINDOWS as u64 + 1) {
            self.record.arrived_bytes.rotate_right(1);
            if let Some(latest) = self.record.arrived_bytes.first_mut() {
                *latest = core::mem::take(&mut self.record.arriving_bytes);
            }
        }
        for _ in 0..ended(goal.window_ns / PARTS).min(PARTS_NOW as u64) {
            self.parts.rotate_right(1);
            if let Some(newest) = self.parts.first_mut() {
                *newest = 0;
            }
        }
    }

    /// Hears of a page of data or nodes of a caller.
    fn count(&mut self, region: Region) {
        if self.record.life_ns == 0 {
            return;
        }
        let bytes = self.page_bytes;
        let Self { record, parts: [newest, ..], fresh_bytes, .. } = self;
        for count in [&mut record.arriving_bytes, &mut record.total_bytes, fresh_bytes, newest] {
            *count = count.saturating_add(bytes);
        }
        if region == Region::Slc {
            record.slc_bytes = record.slc_bytes.saturating_add(bytes);
        }
    }

    /// Hears what time it is.
    fn clock(&mut self, mono_ns: i64) {
        let before_ns = self.counted_ns.replace(mono_ns).unwrap_or(mono_ns);
        if let (Some(goal), Ok(passed_ns)) = (self.goal(), u64::try_from(mono_ns.saturating_sub(before_ns))) {
            self.pass(goal, passed_ns);
        }
    }

    /// Hears how far the chip is worn, and decides on the wear index.
    fn decide(&mut self, goal: Goal, wear: Wear) {
        let window_began = core::mem::take(&mut self.window_ended);
        (self.part_ended, self.fresh_bytes, self.left_bytes) = (false, 0, wear.left_bytes);
        if self.record.budget_bytes == 0 {
            self.record.budget_bytes = wear.left_bytes;
        }
        let course = self.course(goal, wear);
        self.settles = course.rate_mean * course.windows_left < wear.settled_bytes as f64;
        self.record.wear_index = match self.controller {
            _ if self.record.elapsed_ns >= goal.life_ns || wear.bits_per_cell == 1 => WHOLE,
            Controller::WholeLife => millionths(course.wear_index()),
            Controller::Paper if window_began => millionths(self.papers_index(goal, wear)),
            Controller::Paper => self.record.wear_index,
        };
        let ends_ns = self.record.elapsed_ns.saturating_add((course.lasts_windows() * goal.window_ns as f64) as u64);
        // What comes in the first window need not go on.
        let begun = self.record.elapsed_ns >= goal.window_ns;
        let told = begun && ends_ns.saturating_add(goal.window_ns / SOON) < goal.life_ns;
        self.ends_ns = told.then_some(ends_ns);
    }

    /// The wear index of the window that begins, FlexFS Eq. (7) and (9). What arrives in it is taken for the mean of the three
    /// before, or of as many as there were.
    fn papers_index(&self, goal: Goal, wear: Wear) -> f64 {
        let window = self.record.elapsed_ns / goal.window_ns;
        let windows_left = (goal.life_ns / goal.window_ns).saturating_sub(window);
        let before = window.min(WINDOWS as u64);
        let arrived =
            self.record.arrived_bytes.iter().take(before as usize).fold(0, |sum: u64, &one| sum.saturating_add(one));
        let budget_bytes = wear::writing_budget(wear.left_bytes, windows_left);
        wear::wear_index(budget_bytes, arrived / before.max(1), wear.bits_per_cell)
    }

    fn course(&self, goal: Goal, wear: Wear) -> Course {
        let elapsed_windows = self.record.elapsed_ns as f64 / goal.window_ns as f64;
        // Not with the current part, in which a request may just have come that those before it do not make up for.
        let recent_bytes: u64 = self.parts.iter().skip(1).sum();
        let parts = PARTS as f64 / (PARTS_NOW - 1) as f64;
        Course {
            left_bytes: wear.left_bytes as f64 - wear.owed_bytes as f64,
            windows_left: goal.windows_left(self.record.elapsed_ns),
            rate_now: recent_bytes as f64 * parts,
            rate_window: self.rate_window(elapsed_windows, goal.window_ns),
            rate_mean: self.rate_mean(goal, wear.bits_per_cell),
            rate_life: self.rate_life(goal),
            overhead: self.overhead(wear),
            moved_part: self.moved_part(wear),
            bits_per_cell: wear.bits_per_cell,
        }
    }

    /// Bytes in the last window; in the first one, as they have come so far.
    fn rate_window(&self, elapsed_windows: f64, window_ns: u64) -> f64 {
        let [latest, ..] = self.record.arrived_bytes;
        let arriving = self.record.arriving_bytes as f64;
        if elapsed_windows < 1.0 {
            return arriving / elapsed_windows.max(PARTS_NOW as f64 / PARTS as f64);
        }
        let into_window = (self.record.elapsed_ns % window_ns) as f64 / window_ns as f64;
        arriving + latest as f64 * (1.0 - into_window)
    }

    /// Bytes in a window as they have come in all the life.
    fn rate_mean(&self, goal: Goal, bits_per_cell: u8) -> f64 {
        let windows = goal.life_ns as f64 / goal.window_ns as f64;
        let elapsed_windows = self.record.elapsed_ns as f64 / goal.window_ns as f64;
        let prior_bytes = self.record.budget_bytes as f64 / (f64::from(bits_per_cell) + 1.0) / PRIOR_PART;
        (self.record.total_bytes as f64 + prior_bytes) / (elapsed_windows + windows / PRIOR_PART)
    }

    /// Bytes in a window as they have come in all the life, or in a quarter of it if it is younger.
    fn rate_life(&self, goal: Goal) -> f64 {
        let seen_ns = self.record.elapsed_ns.max(goal.life_ns / 4);
        self.record.total_bytes as f64 * goal.window_ns as f64 / seen_ns.max(1) as f64
    }

    /// Of what went to SLC, the part that was moved so far, or is to be.
    fn moved_part(&self, wear: Wear) -> f64 {
        let ManagerRecord { budget_bytes, total_bytes, slc_bytes, .. } = self.record;
        if total_bytes < budget_bytes / TOLD_FROM {
            return 1.0;
        }
        let unmoved_bytes = total_bytes.saturating_add(slc_bytes.saturating_mul(u64::from(wear.bits_per_cell) - 1));
        let moved_bytes = self.spent_bytes(wear).saturating_sub(unmoved_bytes);
        (moved_bytes as f64 / slc_bytes.max(1) as f64).min(1.0)
    }

    /// What was taken of the budget for what came, and what that still owes.
    fn spent_bytes(&self, wear: Wear) -> u64 {
        let Wear { left_bytes, owed_bytes, begun_bytes, .. } = wear;
        self.record.budget_bytes.saturating_add(owed_bytes).saturating_sub(left_bytes.saturating_add(begun_bytes))
    }

    /// What a byte has cost beyond Eq. (8) so far.
    fn overhead(&self, wear: Wear) -> f64 {
        let ManagerRecord { budget_bytes, total_bytes, slc_bytes, .. } = self.record;
        if total_bytes < budget_bytes / TOLD_FROM {
            return 0.0;
        }
        let due = total_bytes.saturating_add(slc_bytes.saturating_mul(u64::from(wear.bits_per_cell)));
        self.spent_bytes(wear).saturating_sub(due) as f64 / total_bytes.max(1) as f64
    }

    fn outlook(&self) -> Option<Outlook> {
        let goal = self.goal()?;
        let ManagerRecord { elapsed_ns, life_start_ns, wear_index, budget_bytes, .. } = self.record;
        let (left_bytes, ends_ns) = (self.left_bytes, self.ends_ns);
        Some(Outlook { goal, elapsed_ns, start_ns: life_start_ns, wear_index, budget_bytes, left_bytes, ends_ns })
    }
}

impl Manager {
    /// Takes up the life of the volume that is mounted, with pages of so many bytes, at `wall_ns` since 1970.
    pub fn take_up_life(&mut self, record: ManagerRecord, wanted: Wanted, page_bytes: u64, wall_ns: i64) {
        self.life = Life::take_up(record, wanted, page_bytes, wall_ns);
    }

    /// Hears what time it is, by the clock of requests.
    pub fn clock(&mut self, mono_ns: i64) {
        self.life.clock(mono_ns);
    }

    /// Decides anew on the wear index, if it is time: when something like a block has arrived, or a part of a wear window is
    /// over. Whether it was.
    pub fn review_wear(&mut self, view: &impl WearView) -> bool {
        let life = &self.life;
        let due = self.has_goal() && (life.part_ended || life.window_ended || life.fresh_bytes >= view.block_bytes());
        if due {
            self.review_wear_now(view);
        }
        due
    }

    /// The same whether it is time or not.
    pub fn review_wear_now(&mut self, view: &impl WearView) {
        if let Some(goal) = self.life.goal() {
            self.life.decide(goal, Wear::of(view));
        }
    }

    /// Hears that a page of a caller's went to a region.
    pub(super) fn count_arrival(&mut self, region: Region) {
        self.life.count(region);
        self.count_in_burst();
    }

    /// Whether there is a life to be guaranteed.
    pub(super) fn has_goal(&self) -> bool {
        self.life.record.life_ns > 0
    }

    /// The share of callers' pages that may go to SLC for the life to be met (δ), millionths; of a volume without a goal all.
    pub(super) fn wear_index(&self) -> u32 {
        if self.has_goal() { self.life.record.wear_index } else { WHOLE }
    }

    /// Whether a native block that is opened now is not opened again in the life, if what is stored goes as new data comes.
    pub fn settles(&self) -> bool {
        self.life.settles
    }

    /// What must be known of the life over a mount.
    pub fn life_record(&self) -> ManagerRecord {
        let recent_bytes: u64 = self.life.parts.iter().sum();
        ManagerRecord { recent_kib: u32::try_from(recent_bytes / 1024).unwrap_or(u32::MAX), ..self.life.record }
    }

    /// How the life stands, if one is to be guaranteed.
    pub fn outlook(&self) -> Option<Outlook> {
        self.life.outlook()
    }
}

fn millionths(share: f64) -> u32 {
    (share * f64::from(WHOLE)) as u32
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const YEAR_NS: i64 = 365 * 24 * 60 * 60 * 1_000_000_000;
    const START_NS: i64 = 50 * YEAR_NS;
    const GOAL: Goal = Goal { life_ns: 4000 * SECOND_NS, window_ns: 400 * SECOND_NS };
    const MIB: u64 = 1 << 20;
    /// A chip of 240 blocks of 512 KiB that endure ten cycles.
    const NEW: Wear =
        Wear { left_bytes: 1200 * MIB, owed_bytes: 0, settled_bytes: 0, begun_bytes: 0, bits_per_cell: 2 };

    fn taken_up(record: ManagerRecord, controller: Controller, wall_ns: i64) -> Life {
        Life::take_up(record, Wanted { goal: Some(GOAL), controller }, MIB, wall_ns)
    }

    /// A life that is `elapsed_s` old by its own clock.
    fn aged(elapsed_s: u64) -> Life {
        let mut life = taken_up(ManagerRecord::default(), Controller::WholeLife, START_NS);
        life.decide(GOAL, NEW);
        life.clock(0);
        life.clock((elapsed_s * SECOND_NS) as i64);
        life
    }

    #[test]
    fn a_wall_clock_that_jumps_to_and_fro_neither_ages_a_life_nor_makes_it_younger() {
        let mut life = aged(100);
        for jump_ns in [YEAR_NS, 0, -YEAR_NS, 0, YEAR_NS, -START_NS] {
            life = taken_up(life.record, Controller::WholeLife, START_NS + jump_ns);
            assert_eq!(life.record.elapsed_ns, 100 * SECOND_NS, "after a jump of {jump_ns} ns");
        }
    }

    #[test]
    fn time_between_mounts_counts_as_far_as_it_can_be_believed() {
        let after = |away_s: i64| {
            let wall_ns = START_NS + (100 + away_s) * SECOND_NS as i64;
            taken_up(aged(100).record, Controller::WholeLife, wall_ns).record.elapsed_ns / SECOND_NS
        };
        assert_eq!(
            [after(0), after(50), after(-50), after(31 * 86_400), after(31 * 86_400 + 1)],
            [100, 150, 100, 100 + 31 * 86_400, 100]
        );
    }

    #[test]
    fn the_papers_controller_decides_at_the_beginning_of_a_window_alone() {
        let mut life = taken_up(ManagerRecord::default(), Controller::Paper, START_NS);
        let mut left_mib = 1200;
        let mut indexes = Vec::new();
        // FlexFS Table 3, each MiB at the cost of Eq. (8).
        for (window, mib) in (0..).zip([40, 40, 40, 80, 80, 20, 20, 40, 40, 40_u64]) {
            let now_ns = window * 400 * SECOND_NS as i64;
            life.clock(now_ns);
            life.decide(GOAL, Wear { left_bytes: left_mib * MIB, ..NEW });
            let index = f64::from(life.record.wear_index) / 1e6;
            (0..mib).for_each(|_| life.count(Region::Slc));
            left_mib -= (mib as f64 * (1.0 + 2.0 * index)).round() as u64;
            life.clock(now_ns + 399 * SECOND_NS as i64);
            life.decide(GOAL, Wear { left_bytes: left_mib * MIB, ..NEW });
            assert_eq!(f64::from(life.record.wear_index) / 1e6, index, "within w{window}");
            indexes.push((index * 100.0).round() as u32);
        }
        assert_eq!(indexes, [100, 100, 100, 100, 44, 18, 38, 100, 100, 100]);
    }

    #[test]
    fn a_life_settles_once_less_is_to_come_than_is_stored() {
        let mut life = taken_up(ManagerRecord::default(), Controller::WholeLife, START_NS);
        let wear = Wear { settled_bytes: 40 * MIB, ..NEW };
        life.decide(GOAL, wear);
        let mut settled = Vec::new();
        // 40 MiB in a window of 400 s.
        for second in 1..4000i64 {
            life.clock(second * SECOND_NS as i64);
            if second % 10 == 0 {
                life.count(Region::Slc);
                life.decide(GOAL, wear);
                settled.push(life.settles);
            }
        }
        let first = settled.iter().position(|&settles| settles).unwrap();
        assert!((359..363).contains(&first) && settled[first..].iter().all(|&settles| settles), "{first}");
    }

    /// Of 300 MiB that went to SLC, what was opened beyond the 600 MiB that SLC takes was opened to move it.
    #[test]
    fn the_part_of_slc_data_that_was_moved_is_what_the_budget_lost_beyond_slc() {
        let mut life = taken_up(ManagerRecord::default(), Controller::WholeLife, START_NS);
        life.decide(GOAL, NEW);
        (0..300).for_each(|_| life.count(Region::Slc));
        let part = |left_mib: u64, owed_mib: u64| {
            let wear = Wear { left_bytes: left_mib * MIB, owed_bytes: owed_mib * MIB, ..NEW };
            (life.moved_part(wear) * 100.0).round()
        };
        assert_eq!(
            [part(600, 0), part(450, 0), part(600, 75), part(300, 0), part(0, 0)],
            [0.0, 50.0, 25.0, 100.0, 100.0]
        );
    }

    #[test]
    fn what_comes_in_the_first_minutes_says_little_of_a_life() {
        let burst = |windows: u64| {
            let mut life = aged(windows * 400);
            (0..40).for_each(|_| life.count(Region::Slc));
            life.rate_mean(GOAL, 2) / MIB as f64
        };
        // 40 MiB at once, and what SLC alone allows for a tenth of a window: 4 of 1,200 MiB.
        assert_eq!([burst(0), burst(1), burst(9)].map(f64::round), [440.0, 40.0, 5.0]);
    }

    #[test]
    fn what_fills_a_young_volume_is_taken_for_a_quarter_of_its_life_at_most() {
        let rate = |windows: u64| {
            let mut life = aged(windows * 400);
            (0..100).for_each(|_| life.count(Region::Slc));
            life.rate_life(GOAL) / MIB as f64
        };
        assert_eq!([rate(0), rate(2), rate(5)], [40.0, 40.0, 20.0]);
    }

    #[test]
    fn a_record_of_the_greatest_numbers_is_no_end() {
        let most = u64::MAX;
        let record = ManagerRecord {
            life_start_ns: i64::MIN,
            life_ns: most,
            window_ns: most,
            elapsed_ns: most,
            budget_bytes: most,
            wear_index: u32::MAX,
            recent_kib: u32::MAX,
            arrived_bytes: [most; WINDOWS],
            arriving_bytes: most,
            total_bytes: most,
            slc_bytes: most,
        };
        for window_ns in [0, 1, most] {
            for controller in [Controller::Paper, Controller::WholeLife] {
                let record = ManagerRecord { window_ns, ..record };
                let mut life = Life::take_up(record, Wanted { goal: None, controller }, MIB, i64::MAX);
                life.clock(i64::MIN);
                life.clock(i64::MAX);
                life.count(Region::Slc);
                let goal = life.goal().unwrap();
                life.decide(goal, NEW);
                assert!(life.record.wear_index <= WHOLE && life.outlook().is_some());
            }
        }
    }
}
