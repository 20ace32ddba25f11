//! Names inside an inode: directory entries and attributes are found by hash, and told apart where hashes collide.
//!
//! Invariant: a directory's census is what its entries come to.

use nand::Nand;

use super::records::Records;
use crate::error::{Error, Result};
use crate::format::inode::{Census, kind};
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

/// Looks a name up among the entries or attributes of an inode.
pub fn find<N: Nand>(records: &mut Records<N>, ino: u64, kind: KeyKind, name: &[u8]) -> Result<Spot> {
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

/// The offset of an entry of a directory, and the inode it leads to.
pub fn entry<N: Nand>(records: &mut Records<N>, dir: u64, name: &[u8]) -> Result<Option<(u64, u64)>> {
    Ok(match find(records, dir, KeyKind::Entry, name)? {
        Spot::Taken { offset, child, .. } => child.map(|child| (offset, child)),
        Spot::Free(_) => None,
    })
}

/// Makes an entry of a directory, or replaces the one at that offset.
pub fn add_entry<N: Nand>(
    records: &mut Records<N>,
    dir: u64,
    offset: u64,
    (child, mode): (u64, u32),
    name: &[u8],
    now_ns: i64,
) -> Result<()> {
    let entry = Body::Entry { offset, child, mode: mode & kind::MASK, time_ns: now_ns, name };
    let replaced = records.push_node(dir, entry, false)?;
    count_entry(records, dir, now_ns, |entries| {
        if !replaced {
            entries.add(offset)
        }
    })
}

/// Makes an entry of a directory at an offset that is free.
pub fn add_new_entry<N: Nand>(
    records: &mut Records<N>,
    dir: u64,
    offset: u64,
    (child, mode): (u64, u32),
    name: &[u8],
    now_ns: i64,
) -> Result<()> {
    records.push_new(dir, Body::Entry { offset, child, mode: mode & kind::MASK, time_ns: now_ns, name })?;
    count_entry(records, dir, now_ns, |entries| entries.add(offset))
}

/// Removes an entry of a directory.
pub fn remove_entry<N: Nand>(records: &mut Records<N>, dir: u64, offset: u64, now_ns: i64) -> Result<()> {
    records.remove(key(dir, KeyKind::Entry, offset))?;
    records.push(dir, Body::EntryGone { offset, time_ns: now_ns })?;
    count_entry(records, dir, now_ns, |entries| entries.remove(offset))
}

/// Notes a change of a directory's entries.
fn count_entry<N: Nand>(
    records: &mut Records<N>,
    dir: u64,
    now_ns: i64,
    change: impl FnOnce(&mut Census),
) -> Result<()> {
    let mut inode = records.inode(dir)?;
    change(&mut inode.entries);
    (inode.mtime_ns, inode.ctime_ns) = (now_ns, now_ns);
    records.derive_inode(dir, inode);
    Ok(())
}

/// Changes a directory's count of subdirectories.
pub fn add_links<N: Nand>(records: &mut Records<N>, dir: u64, change: i32) -> Result<()> {
    let mut inode = records.inode(dir)?;
    inode.nlink = inode.nlink.saturating_add_signed(change);
    records.put_inode(dir, inode)
}

/// Lists an inode among those to be removed with their last handle, at the unmount, or at the next mount.
pub fn mark_orphan<N: Nand>(records: &mut Records<N>, ino: u64) -> Result<()> {
    records.set(key(0, KeyKind::Orphan, ino), Change::Put(Place::Mark)).map(|_| ())
}

/// Removes an inode that lost its last name before its last handle.
pub fn forget_orphan<N: Nand>(records: &mut Records<N>, ino: u64) -> Result<()> {
    records.forget(ino)?;
    records.remove(key(0, KeyKind::Orphan, ino))
}
