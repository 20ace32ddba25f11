//! Names inside an inode: directory entries and attributes are found by hash, and told apart where hashes collide.
//!
//! Invariant: a directory's census is what its entries come to.

use nand::Nand;

use super::records::Records;
use crate::error::{Error, Result};
use crate::format::inode::{Census, Ino, Inode, kind};
use crate::format::key::{COLLISION_SPAN, Key, KeyKind, key, name_offset, offset_of};
use crate::format::node::Body;
use crate::format::place::Place;
use crate::index::delta::Change;

/// Where a name is, or where it could go.
pub enum Spot {
    /// Its offset, and, of a directory's entry, the inode it leads to.
    Taken { offset: u64, child: Option<u64> },
    /// A free offset among those of its hash.
    Free(u64),
}

/// A directory, to look names up in it and to change its entries.
pub struct DirectoryEntries<'a, N: Nand> {
    records: &'a mut Records<N>,
    ino: Ino,
}

impl<N: Nand> Records<N> {
    /// The entries of a directory.
    pub fn directory(&mut self, ino: Ino) -> DirectoryEntries<'_, N> {
        DirectoryEntries { records: self, ino }
    }
}

impl<N: Nand> DirectoryEntries<'_, N> {
    /// Where a name is, or where it could go.
    pub fn find(&mut self, name: &[u8]) -> Result<Spot> {
        self.find_among(KeyKind::Entry, name)
    }

    /// The same among the entries or the attributes of the inode.
    pub(super) fn find_among(&mut self, kind: KeyKind, name: &[u8]) -> Result<Spot> {
        let (ino, records) = (self.ino, &mut *self.records);
        let first = name_offset(records.volume.hash_seed, name);
        let mut free = first;
        let (mut from, to) = (key(ino, kind, first), key(ino, kind, first) + Key::from(COLLISION_SPAN));
        while let Some(entry) = records.next(from, to)? {
            let (same, child) = records.with_node(entry.place, |_, node| match node.body {
                Body::Entry { name: found, child, .. } => Some((found == name, Some(child))),
                Body::Xattr { name: found, .. } => Some((found == name, None)),
                Body::XattrPart { .. } => Some((false, None)),
                _ => None,
            })?;
            let offset = offset_of(entry.key);
            if same {
                return Ok(Spot::Taken { offset, child });
            }
            if offset == free {
                free += 1;
            }
            from = entry.end();
        }
        if free >= first + COLLISION_SPAN {
            return Err(Error::Invalid("too many names with one hash"));
        }
        Ok(Spot::Free(free))
    }

    /// Whether there is none.
    pub fn is_empty(&mut self) -> Result<bool> {
        let (from, to) = (key(self.ino, KeyKind::Entry, 0), key(self.ino, KeyKind::Xattr, 0));
        Ok(self.records.next(from, to)?.is_none())
    }

    /// The directory's inode.
    pub fn inode(&mut self) -> Result<Inode> {
        let inode = self.records.inode(self.ino)?;
        if inode.is_dir() { Ok(inode) } else { Err(Error::NotDirectory) }
    }

    /// The offset of an entry, and the inode it leads to.
    pub fn entry(&mut self, name: &[u8]) -> Result<Option<(u64, Ino)>> {
        Ok(match self.find(name)? {
            Spot::Taken { offset, child, .. } => child.map(|child| (offset, child)),
            Spot::Free(_) => None,
        })
    }

    /// Makes an entry, or replaces the one at that offset.
    pub fn add(&mut self, offset: u64, (child, mode): (Ino, u32), name: &[u8], now_ns: i64) -> Result<()> {
        let entry = Body::Entry { offset, child, mode: mode & kind::MASK, time_ns: now_ns, name };
        let replaced = self.records.push_node(self.ino, entry, false)?;
        self.count(now_ns, |entries| {
            if !replaced {
                entries.add(offset)
            }
        })
    }

    /// Makes an entry at an offset that is free.
    pub fn add_new(&mut self, offset: u64, (child, mode): (Ino, u32), name: &[u8], now_ns: i64) -> Result<()> {
        let entry = Body::Entry { offset, child, mode: mode & kind::MASK, time_ns: now_ns, name };
        self.records.push_new(self.ino, entry)?;
        self.count(now_ns, |entries| entries.add(offset))
    }

    /// Removes an entry.
    pub fn remove(&mut self, offset: u64, now_ns: i64) -> Result<()> {
        self.records.remove(key(self.ino, KeyKind::Entry, offset))?;
        self.records.push(self.ino, Body::EntryGone { offset, time_ns: now_ns })?;
        self.count(now_ns, |entries| entries.remove(offset))
    }

    /// Notes a change of the entries.
    fn count(&mut self, now_ns: i64, change: impl FnOnce(&mut Census)) -> Result<()> {
        let mut inode = self.records.inode(self.ino)?;
        change(&mut inode.entries);
        (inode.mtime_ns, inode.ctime_ns) = (now_ns, now_ns);
        self.records.derive_inode(self.ino, inode);
        Ok(())
    }

    /// Changes the count of subdirectories.
    pub fn add_links(&mut self, change: i32) -> Result<()> {
        let mut inode = self.records.inode(self.ino)?;
        inode.nlink = inode.nlink.saturating_add_signed(change);
        self.records.put_inode(self.ino, inode)
    }
}

impl<N: Nand> Records<N> {
    /// Lists an inode among those to be removed with their last handle, at the unmount, or at the next mount.
    pub fn mark_orphan(&mut self, ino: Ino) -> Result<()> {
        self.set(key(0, KeyKind::Orphan, ino), Change::Put(Place::Mark)).map(|_| ())
    }

    /// Removes an inode that lost its last name before its last handle.
    pub fn forget_orphan(&mut self, ino: Ino) -> Result<()> {
        self.forget(ino)?;
        self.remove(key(0, KeyKind::Orphan, ino))
    }
}
