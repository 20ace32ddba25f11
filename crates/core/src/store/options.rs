//! How a volume is mounted.

use crate::manage::life::Wanted;
use crate::policy::Policy;

/// Whether data is compressed on its way to flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    #[default]
    None,
    Lz4,
}

/// Whether reading leaves a time on what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atime {
    /// Never.
    #[default]
    None,
    /// As `relatime` of mount(8): where the time is older than the last change, or than a day.
    Relative,
}

/// A bound on the caches for hosts with memory to spare: enough for directories of 100,000 names.
pub const HOST_CACHE_BYTES: usize = 24 << 20;

/// Who says when a file's contents changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// The volume, by the time of the call. All times it leaves are whole ticks of 128 µs, which every tag can tell, and no
    /// call leaves an earlier one than the call before it did.
    #[default]
    OfVolume,
    /// Of regular files the caller, who keeps the times of their changes and sets them with `setattr`: a call that changes
    /// contents leaves them as they are. The times that the volume leaves otherwise are those of the calls. The last whole
    /// chunk of a write waits in memory for its times, so that both take one program.
    OfCaller,
}

/// How a volume is mounted.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Never program or erase; a volume that needs recovery is recovered in memory only.
    pub read_only: bool,
    pub policy: Policy,
    /// What the chip's life is to be.
    pub life: Wanted,
    pub compression: Compression,
    pub atime: Atime,
    pub times: Times,
    /// Buffered changes reach flash within this time, ns.
    pub commit_ns: i64,
    /// Bound on the caches (pages, inodes, recent index changes), bytes.
    pub cache_bytes: usize,
    /// Lanes of each head, whose blocks stand on dies of their own, 32 at most; `None`: the greatest power of two that has a die
    /// and 64 blocks of the chip for each.
    pub lanes: Option<u8>,
    pub now_ns: i64,
}

/// Changes of the index between two checkpoints, however small the caches are.
const CHANGES_LEAST: usize = 256;
/// Bytes that a change of the index takes in memory, at most.
const CHANGE_BYTES: usize = 96;

impl MountOptions {
    /// Changes of the index between two checkpoints, at most: an eighth of the caches.
    pub(crate) fn changes_max(&self) -> usize {
        (self.cache_bytes / 8 / CHANGE_BYTES).max(CHANGES_LEAST)
    }
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            policy: Policy::default(),
            life: Wanted::default(),
            compression: Compression::default(),
            atime: Atime::default(),
            times: Times::default(),
            commit_ns: 1_000_000_000,
            cache_bytes: 4 << 20,
            lanes: None,
            now_ns: 0,
        }
    }
}
