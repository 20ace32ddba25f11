//! The laboratory: workloads that measure FlexFS on emulated chips, a model that says what it must answer, power cuts that
//! try to prove it wrong, and the experiments of the paper. Nothing here is part of a product; the binary runs it as
//! `flexfs bench`, `flexfs repro` and `flexfs torture`, as do the tests of this crate.

pub mod bench;
pub mod content;
pub mod crash;
pub mod experiment;
pub mod layers;
pub mod model;
pub mod ops;
mod parallel;
pub mod play;
pub mod record;
pub mod report;
pub mod sectors;
pub mod torture;
pub mod trace;
