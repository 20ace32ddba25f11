//! Where the numbers are in what stands on flash, as docs/FORMAT.md has them.
//!
//! Invariant: a field lies within the bytes it was found for, whatever those are.

use crate::slots::SlotKind;

/// A number of up to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    bit: usize,
    bits: usize,
}

impl Field {
    fn bytes(at: usize, bytes: usize) -> Self {
        Self { bit: at * 8, bits: bytes * 8 }
    }

    /// Its greatest value.
    pub(crate) fn max(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    pub(crate) fn get(self, bytes: &[u8]) -> u64 {
        let bit = |index: usize| u64::from(bytes[index / 8] >> (index % 8) & 1);
        (0..self.bits).fold(0, |all, index| all | bit(self.bit + index) << index)
    }

    pub(crate) fn set(self, bytes: &mut [u8], value: u64) {
        for index in 0..self.bits {
            let at = self.bit + index;
            bytes[at / 8] = bytes[at / 8] & !(1 << (at % 8)) | ((value >> index & 1) as u8) << (at % 8);
        }
    }
}

/// Of the tag: `seq`, `ino`, kind, the flags, `chunk`, `len`; the erase count and the tick, or nanoseconds, or those of a
/// copy: erase count and source, or source and upper bits of the tick. First bit and bits of each.
const TAG: [(usize, usize); 16] = [
    (32, 48),
    (80, 40),
    (120, 3),
    (123, 1),
    (124, 1),
    (125, 1),
    (126, 1),
    (127, 1),
    (128, 51),
    (179, 12),
    (191, 20),
    (211, 45),
    (191, 64),
    (211, 40),
    (191, 40),
    (231, 25),
];

/// Of the anchor: what stands before its lists; offset and bytes of each.
const ANCHOR: [(usize, usize); 35] = [
    (8, 4),
    (12, 4),
    (16, 8),
    (64, 4),
    (68, 4),
    (72, 4),
    (76, 4),
    (80, 8),
    (88, 8),
    (96, 8),
    (104, 8),
    (112, 8),
    (120, 8),
    (128, 8),
    (136, 4),
    (140, 4),
    (144, 4),
    (148, 8),
    (156, 8),
    (164, 8),
    (172, 8),
    (180, 8),
    (188, 8),
    (212, 8),
    (220, 8),
    (228, 8),
    (236, 8),
    (244, 8),
    (252, 8),
    (284, 8),
    (ANCHOR_HEAD_COUNT, 2),
    (ANCHOR_NAME_COUNT, 2),
    (320, 2),
    (ANCHOR_TABLE_COUNT, 2),
    (ANCHOR_CHANGE_COUNT, 4),
];
const ANCHOR_HEAD_COUNT: usize = 316;
const ANCHOR_NAME_COUNT: usize = 318;
const ANCHOR_TABLE_COUNT: usize = 322;
const ANCHOR_CHANGE_COUNT: usize = 324;
const ANCHOR_LISTS: usize = 336;

/// Of an entry of the index: key's offset, kind and inode; slot, place, count, `at`.
const INDEX_ENTRY: [(usize, usize); 7] = [(0, 8), (8, 1), (9, 5), (14, 5), (19, 1), (20, 2), (22, 1)];
const INDEX_HEADER: usize = 16;
const INDEX_ENTRY_BYTES: usize = 24;

/// Of an entry of the block table: erase count, use, its five flags, live bytes; first bit and bits of each.
const TABLE_ENTRY: [(usize, usize); 8] = [(0, 24), (24, 3), (27, 1), (28, 1), (29, 1), (30, 1), (31, 1), (32, 32)];
const TABLE_ENTRY_BYTES: usize = 8;

/// Of the head of a node: `len`, kind, flags, `order` (as `back`, and as slot and `at`), inode.
const NODE_HEAD: [(usize, usize); 7] = [(0, 2), (2, 1), (3, 1), (4, 2), (4, 5), (9, 1), (10, 6)];
const NODE_HEAD_BYTES: usize = 16;

const SUMMARY_HEAD: [(usize, usize); 4] = [(0, 4), (4, 4), (8, 4), (12, 4)];
const SUMMARY_HEAD_BYTES: usize = 32;

/// The fields of a tag.
pub(crate) fn of_tag() -> Vec<Field> {
    TAG.map(|(bit, bits)| Field { bit, bits }).to_vec()
}

/// The fields of what a slot of this kind holds.
pub(crate) fn of_data(kind: Option<SlotKind>, data: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    match kind {
        Some(SlotKind::Anchor) => anchor(data, &mut fields),
        Some(SlotKind::Index) => {
            fields.extend([Field::bytes(0, 1), Field::bytes(2, 2)]);
            let count = usize::from(u16_at(data, 2));
            for entry in 0..count {
                add(&mut fields, INDEX_HEADER + entry * INDEX_ENTRY_BYTES, &INDEX_ENTRY);
            }
        }
        Some(SlotKind::Table) => {
            for at in (0..data.len()).step_by(TABLE_ENTRY_BYTES) {
                add_bits(&mut fields, at, &TABLE_ENTRY);
            }
        }
        Some(SlotKind::Nodes) => {
            for (at, _) in nodes(data) {
                add(&mut fields, at, &NODE_HEAD);
                add(&mut fields, at + NODE_HEAD_BYTES, node_body(data[at + 2]));
            }
        }
        Some(SlotKind::Summary) => {
            add(&mut fields, 0, &SUMMARY_HEAD);
            for at in (SUMMARY_HEAD_BYTES..data.len()).step_by(crate::slots::TAG_BYTES) {
                add_bits(&mut fields, at, &TAG);
            }
        }
        Some(SlotKind::Data) | None => fields.extend((0..data.len()).step_by(8).map(|at| Field::bytes(at, 8))),
    }
    fields.retain(|field| field.bit + field.bits <= data.len() * 8);
    fields
}

/// Where the nodes of a slot begin, and how long they are.
pub(crate) fn nodes(data: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + NODE_HEAD_BYTES <= data.len() {
        let len = usize::from(u16_at(data, at));
        if len < NODE_HEAD_BYTES || at + len > data.len() {
            break;
        }
        found.push((at, len));
        at += len;
    }
    found
}

/// The fields of a node's body by its kind.
fn node_body(kind: u8) -> &'static [(usize, usize)] {
    match kind {
        1 => &[(0, 4), (4, 4), (8, 4), (16, 4), (20, 4), (24, 8), (32, 8), (40, 8), (48, 8), (56, 8), (72, 8)],
        2 => &[(0, 8), (8, 8), (16, 8), (24, 4), (28, 2), (32, 1)],
        4 => &[(0, 8), (8, 8), (16, 2), (18, 2), (24, 1), (25, 1), (26, 2)],
        6 => &[(0, 8), (8, 2), (10, 2), (12, 4), (16, 1)],
        10 => &[(0, 8), (8, 2), (10, 2), (12, 4), (16, 1)],
        3 | 5 | 7 | 9 => &[(0, 8), (8, 8)],
        _ => &[],
    }
}

fn anchor(data: &[u8], fields: &mut Vec<Field>) {
    add(fields, 0, &ANCHOR);
    let counts = [ANCHOR_HEAD_COUNT, ANCHOR_NAME_COUNT, ANCHOR_TABLE_COUNT, ANCHOR_CHANGE_COUNT];
    let [heads, names, tables, changes] = counts.map(|at| usize::from(u16_at(data, at)));
    let mut at = ANCHOR_LISTS;
    for _ in 0..heads {
        add(fields, at, &[(0, 1), (1, 4), (5, 4)]);
        at += 9;
    }
    for _ in 0..names {
        add(fields, at, &[(0, 1), (1, 4)]);
        at += 5;
    }
    for _ in 0..tables {
        add(fields, at, &[(0, 5)]);
        at += 5;
    }
    for _ in 0..changes {
        add(fields, at, &[(0, 4)]);
        add_bits(fields, at + 4, &TABLE_ENTRY);
        at += 12;
    }
}

fn add(fields: &mut Vec<Field>, at: usize, layout: &[(usize, usize)]) {
    fields.extend(layout.iter().map(|&(offset, bytes)| Field::bytes(at + offset, bytes)));
}

fn add_bits(fields: &mut Vec<Field>, at: usize, layout: &[(usize, usize)]) {
    fields.extend(layout.iter().map(|&(bit, bits)| Field { bit: at * 8 + bit, bits }));
}

fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(crate::record::padded(data.get(at..at + 2).unwrap_or(&[])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_set_is_the_field_got_and_nothing_else_changes() {
        let before: Vec<u8> = (0..32).collect();
        for field in of_tag() {
            let mut bytes = before.clone();
            field.set(&mut bytes, 0x0123_4567_89ab_cdef);
            assert_eq!(field.get(&bytes), 0x0123_4567_89ab_cdef & field.max());
            field.set(&mut bytes, field.get(&before));
            assert_eq!(bytes, before);
        }
    }
}
