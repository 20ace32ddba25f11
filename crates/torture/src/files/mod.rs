//! Torture: cuts the power of real volumes wherever it can be cut, and judges what comes back.
//!
//! A [`Case`] is a volume on a [`Setup`]'s chip and a script of operations. Every flash operation of the script is cut
//! in every way the chip knows, and the recoveries from it are cut again. Invariant: a case, and a list of cuts in it,
//! say everything there is to say: they give the same outcome wherever and whenever they are run.

mod base;
mod busy;
mod campaign;
mod case;
mod cut;
mod damage;
mod findings;
mod judge;
mod media;
mod mix;
mod mkfs;
mod overlap;
mod panic;
mod plan;
mod processes;
mod sequences;
mod setup;
mod shrink;

pub use base::Base;
pub use campaign::{Campaign, Headway, Progress, Report};
pub use case::{Case, Script};
pub use cut::{Cut, Cuts};
pub use findings::{Findings, Violation};
pub use judge::Depth;
pub use media::{MEDIA_STEPS, MediaReport, MediaRun, MediaViolation, media_run, media_runs};
pub use plan::cases;
pub use processes::processes;
pub use sequences::{formats, mixes, sequences};
pub use setup::{Ground, Setup};
pub use shrink::shrink;
