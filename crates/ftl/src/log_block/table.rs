//! Where data blocks stand: in map blocks, or, in the scheme without these, in memory, found again by reading every block.
//!
//! Invariant: a change is durable when [`Table::write`] returns.

use nand::Nand;

use super::fragment::Standing;
use super::map_blocks::{Books, Change, MapBlocks};
use crate::Result;
use crate::flash::Flash;
use crate::flash::block_map::BlockMap;

/// The block map.
#[derive(Clone, Debug)]
pub(super) enum Table {
    /// In map blocks (L).
    Mapped(MapBlocks),
    /// In memory; each data block's last page vouches for it (L-M).
    Scanned(BlockMap),
}

impl Table {
    /// A map in memory of so many data blocks, none of which stands anywhere.
    pub fn scanned(data_blocks: u32) -> Self {
        Table::Scanned(BlockMap::new(data_blocks))
    }

    /// Where a data block stands; `None` where it has no block at all.
    pub fn find<N: Nand>(&mut self, flash: &mut Flash<N>, block: u32) -> Result<Option<Standing>> {
        match self {
            Table::Mapped(map) => map.find(flash, block).map(Some),
            Table::Scanned(blocks) => Ok(blocks.get(block).map(|block| Standing { block, is_empty: false })),
        }
    }

    /// The block that holds a data block's sectors; `None` where they all read as zeros.
    pub fn holder<N: Nand>(&mut self, flash: &mut Flash<N>, block: u32) -> Result<Option<u32>> {
        Ok(self.find(flash, block)?.filter(|standing| !standing.is_empty).map(|standing| standing.block))
    }

    /// Pages of a sequence that changes these data blocks' places, which are in ascending order: one for each fragment.
    pub fn pages_of(&self, blocks: impl Iterator<Item = u32>) -> u32 {
        match self {
            Table::Mapped(map) => {
                let mut last = None;
                blocks.map(|block| map.shape.split(block).0).filter(|&its| last.replace(its) != Some(its)).count()
                    as u32
            }
            Table::Scanned(_) => 0,
        }
    }

    /// Neighbours from a data block on whose places stand in so many pages of the map.
    pub fn neighbours(&self, block: u32, pages: u32) -> u32 {
        match self {
            Table::Mapped(map) => ((map.shape.split(block).0 + pages) * map.shape.entries()).saturating_sub(block),
            Table::Scanned(_) => u32::MAX,
        }
    }

    /// Sees to it that a sequence of so many pages can be written.
    pub fn make_room<N: Nand>(&mut self, flash: &mut Flash<N>, books: &Books<'_>, pages: u32) -> Result<()> {
        match self {
            Table::Mapped(map) => map.make_room(flash, books, pages),
            Table::Scanned(_) => Ok(()),
        }
    }

    /// Writes changes, all or none.
    pub fn write<N: Nand>(&mut self, flash: &mut Flash<N>, books: &Books<'_>, changes: &[Change]) -> Result<()> {
        match self {
            Table::Mapped(map) => map.write(flash, books, changes),
            Table::Scanned(blocks) => {
                for &Change { block, now } in changes {
                    blocks.set(block, Some(now.block).filter(|_| !now.is_empty));
                }
                Ok(())
            }
        }
    }

    /// Whether the map is on flash, so that a change of it can commit what was written before.
    pub fn is_on_flash(&self) -> bool {
        matches!(self, Table::Mapped(_))
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        match self {
            Table::Mapped(map) => map.ram_bytes(),
            Table::Scanned(blocks) => blocks.ram_bytes(),
        }
    }
}
