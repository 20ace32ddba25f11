//! How long operations and background steps took of the chip's time.
//!
//! Invariant: every operation and every step is counted, and a caller's wait begins when it calls, though a step that
//! began before may still be under way.

use serde::{Deserialize, Serialize};

/// Times in nanoseconds, in the order in which they were met.
#[derive(Clone, Debug, Default)]
pub struct Waits(Vec<u64>);

impl Waits {
    pub fn add(&mut self, ns: u64) {
        self.0.push(ns);
    }

    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Their mean, µs; 0 where there is none.
    pub fn mean_us(&self) -> f64 {
        self.0.iter().map(|&ns| ns as f64 / 1e3).sum::<f64>() / self.0.len().max(1) as f64
    }

    /// How they are distributed.
    pub fn distribution(&self) -> Distribution {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        // The least time that so many of a thousand do not exceed.
        let rank = |thousandths: usize| {
            let at = (sorted.len() * thousandths).div_ceil(1000).saturating_sub(1);
            sorted.get(at).map_or(0.0, |&ns| ns as f64 / 1e3)
        };
        Distribution {
            count: sorted.len() as u64,
            median_us: rank(500),
            p99_us: rank(990),
            p999_us: rank(999),
            longest_us: rank(1000),
        }
    }
}

/// A distribution of times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    pub count: u64,
    pub median_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub longest_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_least_time_that_so_many_do_not_exceed() {
        let mut waits = Waits::default();
        assert_eq!((waits.distribution(), waits.mean_us()), (Distribution::default(), 0.0));
        (1..=2000).rev().for_each(|us| waits.add(us * 1000));
        assert_eq!(waits.mean_us(), 1000.5);
        let found = waits.distribution();
        assert_eq!((found.count, found.median_us, found.p99_us), (2000, 1000.0, 1980.0));
        assert_eq!((found.p999_us, found.longest_us), (1998.0, 2000.0));
    }
}
