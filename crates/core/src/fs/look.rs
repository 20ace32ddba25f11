//! A look at a mounted volume: its figures, its chip, its structures.

use nand::Nand;

use super::Fs;
use crate::dump::{self, AnchorInfo, BlockInfo, IndexEntry, SlotState};
use crate::error::Result;
#[cfg(test)]
use crate::store::Store;
use crate::store::report::{Info, StatFs};

impl<N: Nand> Fs<N> {
    /// The chip, to look at.
    pub fn chip(&self) -> &N {
        self.store.records().flash().slots().nand()
    }

    /// The chip, to change its faults or its clock.
    pub fn chip_mut(&mut self) -> &mut N {
        self.records().chip_mut()
    }

    /// What `statfs` tells.
    pub fn statfs(&mut self) -> Result<StatFs> {
        Ok(StatFs::of(&self.records().space()))
    }

    /// The volume's figures.
    pub fn info(&mut self) -> Result<Info> {
        Ok(self.store.info())
    }

    /// Every block.
    pub fn blocks(&self) -> impl Iterator<Item = BlockInfo> + '_ {
        dump::blocks(self.store.records())
    }

    /// The entries of the index in order, until `each` returns false.
    pub fn index_entries(&mut self, each: &mut dyn FnMut(IndexEntry) -> bool) -> Result<()> {
        dump::index_entries(self.records(), each)
    }

    /// The slots of a block in programming order, each with its address, until `each` returns false.
    pub fn slots(&mut self, block: u32, each: &mut dyn FnMut(u64, SlotState) -> bool) -> Result<()> {
        dump::slots(self.records(), block, each)
    }

    /// The newest anchor, as it was found or written last.
    pub fn anchor(&self) -> Option<AnchorInfo> {
        dump::anchor(self.store.records())
    }

    /// What the operations stand on, for tests that look inside.
    #[cfg(test)]
    pub(crate) fn store(&self) -> &Store<N> {
        &self.store
    }

    #[cfg(test)]
    pub(crate) fn store_mut(&mut self) -> &mut Store<N> {
        &mut self.store
    }
}
