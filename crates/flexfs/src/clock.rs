//! Time as the core counts it.
//!
//! Invariant: what [`stamp_ns`] gives is never earlier than a time that the kernel has left on a file before, nor later
//! than one that it leaves after: the two may stamp files in turn.

use std::os::fd::OwnedFd;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{MemfdFlags, Timespec, Timestamps, UTIME_NOW, fstat, futimens, memfd_create};
use rustix::time::{ClockId, clock_gettime};

/// A file in memory that is stamped to learn the time of stamps.
static STAMPED: LazyLock<Option<OwnedFd>> = LazyLock::new(|| memfd_create("flexfs-time", MemfdFlags::CLOEXEC).ok());

/// Nanoseconds since 1970, as the core counts time.
pub fn now_ns() -> i64 {
    to_ns(SystemTime::now())
}

/// The time that the kernel would leave on a file now: its clock for stamps is a coarse one, and ahead of that one where it
/// has just told files apart by finer times.
pub fn stamp_ns() -> i64 {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let stamped = STAMPED.as_ref().and_then(|file| {
        futimens(file, &Timestamps { last_access: now, last_modification: now }).ok()?;
        let stat = fstat(file).ok()?;
        Some((stat.st_mtime, i64::try_from(stat.st_mtime_nsec).ok()?))
    });
    let (seconds, ns) = stamped.unwrap_or_else(|| {
        let coarse = clock_gettime(ClockId::RealtimeCoarse);
        (coarse.tv_sec, coarse.tv_nsec)
    });
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

/// A time as the core counts it; what lies beyond 292 years from 1970 becomes the nearest time that does not.
pub fn to_ns(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn stamps_and_those_of_the_kernel_stand_in_the_order_they_were_made_in() {
        let dir = tempfile::tempdir().unwrap();
        let mut last = 0;
        for number in 0..2_000 {
            let path = dir.path().join(number.to_string());
            std::fs::write(&path, "x").unwrap();
            let found = std::fs::metadata(&path).unwrap();
            for ns in [found.mtime() * 1_000_000_000 + found.mtime_nsec(), stamp_ns()] {
                assert!(ns >= last, "{ns} after {last}");
                last = ns;
            }
        }
        assert!((now_ns() - last).abs() < 60_000_000_000);
    }
}
