//! Admission as it goes on: the rule for callers' next pages, and the pages that callers are to migrate for it.
//!
//! Invariant: a page let in by a rule is unpaid until any page of an SLC block was migrated, by whomever, or SLC blocks became
//! obsolete; so what idle time does not migrate, callers do before blocks run out.

use super::Manager;
use super::job::View;
use crate::policy::admission::{self, Admission, SlcRule, SlcUse};
use crate::policy::allocate::WHOLE;

/// The share of callers' next pages that goes to SLC blocks, and by which rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmittedShare {
    pub rule: SlcRule,
    /// After what the blocks to spare and the life to be guaranteed allow, millionths.
    pub millionths: u32,
}

impl AdmittedShare {
    /// The same share, of 1.
    pub fn share(&self) -> f64 {
        f64::from(self.millionths) / f64::from(WHOLE)
    }
}

/// The pages that were let in by rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct PagesLetIn {
    /// Those for the last long pause; `None`: there was none.
    pause_pages: Option<u64>,
    /// Those that are unpaid; of an earlier mount, all that SLC blocks hold.
    unpaid_pages: u64,
}

impl Default for PagesLetIn {
    fn default() -> Self {
        Self { pause_pages: None, unpaid_pages: u64::MAX }
    }
}

impl PagesLetIn {
    /// Hears how long callers had paused before a request.
    pub fn heard_of_pause(&mut self, admission: Admission, paused_ns: i64) {
        if paused_ns >= admission.pause_ns {
            self.pause_pages = Some(0);
        }
    }

    /// Hears of a page of a caller that went to an SLC block and is not hot, while this was the rule.
    pub fn count(&mut self, rule: SlcRule) {
        self.unpaid_pages = self.unpaid_pages.saturating_add(u64::from(rule != SlcRule::IdleTime));
        if rule == SlcRule::LongPause {
            self.pause_pages = self.pause_pages.map(|pages| pages + 1);
        }
    }

    /// Hears that SLC blocks hold no more than so many pages.
    pub fn bound(&mut self, slc_pages: u64) {
        self.unpaid_pages = self.unpaid_pages.min(slc_pages);
    }

    /// Whether callers are to migrate some of them, with so many blocks to spare.
    pub fn is_overdrawn(&self, view: &impl View, spare_blocks: i64) -> bool {
        admission::is_overdrawn(self.unpaid_pages.min(slc_pages(view)) / slc_block_pages(view), spare_blocks)
    }

    /// How many more may be let in until callers are to migrate some of them.
    pub fn pages_left(&self, view: &impl View, spare_blocks: i64) -> u64 {
        let pages_max = (admission::unpaid_blocks_max(spare_blocks) + 1) * slc_block_pages(view) - 1;
        pages_max.saturating_sub(self.unpaid_pages.min(slc_pages(view)))
    }
}

fn slc_block_pages(view: &impl View) -> u64 {
    u64::from(view.slc_block_bytes() / view.slot_bytes().max(1)).max(1)
}

/// Pages that SLC blocks hold, at most.
pub(super) fn slc_pages(view: &impl View) -> u64 {
    u64::from(view.slc_blocks()) * slc_block_pages(view)
}

impl Manager {
    /// The rule for callers' next pages, with so many blocks to spare, where so large a share fits them. Where a rule would let in
    /// no more than α does, idle time it is.
    pub(super) fn slc_rule(&self, view: &impl View, spare_blocks: i64, slc_share_max: u32) -> SlcRule {
        let allowed = slc_share_max.min(self.wear_index());
        match self.policy.admission() {
            Some(admission) if self.allocation.slc_share() < allowed => admission.rule(&SlcUse {
                blocks: view.block_count(),
                slc_blocks: view.slc_blocks(),
                spare_blocks,
                native_block_pages: view.target_bytes() / view.slot_bytes().max(1),
                pause_pages: self.let_in.pause_pages,
            }),
            _ => SlcRule::IdleTime,
        }
    }

    /// The share of callers' next pages that goes to SLC, and why; `None` where the policy does not allocate.
    pub fn admitted_share(&self, view: &impl View) -> Option<AdmittedShare> {
        self.policy.allocate()?;
        let slc_share_max = self.slc_share_max(view);
        let rule = self.slc_rule(view, view.headroom_ahead(), slc_share_max);
        let millionths = self.allocation.share_by(rule).min(slc_share_max).min(self.wear_index());
        Some(AdmittedShare { rule, millionths })
    }

    /// Hears that a page was copied from an SLC block to a native one.
    pub fn heard_of_migrated_page(&mut self) {
        self.let_in.unpaid_pages = self.let_in.unpaid_pages.saturating_sub(1);
    }
}
