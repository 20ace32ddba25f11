//! The commands, one a file: each takes its arguments and gives an exit status.

mod background;
pub mod bench;
pub mod completions;
pub mod dump;
pub mod fsck;
pub mod get;
pub mod info;
mod layer_figures;
pub mod ls;
pub mod man;
pub mod mkdir;
pub mod mkfs;
pub mod mount;
mod new_layer;
pub mod put;
mod recordings;
mod remount;
pub mod replay;
pub mod repro;
pub mod rm;
pub mod serve;
pub mod top;
pub mod torture;
mod watched;
