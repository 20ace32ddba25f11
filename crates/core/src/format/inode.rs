//! The body of an inode node: everything `stat` tells, and what the file system keeps beside it.
//!
//! Invariant: a decoded inode is in range, whatever its bytes were.

use alloc::vec::Vec;

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::tag::{CHUNKS_MAX, INO_MAX};

/// Flag: space may be reserved past the end.
const RESERVES_PAST_END: u32 = 1;
/// The flags' other bits: the sum of the attributes' offsets.
const ATTRIBUTES_SHIFT: u32 = 1;
const ATTRIBUTES_MASK: u32 = u32::MAX >> ATTRIBUTES_SHIFT;

/// An inode number: 40 bits, never used twice in the life of a volume.
pub type Ino = u64;

/// The root directory.
pub const ROOT_INO: Ino = 1;

/// The file-type bits of a mode, as in `stat(2)`.
pub mod kind {
    pub const MASK: u32 = 0o170000;
    pub const FIFO: u32 = 0o010000;
    pub const CHAR: u32 = 0o020000;
    pub const DIR: u32 = 0o040000;
    pub const BLOCK: u32 = 0o060000;
    pub const FILE: u32 = 0o100000;
    pub const SYMLINK: u32 = 0o120000;
    pub const SOCKET: u32 = 0o140000;
}

/// What a set of names comes to: whoever finds names of a directory whose index is lost can tell whether they are all
/// of them, and no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    pub count: u64,
    /// The sum of the names' offsets.
    pub sum: u64,
}

impl Census {
    /// A name came.
    pub fn add(&mut self, offset: u64) {
        (self.count, self.sum) = (self.count.wrapping_add(1), self.sum.wrapping_add(offset));
    }

    /// A name went.
    pub fn remove(&mut self, offset: u64) {
        (self.count, self.sum) = (self.count.wrapping_sub(1), self.sum.wrapping_sub(offset));
    }

    /// With the changes that `other` counted from nothing.
    pub fn with(self, other: Self) -> Self {
        Self { count: self.count.wrapping_add(other.count), sum: self.sum.wrapping_add(other.sum) }
    }
}

/// What a file has of chunks: whoever finds chunks of a file whose index is lost can tell whether they are all of them,
/// and no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Chunks that are mapped or reserved.
    pub count: u64,
    /// The reserved ones among them.
    pub reserved: u64,
    /// The sum of the others' marks ([`chunk_mark`]).
    pub sum: u64,
}

impl Extent {
    /// One chunk with data.
    pub fn of(chunk: u64) -> Self {
        Self { count: 1, reserved: 0, sum: chunk_mark(chunk) }
    }

    /// So many reserved chunks.
    pub fn reserved(count: u64) -> Self {
        Self { count, reserved: count, sum: 0 }
    }

    /// The chunks of both.
    pub fn with(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            reserved: self.reserved.saturating_add(other.reserved),
            sum: self.sum.wrapping_add(other.sum),
        }
    }

    /// The chunks of this without those of `other`.
    pub fn without(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_sub(other.count),
            reserved: self.reserved.saturating_sub(other.reserved),
            sum: self.sum.wrapping_sub(other.sum),
        }
    }

    /// Those with data.
    pub fn written(self) -> Census {
        Census { count: self.count.saturating_sub(self.reserved), sum: self.sum }
    }
}

/// What a chunk with data adds to its file's sum: its number, mixed so that few others come to the same together.
pub fn chunk_mark(chunk: u64) -> u64 {
    let mixed = (chunk ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 32).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// The sum of attributes' offsets with one more, 31 bits.
pub fn with_attribute(sum: u32, offset: u64) -> u32 {
    sum.wrapping_add((offset >> 33) as u32) & ATTRIBUTES_MASK
}

/// The sum of attributes' offsets without one of them, 31 bits.
pub fn without_attribute(sum: u32, offset: u64) -> u32 {
    sum.wrapping_sub((offset >> 33) as u32) & ATTRIBUTES_MASK
}

/// An inode as it stands on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    pub size: u64,
    /// Only a regular file has reserved ones.
    pub chunks: Extent,
    pub atime_ns: i64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub btime_ns: i64,
    /// The directory that holds this directory; 0 for anything else.
    pub parent: u64,
    /// Space may be reserved past the end.
    pub reserves_past_end: bool,
    /// The entries of a directory.
    pub entries: Census,
    /// The sum of the extended attributes' offsets ([`with_attribute`]), 31 bits.
    pub attributes: u32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct RawInode {
    mode: U32,
    nlink: U32,
    uid: U32,
    gid: U32,
    /// Of a regular file: its reserved chunks.
    rdev: U32,
    flags: U32,
    /// Of a directory: how many entries it has.
    size: U64,
    /// Of a directory: the sum of its entries' offsets.
    chunks: U64,
    atime_ns: I64,
    mtime_ns: I64,
    ctime_ns: I64,
    btime_ns: I64,
    /// Of what is no directory: the sum of its chunks' marks.
    parent: U64,
}

impl Inode {
    /// An inode that is empty, with its first name, of this moment.
    pub fn new(mode: u32, uid: u32, gid: u32, now_ns: i64) -> Self {
        Self {
            mode,
            nlink: if mode & kind::MASK == kind::DIR { 2 } else { 1 },
            uid,
            gid,
            rdev: 0,
            size: 0,
            chunks: Extent::default(),
            atime_ns: now_ns,
            mtime_ns: now_ns,
            ctime_ns: now_ns,
            btime_ns: now_ns,
            parent: 0,
            reserves_past_end: false,
            entries: Census::default(),
            attributes: 0,
        }
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.mode & kind::MASK == kind::DIR
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.mode & kind::MASK == kind::FILE
    }

    /// Appends its body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.raw().as_bytes());
    }

    /// The inode in a node's body; what exceeds a field's range counts as its largest value.
    pub fn decode(body: &[u8]) -> Option<Self> {
        RawInode::ref_from_prefix(body).ok().map(|(raw, _)| Self::from_raw(raw))
    }

    fn raw(&self) -> RawInode {
        let (size, chunks, parent) = match self.is_dir() {
            true => (self.entries.count, self.entries.sum, self.parent),
            false => (self.size, self.chunks.count, self.chunks.sum),
        };
        let reserved = self.chunks.reserved.min(u32::MAX.into()) as u32;
        RawInode {
            mode: U32::new(self.mode),
            nlink: U32::new(self.nlink),
            uid: U32::new(self.uid),
            gid: U32::new(self.gid),
            rdev: U32::new(if self.mode & kind::MASK == kind::FILE { reserved } else { self.rdev }),
            flags: U32::new(u32::from(self.reserves_past_end) | self.attributes << ATTRIBUTES_SHIFT),
            size: U64::new(size),
            chunks: U64::new(chunks),
            atime_ns: I64::new(self.atime_ns),
            mtime_ns: I64::new(self.mtime_ns),
            ctime_ns: I64::new(self.ctime_ns),
            btime_ns: I64::new(self.btime_ns),
            parent: U64::new(parent),
        }
    }

    fn from_raw(raw: &RawInode) -> Self {
        let (rdev, reserved) = match raw.mode.get() & kind::MASK {
            kind::FILE => (0, raw.rdev.get().into()),
            _ => (raw.rdev.get(), 0),
        };
        let (first, second, third) = (raw.size.get(), raw.chunks.get(), raw.parent.get());
        let (size, chunks, parent, entries) = match raw.mode.get() & kind::MASK {
            kind::DIR => (0, Extent::default(), third & INO_MAX, Census { count: first, sum: second }),
            _ => {
                let chunks = Extent { count: second.min(CHUNKS_MAX), reserved, sum: third };
                (first.min(i64::MAX as u64), chunks, 0, Census::default())
            }
        };
        Self {
            mode: raw.mode.get(),
            nlink: raw.nlink.get(),
            uid: raw.uid.get(),
            gid: raw.gid.get(),
            rdev,
            size,
            chunks,
            entries,
            atime_ns: raw.atime_ns.get(),
            mtime_ns: raw.mtime_ns.get(),
            ctime_ns: raw.ctime_ns.get(),
            btime_ns: raw.btime_ns.get(),
            parent,
            reserves_past_end: raw.flags.get() & RESERVES_PAST_END != 0,
            attributes: raw.flags.get() >> ATTRIBUTES_SHIFT,
        }
    }
}
