//! The body of an inode node: everything `stat` tells, and what the file system keeps beside it.
//!
//! Invariant: a decoded inode is in range, whatever its bytes were.

use alloc::vec::Vec;

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::tag::{CHUNKS_MAX, INO_MAX};

/// Flag: space may be reserved past the end.
const RESERVES_PAST_END: u32 = 1;

/// An inode as it stands on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    pub size: u64,
    /// Chunks that are mapped.
    pub chunks: u64,
    pub atime_ns: i64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub btime_ns: i64,
    /// The directory that holds this directory; 0 for anything else.
    pub parent: u64,
    /// Space may be reserved past the end.
    pub reserves_past_end: bool,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct RawInode {
    mode: U32,
    nlink: U32,
    uid: U32,
    gid: U32,
    rdev: U32,
    flags: U32,
    size: U64,
    chunks: U64,
    atime_ns: I64,
    mtime_ns: I64,
    ctime_ns: I64,
    btime_ns: I64,
    parent: U64,
}

impl Inode {
    /// Appends its body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.raw().as_bytes());
    }

    /// The inode in a node's body; what exceeds a field's range counts as its largest value.
    pub fn decode(body: &[u8]) -> Option<Self> {
        RawInode::ref_from_prefix(body).ok().map(|(raw, _)| Self::from_raw(raw))
    }

    fn raw(&self) -> RawInode {
        RawInode {
            mode: U32::new(self.mode),
            nlink: U32::new(self.nlink),
            uid: U32::new(self.uid),
            gid: U32::new(self.gid),
            rdev: U32::new(self.rdev),
            flags: U32::new(if self.reserves_past_end { RESERVES_PAST_END } else { 0 }),
            size: U64::new(self.size),
            chunks: U64::new(self.chunks),
            atime_ns: I64::new(self.atime_ns),
            mtime_ns: I64::new(self.mtime_ns),
            ctime_ns: I64::new(self.ctime_ns),
            btime_ns: I64::new(self.btime_ns),
            parent: U64::new(self.parent),
        }
    }

    fn from_raw(raw: &RawInode) -> Self {
        Self {
            mode: raw.mode.get(),
            nlink: raw.nlink.get(),
            uid: raw.uid.get(),
            gid: raw.gid.get(),
            rdev: raw.rdev.get(),
            size: raw.size.get().min(i64::MAX as u64),
            chunks: raw.chunks.get().min(CHUNKS_MAX),
            atime_ns: raw.atime_ns.get(),
            mtime_ns: raw.mtime_ns.get(),
            ctime_ns: raw.ctime_ns.get(),
            btime_ns: raw.btime_ns.get(),
            parent: raw.parent.get() & INO_MAX,
            reserves_past_end: raw.flags.get() & RESERVES_PAST_END != 0,
        }
    }
}
