//! The listings of directories that the kernel may keep.
//!
//! A reader at the start of a directory learns from the kernel whether the listing that it keeps is stale; a reader in the
//! middle does not. Invariant: before a change of names is answered, the kernel has given up what it keeps of that
//! directory. The kernel locks a directory while it reads or changes it, so that no older answer is kept later.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flexfs_core::Ino;

use super::kernel_cache::KernelCache;

/// The directories of which the kernel may keep names.
pub struct KeptListings {
    directories: Mutex<HashSet<Ino>>,
    kernel_cache: Arc<KernelCache>,
}

impl KeptListings {
    pub fn new(kernel_cache: Arc<KernelCache>) -> Self {
        Self { directories: Mutex::default(), kernel_cache }
    }

    /// Names of a directory are about to be handed out, for the kernel to keep.
    pub fn handed(&self, dir: Ino) {
        self.directories().insert(dir);
    }

    /// The names of directories have changed: the kernel is to list them anew.
    pub fn changed(&self, directories: impl IntoIterator<Item = Ino>) {
        for dir in directories {
            if self.directories().remove(&dir) {
                // A kernel that does not know a directory has no listing of it.
                let _ = self.kernel_cache.drop_pages(dir);
            }
        }
    }

    /// The kernel has forgotten a directory, and its listing with it.
    pub fn forgotten(&self, dir: Ino) {
        self.directories().remove(&dir);
    }

    // A set is changed in one step: whoever panicked left it whole.
    fn directories(&self) -> MutexGuard<'_, HashSet<Ino>> {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
