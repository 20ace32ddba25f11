//! Power cuts: what may be left after one, and the machinery that makes many of them.

mod exhaust;
mod history;
mod rig;
mod run;
mod tap;
mod twin;

pub use exhaust::{Plan, Verdict, Violation, exhaust};
pub use history::{History, Piece};
pub use rig::{BASE_NS, Rig};
pub use run::{Run, Tally};
pub use tap::{Emulated, Tap, Torn};
pub use twin::{Outcome, Twin};
