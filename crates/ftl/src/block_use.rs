//! The uses of blocks, as a scheme knows them and a volume is shown.
//!
//! Invariant: every use has a name of its own.

use core::fmt;

/// What a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockUse {
    Bad,
    Anchor,
    /// It is in the round of map blocks.
    Map,
    /// The log block of a data block.
    Log(u32),
    /// A data block.
    Data(u32),
    /// A replacement block of a data block.
    Replacement(u32),
    /// Sectors from anywhere, and how many of its pages count.
    Pages(u32),
    /// The block being filled with sectors from anywhere, and how many of its pages count.
    Open(u32),
    Free,
    /// None that the scheme knows of.
    Unknown,
}

impl fmt::Display for BlockUse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockUse::Bad => out.write_str("bad"),
            BlockUse::Anchor => out.write_str("anchor"),
            BlockUse::Map => out.write_str("map block"),
            BlockUse::Log(block) => write!(out, "log block of data block {block}"),
            BlockUse::Data(block) => write!(out, "data block {block}"),
            BlockUse::Replacement(block) => write!(out, "replacement block of data block {block}"),
            BlockUse::Pages(count) => write!(out, "sectors, {count} pages count"),
            BlockUse::Open(count) => write!(out, "being written, {count} pages count"),
            BlockUse::Free => out.write_str("free"),
            BlockUse::Unknown => out.write_str("not known"),
        }
    }
}
