//! FlexFS, the file system: over any [`nand::Nand`], without a clock, a file or randomness of its own.
//!
//! From the ground up: `format` (the bytes), `flash` (slots, heads, blocks), `index` (where everything stands),
//! `policy` (decisions, as values), `fs` (the operations), `reclaim` (making room), `mount` (format, checkpoint,
//! replay), `check`, `salvage`. Invariant: no input makes it panic, and it never returns data whose checksum fails.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unreachable)
)]

extern crate alloc;

mod check;
mod error;
mod flash;
mod format;
mod fs;
mod index;
mod mount;
mod policy;
mod reclaim;
mod salvage;

pub use error::{Error, Result};
pub use fs::Fs;
pub use fs::data::Unchecked;
pub use fs::dump;
pub use fs::types::*;
pub use policy::{Mode, wear};
pub use salvage::{Doubt, Salvaged};
