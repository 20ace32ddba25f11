//! The manner of a mount: its flags, and all that a server follows and the core does not know.
//!
//! Invariant: a manner is a plain value, settled before a volume is mounted and the same to the end of the mount.

use flexfs_core::{Error, Ino, Times};
use rustix::mount::MountFlags;

use super::pacing::Timing;
use super::power::Source;
use super::recorded::Recorded;
use crate::clock::stamp_ns;

/// The manner of a mount.
#[derive(Clone, Copy)]
pub struct MountManner {
    /// Flags that the kernel is told, and so shows in its table.
    pub flags: MountFlags,
    /// Whether others than who mounted it may use it, where root did not.
    pub allow_other: bool,
    /// Whether the kernel may keep writes for a while.
    pub write_back: bool,
    /// The time on the wall that the chip's operations take.
    pub timing: Timing,
    /// Who says where the power comes from; `None` where the volume does not want to know.
    pub power: Option<Source>,
}

impl Default for MountManner {
    fn default() -> Self {
        Self {
            flags: MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME,
            allow_other: false,
            write_back: true,
            timing: Timing::None,
            power: None,
        }
    }
}

impl MountManner {
    pub fn read_only(&self) -> bool {
        self.flags.contains(MountFlags::RDONLY)
    }

    /// Notes that an inode was read, where times of that are kept.
    pub fn accessed(&self, fs: &mut Recorded, ino: Ino) -> Result<(), Error> {
        if self.flags.contains(MountFlags::NOATIME) { Ok(()) } else { fs.accessed(ino, stamp_ns()) }
    }

    /// Whether a listing of a directory leaves a time of access.
    pub fn dates_listings(&self) -> bool {
        !self.flags.intersects(MountFlags::NOATIME | MountFlags::NODIRATIME)
    }

    /// Who says when a file's contents changed: the kernel, where it may keep writes for a while.
    pub fn times(&self) -> Times {
        if self.write_back { Times::OfCaller } else { Times::OfVolume }
    }

    /// Whether each change is synced before it is answered; a mount that asks so for names gets it for all.
    pub fn eager(&self) -> bool {
        self.flags.intersects(MountFlags::SYNCHRONOUS | MountFlags::DIRSYNC)
    }
}
