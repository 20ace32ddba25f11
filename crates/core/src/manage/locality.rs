//! Locality as it goes on: which files are hot, and which blocks are kept from migration for what is in them.
//!
//! Invariant: a hot block is kept only while it was written within the windows that idle time is predicted from; what
//! was not overwritten since is no longer hot.

use super::Manager;
use super::job::View;
use crate::policy::BlockView;

/// Blocks to spare below which hot blocks are migrated as well.
const SPARE_BLOCKS_MIN: i64 = 4;

impl Manager {
    /// Whether what is written to a file is hot; never where the policy does not tell, or no life is left for SLC.
    pub fn is_hot(&self, ino: u64) -> bool {
        self.policy.keeps_hot() && self.wear_index() > 0 && self.files.is_hot(ino)
    }

    /// Whether hot data has blocks of its own: where nothing else goes to SLC blocks, there is nothing to keep it from.
    pub fn keeps_hot_apart(&self) -> bool {
        self.policy.allocate().is_some() && self.allocation.share_by(self.pace.slc_rule) > 0
    }

    /// Hears that something that a file held was overwritten.
    pub fn heard_of_overwrite(&mut self, ino: u64) {
        if self.policy.keeps_hot() {
            self.files.overwritten(ino);
        }
    }

    /// The blocks that may be migrated: those of hot data only where few blocks are left.
    pub(super) fn migratable(&self, view: &impl View) -> impl Iterator<Item = BlockView> {
        let since_ns = self.allocation.since_ns();
        let keeps = self.policy.keeps_hot() && view.headroom() >= SPARE_BLOCKS_MIN;
        let is_kept = move |block: &BlockView| {
            keeps && block.hot && block.opened_ns.is_some_and(|opened_ns| opened_ns >= since_ns)
        };
        view.blocks().filter(move |block| !is_kept(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Policy, Region};

    const WINDOW_PAGES: u32 = 1024;

    #[test]
    fn hot_pages_leave_more_of_the_idle_time_to_the_others() {
        let alpha = |hot_pages: u32| {
            let mut manager = Manager::new(Policy::LA);
            for window in 0..12 {
                manager.heard_of_request(window * 10_000_000_000);
                for page in 0..WINDOW_PAGES {
                    manager.heard_of_data(Region::Slc, page < hot_pages);
                }
            }
            f64::from(manager.slc_share().unwrap()) / 1e6
        };
        assert!((alpha(WINDOW_PAGES / 4) - alpha(0) / 0.75).abs() < 1e-5, "{} {}", alpha(256), alpha(0));
    }

    #[test]
    fn only_a_policy_that_keeps_hot_data_tells_it() {
        for (policy, tells) in [(Policy::LA, true), (Policy::DA, false)] {
            let mut manager = Manager::new(policy);
            (0..2).for_each(|_| manager.heard_of_overwrite(7));
            assert_eq!(manager.is_hot(7), tells, "{}", policy.name());
        }
    }
}
