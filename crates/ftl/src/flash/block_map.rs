//! The block map in memory: the block in which each data block stands.
//!
//! Invariant: a data block that was never set stands nowhere.

use alloc::vec::Vec;

/// The entry of a data block that stands nowhere.
const NOWHERE: u32 = u32::MAX;

/// The block of each data block, or none.
#[derive(Clone, Debug)]
pub struct BlockMap(Vec<u32>);

impl BlockMap {
    /// So many data blocks, none of which stands anywhere.
    pub fn new(data_blocks: u32) -> Self {
        Self(alloc::vec![NOWHERE; data_blocks as usize])
    }

    /// How many data blocks there are.
    pub fn data_blocks(&self) -> u32 {
        self.0.len() as u32
    }

    /// The block of a data block.
    pub fn get(&self, data_block: u32) -> Option<u32> {
        self.0.get(data_block as usize).copied().filter(|&block| block != NOWHERE)
    }

    /// A data block stands in that block now, or nowhere. The block in which it stood.
    pub fn set(&mut self, data_block: u32, block: Option<u32>) -> Option<u32> {
        let slot = self.0.get_mut(data_block as usize)?;
        let old = core::mem::replace(slot, block.unwrap_or(NOWHERE));
        Some(old).filter(|&old| old != NOWHERE)
    }

    /// Every data block that stands somewhere, with its block.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..).zip(self.0.iter().copied()).filter(|&(_, block)| block != NOWHERE)
    }

    /// The data block that stands in a block.
    pub fn owner_of(&self, block: u32) -> Option<u32> {
        self.iter().find(|&(_, other)| other == block).map(|(owner, _)| owner)
    }

    /// Bytes of memory behind the map.
    pub fn ram_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }
}
