//! The laboratory: traces, workloads and benches that measure FlexFS and the translation layers on emulated chips, and the
//! experiments of the papers with their reports. Nothing here is part of a product; the binary runs it as `flexfs bench`,
//! `flexfs replay` and `flexfs repro`. Proofs stand in the crate `torture`, below.

pub mod bench;
pub mod drive;
pub mod experiment;
pub mod layers;
pub mod play;
mod processor_time;
pub mod report;
pub mod trace;
