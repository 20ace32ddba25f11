//! What a volume keeps of its chip's cells: whoever drives a real chip cannot ask it how they are programmed.
//!
//! Invariant: it is written when the volume is made and never changes; a chip driven with other bits a cell is refused.

use super::tag::{low, wide};

/// Bytes of a count of erases.
const ERASES_BYTES: usize = 3;

/// The cells of a chip, as they were told when the volume was made. All zero: nothing was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellRecord {
    pub bits_per_cell: u8,
    /// Which pages share a word line, by a number below 16 that the driver of the chip gives its schemes.
    pub pairing: u8,
    /// Neighbouring pages that make one step of the pairing.
    pub pairing_stride: u8,
    /// Erases that a block endures, as SLC and natively, below 2²⁴.
    pub endurance: [u32; 2],
}

impl CellRecord {
    /// Whether anything was told.
    pub fn is_told(&self) -> bool {
        *self != Self::default()
    }

    pub(super) fn encode(self) -> [u8; 8] {
        let [slc, native] = self.endurance.map(|erases| low::<ERASES_BYTES>(erases.into()));
        let ([s0, s1, s2], [n0, n1, n2]) = (slc, native);
        [self.bits_per_cell << 4 | self.pairing & 0xF, self.pairing_stride, s0, s1, s2, n0, n1, n2]
    }

    pub(super) fn decode(bytes: [u8; 8]) -> Self {
        let [kind, pairing_stride, endurance @ ..] = bytes;
        let (slc, native) = endurance.split_at(ERASES_BYTES);
        let endurance = [slc, native].map(|erases| wide(erases) as u32);
        Self { bits_per_cell: kind >> 4, pairing: kind & 0xF, pairing_stride, endurance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record =
            CellRecord { bits_per_cell: 2, pairing: 1, pairing_stride: 3, endurance: [0x01_02_03, 0x04_05_06] };
        assert_eq!(CellRecord::decode(record.encode()), record);
        assert_eq!(record.encode(), [0x21, 3, 3, 2, 1, 6, 5, 4]);
        assert!(record.is_told() && !CellRecord::decode([0; 8]).is_told());
    }
}
