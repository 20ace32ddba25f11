//! Processor time of this process: of all figures of a bench, only this depends on the machine.
//!
//! Invariant: time that all threads of the process took together counts, and time asleep does not.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Processor time that a process had taken at a moment.
#[derive(Clone, Copy)]
pub struct ProcessorTime(Duration);

impl ProcessorTime {
    pub fn now() -> Self {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ProcessCPUTime);
        Self(Duration::from_secs(tv_sec.unsigned_abs()) + Duration::from_nanos(tv_nsec.unsigned_abs()))
    }

    /// Taken since then.
    pub fn elapsed(&self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let (processor, wall) = (ProcessorTime::now(), Instant::now());
        let mut sum = 0u64;
        while processor.elapsed() < Duration::from_millis(20) && wall.elapsed() < Duration::from_secs(60) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(processor.elapsed() >= Duration::from_millis(20), "{sum}");
    }
}
