//! A page of the index: sorted entries of 24 bytes behind a header of 16.
//!
//! A leaf (level 0) maps keys to places, a page above maps the first key of each child to the child's slot.
//! Invariant: decoded pages are sorted and no entry's keys reach into the next one's, or another inode's.

use alloc::sync::Arc;
use alloc::vec::Vec;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::key::{Key, ino_of};
use super::place::Place;
use super::tag::{low, wide};

const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 24;
/// Levels of the deepest tree that could be.
pub const LEVELS_MAX: u8 = 12;

/// A key and what it maps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Key,
    pub place: Place,
}

impl Entry {
    /// One past the last key the entry covers.
    pub fn end(&self) -> Key {
        self.key + u128::from(self.place.span())
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct RawEntry {
    key: [u8; 14],
    slot: [u8; 5],
    kind: u8,
    count: U16,
    at: u8,
    pad: u8,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct Header {
    level: u8,
    pad: u8,
    count: U16,
    reserved: [U32; 3],
}

const RUN: u8 = 1;
const NODE: u8 = 2;
const MARK: u8 = 3;
const RESERVED: u8 = 4;

/// Entries that fit a slot of this many bytes.
pub fn capacity(slot_bytes: usize) -> usize {
    slot_bytes.saturating_sub(HEADER_BYTES) / ENTRY_BYTES
}

/// A page's bytes, `slot_bytes` long.
pub fn encode(level: u8, entries: &[Entry], slot_bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(slot_bytes);
    let header = Header { level, pad: 0, count: U16::new(entries.len() as u16), reserved: [U32::new(0); 3] };
    out.extend_from_slice(header.as_bytes());
    for entry in entries {
        let (kind, slot, count, at) = match entry.place {
            Place::Run { slot, count } => (RUN, slot, count as u16, 0),
            Place::Node { slot, at, units } => (NODE, slot, u16::from(units), at),
            Place::Reserved { count } => (RESERVED, 0, count as u16, 0),
            Place::Mark | Place::Pending { .. } => (MARK, 0, 0, 0),
        };
        let mut key = [0; 14];
        for (to, from) in key.iter_mut().zip(entry.key.to_le_bytes()) {
            *to = from;
        }
        let raw = RawEntry { key, slot: low(slot), kind, count: U16::new(count), at, pad: 0 };
        out.extend_from_slice(raw.as_bytes());
    }
    out.resize(slot_bytes, 0);
    out
}

/// A checked page, read in place.
#[derive(Clone)]
pub struct Page {
    bytes: Arc<[u8]>,
    count: usize,
}

impl Page {
    /// The page of `level` in `bytes`; `None` if it is not one, or is out of order.
    pub fn parse(bytes: Arc<[u8]>, level: u8) -> Option<Self> {
        let (header, _) = Header::ref_from_prefix(&bytes).ok()?;
        let count = usize::from(header.count.get());
        if header.level != level || count == 0 || count > capacity(bytes.len()) {
            return None;
        }
        let page = Self { bytes, count };
        let mut end = 0;
        for index in 0..count {
            let entry = page.get(index)?;
            if entry.key < end
                || ino_of(entry.key) != ino_of(entry.end() - 1)
                || (level > 0 && !matches!(entry.place, Place::Run { count: 1, .. }))
            {
                return None;
            }
            end = entry.end();
        }
        Some(page)
    }

    /// The page in `bytes` that [`Page::parse`] accepted before.
    pub fn trusted(bytes: Arc<[u8]>) -> Self {
        let count = Header::ref_from_prefix(&bytes).map_or(0, |(header, _)| usize::from(header.count.get()));
        Self { bytes, count }
    }

    /// The `index`th entry.
    pub fn get(&self, index: usize) -> Option<Entry> {
        let start = HEADER_BYTES + index * ENTRY_BYTES;
        let raw = RawEntry::ref_from_bytes(self.bytes.get(start..start + ENTRY_BYTES)?).ok()?;
        if index >= self.count {
            return None;
        }
        let slot = wide(&raw.slot);
        let place = match raw.kind {
            RUN if raw.count.get() > 0 => Place::Run { slot, count: u32::from(raw.count.get()) },
            NODE if (1..256).contains(&raw.count.get()) => {
                Place::Node { slot, at: raw.at, units: raw.count.get() as u8 }
            }
            MARK => Place::Mark,
            RESERVED if raw.count.get() > 0 => Place::Reserved { count: u32::from(raw.count.get()) },
            _ => return None,
        };
        Some(Entry { key: key_of(raw), place })
    }

    /// The number of entries whose key is at most `key`.
    pub fn upper(&self, key: Key) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle) {
                Some(found) if found <= key => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    /// The key of the `index`th entry.
    pub fn key(&self, index: usize) -> Option<Key> {
        if index >= self.count {
            return None;
        }
        let start = HEADER_BYTES + index * ENTRY_BYTES;
        RawEntry::ref_from_bytes(self.bytes.get(start..start + ENTRY_BYTES)?).ok().map(key_of)
    }

    /// All entries.
    pub fn entries(&self) -> Vec<Entry> {
        (0..self.count).filter_map(|index| self.get(index)).collect()
    }
}

fn key_of(raw: &RawEntry) -> Key {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(raw.key) {
        *to = from;
    }
    Key::from_le_bytes(bytes)
}
