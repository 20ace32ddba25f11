//! The tests of the program, most of them on a mount, as one program, a module for each matter: linked once, they are
//! built in a moment. Those that run themselves as other processes, or copy the mounts of others, have
//! programs of their own beside it.

mod attributes;
mod bench;
mod block_replay;
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod damaged;
mod destinations;
mod drive_images;
mod dump;
mod ends;
mod file_handles;
mod from_directory;
mod ftl_images;
mod full_mount;
mod held;
mod idle;
mod listings;
mod mount_options;
mod mount_reads;
mod mounted;
mod overlay;
mod posix;
mod program;
mod real_input;
mod record;
mod refused;
mod removed_times;
mod repair;
mod repro;
mod serve;
mod synced_overwrites;
mod times;
mod top;
mod torture;
mod trouble;
mod unmounted;
