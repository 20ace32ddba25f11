//! Power cuts: what may be left after one, and the machinery that makes many of them.

mod history;
mod rig;
mod run;
mod tap;
mod tear;
mod tested_chip;
mod twin;

pub use history::{History, Piece};
pub use rig::{BASE_NS, Rig};
pub use run::{Run, Tally};
pub use tap::{Emulated, Record, Tap, Torn};
pub use tear::{Tear, reach_text, split_reach};
pub use tested_chip::{FailedStart, TestedChip, VolumeOver};
pub use twin::{Outcome, Reading, STEP_NS, Twin};
