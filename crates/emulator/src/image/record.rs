//! The records of an image that change: one for each block, and the clock.
//!
//! Invariant: a record that decodes is one that was encoded whole, or the zeros of a file nothing was written to.

use nand::CellMode;

use super::header::{CRC, RECORD_HEAD_BYTES, u32_at, u64_at};
use crate::table::{BlockMeta, PageState};

const BAD: u8 = 1;
const FAILED: u8 = 2;
pub(super) const CLOCK_BYTES: usize = 16;
/// A time later than this was not written by us: a chip that old would be of the 22nd century.
const LATEST_NS: u64 = 1 << 62;

/// Writes a block's record into `bytes`.
pub(super) fn encode(bytes: &mut Vec<u8>, length: usize, meta: &BlockMeta, states: &[PageState], now_ns: u64) {
    bytes.clear();
    bytes.resize(length, 0);
    bytes[4] = match meta.mode {
        None => 0,
        Some(CellMode::Slc) => 1,
        Some(CellMode::Native) => 2,
    };
    bytes[5] = if meta.bad { BAD } else { 0 } | if meta.failed { FAILED } else { 0 };
    bytes[8..12].copy_from_slice(&meta.erase_count.to_le_bytes());
    bytes[12..16].copy_from_slice(&meta.slc_erases.to_le_bytes());
    bytes[16..20].copy_from_slice(&meta.next_unit.to_le_bytes());
    bytes[20..24].copy_from_slice(&meta.reads.to_le_bytes());
    bytes[24..32].copy_from_slice(&meta.programmed_ns.to_le_bytes());
    bytes[32..40].copy_from_slice(&now_ns.to_le_bytes());
    bytes[40..44].copy_from_slice(&meta.cycles.to_le_bytes());
    for (byte, &state) in bytes[RECORD_HEAD_BYTES..].iter_mut().zip(states) {
        *byte = state as u8;
    }
    let crc = CRC.checksum(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
}

/// Reads a block's record: what it says of the block, and when it was written. `None`: it is damaged.
pub(super) fn decode(bytes: &[u8], states: &mut [PageState]) -> Option<(BlockMeta, u64)> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Some((BlockMeta::default(), 0));
    }
    if CRC.checksum(&bytes[4..]) != u32_at(bytes, 0) {
        return None;
    }
    for (state, &byte) in states.iter_mut().zip(&bytes[RECORD_HEAD_BYTES..]) {
        *state = PageState::from_byte(byte)?;
    }
    let meta = BlockMeta {
        erase_count: u32_at(bytes, 8),
        slc_erases: u32_at(bytes, 12),
        cycles: u32_at(bytes, 40),
        next_unit: u32_at(bytes, 16),
        reads: u32_at(bytes, 20),
        programmed_ns: u64_at(bytes, 24),
        mode: match bytes[4] {
            0 => None,
            1 => Some(CellMode::Slc),
            2 => Some(CellMode::Native),
            _ => return None,
        },
        bad: bytes[5] & BAD != 0,
        failed: bytes[5] & FAILED != 0,
        unsaved_reads: false,
    };
    let written_ns = u64_at(bytes, 32);
    (written_ns <= LATEST_NS).then_some((meta, written_ns))
}

pub(super) fn encode_clock(now_ns: u64) -> [u8; CLOCK_BYTES] {
    let mut bytes = [0; CLOCK_BYTES];
    bytes[8..].copy_from_slice(&now_ns.to_le_bytes());
    let crc = CRC.checksum(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The time in a clock record; `None`: it is damaged.
pub(super) fn decode_clock(bytes: &[u8; CLOCK_BYTES]) -> Option<u64> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Some(0);
    }
    let now_ns = u64_at(bytes, 8);
    (CRC.checksum(&bytes[4..]) == u32_at(bytes, 0) && now_ns <= LATEST_NS).then_some(now_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with a good checksum and a time at the end of 64 bits was believed, and the clock ran over it.
    #[test]
    fn times_that_no_chip_lives_to_see_are_not_believed() {
        let (mut bytes, mut states) = (Vec::new(), [PageState::Erased; 4]);
        for (now_ns, believed) in [(LATEST_NS, true), (u64::MAX, false)] {
            encode(
                &mut bytes,
                RECORD_HEAD_BYTES + 4,
                &BlockMeta { erase_count: 1, ..BlockMeta::default() },
                &states.clone(),
                now_ns,
            );
            assert_eq!(decode(&bytes, &mut states).is_some(), believed);
            assert_eq!(decode_clock(&encode_clock(now_ns)).is_some(), believed);
        }
    }
}
