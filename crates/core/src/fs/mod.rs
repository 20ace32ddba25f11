//! The operations of a file system.
pub mod types;
use crate::error::{Error, Result};
use alloc::vec::Vec;
use nand::Nand;
use types::*;

/// A mounted volume.
pub struct Fs<N: Nand> {
    nand: N,
}
#[allow(unused_variables)]
impl<N: Nand> Fs<N> {
    /// Formats the chip; everything on it is lost.
    pub fn format(nand: &mut N, options: &FormatOptions) -> Result<()> {
        Err(Error::Invalid("stub"))
    }
    /// Mounts the chip; on failure the chip is given back.
    pub fn mount(nand: N, options: MountOptions) -> core::result::Result<Self, (N, Error)> {
        Err((nand, Error::Invalid("stub")))
    }
    /// Syncs, writes a clean checkpoint and gives the chip back.
    pub fn unmount(self, now_ns: i64) -> (N, Result<()>) {
        (self.nand, Err(Error::Invalid("stub")))
    }
    /// Gives the chip back as it is, as a power cut would: nothing is written.
    pub fn into_chip(self) -> N {
        self.nand
    }
    pub fn chip(&self) -> &N {
        &self.nand
    }
    pub fn chip_mut(&mut self) -> &mut N {
        &mut self.nand
    }
    pub fn lookup(&mut self, parent: Ino, name: &[u8]) -> Result<Attr> {
        Err(Error::NotFound)
    }
    pub fn getattr(&mut self, ino: Ino) -> Result<Attr> {
        Err(Error::NotFound)
    }
    pub fn setattr(&mut self, ino: Ino, changes: SetAttr, now_ns: i64) -> Result<Attr> {
        Err(Error::NotFound)
    }
    /// Creates a file, directory or special file (by `node.mode`).
    pub fn create(&mut self, parent: Ino, name: &[u8], node: NewNode, now_ns: i64) -> Result<Attr> {
        Err(Error::NotFound)
    }
    pub fn symlink(
        &mut self,
        parent: Ino,
        name: &[u8],
        target: &[u8],
        uid: u32,
        gid: u32,
        now_ns: i64,
    ) -> Result<Attr> {
        Err(Error::NotFound)
    }
    pub fn readlink(&mut self, ino: Ino) -> Result<Vec<u8>> {
        Err(Error::NotFound)
    }
    pub fn link(&mut self, ino: Ino, parent: Ino, name: &[u8], now_ns: i64) -> Result<Attr> {
        Err(Error::NotFound)
    }
    pub fn unlink(&mut self, parent: Ino, name: &[u8], now_ns: i64) -> Result<()> {
        Err(Error::NotFound)
    }
    pub fn rmdir(&mut self, parent: Ino, name: &[u8], now_ns: i64) -> Result<()> {
        Err(Error::NotFound)
    }
    pub fn rename(
        &mut self,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        mode: RenameMode,
        now_ns: i64,
    ) -> Result<()> {
        Err(Error::NotFound)
    }
    /// Counts an open handle: an inode without names lives until its last handle is released.
    pub fn open(&mut self, ino: Ino) -> Result<()> {
        Err(Error::NotFound)
    }
    pub fn release(&mut self, ino: Ino, now_ns: i64) -> Result<()> {
        Err(Error::NotFound)
    }
    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    pub fn read(&mut self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<usize> {
        Err(Error::NotFound)
    }
    /// Writes; a short count only where space ran out after some bytes.
    pub fn write(&mut self, ino: Ino, offset: u64, data: &[u8], now_ns: i64) -> Result<usize> {
        Err(Error::NotFound)
    }
    /// Makes a hole (reads as zeros); the size stays.
    pub fn punch(&mut self, ino: Ino, offset: u64, len: u64, now_ns: i64) -> Result<()> {
        Err(Error::NotFound)
    }
    /// The entries after `cookie` (0: from the start; "." and ".." are not among them), until `each` returns false.
    pub fn readdir(&mut self, dir: Ino, cookie: u64, each: &mut dyn FnMut(DirEntry) -> bool) -> Result<()> {
        Err(Error::NotFound)
    }
    /// The directory that holds this directory (the root's is the root).
    pub fn parent_of(&mut self, dir: Ino) -> Result<Ino> {
        Err(Error::NotFound)
    }
    pub fn getxattr(&mut self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        Err(Error::NotFound)
    }
    /// `create`: fail if it exists; `replace`: fail if it does not.
    pub fn setxattr(
        &mut self,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        create: bool,
        replace: bool,
        now_ns: i64,
    ) -> Result<()> {
        Err(Error::NotFound)
    }
    pub fn listxattr(&mut self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        Err(Error::NotFound)
    }
    pub fn removexattr(&mut self, ino: Ino, name: &[u8], now_ns: i64) -> Result<()> {
        Err(Error::NotFound)
    }
    /// Makes everything issued before durable.
    pub fn sync(&mut self, now_ns: i64) -> Result<()> {
        Err(Error::NotFound)
    }
    pub fn statfs(&mut self) -> Result<StatFs> {
        Err(Error::NotFound)
    }
    /// Does at most one page's worth of internal work; returns when to call again, or `None` when idle.
    pub fn background(&mut self, now_ns: i64) -> Result<Option<i64>> {
        Ok(None)
    }
    pub fn info(&mut self) -> Result<Info> {
        Err(Error::NotFound)
    }
    /// Checks every structure against every other; reads only.
    pub fn check(&mut self) -> Result<CheckReport> {
        Err(Error::NotFound)
    }
}
