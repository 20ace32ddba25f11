//! What managers decide, of a made-up store.

use alloc::vec::Vec;

use super::job::{Job, Progress, Refresh, View};
use super::migration::Migrated;
use super::pace::CATCH_UP;
use super::work::WorkKind;
use super::*;
use crate::policy::admission::SlcRule;
use crate::policy::budget::Budget;
use crate::policy::migrate::{Order, Power};
use crate::policy::supply::Supply;
use crate::policy::tests::block;
use crate::policy::{BlockView, Holds, Policy, Region};

const SECOND_NS: i64 = 1_000_000_000;

/// A store at rest, with blocks to spare.
#[derive(Clone)]
struct Seen {
    due_ns: Option<i64>,
    buffered: bool,
    checkpoint: Progress,
    waiting: bool,
    supply: Supply,
    /// Blocks that later calls will want beside those of the next one.
    later_blocks: i64,
    blocks: Vec<BlockView>,
    unerased: bool,
    seq: u64,
    /// The heads have room for a commit, and for the next copy.
    room: bool,
    victim: Option<u32>,
    emptied_for: WorkKind,
    slc_block_bytes: u32,
    worn_erases: u32,
}

impl Seen {
    fn new(blocks: &[(u32, Holds, u32)]) -> Self {
        let block = |&(number, holds, live_bytes)| BlockView { holds, ..block(number, live_bytes) };
        let supply = Supply { free: 9, free_soon: 9, free_sealed: 9, free_for_certain: 9, budget: Budget::default() };
        let blocks = blocks.iter().map(block).collect();
        Self {
            due_ns: None,
            buffered: false,
            checkpoint: Progress::Idle,
            waiting: false,
            supply,
            later_blocks: 0,
            blocks,
            unerased: false,
            seq: 0,
            room: true,
            victim: None,
            emptied_for: WorkKind::Migration,
            slc_block_bytes: 50,
            worn_erases: 0,
        }
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
        self.victim
    }

    fn emptied_for(&self) -> Option<WorkKind> {
        self.victim.map(|_| self.emptied_for)
    }

    fn is_own(&self) -> bool {
        true
    }

    fn supply(&self) -> Supply {
        self.supply
    }

    fn changes_left(&self) -> u64 {
        if self.checkpoint == Progress::Idle { 1_000 } else { 0 }
    }

    fn headroom(&self) -> i64 {
        i64::from(self.supply.free) - i64::from(self.supply.budget.for_call())
    }

    fn headroom_ahead(&self) -> i64 {
        self.headroom() - self.later_blocks
    }

    fn headroom_full(&self) -> i64 {
        self.headroom() - self.later_blocks
    }

    fn blocks(&self) -> impl Iterator<Item = BlockView> + Clone {
        self.blocks.iter().copied()
    }

    fn block_count(&self) -> u32 {
        self.blocks.len() as u32
    }

    fn slc_blocks(&self) -> u32 {
        let is_slc = |block: &&BlockView| block.holds == Holds::Log && block.region == Region::Slc;
        self.blocks.iter().filter(is_slc).filter(|block| block.open || block.live_bytes > 0).count() as u32
    }

    fn has_weak_blocks(&self) -> bool {
        false
    }

    fn needs_anchor_block(&self) -> bool {
        false
    }

    fn can_test_block(&self) -> bool {
        false
    }

    fn has_waiting(&self) -> bool {
        self.waiting
    }

    fn commit_has_room(&self) -> bool {
        self.room
    }

    fn may_copy(&self) -> bool {
        self.room || self.supply.free > self.supply.budget.in_collection()
    }

    fn needs_erase(&self, _: u32) -> bool {
        self.unerased
    }

    fn live_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.live_bytes)).sum()
    }

    fn next_seq(&self) -> u64 {
        self.seq
    }

    fn slot_bytes(&self) -> u32 {
        1
    }

    fn slc_block_bytes(&self) -> u32 {
        self.slc_block_bytes
    }

    fn target_bytes(&self) -> u32 {
        100
    }

    fn worn_erases(&self) -> u32 {
        self.worn_erases
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
            manager.heard(job, false, now_ns);
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

/// So many blocks free, where a call must find three.
fn with_free(free: u32) -> Supply {
    let budget = Budget { host: 1, collection: 1, recovery: 1, ..Budget::default() };
    Supply { free, free_soon: free, free_sealed: free, free_for_certain: free, budget }
}

#[test]
fn idle_time_makes_room_before_callers_need_it_but_leaves_nearly_full_blocks_to_them() {
    let mut manager = Manager::new(Policy::SLC_ONLY);
    manager.heard(Job::Refresh(Refresh::EndPass), false, 0);
    let seen = |free, live_bytes| Seen { supply: with_free(free), ..Seen::new(&[(1, Holds::Log, live_bytes)]) };
    let next = |free, live_bytes| manager.next_job(&seen(free, live_bytes), 1);
    assert_eq!(next(7, 50), Job::Idle { until_ns: None });
    assert_eq!(next(6, 50), Job::Copy { victim: 1 });
    assert_eq!(next(6, 88), Job::Idle { until_ns: None });
    assert_eq!(next(0, 88), Job::Idle { until_ns: None });
    assert_eq!(manager.next_job(&Seen { unerased: true, ..seen(7, 50) }, 1), Job::EraseAhead { blocks: 1 });
}

/// A manager that migrates after 100 ns of idle time, a page every 15, and looks at no block before tomorrow.
fn migrating() -> Manager {
    let mut manager = Manager::new(Policy::BM.with_times(100, 15));
    manager.heard(Job::Refresh(Refresh::EndPass), false, 0);
    manager
}

#[test]
fn a_page_is_migrated_after_enough_idle_time_and_not_too_soon_after_the_last() {
    let mut manager = migrating();
    let seen = Seen::new(&[(1, Holds::Log, 50), (2, Holds::Log, 40)]);
    manager.heard_of_request(1000);
    assert_eq!(manager.next_job(&seen, 1099), Job::Idle { until_ns: Some(1100) });
    assert_eq!(manager.next_job(&seen, 1100), Job::Migrate { victim: 2 });
    let begun = Seen { victim: Some(2), ..seen };
    manager.heard_of_migration(2, Migrated { start_ns: 1100, moved: false, emptied: false });
    assert_eq!(manager.next_job(&begun, 1101), Job::Migrate { victim: 2 }, "nothing was moved yet");
    manager.heard_of_migration(2, Migrated { start_ns: 1101, moved: true, emptied: false });
    assert_eq!(manager.next_job(&begun, 1115), Job::Idle { until_ns: Some(1116) });
    assert_eq!(manager.next_job(&begun, 1116), Job::Migrate { victim: 2 });
    manager.heard_of_request(1116);
    assert_eq!(manager.next_job(&begun, 1215), Job::Idle { until_ns: Some(1216) }, "a request suspends it");
}

/// Lazy migration leaves young blocks with much in them in the SLC region, where levelling finds them.
#[test]
fn levelling_leaves_the_block_that_migration_is_at_to_migration() {
    let mut manager = migrating();
    let mut seen = Seen { worn_erases: 100, ..Seen::new(&[(1, Holds::Log, 50), (2, Holds::Nothing, 0)]) };
    seen.blocks[1].erases = 100;
    assert_eq!(manager.next_job(&seen, 1100), Job::Level { victim: 1 });
    let begun = Seen { victim: Some(1), ..seen };
    manager.heard_of_migration(1, Migrated { start_ns: 1100, moved: true, emptied: false });
    assert_eq!(manager.next_job(&begun, 1200), Job::Migrate { victim: 1 });
}

/// Nine blocks are free: enough after bursts of one SLC block, too few after one of seven.
#[test]
fn lazy_migration_empties_blocks_only_while_the_next_burst_would_not_find_room() {
    let mut manager = Manager::new(Policy::DEFAULT.with_times(100, 15));
    manager.heard(Job::Refresh(Refresh::EndPass), false, 0);
    let seen = Seen::new(&[(1, Holds::Log, 40)]);
    let burst = |manager: &mut Manager, at_ns, pages| {
        manager.heard_of_request(at_ns);
        (0..pages).for_each(|_| manager.heard_of_data(Region::Slc, false));
    };
    burst(&mut manager, 1000, 50);
    assert_eq!(manager.next_job(&seen, 2000), Job::Idle { until_ns: None });
    burst(&mut manager, 3000, 350);
    assert_eq!(manager.next_job(&seen, 4000), Job::Migrate { victim: 1 });
}

/// So many SLC blocks of a hundred, the others free.
fn with_slc(slc_blocks: usize) -> Seen {
    let blocks: Vec<_> =
        (0..100).map(|number| (number as u32, Holds::Log, if number < slc_blocks { 50 } else { 0 })).collect();
    Seen { supply: Supply { free: 100 - slc_blocks as u32, ..Supply::default() }, ..Seen::new(&blocks) }
}

/// A manager that saw two windows and no idle time: α is 0. It migrates after 100 ns, a page every 15.
fn without_idle_time(policy: Policy) -> Manager {
    let mut manager = Manager::new(policy.with_times(100, 15));
    manager.heard(Job::Refresh(Refresh::EndPass), false, 0);
    manager.heard_of_request(1000);
    (0..2049).for_each(|_| manager.heard_of_data(Region::Native, true));
    assert_eq!(manager.slc_share(), Some(0));
    manager
}

/// Where a caller's next page goes, on such a volume.
fn next_region(manager: &mut Manager, seen: &Seen) -> Region {
    manager.heard_of_debt(manager.owed(seen), 0);
    manager.place(&Write::Host)
}

#[test]
fn few_slc_blocks_let_pages_in_without_idle_time() {
    let mut manager = without_idle_time(Policy::DEFAULT);
    assert_eq!(next_region(&mut manager, &with_slc(20)), Region::Slc);
    assert!(manager.keeps_hot_apart(), "there is something to keep it from");
    assert_eq!(next_region(&mut manager, &with_slc(21)), Region::Native);
    assert!(!manager.keeps_hot_apart());
    let scarce = Seen { later_blocks: 60, ..with_slc(20) };
    assert_eq!(next_region(&mut manager, &scarce), Region::Native, "no more are to spare than are SLC blocks");
    let making_room = Seen { later_blocks: 99, ..with_slc(1) };
    assert_eq!(next_region(&mut manager, &making_room), Region::Native, "callers make room");
    assert_eq!(next_region(&mut without_idle_time(Policy::LA), &with_slc(0)), Region::Native, "the paper's");
}

#[test]
fn a_minute_without_a_request_lets_a_burst_into_slc() {
    let mut manager = without_idle_time(Policy::DEFAULT);
    let (minute_ns, seen) = (60 * SECOND_NS, with_slc(30));
    manager.heard_of_request(999 + minute_ns);
    assert_eq!(next_region(&mut manager, &seen), Region::Native);
    manager.heard_of_request(999 + 2 * minute_ns);
    // A hundred blocks of a hundred pages.
    for page in 0..500 {
        assert_eq!(next_region(&mut manager, &seen), Region::Slc, "page {page}");
        manager.heard_of_data(Region::Slc, false);
    }
    assert_eq!(next_region(&mut manager, &seen), Region::Native);
}

#[test]
fn what_was_let_in_is_paid_before_blocks_are_scarce() {
    let mut manager = without_idle_time(Policy::DEFAULT);
    next_region(&mut manager, &with_slc(0));
    (0..500).for_each(|_| manager.heard_of_data(Region::Slc, false));
    let seen = |free, seq| Seen { supply: Supply { free, ..Supply::default() }, seq, ..with_slc(20) };
    let owed = |manager: &mut Manager, seen: &Seen| {
        let owed = manager.owed(seen);
        manager.heard_of_debt(owed, owed.owed_bytes);
        owed.owed_bytes
    };
    assert_eq!(owed(&mut manager, &seen(3, 0)), 0, "ten blocks were let in, three are to spare");
    assert_eq!(owed(&mut manager, &seen(2, 15)), 0, "too little was written since");
    assert_eq!(owed(&mut manager, &seen(2, 16)), 12);
    assert_eq!(owed(&mut manager, &seen(2, 31)), 0);
    (0..100).for_each(|_| manager.heard_of_migrated_page());
    assert_eq!(owed(&mut manager, &seen(2, 40)), 0, "eight are unpaid");
    assert_eq!(owed(&mut manager, &seen(1, 60)), 15, "of twenty pages");
    // What became obsolete is paid as well.
    assert_eq!(owed(&mut manager, &Seen { seq: 80, ..with_slc(0) }), 0);
    assert_eq!(owed(&mut manager, &seen(1, 100)), 0);
}

/// What an earlier mount let in was forgotten, and paid for when no block was to spare.
#[test]
fn what_slc_blocks_held_at_the_mount_is_unpaid() {
    let seen = |seq| Seen { supply: Supply { free: 4, ..Supply::default() }, seq, ..with_slc(20) };
    let owed = |policy| {
        let mut manager = without_idle_time(policy);
        manager.heard_of_debt(manager.owed(&seen(0)), 0);
        manager.owed(&seen(16)).owed_bytes
    };
    assert_eq!((owed(Policy::DEFAULT), owed(Policy::LA)), (12, 0));
}

#[test]
fn pages_that_idle_time_lets_in_are_not_owed_and_named_so() {
    let mut manager = Manager::new(Policy::DEFAULT);
    let seen = with_slc(0);
    next_region(&mut manager, &seen);
    let admitted = manager.admitted_share(&seen).unwrap();
    assert_eq!((admitted.rule, admitted.share()), (SlcRule::IdleTime, 1.0));
    (0..500).for_each(|_| manager.heard_of_data(Region::Slc, false));
    assert!(!manager.let_in.is_overdrawn(&with_slc(10), 0), "nothing is unpaid");
    let mut manager = without_idle_time(Policy::DEFAULT);
    next_region(&mut manager, &seen);
    let admitted = manager.admitted_share(&seen).unwrap();
    assert_eq!((admitted.rule, admitted.share()), (SlcRule::FewBlocks, 1.0));
}

#[test]
fn migration_goes_on_until_a_burst_fits_few_slc_blocks() {
    let next = |idle_time: bool, slc_blocks| {
        let mut manager = without_idle_time(Policy::DEFAULT);
        if idle_time {
            (0..10).for_each(|window| {
                manager.heard_of_request((window + 2) * SECOND_NS);
                (0..1024).for_each(|_| manager.heard_of_data(Region::Native, true));
            });
        }
        // A burst of 200 pages takes four SLC blocks, half as many again are six.
        (0..600).for_each(|number| manager.heard_of_request((number + 20) * SECOND_NS));
        (0..200).for_each(|_| manager.heard_of_data(Region::Native, true));
        matches!(manager.next_job(&with_slc(slc_blocks), 1000 * SECOND_NS), Job::Migrate { .. })
    };
    assert_eq!((next(false, 14), next(false, 15)), (false, true));
    assert!(!next(true, 15), "idle time lets the burst in");
}

#[test]
fn the_policy_says_which_block_is_emptied_first() {
    let mut seen = Seen::new(&[(1, Holds::Log, 50), (2, Holds::Log, 40)]);
    seen.blocks[0].opened_ns = Some(3);
    seen.blocks[1].opened_ns = Some(5);
    let next = |order| {
        let mut manager = Manager::new(Policy::BM.with_times(0, 0).with_order(order));
        manager.heard(Job::Refresh(Refresh::EndPass), false, 0);
        manager.next_job(&seen, 1)
    };
    assert_eq!(next(Order::Coldest), Job::Migrate { victim: 1 });
    assert_eq!(next(Order::Youngest), Job::Migrate { victim: 2 });
}

#[test]
fn one_checkpoint_frees_what_was_migrated_once_nothing_is_left_to_migrate() {
    let mut manager = migrating();
    manager.heard_of_migration(1, Migrated { start_ns: 200, moved: true, emptied: true });
    let blocks: Vec<_> = (1..=36).map(|number| (number, Holds::Log, 0)).collect();
    let mut seen = Seen { waiting: true, ..Seen::new(&blocks) };
    let quiet_ns = 25_000_000_000;
    assert_eq!(manager.next_job(&seen, 201), Job::Idle { until_ns: Some(quiet_ns) }, "a quarter is free");
    assert_eq!(manager.next_job(&seen, quiet_ns), Job::Checkpoint);
    seen.supply.free = 8;
    assert_eq!(manager.next_job(&seen, 201), Job::Checkpoint);
    manager.heard_of_checkpoint();
    assert_eq!(manager.next_job(&seen, 202), Job::Idle { until_ns: None });
}

/// Nine of twenty blocks are to spare.
#[test]
fn migration_waits_for_a_charger_while_enough_blocks_are_to_spare() {
    let seen = Seen::new(&[(1, Holds::Log, 40); 20]);
    let next = |power, spare_percent| {
        let mut manager = Manager::new(Policy::CHARGE.with_times(100, 15).with_spare_percent(spare_percent));
        manager.heard(Job::Refresh(Refresh::EndPass), false, 0);
        manager.heard_of_request(0);
        manager.heard_of_power(power);
        manager.next_job(&seen, 200)
    };
    assert_eq!(next(Power::Battery, 45), Job::Idle { until_ns: None });
    assert_eq!(next(Power::Battery, 50), Job::Migrate { victim: 1 });
    assert_eq!(next(Power::Charger, 45), Job::Migrate { victim: 1 });
}

#[test]
fn migration_that_lacks_a_block_releases_those_it_emptied_first() {
    let mut manager = migrating();
    let seen = Seen { waiting: true, room: false, supply: with_free(1), ..Seen::new(&[(1, Holds::Log, 50); 5]) };
    assert_eq!(manager.next_job(&seen, 200), Job::Idle { until_ns: None });
    manager.heard_of_migration(2, Migrated { start_ns: 150, moved: true, emptied: true });
    assert_eq!(manager.next_job(&seen, 200), Job::Checkpoint);
}

#[test]
fn baseline_migrates_nothing_in_idle_time() {
    let mut manager = Manager::new(Policy::BASELINE);
    manager.heard(Job::Refresh(Refresh::EndPass), false, 0);
    let seen = Seen { supply: with_free(0), ..Seen::new(&[(1, Holds::Log, 50)]) };
    assert_eq!(manager.next_job(&seen, PASS_NS - 1), Job::Idle { until_ns: None });
}

#[test]
fn a_commit_that_is_due_makes_room_a_step_at_a_time_and_at_once_in_the_end() {
    let mut manager = Manager::new(Policy::BASELINE);
    let seen = Seen { due_ns: Some(5), room: false, supply: with_free(2), ..Seen::new(&[(1, Holds::Log, 50)]) };
    let mut steps = 0;
    while manager.next_job(&seen, 5) == (Job::Copy { victim: 1 }) {
        manager.heard(Job::Copy { victim: 1 }, true, 5);
        steps += 1;
    }
    assert_eq!(manager.next_job(&seen, 5), Job::Commit);
    assert!(steps > 1000, "after {steps} steps");
}

#[test]
fn callers_owe_what_they_write_its_share_of_a_block_once_blocks_are_scarce() {
    let mut manager = Manager::new(Policy::BASELINE);
    // Two blocks of 75 of 100 bytes give up half a block: 300 bytes are copied for a whole one. Callers' blocks take 50.
    let seen = |free, seq| Seen { supply: with_free(free), later_blocks: 1, seq, ..Seen::new(&[(1, Holds::Log, 75)]) };
    assert_eq!(manager.owed(&seen(5, 7)).owed_bytes, 0, "one is to spare");
    let owed = manager.owed(&seen(4, 10));
    manager.heard_of_debt(owed, owed.owed_bytes);
    let owed = manager.owed(&seen(4, 15));
    assert_eq!(owed.owed_bytes, CATCH_UP * 5 * 300 / 50);
    manager.heard_of_debt(owed, 20);
    assert_eq!(manager.owed(&seen(4, 15)).owed_bytes, CATCH_UP * 30 - 20, "what is not paid stays owed");
    let cheap = Seen { blocks: alloc::vec![block(1, 30)], ..seen(3, 15) };
    assert_eq!(manager.owed(&cheap).owed_bytes, 0, "a cheap block can wait");
    let late = Seen { supply: with_free(2), ..cheap };
    assert!(manager.owed(&Seen { seq: 16, ..late }).owed_bytes > 0);
    let owed = manager.owed(&seen(4, 50));
    manager.heard_of_debt(owed, owed.owed_bytes);
    assert_eq!(manager.owed(&seen(3, 50)).owed_bytes, 300, "the next block that is opened wants a whole one");
}

#[test]
fn callers_pay_for_a_dear_block_only_where_the_next_one_that_is_opened_forces_it() {
    let mut manager = Manager::new(Policy::BASELINE);
    // A block of 98 of 100 bytes gives up 2: a whole one takes 4,900.
    let seen = |free| Seen { supply: with_free(free), later_blocks: 1, seq: 50, ..Seen::new(&[(1, Holds::Log, 98)]) };
    manager.heard_of_debt(manager.owed(&seen(5)), 0);
    assert_eq!(manager.owed(&seen(4)).owed_bytes, 0);
    assert_eq!(manager.owed(&seen(3)).owed_bytes, 4_900);
}

/// Each call paid for a whole block again as long as little came of what had been paid, though nothing was written.
#[test]
fn callers_owe_the_whole_of_a_block_no_more_than_twice_while_they_fill_one() {
    let mut manager = Manager::new(Policy::BASELINE);
    let seen = |free, seq| Seen { supply: with_free(free), seq, ..Seen::new(&[(1, Holds::Log, 98)]) };
    let owed = |manager: &mut Manager, free, seq| {
        let owed = manager.owed(&seen(free, seq));
        manager.heard_of_debt(owed, owed.owed_bytes);
        owed.owed_bytes
    };
    assert_eq!(owed(&mut manager, 4, 50), 0, "no block is wanting");
    assert_eq!(owed(&mut manager, 3, 50), 4_900);
    assert_eq!(owed(&mut manager, 3, 50), 0);
    assert_eq!(owed(&mut manager, 3, 51), CATCH_UP * 4_900 / 50, "a share of it, as ever");
    assert_eq!(owed(&mut manager, 4, 74), 0);
    assert_eq!(owed(&mut manager, 3, 74), 0);
    assert_eq!(owed(&mut manager, 4, 75), 0);
    assert_eq!(owed(&mut manager, 3, 75), 4_900);
}

#[test]
fn callers_pay_for_a_checkpoint_that_is_due_before_they_pay_for_copies() {
    let manager = Manager::new(Policy::BASELINE);
    let next = |checkpoint| {
        let seen = Seen { supply: with_free(2), checkpoint, ..Seen::new(&[(1, Holds::Log, 50)]) };
        manager.next_paced_job(&seen)
    };
    assert_eq!(next(Progress::Worthwhile), Some(Job::Copy { victim: 1 }));
    for due in [Progress::Due, Progress::Overdue, Progress::UnderWay] {
        assert_eq!(next(due), Some(Job::Checkpoint));
    }
}

#[test]
fn copies_made_ahead_take_no_block_that_a_recovery_may_need() {
    let manager = Manager::new(Policy::BASELINE);
    let seen = |free, room| Seen { supply: with_free(free), room, ..Seen::new(&[(1, Holds::Log, 50)]) };
    assert_eq!(manager.next_paced_job(&seen(2, false)), Some(Job::Copy { victim: 1 }));
    assert_eq!(manager.next_paced_job(&seen(1, true)), Some(Job::Copy { victim: 1 }));
    assert_eq!(manager.next_paced_job(&seen(1, false)), None);
    let begun = Seen { victim: Some(1), ..seen(1, false) };
    assert_eq!((manager.next_paced_job(&begun), manager.next_job_for_room(&begun)), (None, Job::Copy { victim: 1 }));
}

#[test]
fn the_paper_s_baseline_leaves_a_migration_that_callers_began_to_them() {
    let mut seen = Seen { victim: Some(1), ..Seen::new(&[(1, Holds::Log, 40)]) };
    let next = |policy, seen: &Seen| Manager::new(policy).next_job(seen, 0);
    assert!(!matches!(next(Policy::BASELINE, &seen), Job::Copy { .. }));
    assert_eq!(next(Policy::NATIVE_ONLY, &seen), Job::Copy { victim: 1 });
    seen.emptied_for = WorkKind::Refresh;
    assert_eq!(next(Policy::BASELINE, &seen), Job::Copy { victim: 1 });
}
