//! The commands, one a file: each takes its arguments and gives an exit status.

pub mod bench;
pub mod fsck;
pub mod info;
pub mod mkfs;
pub mod mount;
