//! What a file system of this program agrees on with the kernel: threads, capabilities, how long answers hold.
//!
//! Invariant: every file system served here is served in the same way, so that two of them can be compared.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use fuser::{Config, FileHandle, Filesystem, FopenFlags, Generation, InitFlags, KernelConfig, Session, SessionACL};

use super::mountpoint::Mounted;

/// How long the kernel may believe what it was told.
pub const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// Inode numbers are never used twice, so one generation does.
pub const ONLY: Generation = Generation(0);

/// Opens need no handle: the node says it all, but for whether a file is open for writing.
pub const NO_HANDLE: FileHandle = FileHandle(0);
pub const WRITER: FileHandle = FileHandle(1);

/// Who keeps the listings of directories.
#[derive(Clone, Copy)]
pub enum Listings {
    /// The server sees each reading of a directory.
    Seen,
    /// The kernel keeps them, and opens a directory by asking.
    Kept,
    /// The kernel keeps them, and opens a directory without asking.
    KeptUnasked,
}

impl Listings {
    /// The kernel keeps them; before Linux 5.1 it asks at each opening.
    pub fn kept(config: &KernelConfig) -> Self {
        let unasked = config.capabilities().contains(InitFlags::FUSE_NO_OPENDIR_SUPPORT);
        if unasked { Self::KeptUnasked } else { Self::Kept }
    }

    /// How a directory is opened; `None` where the kernel is not to ask again.
    pub fn open_flags(self) -> Option<FopenFlags> {
        match self {
            Self::Seen => Some(FopenFlags::empty()),
            Self::Kept => Some(FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE),
            Self::KeptUnasked => None,
        }
    }
}

/// Threads that serve requests, each with a descriptor of its own.
const SERVER_THREADS: usize = 2;

/// The most a single write request may carry.
const MAX_WRITE_BYTES: u32 = 1 << 20;

/// Takes up what `mounted` attached: `device` is its descriptor.
pub fn connect<FS: Filesystem>(server: FS, mounted: &Mounted, device: OwnedFd) -> io::Result<Session<FS>> {
    let acl = if mounted.for_all() { SessionACL::All } else { SessionACL::Owner };
    let mut config = Config::default();
    config.n_threads = Some(SERVER_THREADS);
    config.clone_fd = !mounted.by_helper();
    config.acl = acl;
    Session::from_fd(server, device, acl, config)
}

/// Asks the kernel for what makes it ask less; with `write_back` it keeps writes for a while, and when they were made.
pub fn negotiate(config: &mut KernelConfig, write_back: bool) -> io::Result<()> {
    if write_back && config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE).is_err() {
        return Err(io::Error::other("this kernel has no writeback cache for FUSE: mount with -o writethrough"));
    }
    let wished = [
        InitFlags::FUSE_DO_READDIRPLUS,
        InitFlags::FUSE_READDIRPLUS_AUTO,
        InitFlags::FUSE_PARALLEL_DIROPS,
        InitFlags::FUSE_CACHE_SYMLINKS,
        // A file handle outlives what the kernel knows of a file.
        InitFlags::FUSE_EXPORT_SUPPORT,
        // Lists are kept and followed, and a default one overrides the umask.
        InitFlags::FUSE_POSIX_ACL,
        InitFlags::FUSE_DONT_MASK,
        // Without it the kernel asks for an extended attribute at every single write.
        InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    ];
    for capability in wished {
        // An older kernel does without; nothing depends on any of them.
        let _ = config.add_capabilities(capability);
    }
    let _ = config.set_max_write(MAX_WRITE_BYTES);
    if let Err(most) = config.set_max_readahead(MAX_WRITE_BYTES) {
        let _ = config.set_max_readahead(most);
    }
    Ok(())
}
