//! A mount that takes the chip's time: its virtual clock goes with the clock on the wall.
//!
//! Invariant: no answer is given before the chip could have given it, and a chip that nobody uses is idle meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use emulator::Chip;

/// What a mounted chip's operations take of the time on the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Timing {
    /// Nothing.
    None,
    /// What they take on the chip that is emulated.
    Chip,
}

/// The wall's clock beside the chip's.
pub struct Pacing {
    begun: Instant,
    /// The chip's time then, ns.
    start_ns: u64,
}

impl Pacing {
    /// From now on they go together.
    pub fn begin(chip: &Chip) -> Self {
        Self { begun: Instant::now(), start_ns: chip.now_ns() }
    }

    /// Lets the chip be idle until now.
    pub fn catch_up(&self, chip: &mut Chip) {
        let elapsed_ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        chip.advance_to_ns(self.start_ns.saturating_add(elapsed_ns));
    }

    /// Waits until the time on the wall is the chip's.
    pub fn wait_for(&self, chip: &Chip) {
        let taken = Duration::from_nanos(chip.now_ns().saturating_sub(self.start_ns));
        thread::sleep(taken.saturating_sub(self.begun.elapsed()));
    }
}
