//! How long each die of a drive is busy with what was asked of it. Invariant: what is pending is what was asked and is not done,
//! a page to read at its time on the bus, a page to program at its time in the cells.

use super::shape::{DriveShape, DriveTimes};

/// The time pending, by die, and the pages to read, by channel.
#[derive(Clone, Debug)]
pub struct PendingTimes {
    dies_per_channel: u8,
    program_ns: u64,
    by_die_ns: Vec<u64>,
    reads_by_channel: Vec<u32>,
}

/// What a command counts for while it is not done.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingWork {
    pub ns: u64,
    pub read_pages: u32,
}

impl PendingTimes {
    /// Those of an idle drive.
    pub fn none(shape: DriveShape, times: DriveTimes) -> Self {
        let (channels, dies_per_channel) = (usize::from(shape.channels), shape.dies_per_channel());
        let dies = channels * usize::from(dies_per_channel);
        let (by_die_ns, reads_by_channel) = (vec![0; dies], vec![0; channels]);
        Self { dies_per_channel, program_ns: times.program_ns, by_die_ns, reads_by_channel }
    }

    /// Of a die of a channel, once so many pages to program are asked of it besides, ns.
    pub fn of_die_ns(&self, channel: u8, die: u8, pages_besides: u32) -> u64 {
        let number = usize::from(channel) * usize::from(self.dies_per_channel) + usize::from(die);
        self.by_die_ns[number] + u64::from(pages_besides) * self.program_ns
    }

    /// Pages to read on a channel.
    pub fn reads_of_channel(&self, channel: u8) -> u32 {
        self.reads_by_channel[usize::from(channel)]
    }

    /// So much was asked of a die of the drive.
    pub(super) fn add(&mut self, die: u16, work: PendingWork) {
        self.by_die_ns[usize::from(die)] += work.ns;
        self.reads_by_channel[usize::from(die / u16::from(self.dies_per_channel))] += work.read_pages;
    }

    /// So much is done.
    pub(super) fn take(&mut self, die: u16, work: PendingWork) {
        self.by_die_ns[usize::from(die)] -= work.ns;
        self.reads_by_channel[usize::from(die / u16::from(self.dies_per_channel))] -= work.read_pages;
    }
}
