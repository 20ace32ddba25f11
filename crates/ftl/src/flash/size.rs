//! The sizes of a chip, and whether a translation layer can be made of it.
//!
//! Invariant: the number of every page of a chip that fits is less than 2^31.

use nand::{CellMode, Nand};

use super::tag::TAG_BYTES;
use crate::{Error, Result};

/// The sizes of a chip, as far as the use of its blocks follows from them.
#[derive(Clone, Copy, Debug)]
pub struct ChipSize {
    pub blocks: u32,
    /// Pages of a block with one bit a cell.
    pub pages_per_block: u32,
    pub page_bytes: usize,
}

impl ChipSize {
    /// The sizes of `chip`.
    pub fn of(chip: &impl Nand) -> Self {
        let (geometry, pages_per_block) = (chip.geometry(), chip.layout(CellMode::Slc).pages());
        Self { blocks: geometry.blocks, pages_per_block, page_bytes: geometry.page_bytes as usize }
    }

    /// The sizes of `chip`, if a translation layer can be made of it.
    pub fn of_fit(chip: &impl Nand) -> Result<Self> {
        let (geometry, layout) = (chip.geometry(), chip.layout(CellMode::Slc));
        if (geometry.spare_bytes as usize) < TAG_BYTES {
            return Err(Error::Unfit("a page needs 16 spare bytes for its tag"));
        }
        if layout.pages_per_unit() != 1 || layout.pages() < 4 || layout.pages() > 0x4000 {
            return Err(Error::Unfit("blocks of 4 to 16,384 pages that are programmed one by one are needed"));
        }
        let sectors = u64::from(geometry.blocks) * u64::from(layout.pages());
        if sectors > u64::from(u32::MAX >> 1) || geometry.page_bytes < 512 {
            return Err(Error::Unfit("pages of at least 512 bytes, and less than 2^31 of them, are needed"));
        }
        Ok(Self::of(chip))
    }
}
