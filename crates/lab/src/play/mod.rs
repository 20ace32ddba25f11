//! The player: requests that arrive in virtual time at a volume on an emulated chip.
//!
//! A volume hears of requests and of time between them, as a mounted one does, and of nothing else: an experiment sets
//! chip, host cost, policy and workload. Invariant: the chip's clock is the only clock, so that one setting and one
//! workload give the same times everywhere.

mod host;
mod ledger;
mod player;
mod replay;
mod traced;
mod tree;
mod watch;

use emulator::{EmulatorError, Profile, ProfileError};
use flexfs_core::{Error, Policy, Wanted};

pub use host::HostCost;
pub use ledger::Ledger;
pub use player::{Player, Response, Tally};
pub use replay::{Answered, Answers, Replayed, replay};
pub use traced::Traced;
pub use watch::{Watcher, watched};

/// What a volume is played on.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The kind of chip.
    pub profile: Profile,
    pub host: HostCost,
    pub policy: Policy,
    /// A life that is to be guaranteed from formatting on, and who decides on it.
    pub life: Wanted,
    /// Decides the chip's chance events and the volume's identity.
    pub seed: u64,
}

/// Why something could not be played to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Chip(#[from] EmulatorError),
    /// The file system refused what the workload needs.
    #[error("while {doing}: {source}")]
    Fs { doing: &'static str, source: Error },
    /// A background step, or what was read back, is not as it must be.
    #[error("{0}")]
    Wrong(String),
}

impl PlayError {
    /// Whether the volume was full.
    pub fn is_no_space(&self) -> bool {
        matches!(self, PlayError::Fs { source: Error::NoSpace, .. })
    }
}
