//! How long each die of a drive is busy with what was asked of it. Invariant: what is pending is what was asked and is not done,
//! a page to read at its time on the bus, a page to program at its time in the cells.

use super::shape::DriveShape;

/// The time pending, by die.
#[derive(Clone, Debug)]
pub struct PendingTimes {
    dies_per_channel: u8,
    by_die_ns: Vec<u64>,
}

impl PendingTimes {
    /// Those of an idle drive.
    pub fn none(shape: DriveShape) -> Self {
        let dies = usize::from(shape.channels) * usize::from(shape.dies_per_channel());
        Self { dies_per_channel: shape.dies_per_channel(), by_die_ns: vec![0; dies] }
    }

    /// Of a die of a channel, ns.
    pub fn of_die_ns(&self, channel: u8, die: u8) -> u64 {
        self.by_die_ns[usize::from(channel) * usize::from(self.dies_per_channel) + usize::from(die)]
    }

    /// So much was asked of a die of the drive.
    pub(super) fn add(&mut self, die: u16, ns: u64) {
        self.by_die_ns[usize::from(die)] += ns;
    }

    /// So much is done.
    pub(super) fn take(&mut self, die: u16, ns: u64) {
        self.by_die_ns[usize::from(die)] -= ns;
    }
}
