//! Workloads of the FlexFS paper that several experiments share.
//!
//! Invariant: a workload asks every policy the same, at the same times of the chip's clock.

pub mod album;
pub mod bursts;
pub mod lives;
pub mod phone;
pub mod rounds;
