//! The co-design paper's tables and figures: the file system allocates pages, the drive maps blocks.
//!
//! Invariant: the file system and the drive are the real ones, on an emulated chip that keeps every byte.

pub mod fig2;
pub mod fig3;
pub mod real;
pub mod table;
