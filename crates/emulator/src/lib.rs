//! An emulated NAND chip.
//!
//! [`Chip`] implements [`nand::Nand`] in RAM, with snapshots cheap enough to cut the power at every operation; in RAM
//! without host data, for translation layers on large chips; or in an image file that a killed process leaves whole. A
//! [`Profile`] says what kind of chip it is. A [`FaultInjector`], which the chip lends, says what goes wrong; at first
//! nothing does.
//!
//! Invariant: nothing depends on real time or on anything but the profile, the seed and the calls made, so one seed and
//! one history give the same bytes, errors and times anywhere.
//!
//! The image format is described in [`image`].
#![forbid(unsafe_code)]

mod account;
mod array;
mod bounds;
mod chip;
mod clock;
mod counters;
mod energy;
mod error;
mod fault_plan;
mod faults;
pub mod image;
mod injector;
mod levels;
mod make;
mod ops;
mod pairing;
mod power;
mod profile;
mod reliability;
mod rng;
mod rules;
mod spec;
mod store;
mod table;
mod tear;
mod timing;
mod trace;

pub use chip::Chip;
pub use counters::{ByCause, Counters, OpCounts};
pub use energy::{Energy, ModeEnergy};
pub use error::{EmulatorError, ProfileError};
pub use faults::{BitErrors, Corruption, FaultConfig, InFlightLoss, PairedLoss, TornKind};
pub use injector::FaultInjector;
pub use pairing::{Pairing, ProgramUnit, Programming};
pub use profile::{Ecc, Endurance, ErrorRates, Errors, Profile, Shape};
pub use timing::{ModeTiming, Timing};
pub use trace::{Trace, TraceEntry, TraceOp};
