//! Translation layers measured: requests to the sectors of a device on an emulated chip, in virtual time.
//!
//! Invariant: the chip's clock is the only clock, so that one configuration gives the same counts and times everywhere; only
//! processor time differs.

mod bench;
mod foresight;
mod player;
pub mod replay;
mod work;
pub mod workload;

pub use bench::{LayerConfig, LayerReport, bench};
pub use foresight::Foresight;
pub use player::{LayerPlayer, Request, merge_ns};
pub use work::Work;

use emulator::{Chip, EmulatorError, Profile, ProfileError};
use ftl::{Device, Format, Options, Payload, Scheme};

/// Why a translation layer could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Chip(#[from] EmulatorError),
    /// The layer refused what the workload needs.
    #[error("while {doing}: {source}")]
    Layer { doing: &'static str, source: ftl::Error },
    /// What is to stand on the device is more than it holds.
    #[error("what the trace touches, {touched_bytes} bytes, does not fit the device: it holds {holds_bytes}")]
    NoRoom { touched_bytes: u64, holds_bytes: u64 },
    /// Addresses of several disks cannot be those of one device.
    #[error("the trace is of {disks} disks, and addresses as they were recorded are those of one")]
    SeveralDisks { disks: usize },
    /// The device ends before the last address.
    #[error("the trace asks for addresses up to byte {end}, and the device holds {holds_bytes}")]
    BeyondDevice { end: u64, holds_bytes: u64 },
    /// What stands on the chip is not as it must be.
    #[error("{0}")]
    Wrong(String),
}

/// Says what was being done when a layer refused it.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, LayerError>;
}

impl<T> Doing<T> for Result<T, ftl::Error> {
    fn doing(self, doing: &'static str) -> Result<T, LayerError> {
        self.map_err(|source| LayerError::Layer { doing, source })
    }
}

/// How a chip that keeps no host data is opened.
pub fn options() -> Options {
    Options { payload: Payload::Absent, ..Options::default() }
}

/// A new volume on a chip that keeps no host data; without a format, of the usual one.
pub fn made(profile: &Profile, scheme: Scheme, format: Option<Format>) -> Result<Device<Chip>, LayerError> {
    made_on(Chip::without_data(profile, 1)?, scheme, format, options())
}

/// A new volume on a chip; without a format, of the usual one.
pub(crate) fn made_on(
    chip: Chip,
    scheme: Scheme,
    format: Option<Format>,
    options: Options,
) -> Result<Device<Chip>, LayerError> {
    let format = match format {
        Some(format) => format,
        None => Format::usual(&chip, scheme, 1).doing("choosing a format")?,
    };
    Device::format(chip, scheme, &format, options).doing("formatting")
}
