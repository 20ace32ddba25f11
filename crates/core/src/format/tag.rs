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
/// Nanoseconds in a tick, the unit of time of the tag in the first slot of a block.
pub const TICK_NS: i64 = 128_000;
/// The last tick that such a tag can tell (45 bits).
const TICKS_MAX: u64 = (1 << 45) - 1;
/// The lowest bits of the ticks, which a copy leaves out: it tells its time to 134 s.
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
    /// Erase count of the block the slot stands in; bare data bears it only in the first slot of a block.
    pub erases: Option<u32>,
    /// When bare data was written, ns since 1970: exact; beside an erase count rounded down to a tick, and not before 1970. In a
    /// copy rounded down to 134 s; 0 where the copy bears an erase count instead.
    pub time_ns: i64,
    /// The file's times became `time_ns` with this original of bare data.
    pub dated: bool,
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
    /// chunk 51, len - 1 12, and 65 bits by the kind of slot: see [`Tag::rest`].
    bits: U128,
}

const KIND_MASK: u8 = 0x7;
const FLAG_DATED: u8 = 1 << 3;
const FLAG_END: u8 = 1 << 4;
const FLAG_COPY: u8 = 1 << 5;
const FLAG_UNLOGGED: u8 = 1 << 6;
/// Bare data that does not tell an erase count.
const FLAG_UNCOUNTED: u8 = 1 << 7;

impl Tag {
    /// The tag's bytes, with the checksum over `data` seeded by `seed`.
    pub fn encode(&self, seed: u32, data: &[u8]) -> [u8; TAG_BYTES] {
        let flags = [
            (self.dated, FLAG_DATED),
            (self.end, FLAG_END),
            (self.copy, FLAG_COPY),
            (self.unlogged, FLAG_UNLOGGED),
            (self.is_uncounted(), FLAG_UNCOUNTED),
        ];
        let flags = flags.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag);
        let len = u128::from(self.len.saturating_sub(1) & 0xfff);
        let bits = u128::from(self.chunk & (CHUNKS_MAX - 1)) | len << 51 | self.rest() << 63;
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

    /// The 65 bits that depend on the kind of slot: all but bare data tell the erase count, 20; so does bare data in the
    /// first slot of a block, with the tick, 45, or as a copy the source, 40. Bare data elsewhere tells the nanoseconds, 64,
    /// or as a copy the source, 40, and the upper bits of the tick, 25.
    fn rest(&self) -> u128 {
        let erases = u128::from(self.erases.unwrap_or(0).min(ERASES_MAX));
        let (source, tick) = (u128::from(self.source & SLOT_MAX), u128::from(ticks(self.time_ns).min(TICKS_MAX)));
        match (self.kind, self.copy, self.is_uncounted()) {
            (Kind::Data, false, false) => erases | tick << 20,
            (Kind::Data, true, false) => erases | source << 20,
            (_, false, true) => u128::from(self.time_ns as u64),
            (_, true, true) => source | tick >> COARSE_BITS << 40,
            _ => erases,
        }
    }

    fn is_uncounted(&self) -> bool {
        self.kind == Kind::Data && self.erases.is_none()
    }

    /// The tag for the slot `index` of a block that was erased so many times. In the first slot a time that is no whole tick
    /// leaves the file's times as they are.
    pub fn placed(self, index: u32, erases: u32) -> Self {
        match (self.kind, index) {
            (Kind::Data, 0) if self.copy => Self { erases: Some(erases), time_ns: 0, ..self },
            (Kind::Data, 0) => {
                let (dated, time_ns) = (self.dated && is_tick(self.time_ns), told_ns(ticks(self.time_ns)));
                Self { erases: Some(erases), time_ns, dated, ..self }
            }
            (Kind::Data, _) => Self { erases: None, ..self },
            _ => Self { erases: Some(erases), ..self },
        }
    }

    /// The tag for the slot `index` of another block, as a program in the one before failed. A time that is dated and no whole
    /// tick stays in place of the erase count: others of the log may count already that came after it.
    pub fn placed_again(self, index: u32, erases: u32) -> Self {
        if self.dated && !is_tick(self.time_ns) { self } else { self.placed(index, erases) }
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
        let kind = Kind::from_code(raw.kind_flags & KIND_MASK)?;
        let is_set = |flag| raw.kind_flags & flag != 0;
        let (copy, dated) = (is_set(FLAG_COPY), is_set(FLAG_DATED));
        if dated && (copy || kind != Kind::Data) {
            return None;
        }
        let rest = bits >> 63;
        let erases = Some(rest as u32 & ERASES_MAX);
        let slot = |shift: u32| (rest >> shift) as u64 & SLOT_MAX;
        let (erases, time_ns, source) = match (kind, copy, is_set(FLAG_UNCOUNTED)) {
            (Kind::Data, false, false) => (erases, told_ns((rest >> 20) as u64), 0),
            (Kind::Data, true, false) => (erases, 0, slot(20)),
            (Kind::Data, false, true) => (None, rest as u64 as i64, 0),
            (Kind::Data, true, true) => (None, told_ns((rest >> 40 << COARSE_BITS) as u64), slot(0)),
            (_, _, false) => (erases, 0, 0),
            (_, _, true) => return None,
        };
        Some(Self {
            kind,
            end: is_set(FLAG_END),
            copy,
            unlogged: is_set(FLAG_UNLOGGED),
            seq: wide(&raw.seq),
            ino: wide(&raw.ino),
            chunk: bits as u64 & (CHUNKS_MAX - 1),
            len: ((bits >> 51) as u32 & 0xfff) + 1,
            erases,
            time_ns,
            dated,
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
    i64::try_from(ticks).unwrap_or(i64::MAX).saturating_mul(TICK_NS)
}

/// The time of a tick as a tag tells it.
fn told_ns(ticks: u64) -> i64 {
    tick_ns(ticks.min(TICKS_MAX))
}

/// Whether the tag in the first slot of a block tells this time exactly.
pub fn is_tick(time_ns: i64) -> bool {
    told_ns(ticks(time_ns)) == time_ns
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

    fn original() -> Tag {
        Tag {
            kind: Kind::Data,
            end: true,
            copy: false,
            unlogged: true,
            seq: (1 << 48) - 1,
            ino: INO_MAX,
            chunk: CHUNKS_MAX - 1,
            len: 4096,
            erases: None,
            time_ns: i64::MAX,
            dated: true,
            source: 0,
        }
    }

    fn read(tag: Tag) -> Tag {
        Tag::decode(&tag.encode(7, b"data"), 7, b"data").unwrap()
    }

    #[test]
    fn a_tag_keeps_every_field_at_its_limits() {
        for time_ns in [i64::MIN, -1, 0, 1_700_000_000_123_456_789, i64::MAX] {
            let tag = Tag { time_ns, ..original() };
            let bytes = tag.encode(7, b"data");
            assert_eq!(Tag::decode(&bytes, 7, b"data"), Some(tag));
            assert_eq!(Tag::decode(&bytes, 8, b"data"), None, "another volume's tag is not believed");
            assert_eq!(Tag::decode(&bytes, 7, b"dat4"), None);
        }
        let nodes = Tag { kind: Kind::Nodes, erases: Some(ERASES_MAX), time_ns: 0, dated: false, ..original() };
        assert_eq!(read(nodes), nodes);
    }

    #[test]
    fn in_the_first_slot_a_time_is_told_by_the_tick() {
        let tick = tick_ns(ticks(1_700_000_000_000_000_000));
        for (time_ns, told, dated) in [
            (tick, tick, true),
            (0, 0, true),
            (tick + 1, tick, false),
            (-1, 0, false),
            (i64::MAX, tick_ns(TICKS_MAX), false),
        ] {
            let placed = Tag { time_ns, ..original() }.placed(0, 9);
            assert_eq!(read(placed), Tag { erases: Some(9), time_ns: told, dated, ..original() }, "{time_ns}");
        }
        assert_eq!(read(original().placed(5, 9).placed_again(0, 9)), original());
        let on_tick = Tag { time_ns: tick, ..original() };
        assert_eq!(read(on_tick.placed(5, 9).placed_again(0, 9)), on_tick.placed(0, 9));
        let undated = Tag { dated: false, ..original() };
        assert_eq!(undated.placed(3, 9), undated);
    }

    /// The source took the place of the time: how old copied data was could not be told any more.
    #[test]
    fn a_copy_tells_its_source_and_when_its_data_was_written() {
        let written_ns = 1_700_000_000_000_000_000;
        let tag = Tag { copy: true, dated: false, time_ns: written_ns, source: SLOT_MAX, ..original() };
        let told_ns = read(tag.placed(1, 9)).time_ns;
        assert!((0..135_000_000_000).contains(&(written_ns - told_ns)), "{told_ns}");
        assert_eq!(read(tag.placed(1, 9)), Tag { time_ns: told_ns, ..tag });
        assert_eq!(read(read(tag.placed(1, 9)).placed(1, 9)).time_ns, told_ns);
        assert_eq!(read(tag.placed(1, 9).placed(0, 9)), Tag { erases: Some(9), time_ns: 0, ..tag });
    }
}
