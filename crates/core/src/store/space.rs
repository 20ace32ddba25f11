//! Space: how much can be stored, and how much is.
//!
//! Invariant (reserve): a caller's data never takes the blocks that collection needs to make room again.

use nand::Nand;

use super::budget;
use super::records::Records;
use crate::error::{Error, Result};
use crate::format::inode::Ino;
use crate::format::key::{KeyKind, key};
use crate::format::place::Place;
use crate::policy::Region;

/// Blocks that hold anchors.
const ANCHORS: u64 = 2;
/// What a chunk's place in the index may take, twice over, since a checkpoint writes the new index beside the old.
const INDEX_BYTES: u64 = 96;
/// Beside a chunk's bytes, what a write takes in nodes.
const WRITE_BYTES: u64 = 64;

/// Bytes that can be stored: all blocks but those that are bad or failed, the anchors', the index's, the heads' and the reserve, less the
/// slots that stay unused in full ones.
pub fn capacity_bytes<N: Nand>(records: &Records<N>) -> u64 {
    let shape = records.flash.shape();
    let failed = u64::from(budget::failed_blocks(records));
    let index_blocks = budget::index_reserve_blocks(records);
    // Blocks that log heads stand in.
    let heads = if records.manager.policy().uses_one_region() { 1 } else { 2 };
    let fixed = failed + ANCHORS + index_blocks + heads + u64::from(budget::reserve_blocks(records));
    let blocks = u64::from(records.flash.blocks().len()).saturating_sub(fixed);
    let per_block = match records.manager.policy().relocated() {
        Region::Native => shape.native.content_slots(),
        Region::Slc => shape.slc.content_slots(),
    };
    let slots = blocks * u64::from(per_block);
    let unused = blocks.max(slots / 80).max(budget::failing_slots(records, blocks, per_block));
    slots.saturating_sub(unused) * shape.slot_bytes as u64
}

/// Bytes that are taken, on flash, in the write buffer, and by reservation.
pub fn used_bytes<N: Nand>(records: &Records<N>) -> u64 {
    records.flash.blocks().live_bytes() + records.buffer.bytes() + reserved_bytes(records)
}

/// Whether space is left for the block of one more head than the capacity leaves out: where hot data has blocks of its own.
pub(super) fn has_room_for_head<N: Nand>(records: &Records<N>) -> bool {
    let shape = records.flash.shape();
    let block_bytes = u64::from(shape.native.content_slots()) * shape.slot_bytes as u64;
    used_bytes(records) + block_bytes <= capacity_bytes(records)
}

/// Whether more is stored than SLC cells have space for, some of it natively: another policy did that.
pub(super) fn is_overfull<N: Nand>(records: &Records<N>) -> bool {
    let holds_native =
        || records.flash.blocks().iter().any(|(_, block)| block.entry.native && block.entry.live_bytes > 0);
    records.manager.policy().relocated() == Region::Slc
        && used_bytes(records) > capacity_bytes(records)
        && holds_native()
}

/// Whether `bytes` more can be stored.
pub fn need_bytes<N: Nand>(records: &Records<N>, bytes: u64) -> Result<()> {
    if used_bytes(records) + bytes > capacity_bytes(records) { Err(Error::NoSpace) } else { Ok(()) }
}

/// What reserving a chunk takes: its bytes, and what its place in the index may take.
pub fn reserved_bytes_each<N: Nand>(records: &Records<N>) -> u64 {
    records.chunk_bytes() + INDEX_BYTES
}

/// Bytes that are reserved.
fn reserved_bytes<N: Nand>(records: &Records<N>) -> u64 {
    records.index.reserved_chunks().saturating_mul(reserved_bytes_each(records))
}

/// Whether `bytes` can be stored in a chunk: where space is reserved for it, or it has a whole slot, on flash or to come, there
/// is room.
pub fn need_room_for_chunk<N: Nand>(records: &mut Records<N>, ino: Ino, chunk: u64, bytes: u64) -> Result<()> {
    let outcome = need_bytes(records, bytes + WRITE_BYTES);
    let chunk_bytes = records.chunk_bytes();
    if outcome.is_err() && records.buffer.dirty(ino, chunk).is_some_and(|held| held.len() as u64 == chunk_bytes) {
        return Ok(());
    }
    if outcome.is_err()
        && let Some(Place::Reserved { .. } | Place::Run { .. }) = records.get(key(ino, KeyKind::Data, chunk))?
    {
        return Ok(());
    }
    outcome
}
