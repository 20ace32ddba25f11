//! What a chip remembers about its blocks and pages besides their contents.
//!
//! Two flat arrays, copied whole by a snapshot: about 40 bytes a block and one byte a page. Invariant: a page is in
//! exactly one [`PageState`], and `next_unit` is past every unit that was programmed since the erase.

use std::ops::Range;

use nand::CellMode;

/// What a read or a program of a page would find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PageState {
    /// All cells erased.
    Erased = 0,
    /// Holds what was programmed, or what a torn operation left.
    Programmed = 1,
    /// No read succeeds.
    Uncorrectable = 2,
    /// The next read succeeds, later ones do not.
    Unstable = 3,
    /// Reads as erased, but its cells are not: what is programmed here does not stay.
    Weak = 4,
}

impl PageState {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [Self::Erased, Self::Programmed, Self::Uncorrectable, Self::Unstable, Self::Weak]
            .get(usize::from(byte))
            .copied()
    }

    /// Whether a read returns `0xFF` throughout.
    pub(crate) fn reads_erased(self) -> bool {
        matches!(self, Self::Erased | Self::Weak)
    }

    /// Whether the store has bytes for it that a read may return.
    pub(crate) fn holds_bytes(self) -> bool {
        matches!(self, Self::Programmed | Self::Unstable)
    }
}

/// What is known of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockMeta {
    pub(crate) erase_count: u32,
    /// How many of these ended a life in SLC mode; the others count as native.
    pub(crate) slc_erases: u32,
    /// Program/erase cycles begun: first programs of the erased block.
    pub(crate) cycles: u32,
    /// The lowest unit that may be programmed.
    pub(crate) next_unit: u32,
    /// Reads since the erase.
    pub(crate) reads: u32,
    /// When the first program after the erase was done.
    pub(crate) programmed_ns: u64,
    /// The mode of the programs since the erase.
    pub(crate) mode: Option<CellMode>,
    /// Marked bad, by the factory or the chip's user.
    pub(crate) bad: bool,
    /// Has failed: every later program or erase fails too.
    pub(crate) failed: bool,
    /// Has reads that an image has not been told of.
    pub(crate) unsaved_reads: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Table {
    pages_per_block: usize,
    pub(crate) blocks: Vec<BlockMeta>,
    states: Vec<PageState>,
}

impl Table {
    pub(crate) fn new(blocks: u32, pages_per_block: u32) -> Self {
        let pages = blocks as usize * pages_per_block as usize;
        Self {
            pages_per_block: pages_per_block as usize,
            blocks: vec![BlockMeta::default(); blocks as usize],
            states: vec![PageState::Erased; pages],
        }
    }

    fn range(&self, block: u32) -> Range<usize> {
        let start = block as usize * self.pages_per_block;
        start..start + self.pages_per_block
    }

    pub(crate) fn states(&self, block: u32) -> &[PageState] {
        &self.states[self.range(block)]
    }

    pub(crate) fn states_mut(&mut self, block: u32) -> &mut [PageState] {
        let range = self.range(block);
        &mut self.states[range]
    }

    pub(crate) fn state(&self, block: u32, page: u32) -> PageState {
        self.states[block as usize * self.pages_per_block + page as usize]
    }

    pub(crate) fn set_state(&mut self, block: u32, page: u32, state: PageState) {
        self.states[block as usize * self.pages_per_block + page as usize] = state;
    }

    pub(crate) fn meta(&self, block: u32) -> &BlockMeta {
        &self.blocks[block as usize]
    }

    /// The entry of `block`, or a new block's outside the chip.
    pub(crate) fn meta_or_default(&self, block: u32) -> BlockMeta {
        self.blocks.get(block as usize).copied().unwrap_or_default()
    }

    pub(crate) fn meta_mut(&mut self, block: u32) -> &mut BlockMeta {
        &mut self.blocks[block as usize]
    }

    /// A copy of all that is known of `block`, to undo an operation with.
    pub(crate) fn save(&self, block: u32) -> SavedBlock {
        SavedBlock { meta: *self.meta(block), states: self.states(block).into() }
    }

    pub(crate) fn restore(&mut self, block: u32, saved: &SavedBlock) {
        *self.meta_mut(block) = saved.meta;
        self.states_mut(block).copy_from_slice(&saved.states);
    }
}

/// The entry and the page states of a block before an operation.
#[derive(Clone, Debug)]
pub(crate) struct SavedBlock {
    pub(crate) meta: BlockMeta,
    pub(crate) states: Box<[PageState]>,
}
