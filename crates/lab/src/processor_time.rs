//! Processor time of this process: of all figures of a bench, only this depends on the machine.
//!
//! Invariant: time that all threads of the process took together counts, and time asleep does not.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Processor time that a process had taken at a moment.
#[derive(Clone, Copy)]
pub struct ProcessorTime {
    user: Duration,
    system: Duration,
}

/// Processor time that was taken, s: in the process itself, and in the kernel for it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessorSeconds {
    pub user_s: f64,
    pub system_s: f64,
}

impl ProcessorSeconds {
    /// Both together, s.
    pub fn total_s(self) -> f64 {
        self.user_s + self.system_s
    }
}

impl ProcessorTime {
    /// What this process has taken so far; nothing where the system does not say.
    pub fn now() -> Self {
        let of = |time: TimeVal| {
            let micros = time.tv_usec().unsigned_abs().saturating_add(time.tv_sec().unsigned_abs() * 1_000_000);
            Duration::from_micros(micros)
        };
        match getrusage(UsageWho::RUSAGE_SELF) {
            Ok(usage) => Self { user: of(usage.user_time()), system: of(usage.system_time()) },
            Err(_) => Self { user: Duration::ZERO, system: Duration::ZERO },
        }
    }

    /// Taken since then, in the process and in the kernel.
    pub fn taken(&self) -> ProcessorSeconds {
        let Self { user, system } = Self::now();
        let user_s = user.saturating_sub(self.user).as_secs_f64();
        ProcessorSeconds { user_s, system_s: system.saturating_sub(self.system).as_secs_f64() }
    }

    /// Taken since then.
    pub fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.taken().total_s())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Whether it takes so much of a kind of processor time to do something again and again.
    fn takes(kind: fn(ProcessorSeconds) -> f64, mut work: impl FnMut()) -> bool {
        let (processor, wall) = (ProcessorTime::now(), Instant::now());
        while kind(processor.taken()) < 0.02 && wall.elapsed() < Duration::from_secs(60) {
            work();
        }
        kind(processor.taken()) >= 0.02 && processor.elapsed() >= Duration::from_millis(20)
    }

    #[test]
    fn work_takes_processor_time_of_the_process_or_of_the_kernel() {
        let mut sum = 0u64;
        assert!(takes(|taken| taken.user_s, || sum = std::hint::black_box((0..100_000).fold(sum, u64::wrapping_add))));
        assert!(takes(|taken| taken.system_s, || drop(std::fs::read("/proc/self/maps"))));
    }
}
