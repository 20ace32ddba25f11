//! A model of a drive of many channels under load: where requests put their pages, and how long each waits (Qiu et al.,
//! §II.B and §IV).
//!
//! The way of a request: `load` draws it, a store (`place`, `pair`) says on which dies its pages stand, `queues` gives it
//! time on dies and buses, `play` collects the responses. Invariant: times are whole nanoseconds of the model, and the same
//! seed gives the same responses everywhere.

mod command;
pub mod load;
pub mod pair;
mod pending;
pub mod place;
mod play;
mod queues;
mod shadow;
mod shape;
mod store;

pub use command::{BackgroundStep, CommandKind, PageCommand, StepOutcome};
pub use pending::PendingTimes;
pub use play::{PlayPlan, PlayedRequests, RequestArrivals, ResponseTimes, play};
pub use queues::DriveModel;
pub use shadow::ShadowedStore;
pub use shape::{DieOverlap, DriveShape, DriveSwitches, DriveTimes, LONG_OVER_PAGES, PermissionExchange};
pub use store::{PageStore, PlannedRequest};

/// Why the model stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The shape or the load makes no sense.
    #[error("{0}")]
    Plan(String),
    #[error("page {page} of all files reads as write {found}, expected {expected}")]
    OtherData { page: u32, expected: u64, found: u64 },
    #[error("channel {channel} has no free block")]
    NoFreeBlock { channel: u8 },
    #[error("page {page} of physical block {block} is programmed out of order: the next one is page {next}")]
    NotInOrder { block: u32, page: u32, next: u32 },
    #[error("page {page} of all files was never written")]
    NeverWritten { page: u32 },
}
