//! The checksum seed of a volume whose anchors are lost, worked out from the checksums themselves.
//!
//! CRC-32C is linear: how a checksum depends on the seed does not depend on the bytes behind it, so every whole slot
//! gives the seed away. Invariant: what is worked out from one slot is believed only if many others say the same.

use crate::format::crc::crc32c;
use crate::format::tag::TAG_BYTES;

/// Undoes what a CRC does to four bytes that so many zeros follow.
pub struct Unseed {
    /// What to add for each bit of a difference between checksums.
    rows: [u32; 32],
}

impl Unseed {
    /// For messages of four bytes, `head` zeros and `body` zeros; `None` never happens with a CRC.
    fn new(head: &mut [u8], body: &[u8]) -> Option<Self> {
        let mut crc_of = |seed: u32| {
            head.iter_mut().zip(seed.to_le_bytes()).for_each(|(to, byte)| *to = byte);
            crc32c(head, body)
        };
        let zero = crc_of(0);
        // Pairs (what comes out, what went in), brought to the form of single bits coming out.
        let mut pairs: [(u32, u32); 32] = core::array::from_fn(|bit| (crc_of(1 << bit) ^ zero, 1 << bit));
        for bit in 0..32 {
            let found = pairs.iter().skip(bit).position(|pair| pair.0 >> bit & 1 != 0)? + bit;
            pairs.swap(bit, found);
            let pivot = *pairs.get(bit)?;
            let others = pairs.iter_mut().enumerate().filter(|(at, pair)| *at != bit && pair.0 >> bit & 1 != 0);
            others.for_each(|(_, pair)| *pair = (pair.0 ^ pivot.0, pair.1 ^ pivot.1));
        }
        Some(Self { rows: pairs.map(|pair| pair.1) })
    }

    /// For the tags of slots of so many bytes.
    pub fn of_slots(slot_bytes: usize) -> Option<Self> {
        Self::new(&mut [0; TAG_BYTES], &alloc::vec![0; slot_bytes])
    }

    fn undo(&self, difference: u32) -> u32 {
        let set = self.rows.iter().enumerate().filter(|(bit, _)| difference >> bit & 1 != 0);
        set.fold(0, |seed, (_, row)| seed ^ row)
    }

    /// The seed with which the checksum of a slot holds.
    pub fn seed_of(&self, raw: &[u8; TAG_BYTES], data: &[u8]) -> u32 {
        let [a, b, c, d, rest @ ..] = *raw;
        let mut unseeded = [0; TAG_BYTES];
        unseeded.iter_mut().skip(4).zip(rest).for_each(|(to, byte)| *to = byte);
        self.undo(u32::from_le_bytes([a, b, c, d]) ^ crc32c(&unseeded, data))
    }
}

/// `wanted`, with its last four bytes changed so that `seed_of` it is `seed`; `seed_of` must be a CRC that ends with it.
pub fn identity_of(seed: u32, wanted: [u8; 16], seed_of: impl Fn(&[u8; 16]) -> u32) -> Option<[u8; 16]> {
    let [head @ .., _, _, _, _] = wanted;
    let with = |last: u32| {
        let mut id = [0; 16];
        id.iter_mut().zip(head.iter().copied().chain(last.to_le_bytes())).for_each(|(to, byte)| *to = byte);
        id
    };
    let last = Unseed::new(&mut [0; 4], &[])?.undo(seed ^ seed_of(&with(0)));
    Some(with(last)).filter(|id| seed_of(id) == seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tag::{Kind, Tag};
    use crate::mount::format::volume_seed;

    #[test]
    fn a_slot_gives_its_seed_away() {
        let tag = Tag {
            kind: Kind::Data,
            end: false,
            copy: false,
            unlogged: false,
            seq: 77,
            ino: 5,
            chunk: 3,
            len: 4096,
            erases: Some(2),
            time_ns: 9,
            dated: false,
            source: 0,
        };
        let data: alloc::vec::Vec<u8> = (0..4096u32).map(|at| (at * 7) as u8).collect();
        let raw = tag.encode(0xdead_beef, &data);
        assert_eq!(Unseed::of_slots(4096).unwrap().seed_of(&raw, &data), 0xdead_beef);
    }

    #[test]
    fn an_identity_is_found_for_every_seed() {
        for seed in [0, 1, 0xffff_ffff, 0x1234_5678] {
            let id = identity_of(seed, *b"abcdefghijklmnop", volume_seed).unwrap();
            assert_eq!((volume_seed(&id), id.get(..12)), (seed, Some(&b"abcdefghijkl"[..])));
        }
    }
}
