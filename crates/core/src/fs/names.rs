//! Names inside an inode: directory entries and attributes are found by hash, and told apart where hashes collide.

use alloc::vec::Vec;

use nand::Nand;

use super::Fs;
use crate::error::{Error, Result};
use crate::format::key::{COLLISION_SPAN, Key, KeyKind, key, name_offset, offset_of};
use crate::format::node::Body;
use crate::format::place::Place;

/// Where a name is, or where it could go.
pub(crate) enum Spot {
    /// Its offset, where its node stands, and, of a directory's entry, the inode it leads to.
    Taken { offset: u64, place: Place, child: Option<u64> },
    /// A free offset among those of its hash.
    Free(u64),
}

impl<N: Nand> Fs<N> {
    /// Looks a name up among the entries or attributes of an inode.
    pub(crate) fn find_name(&mut self, ino: u64, kind: KeyKind, name: &[u8]) -> Result<Spot> {
        let first = name_offset(self.volume.hash_seed, name);
        let mut free = first;
        let (mut from, to) = (key(ino, kind, first), key(ino, kind, first) + Key::from(COLLISION_SPAN));
        while let Some(entry) = self.index.next(&mut self.flash, from, to)? {
            let (same, child) = self.with_node(entry.place, |_, node| match node.body {
                Body::Entry { name: found, child, .. } => Some((found == name, Some(child))),
                Body::Xattr { name: found, .. } => Some((found == name, None)),
                _ => None,
            })?;
            let offset = offset_of(entry.key);
            if same {
                return Ok(Spot::Taken { offset, place: entry.place, child });
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
    pub(crate) fn find_entry(&mut self, dir: u64, name: &[u8]) -> Result<Option<(u64, u64)>> {
        Ok(match self.find_name(dir, KeyKind::Entry, name)? {
            Spot::Taken { offset, child, .. } => child.map(|child| (offset, child)),
            Spot::Free(_) => None,
        })
    }

    /// The names of an inode's attributes.
    pub(crate) fn attribute_names(&mut self, ino: u64) -> Result<Vec<Vec<u8>>> {
        let (mut from, to) = (key(ino, KeyKind::Xattr, 0), key(ino, KeyKind::Data, 0));
        let mut names = Vec::new();
        while let Some(entry) = self.index.next(&mut self.flash, from, to)? {
            names.push(self.with_node(entry.place, |_, node| match node.body {
                Body::Xattr { name, .. } => Some(name.to_vec()),
                _ => None,
            })?);
            from = entry.end();
        }
        Ok(names)
    }
}
