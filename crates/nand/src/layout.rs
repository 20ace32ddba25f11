//! The pages of a block in one cell mode: in which order they are programmed, how many go in one program, and
//! which earlier pages a torn program may take with it.

use alloc::vec::Vec;

/// A layout that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The number of pages is not a multiple of the program unit.
    #[error("{pages} pages cannot be programmed {unit} at a time")]
    Unit { pages: usize, unit: u32 },
    /// A page is listed twice or lies outside the block.
    #[error("page {page} is listed twice or lies outside the block of {pages_per_block} pages")]
    Page { page: u32, pages_per_block: u32 },
    /// A unit claims to endanger one that is not programmed before it.
    #[error("unit {unit} cannot endanger unit {victim}: it is not programmed earlier")]
    Partner { unit: u32, victim: u32 },
}

/// The programming order of a block in one cell mode.
///
/// A *unit* is what one program operation writes: a page, or the whole word line on one-shot TLC. Units are
/// programmed in ascending order; they may be skipped, never gone back to before the erase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pages_per_unit: u32,
    order: Vec<u32>,
    endangers: Vec<Vec<u32>>,
    pair_distance: u32,
}

impl Layout {
    /// A layout whose unit `u` writes the pages `order[u * pages_per_unit ..][.. pages_per_unit]`, and whose torn
    /// program of unit `u` may destroy the units `endangers[u]`, all earlier than `u` (a missing entry is none).
    pub fn new(
        pages_per_block: u32,
        pages_per_unit: u32,
        order: Vec<u32>,
        mut endangers: Vec<Vec<u32>>,
    ) -> Result<Self, LayoutError> {
        if pages_per_unit == 0 || order.is_empty() || !order.len().is_multiple_of(pages_per_unit as usize) {
            return Err(LayoutError::Unit { pages: order.len(), unit: pages_per_unit });
        }
        let mut seen = alloc::vec![false; pages_per_block as usize];
        for &page in &order {
            match seen.get_mut(page as usize) {
                Some(slot) if !*slot => *slot = true,
                _ => return Err(LayoutError::Page { page, pages_per_block }),
            }
        }
        endangers.resize(order.len() / pages_per_unit as usize, Vec::new());
        let mut pair_distance = 1;
        for (unit, victims) in endangers.iter().enumerate() {
            for &victim in victims {
                if victim as usize >= unit {
                    return Err(LayoutError::Partner { unit: unit as u32, victim });
                }
                pair_distance = pair_distance.max(unit as u32 - victim);
            }
        }
        Ok(Self { pages_per_unit, order, endangers, pair_distance })
    }

    /// Every page of the block, one a program, no pairing: SLC chips.
    pub fn plain(pages_per_block: u32) -> Self {
        Self {
            pages_per_unit: 1,
            order: (0..pages_per_block).collect(),
            endangers: alloc::vec![Vec::new(); pages_per_block as usize],
            pair_distance: 1,
        }
    }

    /// Program operations that fill the block.
    pub fn units(&self) -> u32 {
        self.endangers.len() as u32
    }

    /// Pages that one program operation writes.
    pub fn pages_per_unit(&self) -> u32 {
        self.pages_per_unit
    }

    /// Pages of the block that this mode uses.
    pub fn pages(&self) -> u32 {
        self.order.len() as u32
    }

    /// The physical pages that program `unit` writes, in the order of its data; empty past the end.
    pub fn unit_pages(&self, unit: u32) -> &[u32] {
        let start = unit as usize * self.pages_per_unit as usize;
        self.order.get(start..start + self.pages_per_unit as usize).unwrap_or(&[])
    }

    /// The `index`th page in programming order.
    pub fn page(&self, index: u32) -> Option<u32> {
        self.order.get(index as usize).copied()
    }

    /// The earlier units that a torn program of `unit` may destroy (the LSB pages of its word line).
    pub fn endangers(&self, unit: u32) -> &[u32] {
        self.endangers.get(unit as usize).map_or(&[], Vec::as_slice)
    }

    /// The longest distance, in units, between a unit and one it endangers; 1 where none does.
    pub fn pair_distance(&self) -> u32 {
        self.pair_distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_that_pairs_with_a_later_unit_is_refused() {
        let err = Layout::new(4, 1, alloc::vec![0, 1, 2, 3], alloc::vec![alloc::vec![1]]);
        assert_eq!(err, Err(LayoutError::Partner { unit: 0, victim: 1 }));
    }

    #[test]
    fn a_unit_of_several_pages_lists_them_in_data_order() {
        let layout = Layout::new(6, 3, alloc::vec![0, 2, 4, 1, 3, 5], Vec::new()).unwrap();
        assert_eq!(layout.units(), 2);
        assert_eq!(layout.unit_pages(1), &[1, 3, 5]);
        assert_eq!(layout.unit_pages(2), &[] as &[u32]);
    }

    #[test]
    fn a_page_listed_twice_is_refused() {
        let err = Layout::new(4, 1, alloc::vec![0, 0], Vec::new());
        assert_eq!(err, Err(LayoutError::Page { page: 0, pages_per_block: 4 }));
    }
}
