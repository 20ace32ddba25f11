//! Background work in idle time that is foreseen (the log-block paper's future work, §V): how much idle time is left, by the
//! prediction that the file system's dynamic allocation uses.
//!
//! Invariant: nothing is foreseen before an idle time was met, and nothing until a while has passed without a request.

use std::collections::VecDeque;

use flexfs_core::predicted_idle_ns;

/// Idle times that are remembered: as many as the prediction looks back on.
const REMEMBERED: usize = 10;

/// The idle times met last, and what they say of the one that is under way.
#[derive(Clone, Debug)]
pub struct Foresight {
    /// Time after a request that does not count as idle yet.
    wait_ns: u64,
    /// The newest first.
    met_ns: VecDeque<u64>,
}

impl Foresight {
    /// Time after a request that does not count as idle, unless another is asked for.
    pub const WAIT_NS: u64 = 10_000_000;

    pub fn new(wait_ns: u64) -> Self {
        Self { wait_ns, met_ns: VecDeque::new() }
    }

    /// Time after a request that does not count as idle yet.
    pub fn wait_ns(&self) -> u64 {
        self.wait_ns
    }

    /// A request came so long after the one before it was done.
    pub fn met(&mut self, gap_ns: u64) {
        if let Some(idle_ns) = gap_ns.checked_sub(self.wait_ns).filter(|&idle_ns| idle_ns > 0) {
            self.met_ns.push_front(idle_ns);
            self.met_ns.truncate(REMEMBERED);
        }
    }

    /// Idle time to expect still, `gap_ns` after the last request was done.
    pub fn left_ns(&self, gap_ns: u64) -> u64 {
        let Some(idle_ns) = gap_ns.checked_sub(self.wait_ns) else { return 0 };
        predicted_idle_ns(self.met_ns.iter().copied()).unwrap_or(0).saturating_sub(idle_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_the_mean_of_the_last_idle_times_less_what_has_passed() {
        let mut foresight = Foresight::new(10);
        assert_eq!(foresight.left_ns(50), 0);
        // Too short to be idle: between requests of one burst.
        foresight.met(10);
        assert_eq!(foresight.left_ns(50), 0);
        foresight.met(110);
        foresight.met(110);
        assert_eq!([9, 10, 60, 110, 500].map(|gap_ns| foresight.left_ns(gap_ns)), [0, 100, 50, 0, 0]);
    }
}
