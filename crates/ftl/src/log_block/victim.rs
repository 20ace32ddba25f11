//! The choice of the log block that is reclaimed when another one is wanted: decisions, no chip.
//!
//! Invariant: the same log blocks give the same answer.

use crate::settings::Victim;

/// What the choice goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogView {
    /// Programs since it was written last.
    pub age: u64,
    /// Pages that are still free in it.
    pub free_pages: u32,
    /// Pages of a block.
    pub pages: u32,
    /// It can become the data block as it is, or once the rest is copied to it.
    pub is_in_order: bool,
}

impl Victim {
    /// The place in the list of the log block to reclaim.
    pub fn choose(self, logs: impl Iterator<Item = (usize, LogView)>) -> Option<usize> {
        let chosen = match self {
            Victim::LeastRecent => logs.max_by_key(|(_, log)| log.age),
            Victim::RecencyAndUse => logs.max_by_key(|(_, log)| log.score()),
        };
        chosen.map(|(at, _)| at)
    }
}

impl LogView {
    /// What reclaiming it is worth: its age times the share of it that is used up, over what it costs. A merge erases two
    /// blocks and copies all pages; in order, one is erased and the free pages are copied.
    fn score(&self) -> u128 {
        let used = u128::from(self.pages.saturating_sub(self.free_pages));
        let copied = if self.is_in_order { self.free_pages } else { 2 * self.pages };
        u128::from(self.age) * used * 1024 / u128::from(self.pages.max(1) + copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_block_used_up_goes_before_one_of_the_same_age_that_has_room() {
        let log = |age, free_pages, is_in_order| LogView { age, free_pages, pages: 32, is_in_order };
        let logs = [log(100, 30, false), log(90, 0, false), log(95, 0, true)];
        let choose = |victim: Victim| victim.choose(logs.into_iter().enumerate());
        assert_eq!(choose(Victim::LeastRecent), Some(0));
        assert_eq!(choose(Victim::RecencyAndUse), Some(2));
        assert_eq!(Victim::LeastRecent.choose(core::iter::empty()), None);
    }
}
