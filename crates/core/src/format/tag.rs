//! The 32-byte tag in the spare area: what a slot holds, where in the log it stands, and its checksum.
//!
//! A *slot* is a data chunk's worth of a page (the whole page where that is 4 KiB or less). Invariant: a tag is
//! believed only after [`Tag::decode`] has checked the CRC-32C over the tag, the volume's seed and the slot's data.

use zerocopy::little_endian::{U32, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::crc::crc32c;

/// Bytes of an encoded tag.
pub const TAG_BYTES: usize = 32;
/// Largest inode number (40 bits).
pub const INO_MAX: u64 = (1 << 40) - 1;
/// Chunks a file can have (51 bits: 2^63 bytes of 4 KiB chunks).
pub const CHUNKS_MAX: u64 = 1 << 51;
/// Largest erase count a tag can carry (20 bits); larger ones saturate.
pub const ERASES_MAX: u32 = (1 << 20) - 1;
/// Nanoseconds in one unit of a tag's time.
pub const TICK_NS: i64 = 128_000;
const STAMP_MAX: u64 = (1 << 45) - 1;
/// Of a time's bits, the lowest that a copy leaves out: it tells when to 134 s.
const COARSE_BITS: u32 = 20;
const SLOT_MAX: u64 = (1 << 40) - 1;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A bare chunk of file data.
    Data,
    /// Packed nodes.
    Nodes,
    /// A part of a block's summary.
    Summary,
    /// A page of the index.
    Index,
    /// A page of the block table.
    Table,
    /// A checkpoint's anchor.
    Anchor,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Data => 1,
            Kind::Nodes => 2,
            Kind::Summary => 3,
            Kind::Index => 4,
            Kind::Table => 5,
            Kind::Anchor => 6,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Kind::Data, Kind::Nodes, Kind::Summary, Kind::Index, Kind::Table, Kind::Anchor]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// A slot's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    pub kind: Kind,
    /// Ends a group: everything up to this sequence number counts.
    pub end: bool,
    /// A relocated copy, of `source` where it is one of bare data.
    pub copy: bool,
    /// Written while formatting or recovering: replay passes over it, only a checkpoint makes it count.
    pub unlogged: bool,
    /// Place in the log, 48 bits.
    pub seq: u64,
    /// The file (bare data) or 0.
    pub ino: u64,
    /// The chunk of the file (bare data), else a figure of the kind's own.
    pub chunk: u64,
    /// Valid bytes of the slot, at least 1.
    pub len: u32,
    /// Erase count of the block the slot stands in; a copy of bare data bears it only in the first slot of a block.
    pub erases: Option<u32>,
    /// When bare data was written, in ticks of [`TICK_NS`] since 1970. In a copy the ticks are cut off to 2^20; 0 where the
    /// copy bears an erase count instead.
    pub stamp: u64,
    /// The slot that a copy of bare data was taken from, else 0.
    pub source: u64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct Raw {
    crc: U32,
    seq: [u8; 6],
    ino: [u8; 5],
    kind_flags: u8,
    /// chunk 51, len - 1 12, and erases 20, stamp 45; or, in a copy of bare data, erases 20, source 40, 5 zeros; or, where
    /// it is `aged`, source 40, the upper bits of the stamp 25.
    bits: U128,
}

const FLAG_END: u8 = 1 << 4;
const FLAG_COPY: u8 = 1 << 5;
const FLAG_UNLOGGED: u8 = 1 << 6;
const FLAG_AGED: u8 = 1 << 7;

impl Tag {
    /// The tag's bytes, with the checksum over `data` seeded by `seed`.
    pub fn encode(&self, seed: u32, data: &[u8]) -> [u8; TAG_BYTES] {
        let aged = self.copies_data() && self.erases.is_none();
        let flags = [(self.end, FLAG_END), (self.copy, FLAG_COPY), (self.unlogged, FLAG_UNLOGGED), (aged, FLAG_AGED)];
        let flags = flags.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag);
        let len = u128::from(self.len.saturating_sub(1) & 0xfff);
        let erases = u128::from(self.erases.unwrap_or(0).min(ERASES_MAX));
        let (source, stamp) = (u128::from(self.source & SLOT_MAX), u128::from(self.stamp & STAMP_MAX));
        let rest = match (self.copies_data(), aged) {
            (false, _) => erases | stamp << 20,
            (true, false) => erases | source << 20,
            (true, true) => source | stamp >> COARSE_BITS << 40,
        };
        let bits = u128::from(self.chunk & (CHUNKS_MAX - 1)) | len << 51 | rest << 63;
        let mut raw = Raw {
            crc: U32::new(seed),
            seq: low(self.seq),
            ino: low(self.ino),
            kind_flags: self.kind.code() | flags,
            bits: U128::new(bits),
        };
        raw.crc = U32::new(crc32c(raw.as_bytes(), data));
        zerocopy::transmute!(raw)
    }

    fn copies_data(&self) -> bool {
        self.copy && self.kind == Kind::Data
    }

    /// The tag for the slot `index` of a block that was erased so many times.
    pub fn placed(self, index: u32, erases: u32) -> Self {
        match (self.copies_data(), index) {
            (true, 0) => Self { erases: Some(erases), stamp: 0, ..self },
            (true, _) => Self { erases: None, ..self },
            (false, _) => Self { erases: Some(erases), ..self },
        }
    }

    /// The tag in `bytes`, if its checksum over `data` holds.
    pub fn decode(bytes: &[u8; TAG_BYTES], seed: u32, data: &[u8]) -> Option<Self> {
        let mut raw: Raw = zerocopy::transmute!(*bytes);
        let crc = raw.crc.get();
        raw.crc = U32::new(seed);
        if crc32c(raw.as_bytes(), data) != crc {
            return None;
        }
        Self::fields(&raw)
    }

    /// The tag in `bytes` without its checksum: only for tags repeated in a summary, which has its own.
    pub fn decode_unchecked(bytes: &[u8; TAG_BYTES]) -> Option<Self> {
        Self::fields(&zerocopy::transmute!(*bytes))
    }

    fn fields(raw: &Raw) -> Option<Self> {
        let bits = raw.bits.get();
        let kind = Kind::from_code(raw.kind_flags & 0xf)?;
        let copy = raw.kind_flags & FLAG_COPY != 0;
        let aged = raw.kind_flags & FLAG_AGED != 0;
        let rest = bits >> 63;
        let erases = rest as u32 & ERASES_MAX;
        let (erases, stamp, source) = match (copy && kind == Kind::Data, aged) {
            (false, false) => (Some(erases), (rest >> 20) as u64 & STAMP_MAX, 0),
            (true, false) => (Some(erases), 0, (rest >> 20) as u64 & SLOT_MAX),
            (true, true) => (None, (rest >> 40 << COARSE_BITS) as u64 & STAMP_MAX, rest as u64 & SLOT_MAX),
            (false, true) => return None,
        };
        Some(Self {
            kind,
            end: raw.kind_flags & FLAG_END != 0,
            copy,
            unlogged: raw.kind_flags & FLAG_UNLOGGED != 0,
            seq: wide(&raw.seq),
            ino: wide(&raw.ino),
            chunk: bits as u64 & (CHUNKS_MAX - 1),
            len: ((bits >> 51) as u32 & 0xfff) + 1,
            erases,
            stamp,
            source,
        })
    }
}

/// Whether these bytes of a page were never programmed.
pub fn is_blank(bytes: &[u8]) -> bool {
    // Whole lines first: a loop that may stop at each byte is not done a vector at a time.
    let (lines, rest) = bytes.as_chunks::<64>();
    lines.iter().all(|line| line.iter().fold(0xff, |all, &byte| all & byte) == 0xff) && rest.iter().all(|&b| b == 0xff)
}

/// The tick of a time; times before 1970 count as 1970.
pub fn ticks(now_ns: i64) -> u64 {
    (now_ns.max(0) / TICK_NS) as u64
}

/// The time of a tick.
pub fn tick_ns(ticks: u64) -> i64 {
    (ticks & STAMP_MAX) as i64 * TICK_NS
}

/// The low bytes of `value`, least significant first.
pub fn low<const N: usize>(value: u64) -> [u8; N] {
    let mut out = [0; N];
    for (to, from) in out.iter_mut().zip(value.to_le_bytes()) {
        *to = from;
    }
    out
}

/// The number in up to 8 bytes, least significant first.
pub fn wide(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_keeps_every_field_at_its_limits() {
        let tag = Tag {
            kind: Kind::Data,
            end: true,
            copy: false,
            unlogged: true,
            seq: (1 << 48) - 1,
            ino: INO_MAX,
            chunk: CHUNKS_MAX - 1,
            len: 4096,
            erases: Some(ERASES_MAX),
            stamp: STAMP_MAX,
            source: 0,
        };
        let bytes = tag.encode(7, b"data");
        assert_eq!(Tag::decode(&bytes, 7, b"data"), Some(tag));
        assert_eq!(Tag::decode(&bytes, 8, b"data"), None, "another volume's tag is not believed");
        assert_eq!(Tag::decode(&bytes, 7, b"dat4"), None);
    }

    /// The source took the place of the time: how old copied data was could not be told any more.
    #[test]
    fn a_copy_tells_its_source_and_when_its_data_was_written() {
        let (source, written) = (SLOT_MAX, ticks(1_700_000_000_000_000_000));
        let tag = Tag {
            kind: Kind::Data,
            end: false,
            copy: true,
            unlogged: false,
            seq: 1,
            ino: 2,
            chunk: CHUNKS_MAX - 1,
            len: 4096,
            erases: None,
            stamp: written,
            source,
        };
        let read = |tag: Tag| Tag::decode(&tag.encode(7, b"data"), 7, b"data").unwrap();
        let coarse = written >> COARSE_BITS << COARSE_BITS;
        assert_eq!(read(tag.placed(1, 9)), Tag { stamp: coarse, ..tag });
        assert!(tick_ns(written - coarse) < 135_000_000_000);
        assert_eq!(read(tag.placed(1, 9).placed(0, 9)), Tag { erases: Some(9), stamp: 0, ..tag });
        let original = Tag { copy: false, source: 0, ..tag };
        assert_eq!(read(original.placed(1, 9)), Tag { erases: Some(9), ..original });
    }
}
