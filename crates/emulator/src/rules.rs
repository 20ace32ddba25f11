//! The rules of a chip: which addresses, sizes and orders of operations it accepts.
//!
//! Invariant: a check changes nothing, and an operation that passed it can fail only by a fault or by the medium.

use nand::{CellMode, NandError};

use crate::array::PageArray;

impl PageArray {
    /// The page must lie in the chip.
    pub(crate) fn check_page(&self, block: u32, page: u32) -> Result<(), NandError> {
        let shape = &self.spec.geometry;
        let inside = block < shape.blocks && page < shape.pages_per_block;
        if inside { Ok(()) } else { Err(NandError::OutOfRange { block, page }) }
    }

    pub(crate) fn check_read(
        &self,
        block: u32,
        page: u32,
        column: u32,
        data: usize,
        spare: usize,
    ) -> Result<(), NandError> {
        self.check_page(block, page)?;
        let shape = &self.spec.geometry;
        let fits =
            (column as usize).saturating_add(data) <= shape.page_bytes as usize && spare <= shape.spare_bytes as usize;
        if fits { Ok(()) } else { Err(NandError::OutOfRange { block, page }) }
    }

    pub(crate) fn check_program(
        &self,
        block: u32,
        unit: u32,
        mode: CellMode,
        data: usize,
        spare: usize,
    ) -> Result<(), NandError> {
        let layout = self.spec.layout(mode);
        let pages = layout.unit_pages(unit);
        let page = pages.first().copied().unwrap_or(unit);
        let (data_bytes, spare_bytes) = self.spec.unit_bytes(mode);
        let spare_fits = spare == spare_bytes || (pages.len() == 1 && spare < spare_bytes);
        if block >= self.spec.geometry.blocks || pages.is_empty() || data != data_bytes || !spare_fits {
            return Err(NandError::OutOfRange { block, page });
        }
        let meta = self.table.meta(block);
        let rule = if meta.bad {
            "the block is bad"
        } else if meta.mode.is_some_and(|set| set != mode) {
            "a block keeps one mode from erase to erase"
        } else if unit < meta.next_unit {
            "units are programmed in ascending order"
        } else if pages.iter().any(|&page| !self.table.state(block, page).reads_erased()) {
            "the page is not erased"
        } else {
            return Ok(());
        };
        Err(NandError::Misuse { block, unit, rule })
    }

    pub(crate) fn check_erase(&self, block: u32) -> Result<(), NandError> {
        self.check_page(block, 0)?;
        if self.table.meta(block).bad {
            return Err(NandError::Misuse { block, unit: 0, rule: "the block is bad" });
        }
        Ok(())
    }
}
