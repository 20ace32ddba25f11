//! What is told of a drive: its map beside one of pages, and the free blocks and erases of each channel.
//!
//! Invariant: all of it is the drive's own knowledge; the chip is not asked.

use alloc::vec;
use alloc::vec::Vec;

use nand::Nand;

use super::BlockMapDrive;
use super::table::PhysicalUse;

/// Bytes of an entry of either map.
const ENTRY_BYTES: u64 = 4;

/// The figures of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveReport {
    pub logical_blocks: u32,
    pub physical_blocks: u32,
    /// Entries of its map and their bytes; those that a map of pages would have.
    pub map_entries: u64,
    pub map_bytes: u64,
    pub page_map_entries: u64,
    pub page_map_bytes: u64,
    /// Bytes that all of its state takes in memory.
    pub memory_bytes: usize,
    /// Physical blocks marked bad, logical blocks that the file system has marked so, and the blocks of records.
    pub bad_blocks: u32,
    pub marked_blocks: u32,
    pub record_blocks: [u32; 2],
    /// By the channel's number.
    pub channels: Vec<ChannelReport>,
}

/// The figures of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelReport {
    pub free_blocks: u32,
    /// Erases of all its blocks that are not bad.
    pub erases: u64,
}

impl<N: Nand> BlockMapDrive<N> {
    /// The drive's figures.
    pub fn report(&self) -> DriveReport {
        let (logical, physical) = (self.geometry.blocks, self.table.size().physical_blocks());
        let mut channels = vec![ChannelReport::default(); usize::from(self.geometry.channels.max(1))];
        let mut bad_blocks = 0;
        for block in 0..physical {
            let used_as = self.table.used_as(block);
            if used_as == PhysicalUse::Bad {
                bad_blocks += 1;
            } else if let Some(channel) = channels.get_mut(self.geometry.channel_of(block) as usize) {
                channel.free_blocks += u32::from(used_as.is_free());
                channel.erases += u64::from(self.table.erases(block));
            }
        }
        let map_entries = u64::from(logical);
        let page_map_entries = map_entries * u64::from(self.geometry.pages_per_block);
        DriveReport {
            logical_blocks: logical,
            physical_blocks: physical,
            map_entries,
            map_bytes: map_entries * ENTRY_BYTES,
            page_map_entries,
            page_map_bytes: page_map_entries * ENTRY_BYTES,
            memory_bytes: self.ram_bytes(),
            bad_blocks,
            marked_blocks: (0..logical).filter(|&block| self.table.is_marked(block)).count() as u32,
            record_blocks: self.records.pair,
            channels,
        }
    }

    /// The erases of each physical block that is not bad.
    pub fn erases_of_good_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        let good =
            (0..self.table.size().physical_blocks()).filter(|&block| self.table.used_as(block) != PhysicalUse::Bad);
        good.map(|block| self.table.erases(block))
    }
}
