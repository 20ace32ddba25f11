//! A card that hosts use as a disk: the sectors of a translation layer, served over the network block device protocol (NBD).
//!
//! From the ground up: `protocol` turns bytes into requests and answers into bytes, and does no input or output; `record`
//! writes requests down; `export` makes bytes of sectors and knows nothing of the wire; `client` talks to one host;
//! `server` lets hosts in. Invariant: an answer tells the truth about what is durable, and no client keeps another one
//! waiting: nothing is locked while bytes are read from or written to a connection.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unreachable)
)]

pub mod client;
mod disk;
mod export;
pub mod host;
pub mod protocol;
pub mod record;
mod server;
mod volume;

pub use disk::{Disk, DiskError, DiskShape};
pub use export::{Export, HostCounts};
pub use server::{CardServer, ClientLimits, ListenAddress};
pub use volume::{CardVolume, ServedDevice, SyncChip};
