//! Formatting, mounting, recovering, checkpointing, unmounting.

pub mod checkpoint;
mod format;
mod open;
mod replay;
mod scan;
