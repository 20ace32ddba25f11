//! FlexFS, the file system: over any [`nand::Nand`], without a clock, a file or randomness of its own.
//!
//! From the ground up, each room calling only those before it: `format` (the bytes), `flash` (slots, log heads, blocks,
//! anchors), `index` (where everything stands), `policy` (decisions, as values), `manage` (what the policies remember),
//! `store` (records made durable and found again), `mount` (format, replay, recovery), `check`, `salvage`, `dump`, and
//! `fs` (the operations). Invariant: no input makes it panic, and it never returns data whose checksum fails.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unreachable)
)]

extern crate alloc;

mod check;
pub mod dump;
mod error;
mod flash;
mod format;
mod fs;
mod index;
mod manage;
mod mount;
mod policy;
mod salvage;
mod store;

pub use check::CheckReport;
pub use error::{Error, Result};
pub use flash::shape::spare_bytes_needed;
pub use format::cells::CellRecord;
pub use format::inode::{Ino, ROOT_INO, kind};
pub use format::manager::ManagerRecord;
pub use fs::Fs;
pub use fs::types::*;
pub use manage::admission::AdmittedShare;
pub use manage::life::{Outlook, Wanted};
pub use manage::work::WorkKind;
pub use mount::format::{FormatOptions, most_blocks, recorded_cells};
pub use policy::admission::{Admission, SlcRule};
pub use policy::allocate::{Allocate, predicted_idle_ns};
pub use policy::migrate::Power;
pub use policy::{Policy, channel, wear};
pub use salvage::{Doubt, Salvaged};
pub use store::chunks::Unchecked;
pub use store::options::*;
pub use store::report::{BlockCounts, Ended, Info, StatFs};
pub use store::spread::{DieInfo, LaneInfo};
