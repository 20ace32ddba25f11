//! Flash translation layers: block devices made of a [`nand::Nand`] chip, which recover from a power cut at any operation.
//!
//! From the ground up: `flash` (pages with tags, free blocks, anchors, counts); `translation`, the engine of all
//! schemes, and `sector_map`, what it asks of one; a folder a scheme (`log_block`, `page_map`, `replacement`, `fast`,
//! `dftl`), each a mapping; and the table of schemes in `scheme`. A [`Device`] is one of any scheme. A [`BlockMapDrive`] is
//! none: it maps only blocks, and is a chip to the file system above. Invariant: no
//! input makes it panic, and a sector reads as it was written last or not at all.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unreachable)
)]

extern crate alloc;

mod block_map;
mod block_use;
mod cache;
mod check;
mod device;
mod dftl;
mod error;
mod fast;
mod flash;
mod log_block;
mod look;
mod page_map;
mod replacement;
mod scheme;
mod sector_map;
mod settings;
mod translation;

pub use block_map::{BlockMapDrive, ChannelReport, DRIVE_TAG_BYTES, DriveCounts, DriveFormat, DriveReport};
pub use block_use::BlockUse;
pub use cache::WriteCache;
pub use device::BlockDevice;
pub use error::{Error, Result};
pub use flash::counts::{ByCause, Counts};
pub use look::{PageState, PageTag, Volume};
pub use scheme::{Device, Scheme};
pub use settings::{Format, Options, Payload, TooLarge, Victim};
pub use translation::Translation;
