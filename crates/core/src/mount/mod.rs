//! Formatting, mounting, recovering, unmounting.

pub mod actions;
pub mod block_log;
pub mod format;
pub mod open;
pub mod replay;
pub mod scan;
