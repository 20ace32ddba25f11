//! Flash translation layers: block devices made of a [`nand::Nand`] chip, which recover from a power cut at any operation.
//!
//! From the ground up: `flash` (pages with tags, free blocks, anchors, counts), then a folder a scheme: `log_block`, `page_map`, `replacement`, `fast`,
//! `dftl`. Each is a [`BlockDevice`]. Invariant: no input makes it panic, and a sector reads as it was written last or not at all.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unreachable)
)]

extern crate alloc;

mod cache;
mod device;
pub mod dftl;
mod error;
pub mod fast;
mod flash;
pub mod log_block;
mod look;
pub mod page_map;
pub mod replacement;
mod scheme;
mod settings;

pub use cache::WriteCache;
pub use device::BlockDevice;
pub use error::{Error, Result};
pub use flash::counts::{ByCause, Counts};
pub use look::{BlockUse, PageState, PageTag, Volume};
pub use scheme::{Device, Scheme};
pub use settings::{Format, Options, Payload, TooLarge, Victim};
