//! Background migration as it goes on: when the next page is due, and whether emptied blocks wait for a checkpoint.
//!
//! Invariant: no page is migrated within `t_wait` after a request, nor within `t_trig` after the start of the last one;
//! a checkpoint that frees migrated blocks comes once for each time the region was emptied, and only where they matter.

use super::Manager;
use super::job::{Job, View};
use crate::policy::lazy::Bursts;
use crate::policy::migrate::{self, Extent, Migrate, Power};

/// Blocks are wanting where fewer than one in so many are free.
const FREE_PART: u64 = 4;
/// After so long without a request the emptied blocks are freed in any case.
const QUIET_NS: i64 = 25_000_000_000;

/// How far migration has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Migration {
    /// The block it empties.
    victim: Option<u32>,
    /// When the last request came, ns by a clock that never jumps.
    request_ns: i64,
    /// When the last page's migration started.
    page_ns: Option<i64>,
    /// It emptied blocks since the last checkpoint.
    unreleased: bool,
    bursts: Bursts,
    power: Power,
}

/// What a step of migration did.
#[derive(Clone, Copy, Debug)]
pub struct Migrated {
    /// When it started, ns by the clock of requests.
    pub start_ns: i64,
    /// It moved a page, rather than preparing to.
    pub moved: bool,
    /// The block is empty now.
    pub emptied: bool,
}

impl Migration {
    /// Whether it is this block that it empties.
    pub fn is_emptying(&self, block: u32) -> bool {
        self.victim == Some(block)
    }
}

impl Manager {
    /// Hears that a request came, and when.
    pub fn heard_of_request(&mut self, mono_ns: i64) {
        let t_wait_ns = self.policy.migrate().map_or(0, |migrate| migrate.t_wait_ns);
        if mono_ns.saturating_sub(self.migration.request_ns) > t_wait_ns {
            self.migration.bursts.end();
        }
        if let (Some(admission), Some(request_ns)) = (self.policy.admission(), self.allocation.request_ns()) {
            self.let_in.heard_of_pause(admission, mono_ns.saturating_sub(request_ns));
        }
        self.migration.request_ns = mono_ns;
        self.allocation.heard_of_request(mono_ns, t_wait_ns);
    }

    /// Hears where the power comes from.
    pub fn heard_of_power(&mut self, power: Power) {
        self.migration.power = power;
    }

    /// Hears that a page of a caller's was placed.
    pub(super) fn count_in_burst(&mut self) {
        self.migration.bursts.count_page();
    }

    /// The block to empty next, if one is to be.
    fn next_victim(&self, view: &impl View, migrate: Migrate) -> Option<u32> {
        let is_wanted = match migrate.extent {
            Extent::All => true,
            Extent::Burst => self.wants_room(view),
            Extent::Charger { spare_percent } => self.wants_power(view, spare_percent),
        };
        let choose = || is_wanted.then(|| migrate::choose(self.migratable(view), migrate.order)).flatten();
        view.victim().or_else(choose)
    }

    /// Whether there is a charger, or too few blocks are to spare to wait for it.
    fn wants_power(&self, view: &impl View, spare_percent: u8) -> bool {
        let wanted = view.blocks().count() as i64 * i64::from(spare_percent) / 100;
        self.migration.power == Power::Charger || view.headroom() < wanted
    }

    /// Whether fewer blocks are to spare than the next burst may take; or where it is to be let in by a rule, whether it and the
    /// SLC blocks there are come to more than that allows.
    fn wants_room(&self, view: &impl View) -> bool {
        let slc_block_pages = view.slc_block_bytes() / view.slot_bytes().max(1);
        let (bursts, blocks) = (self.migration.bursts, view.block_count());
        if view.headroom() < bursts.spare_blocks(slc_block_pages, u64::from(blocks)) as i64 {
            return true;
        }
        let by_rule = self.allocation.slc_share() < self.wear_index();
        let Some(admission) = self.policy.admission().filter(|_| by_rule) else { return false };
        let blocks_max = u64::from(admission.blocks_max(blocks));
        u64::from(view.slc_blocks()) + bursts.burst_blocks(slc_block_pages).min(blocks_max) > blocks_max
    }

    /// Hears what a step did that emptied `victim` to migrate it.
    pub fn heard_of_migration(&mut self, victim: u32, migrated: Migrated) {
        let Migrated { start_ns, moved, emptied } = migrated;
        self.migration.victim = (!emptied).then_some(victim);
        self.migration.unreleased |= emptied;
        if emptied {
            self.ledger.count_migrated_block();
        }
        if moved {
            self.migration.page_ns = Some(start_ns);
        }
    }

    /// Hears that a checkpoint is complete.
    pub fn heard_of_checkpoint(&mut self) {
        self.migration.unreleased = false;
    }

    /// What migration does next, if there is anything: a page when it is due, then the checkpoint that frees blocks.
    pub(super) fn next_migration(&self, view: &impl View, mono_ns: i64) -> Option<Job> {
        let migrate = self.policy.migrate()?;
        let Migration { request_ns, page_ns, unreleased, .. } = self.migration;
        let begin_ns = request_ns.saturating_add(migrate.t_wait_ns);
        if mono_ns < begin_ns {
            let has_work = unreleased || self.next_victim(view, migrate).is_some();
            return has_work.then_some(Job::Idle { until_ns: Some(begin_ns) });
        }
        // Where many are free, the next checkpoint due frees these as well, unless none comes for long.
        let needs_room = || u64::from(view.supply().free) * FREE_PART < view.blocks().count() as u64;
        let release = || {
            let quiet_ns = request_ns.saturating_add(QUIET_NS);
            let waits = unreleased && view.has_waiting();
            let now = mono_ns >= quiet_ns || needs_room();
            waits.then_some(if now { Job::Checkpoint } else { Job::Idle { until_ns: Some(quiet_ns) } })
        };
        let victim = self.next_victim(view, migrate);
        let Some(victim) = victim.filter(|_| view.may_copy()) else { return release() };
        // Where room is wanting, the next burst would have to do without SLC: all the idle time is used.
        let t_trig_ns = if self.is_crowded(view) { 0 } else { migrate.t_trig_ns };
        let due_ns = page_ns.map_or(begin_ns, |page_ns| page_ns.saturating_add(t_trig_ns));
        Some(if mono_ns < due_ns { Job::Idle { until_ns: Some(due_ns) } } else { Job::Migrate { victim } })
    }
}
