//! What Linux does not tell of a chip: how its cells are programmed, and how many erases they endure.

use nand::{CellMode, Layout};

/// The cells of a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipCells {
    /// Bits a cell holds in native mode.
    pub bits_per_cell: u8,
    /// How a block is programmed, in the order of [`CellMode::ALL`].
    pub layouts: [Layout; 2],
    /// Erases a block endures, in the same order.
    pub endurance: [u32; 2],
}

impl ChipCells {
    /// The cells of single-level NAND in blocks of so many pages.
    pub fn one_bit(pages_per_block: u32, endurance: u32) -> Self {
        let plain = Layout::plain(pages_per_block);
        Self { bits_per_cell: 1, layouts: [plain.clone(), plain], endurance: [endurance; 2] }
    }

    pub(crate) fn layout(&self, mode: CellMode) -> &Layout {
        let [slc, native] = &self.layouts;
        match mode {
            CellMode::Slc => slc,
            CellMode::Native => native,
        }
    }

    pub(crate) fn endurance(&self, mode: CellMode) -> u32 {
        let [slc, native] = self.endurance;
        match mode {
            CellMode::Slc => slc,
            CellMode::Native => native,
        }
    }
}
