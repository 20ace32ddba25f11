//! Nodes: the small things of the log, packed into shared slots.
//!
//! A node is a 16-byte head and a body, padded to a multiple of 16. An original says how far back in the log it was
//! made, a copy where it was copied from. Invariant: [`nodes`] stops at the first node that is not whole.

use alloc::vec::Vec;

use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::inode::Inode;
use super::key::{COLLISION_SPAN, Key, KeyKind, NAME_OFFSETS_END, key};
use super::place::{NODE_UNIT, Slot};
use super::tag::{CHUNKS_MAX, INO_MAX, low, wide};

/// Bytes of a node's head.
pub const HEAD_BYTES: usize = 16;
/// Bytes of a data node before its content.
pub const DATA_HEAD_BYTES: usize = HEAD_BYTES + 24;
/// Bytes before what an attribute's node holds of name and value.
pub const XATTR_HEAD_BYTES: usize = HEAD_BYTES + 16;
/// The largest value of an attribute, bytes: what Linux allows.
pub const XATTR_VALUE_MAX: u32 = 1 << 16;

/// When a node takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Before the slot `back` sequence numbers before the one the node stands in.
    Back(u16),
    /// Only if the index still points to this place: the node is a copy of it.
    CopyOf { slot: Slot, at: u8 },
}

/// What a node says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    Inode(Inode),
    /// A directory entry: `ino` is the directory.
    Entry {
        offset: u64,
        child: u64,
        mode: u32,
        time_ns: i64,
        name: &'a [u8],
    },
    /// The entry is gone.
    EntryGone {
        offset: u64,
        time_ns: i64,
    },
    /// A chunk that is short or compressed.
    Data {
        chunk: u64,
        /// When it was written.
        time_ns: i64,
        /// The file's times became `time_ns` with it.
        dated: bool,
        /// Bytes when unpacked.
        len: u32,
        lz4: bool,
        bytes: &'a [u8],
    },
    /// Chunks `from .. from + count` are holes now.
    Cut {
        from: u64,
        count: u64,
    },
    /// An extended attribute: its name, and as much of its value as there is space for.
    Xattr {
        offset: u64,
        name: &'a [u8],
        value: &'a [u8],
        /// Bytes of the whole value.
        value_len: u32,
    },
    /// More of the value of an attribute that begins `part` offsets before.
    XattrPart {
        offset: u64,
        part: u16,
        /// Of the whole value: parts of different values do not make one.
        check: u32,
        bytes: &'a [u8],
    },
    /// What stood at the `count` offsets of attributes from `offset` on is gone.
    XattrGone {
        offset: u64,
        count: u64,
    },
    /// The inode and all it had is gone.
    Forget,
    /// Space is kept for those of the chunks `from .. from + count` that are holes.
    Reserve {
        from: u64,
        count: u64,
    },
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    pub ino: u64,
    pub order: Order,
    pub body: Body<'a>,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct Head {
    len: U16,
    kind: u8,
    flags: u8,
    order: [u8; 6],
    ino: [u8; 6],
}

const FLAG_COPY: u8 = 1;
const FLAG_LZ4: u8 = 2;
const FLAG_DATED: u8 = 4;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct RawEntry {
    offset: U64,
    child: U64,
    time_ns: I64,
    mode: U32,
    name_len: U16,
    reserved: U16,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct RawData {
    chunk: U64,
    time_ns: I64,
    len: U16,
    stored: U16,
    reserved: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct RawXattr {
    offset: U64,
    name_len: U16,
    /// Of the value, what stands in this node.
    part_len: U16,
    value_len: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct RawXattrPart {
    offset: U64,
    part: U16,
    part_len: U16,
    check: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct RawPair {
    first: U64,
    second: U64,
}

impl<'a> Node<'a> {
    /// The key it is found under, if it leaves something to find.
    pub fn key(&self) -> Option<Key> {
        match self.body {
            Body::Inode(_) => Some(key(self.ino, KeyKind::Inode, 0)),
            Body::Entry { offset, .. } => Some(key(self.ino, KeyKind::Entry, offset)),
            Body::Data { chunk, .. } => Some(key(self.ino, KeyKind::Data, chunk)),
            Body::Xattr { offset, .. } | Body::XattrPart { offset, .. } => Some(key(self.ino, KeyKind::Xattr, offset)),
            Body::EntryGone { .. }
            | Body::Cut { .. }
            | Body::XattrGone { .. }
            | Body::Forget
            | Body::Reserve { .. } => None,
        }
    }

    /// The node's bytes, padded; its order is set later by [`set_order`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = alloc::vec![0; HEAD_BYTES];
        let (kind, flags) = self.encode_body(&mut out);
        out.resize(out.len().next_multiple_of(NODE_UNIT), 0);
        let head = Head { len: U16::new(out.len() as u16), kind, flags, order: [0; 6], ino: low(self.ino) };
        if let Some(to) = out.get_mut(..HEAD_BYTES) {
            to.copy_from_slice(head.as_bytes());
        }
        set_order(&mut out, self.order);
        out
    }

    fn encode_body(&self, out: &mut Vec<u8>) -> (u8, u8) {
        match self.body {
            Body::Inode(inode) => {
                inode.encode(out);
                (1, 0)
            }
            Body::Entry { offset, child, mode, time_ns, name } => {
                let raw = RawEntry {
                    offset: U64::new(offset),
                    child: U64::new(child),
                    time_ns: I64::new(time_ns),
                    mode: U32::new(mode),
                    name_len: U16::new(name.len() as u16),
                    reserved: U16::new(0),
                };
                out.extend_from_slice(raw.as_bytes());
                out.extend_from_slice(name);
                (2, 0)
            }
            Body::EntryGone { offset, time_ns } => (3, encode_pair(out, offset, time_ns as u64)),
            Body::Data { chunk, time_ns, dated, len, lz4, bytes } => {
                let raw = RawData {
                    chunk: U64::new(chunk),
                    time_ns: I64::new(time_ns),
                    len: U16::new(len as u16),
                    stored: U16::new(bytes.len() as u16),
                    reserved: U32::new(0),
                };
                out.extend_from_slice(raw.as_bytes());
                out.extend_from_slice(bytes);
                let flags = [(lz4, FLAG_LZ4), (dated, FLAG_DATED)];
                (4, flags.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag))
            }
            Body::Cut { from, count } => (5, encode_pair(out, from, count)),
            Body::Xattr { offset, name, value, value_len } => {
                let raw = RawXattr {
                    offset: U64::new(offset),
                    name_len: U16::new(name.len() as u16),
                    part_len: U16::new(value.len() as u16),
                    value_len: U32::new(value_len),
                };
                out.extend_from_slice(raw.as_bytes());
                out.extend_from_slice(name);
                out.extend_from_slice(value);
                (6, 0)
            }
            Body::XattrGone { offset, count } => (7, encode_pair(out, offset, count)),
            Body::Forget => (8, 0),
            Body::Reserve { from, count } => (9, encode_pair(out, from, count)),
            Body::XattrPart { offset, part, check, bytes } => {
                let raw = RawXattrPart {
                    offset: U64::new(offset),
                    part: U16::new(part),
                    part_len: U16::new(bytes.len() as u16),
                    check: U32::new(check),
                };
                out.extend_from_slice(raw.as_bytes());
                out.extend_from_slice(bytes);
                (10, 0)
            }
        }
    }

    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (head, body) = Head::ref_from_prefix(bytes).ok()?;
        let ino = wide(&head.ino);
        if ino > INO_MAX {
            return None;
        }
        let order = if head.flags & FLAG_COPY != 0 {
            let [slot @ .., at] = &head.order;
            Order::CopyOf { slot: wide(slot), at: *at }
        } else {
            let [low_byte, high_byte, ..] = head.order;
            Order::Back(u16::from_le_bytes([low_byte, high_byte]))
        };
        let body = match head.kind {
            1 => Body::Inode(Inode::decode(body)?),
            2 => {
                let (raw, rest) = RawEntry::ref_from_prefix(body).ok()?;
                let name = rest.get(..usize::from(raw.name_len.get()))?;
                let child = raw.child.get();
                if child > INO_MAX {
                    return None;
                }
                let (offset, time_ns) = (raw.offset.get(), raw.time_ns.get());
                Body::Entry { offset, child, mode: raw.mode.get(), time_ns, name }
            }
            3 => {
                let (offset, time) = decode_pair(body)?;
                Body::EntryGone { offset, time_ns: time as i64 }
            }
            4 => decode_data(body, head.flags)?,
            5 => {
                let (from, count) = decode_range(body)?;
                Body::Cut { from, count }
            }
            6 => {
                let (raw, rest) = RawXattr::ref_from_prefix(body).ok()?;
                let (name, rest) = rest.split_at_checked(usize::from(raw.name_len.get()))?;
                let value = rest.get(..usize::from(raw.part_len.get()))?;
                let (offset, value_len) = (raw.offset.get(), raw.value_len.get());
                if offset >= NAME_OFFSETS_END || value_len > XATTR_VALUE_MAX || (value_len as usize) < value.len() {
                    return None;
                }
                Body::Xattr { offset, name, value, value_len }
            }
            7 => {
                let (offset, count) = decode_pair(body).filter(|&(offset, count)| are_of_one_hash(offset, count))?;
                Body::XattrGone { offset, count }
            }
            8 => Body::Forget,
            9 => {
                let (from, count) = decode_range(body)?;
                Body::Reserve { from, count }
            }
            10 => {
                let (raw, rest) = RawXattrPart::ref_from_prefix(body).ok()?;
                let bytes = rest.get(..usize::from(raw.part_len.get()))?;
                let offset = Some(raw.offset.get()).filter(|&offset| offset < NAME_OFFSETS_END)?;
                Body::XattrPart { offset, part: raw.part.get(), check: raw.check.get(), bytes }
            }
            _ => return None,
        };
        Some(Self { ino, order, body })
    }
}

fn decode_data(body: &[u8], flags: u8) -> Option<Body<'_>> {
    let (raw, rest) = RawData::ref_from_prefix(body).ok()?;
    if raw.chunk.get() >= CHUNKS_MAX || raw.len.get() > 4096 || raw.len.get() == 0 {
        return None;
    }
    Some(Body::Data {
        chunk: raw.chunk.get(),
        time_ns: raw.time_ns.get(),
        dated: flags & FLAG_DATED != 0,
        len: u32::from(raw.len.get()),
        lz4: flags & FLAG_LZ4 != 0,
        bytes: rest.get(..usize::from(raw.stored.get()))?,
    })
}

fn encode_pair(out: &mut Vec<u8>, first: u64, second: u64) -> u8 {
    out.extend_from_slice(RawPair { first: U64::new(first), second: U64::new(second) }.as_bytes());
    0
}

fn decode_pair(body: &[u8]) -> Option<(u64, u64)> {
    let (raw, _) = RawPair::ref_from_prefix(body).ok()?;
    Some((raw.first.get(), raw.second.get()))
}

/// A range of chunks: the first, and how many.
fn decode_range(body: &[u8]) -> Option<(u64, u64)> {
    decode_pair(body).filter(|(from, count)| from.checked_add(*count).is_some_and(|end| end <= CHUNKS_MAX))
}

/// Whether so many offsets in a row are all of names with one hash.
fn are_of_one_hash(offset: u64, count: u64) -> bool {
    offset < NAME_OFFSETS_END && (1..=COLLISION_SPAN - offset % COLLISION_SPAN).contains(&count)
}

/// Sets when an encoded node takes effect.
pub fn set_order(bytes: &mut [u8], order: Order) {
    let Ok((head, _)) = Head::mut_from_prefix(bytes) else { return };
    head.order = [0; 6];
    match order {
        Order::Back(back) => {
            head.flags &= !FLAG_COPY;
            let [low_byte, high_byte, ..] = &mut head.order;
            [*low_byte, *high_byte] = back.to_le_bytes();
        }
        Order::CopyOf { slot, at } => {
            head.flags |= FLAG_COPY;
            let [address @ .., last] = &mut head.order;
            *address = low(slot);
            *last = at;
        }
    }
}

/// The node that starts `at` × 16 bytes into a slot's bytes.
pub fn node_at(slot_bytes: &[u8], at: u8) -> Option<Node<'_>> {
    let bytes = slot_bytes.get(usize::from(at) * NODE_UNIT..)?;
    Node::decode(bytes.get(..node_len(bytes)?)?)
}

fn node_len(bytes: &[u8]) -> Option<usize> {
    let (head, _) = Head::ref_from_prefix(bytes).ok()?;
    let len = usize::from(head.len.get());
    (len >= HEAD_BYTES && len.is_multiple_of(NODE_UNIT) && len <= bytes.len()).then_some(len)
}

/// The nodes of a slot with `len` valid bytes: where each stands (in units), how long it is, and what it says.
pub fn nodes(slot_bytes: &[u8], len: usize) -> impl Iterator<Item = (u8, u8, Node<'_>)> {
    let bytes = slot_bytes.get(..len).unwrap_or(&[]);
    let mut start = 0;
    core::iter::from_fn(move || {
        let rest = bytes.get(start..)?;
        let len = node_len(rest)?;
        let node = Node::decode(rest.get(..len)?)?;
        let at = u8::try_from(start / NODE_UNIT).ok()?;
        start += len;
        Some((at, u8::try_from(len / NODE_UNIT).ok()?, node))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(body: Body<'_>, order: Order) {
        let node = Node { ino: 77, order, body };
        let bytes = node.encode();
        assert_eq!(bytes.len() % NODE_UNIT, 0);
        let found: Vec<_> = nodes(&bytes, bytes.len()).collect();
        assert_eq!(found, [(0, (bytes.len() / NODE_UNIT) as u8, node)]);
    }

    #[test]
    fn every_kind_of_node_comes_back() {
        round_trip(Body::Forget, Order::Back(9));
        round_trip(Body::Cut { from: 3, count: 9 }, Order::Back(0));
        round_trip(Body::Reserve { from: 1 << 40, count: 70_000 }, Order::Back(2));
        round_trip(
            Body::Entry { offset: 1 << 40, child: 5, mode: 0o100644, time_ns: -4, name: b"a name" },
            Order::CopyOf { slot: 0xff_1234_5678, at: 17 },
        );
        let data = |lz4, dated| Body::Data { chunk: 8, time_ns: 1, dated, len: 11, lz4, bytes: b"hello world" };
        round_trip(data(true, false), Order::Back(1));
        round_trip(data(false, true), Order::Back(1));
        round_trip(Body::Xattr { offset: 4, name: b"user.a", value: b"v", value_len: 9000 }, Order::Back(1));
        round_trip(Body::XattrPart { offset: 5, part: 1, check: 7, bytes: b"alue" }, Order::Back(1));
        round_trip(Body::XattrGone { offset: 0x1_ffff, count: 1 }, Order::Back(1));
    }

    #[test]
    fn a_node_cut_short_is_not_believed() {
        let bytes = Node { ino: 1, order: Order::Back(0), body: Body::Forget }.encode();
        assert_eq!(nodes(&bytes, bytes.len() - 1).count(), 0);
    }

    #[test]
    fn attributes_of_other_names_are_not_removed_with_those_of_one() {
        let gone = |count| Node { ino: 1, order: Order::Back(0), body: Body::XattrGone { offset: 0x1_fffe, count } };
        let whole = |count| nodes(&gone(count).encode(), 32).count() == 1;
        assert_eq!([0, 1, 2, 3].map(whole), [false, true, true, false]);
    }
}
