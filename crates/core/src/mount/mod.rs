//! Formatting, mounting, recovering, checkpointing, unmounting.

pub mod actions;
pub mod checkpoint;
pub mod format;
pub mod ongoing;
pub mod open;
pub mod replay;
pub mod scan;
