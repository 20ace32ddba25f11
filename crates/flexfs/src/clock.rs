//! Time as the core counts it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970, as the core counts time.
pub fn now_ns() -> i64 {
    to_ns(SystemTime::now())
}

/// A time as the core counts it; what lies beyond 292 years from 1970 becomes the nearest time that does not.
pub fn to_ns(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}
