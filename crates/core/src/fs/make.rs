//! New inodes.
//!
//! Invariant: what is made has its name, contents and attributes from the first on, or was never made.

use alloc::vec::Vec;

use nand::Nand;

use super::Fs;
use super::data::WritePart;
use super::dir::{NAMES_BYTES, check_name};
use super::types::*;
use super::xattr::{attribute_bytes, check_attribute};
use crate::error::{Error, Result};
use crate::format::inode::{Ino, Inode, kind, with_attribute};
use crate::format::tag::INO_MAX;
use crate::policy::budget::Call;
use crate::store::names::Spot;
use crate::store::records::Records;

/// Attributes a new inode can have from the first on.
const ATTRIBUTES_MAX: usize = 4;

impl<N: Nand> Fs<N> {
    /// Creates a file, directory or special file (by `node.mode`).
    pub fn create(&mut self, parent: Ino, name: &[u8], node: NewNode, now_ns: i64) -> Result<Attr> {
        self.create_with(parent, name, node, &[], now_ns)
    }

    /// Creates a file, directory or special file (by `node.mode`) that has extended attributes (at most 4), names and
    /// values, from the first on.
    pub fn create_with(
        &mut self,
        parent: Ino,
        name: &[u8],
        node: NewNode,
        attributes: &[Attribute<'_>],
        now_ns: i64,
    ) -> Result<Attr> {
        match node.mode & kind::MASK {
            kind::FILE | kind::DIR | kind::FIFO | kind::SOCKET | kind::CHAR | kind::BLOCK => {}
            _ => return Err(Error::Invalid("unknown file type")),
        }
        if attributes.len() > ATTRIBUTES_MAX {
            return Err(Error::Invalid("too many attributes to begin with"));
        }
        for (at, (name, value)) in attributes.iter().enumerate() {
            check_attribute(name, value)?;
            if attributes.iter().skip(at + 1).any(|(other, _)| other == name) {
                return Err(Error::Invalid("an attribute has one value"));
            }
        }
        let ino = self.make(parent, name, node, (b"", attributes), now_ns)?;
        self.getattr(ino)
    }

    /// Creates a symbolic link.
    pub fn symlink(
        &mut self,
        parent: Ino,
        name: &[u8],
        target: &[u8],
        uid: u32,
        gid: u32,
        now_ns: i64,
    ) -> Result<Attr> {
        if target.is_empty() {
            return Err(Error::NotFound);
        }
        if target.len() > 4095 {
            return Err(Error::NameTooLong);
        }
        let node = NewNode { mode: kind::SYMLINK | 0o777, uid, gid, rdev: 0 };
        let ino = self.make(parent, name, node, (target, &[]), now_ns)?;
        self.getattr(ino)
    }

    fn make(
        &mut self,
        parent: Ino,
        name: &[u8],
        node: NewNode,
        (content, attributes): (&[u8], &[Attribute<'_>]),
        now_ns: i64,
    ) -> Result<Ino> {
        check_name(name)?;
        let nodes: Vec<u64> =
            attributes.iter().map(|&each| self.records().attributes(parent).node_count(each)).collect();
        self.store.begin(Call::CHANGE.with_nodes(nodes.iter().sum()))?;
        let now_ns = self.stamp_ns(now_ns);
        let dir = self.records().directory(parent).inode()?;
        let Spot::Free(offset) = self.records().directory(parent).find(name)? else {
            return Err(Error::Exists);
        };
        if dir.nlink == 0 {
            return Err(Error::NotFound);
        }
        let more: u64 = attributes.iter().zip(&nodes).map(|(&each, &nodes)| attribute_bytes(each, nodes)).sum();
        self.records().need_bytes(NAMES_BYTES + content.len() as u64 + more)?;
        need_number(self.records())?;
        let directory = node.mode & kind::MASK == kind::DIR;
        let mut inode = Inode {
            rdev: node.rdev,
            parent: if directory { parent } else { 0 },
            ..Inode::new(node.mode & (kind::MASK | 0o7777), node.uid, node.gid, now_ns)
        };
        let offsets = self.records().attributes(parent).new_offsets(attributes);
        inode.attributes = offsets.iter().fold(0, |sum, &offset| with_attribute(sum, offset));
        let ino = self.records().new_inode(inode)?;
        for (chunk, data) in (0..).zip(content.chunks(self.records().chunk_bytes() as usize)) {
            self.put_part((ino, &mut inode), &WritePart { chunk, skip: 0, data, is_last: false }, now_ns)?;
        }
        for (&attribute, &offset) in attributes.iter().zip(&offsets) {
            self.records().attributes(ino).put(offset, attribute, true)?;
        }
        self.records().directory(parent).add_new(offset, (ino, inode.mode), name, now_ns)?;
        if directory {
            self.records().directory(parent).add_links(1)?;
        }
        self.store.end()?;
        Ok(ino)
    }
}

/// Whether one more inode can have a number.
pub(super) fn need_number<N: Nand>(records: &Records<N>) -> Result<()> {
    if records.volume().next_ino > INO_MAX { Err(Error::NoSpace) } else { Ok(()) }
}
