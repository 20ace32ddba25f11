//! Extended attributes: a node with the name and the beginning of the value, and as many behind it as the rest takes.
//!
//! Invariant: the nodes of an attribute stand at consecutive offsets of its name's hash, and the value that is read is one
//! that was set as a whole.

use alloc::vec::Vec;
use core::ops::Range;

use nand::Nand;

use super::names::Spot;
use super::records::Records;
use crate::error::{Error, Result};
use crate::format::crc::crc32c;
use crate::format::inode::Ino;
use crate::format::key::{COLLISION_SPAN, Key, KeyKind, key, name_offset, offset_of};
use crate::format::node::{Body, XATTR_HEAD_BYTES};
use crate::format::place::{NODE_UNIT, Place};
use crate::index::delta::Change;

/// The offsets of an attribute's nodes.
pub type Offsets = Range<u64>;

/// Bytes of name and value that one node has space for.
fn node_room(slot_bytes: usize) -> usize {
    slot_bytes - 2 * NODE_UNIT - XATTR_HEAD_BYTES
}

/// Nodes of an attribute.
fn nodes(slot_bytes: usize, name_bytes: usize, value_bytes: usize) -> u64 {
    (name_bytes + value_bytes).div_ceil(node_room(slot_bytes)).max(1) as u64
}

/// The offsets of an attribute, and its value if its nodes are all there.
struct Found {
    offsets: Offsets,
    value: Vec<u8>,
    /// Bytes of the value as it was set.
    value_bytes: usize,
    /// Where the first node stands.
    place: Place,
}

/// The attributes of an inode.
pub struct Attributes<'a, N: Nand> {
    records: &'a mut Records<N>,
    ino: Ino,
}

impl<N: Nand> Records<N> {
    /// The attributes of an inode.
    pub fn attributes(&mut self, ino: Ino) -> Attributes<'_, N> {
        Attributes { records: self, ino }
    }
}

impl<N: Nand> Attributes<'_, N> {
    /// The offset of each of these where the inode has none yet.
    pub fn new_offsets(&self, attributes: &[(&[u8], &[u8])]) -> Vec<u64> {
        let (seed, slot_bytes) = (self.records.volume.hash_seed, self.records.flash().shape().slot_bytes);
        let mut taken: Vec<Offsets> = Vec::new();
        for (name, value) in attributes {
            let first = name_offset(seed, name);
            let behind = taken.iter().filter(|offsets| offsets.start & !(COLLISION_SPAN - 1) == first);
            let offset = behind.map(|offsets| offsets.end).max().unwrap_or(first);
            taken.push(offset..offset + nodes(slot_bytes, name.len(), value.len()));
        }
        taken.into_iter().map(|offsets| offsets.start).collect()
    }

    /// Nodes of this attribute.
    pub fn node_count(&self, (name, value): (&[u8], &[u8])) -> u64 {
        nodes(self.records.flash().shape().slot_bytes, name.len(), value.len())
    }

    /// What the first node of an attribute says; `None` where none stands at `offset`.
    fn first(&mut self, offset: u64) -> Result<Option<Found>> {
        let slot_bytes = self.records.flash().shape().slot_bytes;
        let Some(place) = self.records.get(key(self.ino, KeyKind::Xattr, offset))? else { return Ok(None) };
        self.records.with_node(place, |_, node| match node.body {
            Body::Xattr { name, value, value_len, .. } => {
                let count = nodes(slot_bytes, name.len(), value_len as usize);
                // A node that claims more than there is behind it takes nothing from other names.
                let end = (offset + count).min((offset | (COLLISION_SPAN - 1)) + 1);
                Some(Some(Found {
                    offsets: offset..end,
                    value: value.to_vec(),
                    value_bytes: value_len as usize,
                    place,
                }))
            }
            Body::XattrPart { .. } => Some(None),
            _ => None,
        })
    }

    /// The offsets of the attribute whose first node stands at `offset`; `None` where none does.
    pub fn offsets(&mut self, offset: u64) -> Result<Option<Offsets>> {
        Ok(self.first(offset)?.map(|found| found.offsets))
    }

    /// The value of the attribute whose first node stands at `offset`.
    pub fn value(&mut self, offset: u64) -> Result<Vec<u8>> {
        let Found { offsets, mut value, value_bytes, place } = self.first(offset)?.ok_or(Error::NoAttribute)?;
        let slot = if let Place::Node { slot, .. } = place { slot } else { 0 };
        let damaged = Error::Corrupt { what: "an attribute that lacks a part, or has one of another value,", slot };
        let mut checks = Vec::new();
        for (number, at) in offsets.enumerate().skip(1) {
            let Some(place) = self.records.get(key(self.ino, KeyKind::Xattr, at))? else { return Err(damaged) };
            checks.push(self.records.with_node(place, |_, node| match node.body {
                Body::XattrPart { part, check, bytes, .. } if usize::from(part) == number => {
                    value.extend_from_slice(bytes);
                    Some(check)
                }
                _ => None,
            })?);
        }
        let check = check_of(&value);
        let whole = value.len() == value_bytes && checks.iter().all(|&found| found == check);
        if whole { Ok(value) } else { Err(damaged) }
    }

    /// Makes the nodes of an attribute, from `offset` on; `fresh`: nothing stands there.
    pub fn put(&mut self, offset: u64, (name, value): (&[u8], &[u8]), fresh: bool) -> Result<()> {
        let room = node_room(self.records.flash().shape().slot_bytes);
        let (head, rest) = value.split_at(value.len().min(room - name.len()));
        let check = check_of(value);
        let body = Body::Xattr { offset, name, value: head, value_len: value.len() as u32 };
        self.records.push_node(self.ino, body, fresh)?;
        for (part, bytes) in (1u16..).zip(rest.chunks(room)) {
            let body = Body::XattrPart { offset: offset + u64::from(part), part, check, bytes };
            self.records.push_node(self.ino, body, fresh)?;
        }
        Ok(())
    }

    /// Sets the value of an attribute whose nodes stand at `old`, or that is not there yet. The offset of its first node.
    pub fn set(&mut self, old: Option<Offsets>, attribute: (&[u8], &[u8])) -> Result<u64> {
        let count = self.node_count(attribute);
        let old = old.unwrap_or(0..0);
        let first = name_offset(self.records.volume.hash_seed, attribute.0);
        let stays = count <= old.end - old.start;
        let offset = if stays { old.start } else { self.free_run(first, count, &old)? };
        self.put(offset, attribute, false)?;
        self.remove(old.start..old.end.min(offset))?;
        self.remove(old.start.max(offset + count)..old.end)?;
        Ok(offset)
    }

    /// Removes nodes of attributes.
    pub fn remove(&mut self, offsets: Offsets) -> Result<()> {
        if offsets.is_empty() {
            return Ok(());
        }
        let count = offsets.end - offsets.start;
        self.records.set(key(self.ino, KeyKind::Xattr, offsets.start), Change::Cut(Key::from(count)))?;
        self.records.push(self.ino, Body::XattrGone { offset: offsets.start, count })
    }

    /// The lowest of `count` offsets in a row, of those from `first` on, that are free or among `own`.
    fn free_run(&mut self, first: u64, count: u64, own: &Offsets) -> Result<u64> {
        let mut free = first;
        let mut from = key(self.ino, KeyKind::Xattr, first);
        let to = from + Key::from(COLLISION_SPAN);
        while let Some(entry) = self.records.next(from, to)? {
            let offset = offset_of(entry.key);
            if offset >= free + count {
                break;
            }
            if !own.contains(&offset) {
                free = offset + 1;
            }
            from = entry.end();
        }
        if free + count > first + COLLISION_SPAN {
            return Err(Error::Invalid("too many names with one hash"));
        }
        Ok(free)
    }

    /// Where an attribute of this name stands.
    pub fn find(&mut self, name: &[u8]) -> Result<Option<Offsets>> {
        match self.records.directory(self.ino).find_among(KeyKind::Xattr, name)? {
            Spot::Taken { offset, .. } => self.offsets(offset),
            Spot::Free(_) => Ok(None),
        }
    }

    /// The names of all attributes.
    pub fn names(&mut self) -> Result<Vec<Vec<u8>>> {
        let (mut from, to) = (key(self.ino, KeyKind::Xattr, 0), key(self.ino, KeyKind::Data, 0));
        let mut names = Vec::new();
        let slot_bytes = self.records.flash().shape().slot_bytes;
        while let Some(entry) = self.records.next(from, to)? {
            let (name, count) = self.records.with_node(entry.place, |_, node| match node.body {
                Body::Xattr { name, value_len, .. } => {
                    Some((Some(name.to_vec()), nodes(slot_bytes, name.len(), value_len as usize)))
                }
                Body::XattrPart { .. } => Some((None, 1)),
                _ => None,
            })?;
            names.extend(name);
            from = entry.key + Key::from(count);
        }
        Ok(names)
    }
}

/// What every part bears of the value that it belongs to.
fn check_of(value: &[u8]) -> u32 {
    crc32c(&[], value)
}
