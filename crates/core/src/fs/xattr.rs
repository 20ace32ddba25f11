//! Extended attributes: a node each.

use alloc::vec::Vec;

use nand::Nand;

use super::Fs;
use super::types::{Attribute, NAME_MAX_BYTES};
use crate::error::{Error, Result};
use crate::format::inode::{Ino, with_attribute, without_attribute};
use crate::format::key::{COLLISION_SPAN, KeyKind, key, name_offset};
use crate::format::node::{Body, XATTR_HEAD_BYTES};
use crate::format::place::NODE_UNIT;
use crate::store::names::{self, Spot};
use crate::store::records::Records;
use crate::store::space;

/// What an attribute may take, bytes.
pub(super) fn attribute_bytes(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + 128
}

impl<N: Nand> Fs<N> {
    /// The value of an attribute.
    pub fn getxattr(&mut self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.records().inode(ino)?;
        match names::find(self.records(), ino, KeyKind::Xattr, name)? {
            Spot::Free(_) => Err(Error::NoAttribute),
            Spot::Taken { place, .. } => self.records().with_node(place, |_, node| match node.body {
                Body::Xattr { value, .. } => Some(value.to_vec()),
                _ => None,
            }),
        }
    }

    /// Sets an attribute. `create`: fail if it exists; `replace`: fail if it does not.
    pub fn setxattr(
        &mut self,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        create: bool,
        replace: bool,
        now_ns: i64,
    ) -> Result<()> {
        check_attribute(self.records(), name, value)?;
        self.store.begin(false)?;
        let (mut inode, now_ns) = (self.records().inode(ino)?, self.stamp_ns(now_ns));
        space::need_bytes(self.records(), attribute_bytes(name, value) as u64)?;
        let offset = match names::find(self.records(), ino, KeyKind::Xattr, name)? {
            Spot::Taken { .. } if create => return Err(Error::Exists),
            Spot::Free(_) if replace => return Err(Error::NoAttribute),
            Spot::Taken { offset, .. } => offset,
            Spot::Free(offset) => {
                inode.attributes = with_attribute(inode.attributes, offset);
                offset
            }
        };
        self.records().push(ino, Body::Xattr { offset, name, value })?;
        inode.ctime_ns = now_ns;
        self.records().put_inode(ino, inode)?;
        self.store.end()
    }

    /// The names of all attributes.
    pub fn listxattr(&mut self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.records().inode(ino)?;
        names::attributes(self.records(), ino)
    }

    /// Removes an attribute.
    pub fn removexattr(&mut self, ino: Ino, name: &[u8], now_ns: i64) -> Result<()> {
        self.store.begin(true)?;
        let (mut inode, now_ns) = (self.records().inode(ino)?, self.stamp_ns(now_ns));
        let Spot::Taken { offset, .. } = names::find(self.records(), ino, KeyKind::Xattr, name)? else {
            return Err(Error::NoAttribute);
        };
        self.records().remove(key(ino, KeyKind::Xattr, offset))?;
        self.records().push(ino, Body::XattrGone { offset })?;
        inode.attributes = without_attribute(inode.attributes, offset);
        inode.ctime_ns = now_ns;
        self.records().put_inode(ino, inode)?;
        self.store.end()
    }
}

pub(super) fn check_attribute<N: Nand>(records: &mut Records<N>, name: &[u8], value: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > NAME_MAX_BYTES {
        return Err(Error::Invalid("attribute names are 1 to 255 bytes long"));
    }
    if XATTR_HEAD_BYTES + name.len() + value.len() > records.chunk_bytes() as usize - 2 * NODE_UNIT {
        return Err(Error::TooLarge("an attribute and its name must fit one page"));
    }
    Ok(())
}

/// The offsets of the attributes of an inode that is being made.
pub(super) fn attribute_offsets<N: Nand>(records: &mut Records<N>, attributes: &[Attribute<'_>]) -> Vec<u64> {
    let seed = records.volume().hash_seed;
    let mut offsets: Vec<u64> = Vec::new();
    for (name, _) in attributes {
        let first = name_offset(seed, name);
        let offset = (first..first + COLLISION_SPAN).find(|offset| !offsets.contains(offset)).unwrap_or(first);
        offsets.push(offset);
    }
    offsets
}

/// Gives an inode that is being made its attributes: nothing is stored of it that would have to be looked at.
pub(super) fn put_attributes<N: Nand>(
    records: &mut Records<N>,
    ino: Ino,
    attributes: &[Attribute<'_>],
    offsets: &[u64],
) -> Result<()> {
    for ((name, value), &offset) in attributes.iter().zip(offsets) {
        records.push_new(ino, Body::Xattr { offset, name, value })?;
    }
    Ok(())
}
