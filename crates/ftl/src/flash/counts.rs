//! What a translation layer counts of its own: flash operations by cause, and what they were done for.
//!
//! Invariant: every operation that the chip accepted is counted once.

use nand::Cause;

/// A number for each cause.
pub type ByCause = [u64; Cause::ALL.len()];

/// Flash operations and events since the volume was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sectors that the host read, wrote and gave up.
    pub host_reads: u64,
    pub host_writes: u64,
    pub host_trims: u64,
    /// Flash operations, in the order of [`Cause::ALL`].
    pub reads: ByCause,
    pub programs: ByCause,
    pub erases: ByCause,
    /// Log blocks that became data blocks as they were.
    pub switches: u64,
    /// Log blocks that became data blocks after the rest was copied to them.
    pub partial_merges: u64,
    /// Blocks written anew from several.
    pub merges: u64,
    /// Pages of the map written for changes of it.
    pub map_writes: u64,
    /// Pages of the map copied to make room in the round of map blocks.
    pub map_copies: u64,
    /// Map blocks exchanged for free ones to spread their wear.
    pub swaps: u64,
    /// Blocks that went bad.
    pub grown_bad: u64,
}

impl Counts {
    /// All erases.
    pub fn all_erases(&self) -> u64 {
        self.erases.iter().sum()
    }

    /// All programs.
    pub fn all_programs(&self) -> u64 {
        self.programs.iter().sum()
    }

    /// All reads.
    pub fn all_reads(&self) -> u64 {
        self.reads.iter().sum()
    }
}

/// Adds one to a cause's number.
pub(crate) fn count(numbers: &mut ByCause, cause: Cause) {
    let slots = numbers.iter_mut().zip(Cause::ALL);
    slots.filter(|(_, other)| *other == cause).for_each(|(slot, _)| *slot += 1);
}
