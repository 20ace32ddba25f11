//! Pages by block and place, and where a sector is to be read.
//!
//! Invariant: a page's number and its place say the same on a chip.

use super::tag::Kind;

/// A page of the chip: a block, and the page's place in the order in which that is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub block: u32,
    pub page: u32,
}

impl Place {
    /// The number of the page on a chip with so many pages in a block.
    pub fn pack(self, pages_per_block: u32) -> u32 {
        self.block * pages_per_block + self.page
    }

    /// The page of a number.
    pub fn unpack(packed: u32, pages_per_block: u32) -> Self {
        Self { block: packed / pages_per_block, page: packed % pages_per_block }
    }
}

/// Where a sector is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorPlace {
    /// Nowhere: it reads as zeros.
    Nowhere,
    /// In a page that was programmed with it.
    Page(Place),
    /// In a page that may be erased, or say that it holds nothing: the sector reads as zeros then.
    Slot(Place),
    /// The same, where a page may also say that the sector was given up.
    TrimSlot(Place),
}

impl SectorPlace {
    /// The slot at a place, where there is one.
    pub fn slot(at: Option<Place>) -> Self {
        at.map_or(SectorPlace::Nowhere, SectorPlace::Slot)
    }

    /// The same, where a page may also say that the sector was given up.
    pub fn trim_slot(at: Option<Place>) -> Self {
        at.map_or(SectorPlace::Nowhere, SectorPlace::TrimSlot)
    }

    /// The page to read.
    pub fn page(self) -> Option<Place> {
        match self {
            SectorPlace::Nowhere => None,
            SectorPlace::Page(at) | SectorPlace::Slot(at) | SectorPlace::TrimSlot(at) => Some(at),
        }
    }

    /// Whether a sector that is to be read here reads as zeros where the page has this tag, or is erased.
    pub fn is_empty(self, tag: Option<Kind>) -> bool {
        match self {
            SectorPlace::Nowhere => true,
            SectorPlace::Page(_) => false,
            SectorPlace::Slot(_) => matches!(tag, None | Some(Kind::Hole)),
            SectorPlace::TrimSlot(_) => matches!(tag, None | Some(Kind::Hole | Kind::Trim)),
        }
    }
}
