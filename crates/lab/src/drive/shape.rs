//! What a drive is built of, and how it may work. Invariant: a die is on one channel, and its number counts on from chip to
//! chip of the channel.

use super::DriveError;

/// Channels, and what each of them has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveShape {
    pub channels: u8,
    pub chips_per_channel: u8,
    pub dies_per_chip: u8,
    pub planes_per_die: u8,
}

/// Most channels, and most dies of one, and most planes of a die.
const CHANNELS_MAX: u8 = 32;
const DIES_MAX: u8 = 64;
const PLANES_MAX: u8 = 8;

impl DriveShape {
    /// Eight channels of one chip.
    pub const fn eight_channels(dies_per_chip: u8, planes_per_die: u8) -> Self {
        Self { channels: 8, chips_per_channel: 1, dies_per_chip, planes_per_die }
    }

    /// The dies of a channel.
    pub fn dies_per_channel(self) -> u8 {
        self.chips_per_channel.saturating_mul(self.dies_per_chip)
    }

    /// Says what makes no sense.
    pub fn check(self) -> Result<(), DriveError> {
        let counts = [
            ("channels", self.channels, CHANNELS_MAX),
            ("dies of a channel", self.dies_per_channel(), DIES_MAX),
            ("planes of a die", self.planes_per_die, PLANES_MAX),
        ];
        match counts.into_iter().find(|(_, count, most)| !(1..=*most).contains(count)) {
            Some((of, count, most)) => Err(DriveError::Plan(format!("{count} {of}: 1 to {most} are possible"))),
            None => Ok(()),
        }
    }
}

/// How long things take, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveTimes {
    /// A page on the bus of its channel.
    pub bus_ns: u64,
    pub read_ns: u64,
    pub program_ns: u64,
    pub erase_ns: u64,
}

impl DriveTimes {
    /// Table I of the paper: 25 ns a byte, pages of 4 KiB.
    pub const TABLE_I: Self = Self { bus_ns: 102_400, read_ns: 60_000, program_ns: 800_000, erase_ns: 1_500_000 };

    /// A page that is read, and programmed elsewhere.
    pub fn copy_ns(self) -> u64 {
        self.read_ns + 2 * self.bus_ns + self.program_ns
    }
}

/// What the drive may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveSwitches {
    pub overlap: DieOverlap,
    /// Commands wait for the permission to use the drive's memory.
    pub exchange: Option<PermissionExchange>,
    /// A read overtakes programs that wait for the same die.
    pub read_priority: bool,
}

/// The commands whose bus time may pass beside the cell time of the next one of the same kind on their die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DieOverlap {
    #[default]
    Never,
    /// Those of long requests among themselves.
    LongRequests,
    Always,
}

impl DieOverlap {
    /// In a few words.
    pub fn told(self) -> &'static str {
        match self {
            Self::Never => "none",
            Self::LongRequests => "commands of requests over 16 pages, on a die",
            Self::Always => "operations of the same kind on a die",
        }
    }

    /// Whether a command of a request of so many pages may overlap.
    pub(super) fn holds_for(self, request_pages: u32) -> bool {
        match self {
            Self::Never => false,
            Self::LongRequests => request_pages > LONG_OVER_PAGES,
            Self::Always => true,
        }
    }
}

/// A request of more pages than these is a long one (§III.C.3).
pub const LONG_OVER_PAGES: u32 = 16;

/// The permission to use the drive's memory goes from command to command (§III.C.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionExchange {
    /// How long a command takes it, one at a time in the whole drive.
    pub command_ns: u64,
    /// The commands of a request of more pages than these take it once for each channel.
    pub once_over_pages: u32,
}
