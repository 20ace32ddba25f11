//! Recorded decisions: all that a mounted volume was asked, when, and where it put what; and the same asked again.
//!
//! A recording is a header and then a line of JSON for each event: when it came by the chip's clock, what was asked, and
//! the programs and erases that followed, each with its cause. That is every placement, and every job that did something.
//! What files hold is not recorded: without compression no decision depends on it. Invariant: a volume is a function of its
//! chip, its options and its events, so that a replay on a copy of the chip makes the same decisions.
//!
//! ```text
//!   mount ──► Recorder ──► events, each with its operations ──► replay on a copy of the image ──► the first difference
//! ```

mod event;
mod recorder;
mod replay;

pub use event::{Event, Header, Line};
pub use recorder::{Recorder, TracedChip};
pub use replay::{ReplayError, Replayed, begins, replay};
