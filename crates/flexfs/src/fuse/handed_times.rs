//! Times that the kernel hands over, which two server threads may take out of turn.
//!
//! While one thread has a request for a file's times and waits for the volume, the other may carry out a later request for the
//! same file, like a truncation. Invariant: times that a later request of the kernel has replaced are not set.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use flexfs_core::Ino;

/// Requests that are remembered: many more than can be carried out while a thread waits for the volume.
const REMEMBERED: usize = 256;

/// A request of the kernel that sets the times of modification and change, by its number; the kernel counts upwards.
#[derive(Clone, Copy)]
pub struct TimesRequest {
    pub ino: Ino,
    pub number: u64,
    pub ctime_ns: i64,
}

/// The latest requests that set times.
#[derive(Default)]
pub struct HandedTimes(Mutex<VecDeque<TimesRequest>>);

impl HandedTimes {
    /// Remembers a request that is carried out now; whether a later request for the same inode was before it. The time of change
    /// has to tell so too: it goes forward from request to request.
    pub fn is_overtaken(&self, request: TimesRequest) -> bool {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_later = |other: &TimesRequest| {
            (other.ino == request.ino) && other.number > request.number && other.ctime_ns > request.ctime_ns
        };
        if latest.iter().any(is_later) {
            return true;
        }
        if latest.len() == REMEMBERED {
            latest.pop_front();
        }
        latest.push_back(request);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight processes that wrote the same files found a time of 54 µs before the last write, once the kernel had forgotten
    /// the attributes.
    #[test]
    fn times_that_were_overtaken_by_later_times_are_left_out() {
        let handed = HandedTimes::default();
        let overtaken = |ino, number, ctime_ns| handed.is_overtaken(TimesRequest { ino, number, ctime_ns });
        assert!(!overtaken(7, 10, 100));
        assert!(!overtaken(7, 14, 140));
        assert!(overtaken(7, 12, 120));
        assert!(!overtaken(8, 12, 120), "of another inode");
        assert!(!overtaken(7, 16, 90), "the clock was set back");
        for number in 0..REMEMBERED as u64 {
            overtaken(9, 20 + number, 200);
        }
        assert!(!overtaken(7, 13, 130), "long ago");
    }
}
