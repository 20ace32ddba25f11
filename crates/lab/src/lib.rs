//! The laboratory: workloads that measure FlexFS on emulated chips, a model that says what it must answer, and
//! power cuts that try to prove it wrong. Nothing here is part of a product; the binary runs the workloads as
//! `flexfs bench`, the tests of this crate run the rest.

pub mod bench;
pub mod content;
pub mod crash;
pub mod experiment;
pub mod model;
pub mod ops;
mod parallel;
pub mod play;
pub mod report;
pub mod torture;
