//! Making a volume with map blocks: how many there are, how the good blocks are shared out, and the map of all data
//! blocks.
//!
//! Invariant: no block is on two lists, and the anchor is written when all of the map is.

use alloc::vec::Vec;

use nand::Nand;

use super::fragment::Shape;
use super::map_blocks::{Books, MapBlocks};
use super::table::Table;
use super::{LogBlock, MAPPED, RESERVE_BLOCKS};
use crate::flash::anchor::Record;
use crate::flash::{ChipSize, Flash};
use crate::settings::{Format, LOGS};
use crate::{Error, Result};

/// Map blocks at least,
const MAP_BLOCKS_MIN: u32 = 2;
/// and in a usual volume.
const MAP_BLOCKS_USUAL: u32 = 3;

/// The usual format, with the map blocks that it needs. Where the map is so large that blocks are in reserve, memory is
/// for the map.
pub(super) fn usual_mapped(size: ChipSize, format: Format) -> Format {
    let ChipSize { blocks, pages_per_block, page_bytes } = size;
    let extra_blocks = format.extra_blocks;
    let has_reserve = extra_blocks > Shape::listed_max(page_bytes, blocks);
    let shape = Shape::new(page_bytes, blocks, blocks.saturating_sub(extra_blocks), extra_blocks);
    let map_blocks = shape.map_blocks_min(pages_per_block).max(MAP_BLOCKS_USUAL);
    let [few, _] = LOGS;
    Format { logs: if has_reserve { few } else { format.logs }, map_blocks, ..format }
}

/// Map blocks of a new volume.
pub(super) fn map_blocks(record: &Record, format: &Format) -> u32 {
    if record.scheme == MAPPED.code { format.map_blocks.max(MAP_BLOCKS_MIN) } else { 0 }
}

impl LogBlock {
    /// Writes the map of a new volume with map blocks.
    pub(super) fn create_mapped(
        &mut self,
        flash: &mut Flash<impl Nand>,
        record: Record,
        format: &Format,
    ) -> Result<()> {
        let (data_blocks, blocks) = (record.data_blocks, flash.blocks());
        let good: Vec<u32> = flash.usable().collect();
        let (ring, rest) = good.split_at_checked(map_blocks(&record, format) as usize).unwrap_or_default();
        let (data, free) = rest.split_at_checked(data_blocks as usize).unwrap_or_default();
        let listed = free.len().min(Shape::listed_max(flash.page_bytes(), blocks) as usize);
        let (free, reserve) = free.split_at_checked(listed).unwrap_or_default();
        if record.logs.saturating_add(RESERVE_BLOCKS + 1) > listed as u32 {
            return Err(Error::Unfit("the log blocks do not fit one fragment of the map"));
        }
        let record = Record { ring: ring.to_vec(), reserve: reserve.len() as u32, ..record };
        let shape = Shape::with_reserve(flash.page_bytes(), blocks, data_blocks, listed as u32, record.reserve);
        if (ring.len() as u32) < shape.map_blocks_min(flash.pages_per_block()) {
            return Err(Error::Unfit(
                "the map has too few blocks: half of all but one must be enough for every fragment",
            ));
        }
        free.iter().for_each(|&block| flash.pool.release(block));
        let mut map = MapBlocks::format(flash, shape, record, &Books { logs: &[], resolved: None }, data, reserve)?;
        map.set_swap_every(self.options.swap_every);
        self.table = Table::Mapped(map);
        Ok(())
    }
}
