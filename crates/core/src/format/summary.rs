//! A block's summary: its tags once more, in its last slots, and the block its log head goes on in.

use alloc::vec::Vec;

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::tag::TAG_BYTES;

const MAGIC: u32 = 0x4d53_5846;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy)]
#[repr(C)]
struct Header {
    magic: U32,
    block: U32,
    count: U32,
    next: U32,
    reserved: [U32; 4],
}

const HEADER_BYTES: usize = 32;

/// A decoded summary.
pub struct Summary {
    /// The tags of the block's slots in programming order; blank where nothing was programmed.
    pub tags: Vec<[u8; TAG_BYTES]>,
    /// The block this head goes on in.
    pub next: u32,
}

/// Slots of `slot_bytes` a summary of `count` tags takes.
pub fn slots_needed(count: usize, slot_bytes: usize) -> usize {
    (HEADER_BYTES + count * TAG_BYTES).div_ceil(slot_bytes.max(1))
}

/// A summary's bytes, a whole number of slots.
pub fn encode(block: u32, next: u32, tags: &[[u8; TAG_BYTES]], slot_bytes: usize) -> Vec<u8> {
    let header = Header {
        magic: U32::new(MAGIC),
        block: U32::new(block),
        count: U32::new(tags.len() as u32),
        next: U32::new(next),
        reserved: [U32::new(0); 4],
    };
    let mut out = Vec::with_capacity(slots_needed(tags.len(), slot_bytes) * slot_bytes);
    out.extend_from_slice(header.as_bytes());
    tags.iter().for_each(|tag| out.extend_from_slice(tag));
    out.resize(slots_needed(tags.len(), slot_bytes) * slot_bytes, 0);
    out
}

/// The summary of `block` in `bytes`.
pub fn decode(block: u32, bytes: &[u8]) -> Option<Summary> {
    let (header, rest) = Header::ref_from_prefix(bytes).ok()?;
    if header.magic.get() != MAGIC || header.block.get() != block {
        return None;
    }
    let tags = rest.get(..(header.count.get() as usize).checked_mul(TAG_BYTES)?)?;
    let tags = tags.chunks_exact(TAG_BYTES).filter_map(|tag| tag.try_into().ok()).collect();
    Some(Summary { tags, next: header.next.get() })
}
