//! The kernel's cache: the server may take attributes, pages and listings back that it gave the kernel before.
//!
//! Invariant: an inode that the kernel does not know has nothing in the cache, so that taking it back succeeds.

use std::io;
use std::sync::OnceLock;

use flexfs_core::Ino;
use fuser::{Errno, INodeNo, Notifier};

/// The kernel's cache of one mount.
#[derive(Default)]
pub struct KernelCache {
    notifier: OnceLock<Notifier>,
}

impl KernelCache {
    /// What the kernel is told through; known once it is connected.
    pub fn connect(&self, notifier: Notifier) {
        // There is one connection, so this is called once.
        let _ = self.notifier.set(notifier);
    }

    /// Has the kernel ask for the attributes of an inode before it uses them again.
    pub fn drop_attributes(&self, ino: Ino) {
        // A kernel that does not know the inode keeps no attributes of it.
        let _ = self.invalidate(ino, -1);
    }

    /// Takes the pages of a file or the listing of a directory from the kernel. It writes pages that it holds back
    /// before it gives them away, which takes another thread to serve.
    pub fn drop_pages(&self, ino: Ino) -> Result<(), Errno> {
        self.invalidate(ino, 0)
    }

    fn invalidate(&self, ino: Ino, offset: i64) -> Result<(), Errno> {
        let Some(notifier) = self.notifier.get() else { return Err(Errno::EIO) };
        match notifier.inval_inode(INodeNo(ino), offset, 0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Errno::from(error)),
            _ => Ok(()),
        }
    }
}
