//! The physical blocks under the blocks of a page log. Invariant: a logical block in use has one physical block of its channel,
//! from its first program to its TRIM.

use std::collections::VecDeque;

use super::page_log::LogShape;
use crate::drive::DriveError;

/// Whether a layer lies between the log's blocks and the chip's.
#[derive(Clone)]
pub enum BlocksBelow {
    /// None does: the log's blocks are the chip's.
    Same,
    /// A layer that maps blocks.
    Mapped(LogicalBlockMap),
}

/// A block-mapped FTL.
#[derive(Clone)]
pub struct LogicalBlockMap {
    shape: LogShape,
    physical: Vec<Option<u32>>,
    /// By channel, in the order in which they were erased.
    free: Vec<VecDeque<u32>>,
}

impl BlocksBelow {
    pub fn mapped(shape: LogShape) -> Self {
        let free = (0..shape.channels).map(|channel| shape.blocks_of(channel).collect());
        let (physical, free) = (vec![None; shape.blocks() as usize], free.collect());
        Self::Mapped(LogicalBlockMap { shape, physical, free })
    }

    /// The physical block of a block, if it has one.
    pub fn physical(&self, block: u32) -> Option<u32> {
        match self {
            Self::Same => Some(block),
            Self::Mapped(map) => map.physical[block as usize],
        }
    }

    /// Gives a block a physical one, if it has none.
    pub fn take(&mut self, block: u32) -> Result<(), DriveError> {
        if let Self::Mapped(map) = self
            && map.physical[block as usize].is_none()
        {
            let channel = map.shape.channel_of(block);
            let free = map.free[usize::from(channel)].pop_front();
            map.physical[block as usize] = Some(free.ok_or(DriveError::NoFreeBlock { channel })?);
        }
        Ok(())
    }

    /// A block TRIM: gives the physical block, which is to be erased.
    pub fn trim(&mut self, block: u32) -> Option<u32> {
        match self {
            Self::Same => Some(block),
            Self::Mapped(map) => {
                let physical = map.physical[block as usize].take()?;
                map.free[usize::from(map.shape.channel_of(block))].push_back(physical);
                Some(physical)
            }
        }
    }
}

impl LogicalBlockMap {
    pub fn entries(&self) -> u32 {
        self.physical.len() as u32
    }
}
