//! Torture of translation layers: every flash operation of random histories is cut, and what comes back is held against a
//! shadow of the sectors that were acknowledged.
//!
//! Invariant: a scheme, a chip's kind, a seed and a list of cuts say everything there is to say: they give the same outcome
//! wherever and whenever they are run.

mod campaign;
mod cuts;
mod media;
mod rig;
mod script;
mod shadow;

pub use campaign::{Campaign, Found, Report, campaign};
pub use cuts::{Cut, Findings, History};
pub use media::{MediaReport, media_runs};
pub use rig::{Cached, Rig, RigKind};
pub use script::{Requests, Step, script};
pub use shadow::{Promise, Shadow};
