//! The chip and the volume that a trace is played on, and the way it is played. Invariant: numbers that are left open are
//! the usual ones of the scheme and the chip.

use emulator::{Chip, Profile};
use ftl::{Format, Options, Scheme, TooLarge};
use serde::Serialize;

use super::super::{Doing, LayerError};
use crate::trace::block::BlockTrace;

/// Where on the device the requests of a trace go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TracePlacement {
    /// All that the trace touches stands together, and is written before where the trace reads it first.
    #[default]
    Dense,
    /// Addresses are those of the trace, and nothing is written before. The device is formatted and opened anew, as a
    /// served card is, and all is counted from that opening on.
    AsRecorded,
}

/// Numbers of blocks that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayFormat {
    pub extra_blocks: Option<u32>,
    pub logs: Option<u32>,
    pub map_blocks: Option<u32>,
}

impl ReplayFormat {
    /// The usual format of a scheme on a chip, with what is asked for in its place.
    pub(super) fn on(self, chip: &Chip, scheme: Scheme) -> Result<Format, LayerError> {
        let usual = Format::usual(chip, scheme, 1).doing("choosing a format")?;
        Ok(Format {
            extra_blocks: self.extra_blocks.unwrap_or(usual.extra_blocks),
            logs: self.logs.unwrap_or(usual.logs),
            map_blocks: self.map_blocks.unwrap_or(usual.map_blocks),
            ..usual
        })
    }
}

/// The chip and the volume that a trace is played on, and the way it is played.
#[derive(Clone, Debug)]
pub struct ReplayConfig {
    pub profile: Profile,
    pub scheme: Scheme,
    pub format: ReplayFormat,
    /// Merge in idle time, as far as it is foreseen.
    pub merges_idle: bool,
    pub placement: TracePlacement,
    /// Every sector of the device is written before the trace.
    pub full: bool,
    /// The trace is played once before it is counted.
    pub warm_up: bool,
}

impl ReplayConfig {
    /// A usual volume of the scheme, on which the trace is placed densely and played once.
    pub fn new(profile: Profile, scheme: Scheme) -> Self {
        let (format, placement) = (ReplayFormat::default(), TracePlacement::default());
        Self { profile, scheme, format, merges_idle: false, placement, full: false, warm_up: false }
    }

    /// Requests that are asked before those of the playing that is counted.
    pub(super) fn warm_up_requests(&self, trace: &BlockTrace) -> u32 {
        if self.warm_up { trace.requests.len() as u32 } else { 0 }
    }
}

/// A host expects that a request of any length is taken.
pub(super) fn options() -> Options {
    Options { too_large: TooLarge::Split, ..Options::default() }
}
