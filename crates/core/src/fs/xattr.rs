//! Extended attributes.

use alloc::vec::Vec;

use nand::Nand;

use super::Fs;
use super::types::{Attribute, NAME_MAX_BYTES};
use crate::error::{Error, Result};
use crate::format::inode::{Ino, with_attribute, without_attribute};
use crate::format::node::XATTR_VALUE_MAX;
use crate::policy::budget::Call;

/// What an attribute of so many nodes may take, bytes.
pub(super) fn attribute_bytes((name, value): Attribute<'_>, nodes: u64) -> u64 {
    (name.len() + value.len()) as u64 + 128 * nodes
}

impl<N: Nand> Fs<N> {
    /// The value of an attribute.
    pub fn getxattr(&mut self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        self.records().inode(ino)?;
        match self.records().attributes(ino).find(name)? {
            Some(offsets) => self.records().attributes(ino).value(offsets.start),
            None => Err(Error::NoAttribute),
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
        check_attribute(name, value)?;
        let nodes = self.records().attributes(ino).node_count((name, value));
        self.store.begin(Call::CHANGE.with_nodes(nodes))?;
        let (mut inode, now_ns) = (self.records().inode(ino)?, self.stamp_ns(now_ns));
        self.records().need_bytes(attribute_bytes((name, value), nodes))?;
        let old = match self.records().attributes(ino).find(name)? {
            Some(_) if create => return Err(Error::Exists),
            None if replace => return Err(Error::NoAttribute),
            old => old,
        };
        let is_new = old.is_none();
        let offset = self.records().attributes(ino).set(old, (name, value))?;
        if is_new {
            inode.attributes = with_attribute(inode.attributes, offset);
        }
        inode.ctime_ns = now_ns;
        self.records().put_inode(ino, inode)?;
        self.store.end()
    }

    /// The names of all attributes.
    pub fn listxattr(&mut self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.records().inode(ino)?;
        self.records().attributes(ino).names()
    }

    /// Removes an attribute.
    pub fn removexattr(&mut self, ino: Ino, name: &[u8], now_ns: i64) -> Result<()> {
        self.store.begin(Call::REMOVAL)?;
        let (mut inode, now_ns) = (self.records().inode(ino)?, self.stamp_ns(now_ns));
        let Some(offsets) = self.records().attributes(ino).find(name)? else {
            return Err(Error::NoAttribute);
        };
        let offset = offsets.start;
        self.records().attributes(ino).remove(offsets)?;
        inode.attributes = without_attribute(inode.attributes, offset);
        inode.ctime_ns = now_ns;
        self.records().put_inode(ino, inode)?;
        self.store.end()
    }
}

pub(super) fn check_attribute(name: &[u8], value: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > NAME_MAX_BYTES {
        return Err(Error::Invalid("attribute names are 1 to 255 bytes long"));
    }
    if value.len() > XATTR_VALUE_MAX as usize {
        return Err(Error::TooLarge("the value of an attribute has at most 64 KiB"));
    }
    Ok(())
}
