//! Formatting, mounting, recovering, checkpointing, unmounting.

pub mod actions;
pub mod checkpoint;
pub mod format;
pub mod open;
mod replay;
mod scan;
