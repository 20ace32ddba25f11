//! Pages of files, appended to open blocks: which block of the log holds each, and which blocks are free.
//!
//! Invariant: a valid page of the log has an owner whose place it is; a block's count of valid pages is the number of these.

use std::collections::VecDeque;

use crate::drive::DriveError;

/// Blocks by channel and die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogShape {
    pub channels: u8,
    pub dies_per_channel: u8,
    pub blocks_per_channel: u32,
    pub pages_per_block: u32,
}

impl LogShape {
    pub fn blocks(self) -> u32 {
        u32::from(self.channels) * self.blocks_per_channel
    }

    pub fn pages(self) -> u32 {
        self.blocks() * self.pages_per_block
    }

    pub fn channel_of(self, block: u32) -> u8 {
        (block % u32::from(self.channels)) as u8
    }

    /// The die of the channel.
    pub fn die_of(self, block: u32) -> u8 {
        (block / u32::from(self.channels) % u32::from(self.dies_per_channel)) as u8
    }

    pub fn blocks_of(self, channel: u8) -> impl Iterator<Item = u32> {
        (u32::from(channel)..self.blocks()).step_by(usize::from(self.channels))
    }
}

/// What a channel's open blocks are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogHead {
    Host,
    Copies,
}

/// A block that is being emptied.
#[derive(Clone, Copy, Debug)]
struct VictimBlock {
    block: u32,
    /// Pages before this one are not valid.
    next_page: u32,
    copied: u32,
}

#[derive(Clone, Debug, Default)]
struct ChannelBlocks {
    /// In the order in which they were given back.
    free: VecDeque<u32>,
    /// Of the host's pages, and of copies.
    open: [Option<u32>; 2],
    victim: Option<VictimBlock>,
}

#[derive(Clone, Copy, Debug, Default)]
struct PagesOfBlock {
    written: u32,
    valid: u32,
}

const NOWHERE: u32 = u32::MAX;

/// The log.
#[derive(Clone)]
pub struct PageLog {
    shape: LogShape,
    /// By page of all files, its page of the log.
    places: Vec<u32>,
    /// By page of the log, whose it is.
    owners: Vec<u32>,
    blocks: Vec<PagesOfBlock>,
    channels: Vec<ChannelBlocks>,
    free_blocks: u32,
}

impl PageLog {
    /// An empty one, for so many pages of files.
    pub fn new(shape: LogShape, pages: u32) -> Self {
        let free = |channel| ChannelBlocks { free: shape.blocks_of(channel).collect(), ..ChannelBlocks::default() };
        Self {
            shape,
            places: vec![NOWHERE; pages as usize],
            owners: vec![NOWHERE; shape.pages() as usize],
            blocks: vec![PagesOfBlock::default(); shape.blocks() as usize],
            channels: (0..shape.channels).map(free).collect(),
            free_blocks: shape.blocks(),
        }
    }

    pub fn shape(&self) -> LogShape {
        self.shape
    }

    /// Pages of files.
    pub fn pages(&self) -> u32 {
        self.places.len() as u32
    }

    /// Where a page of a file stands.
    pub fn place(&self, page: u32) -> Option<u32> {
        Some(self.places[page as usize]).filter(|&place| place != NOWHERE)
    }

    pub fn free_blocks(&self, channel: u8) -> usize {
        self.channels[usize::from(channel)].free.len()
    }

    /// Free blocks of all channels.
    pub fn all_free_blocks(&self) -> u32 {
        self.free_blocks
    }

    /// Appends a page of a file to an open block of a channel, and gives its place; the one before is not valid any more.
    pub fn append(&mut self, channel: u8, head: LogHead, page: u32) -> Result<u32, DriveError> {
        let blocks = &mut self.channels[usize::from(channel)];
        let open = &mut blocks.open[head as usize];
        let has_room = |block: &u32| self.blocks[*block as usize].written < self.shape.pages_per_block;
        let block = match open.filter(has_room) {
            Some(block) => block,
            None => {
                let block = blocks.free.pop_front().ok_or(DriveError::NoFreeBlock { channel })?;
                self.free_blocks -= 1;
                *open = Some(block);
                block
            }
        };
        let before = std::mem::replace(&mut self.places[page as usize], NOWHERE);
        if before != NOWHERE {
            self.owners[before as usize] = NOWHERE;
            self.blocks[(before / self.shape.pages_per_block) as usize].valid -= 1;
        }
        let pages = &mut self.blocks[block as usize];
        let place = block * self.shape.pages_per_block + pages.written;
        pages.written += 1;
        pages.valid += 1;
        self.owners[place as usize] = page;
        self.places[page as usize] = place;
        Ok(place)
    }

    /// The block that a channel empties: the full one with the fewest valid pages, until it is released. None where each page
    /// of all of them is valid, since that would give nothing back.
    pub fn victim(&mut self, channel: u8) -> Option<u32> {
        let blocks = &self.channels[usize::from(channel)];
        if let Some(victim) = blocks.victim {
            return Some(victim.block);
        }
        let full = |&block: &u32| {
            let PagesOfBlock { written, valid } = self.blocks[block as usize];
            written == self.shape.pages_per_block && valid < written && !blocks.open.contains(&Some(block))
        };
        let least = self.shape.blocks_of(channel).filter(full).min_by_key(|&block| self.blocks[block as usize].valid);
        let block = least?;
        self.channels[usize::from(channel)].victim = Some(VictimBlock { block, next_page: 0, copied: 0 });
        Some(block)
    }

    /// The next valid page of the victim, which is to be copied: whose it is, and where it stands.
    pub fn next_of_victim(&mut self, channel: u8) -> Option<(u32, u32)> {
        let victim = self.channels[usize::from(channel)].victim.as_mut()?;
        let first = victim.block * self.shape.pages_per_block;
        while victim.next_page < self.shape.pages_per_block {
            let place = first + victim.next_page;
            let owner = self.owners[place as usize];
            if owner != NOWHERE {
                victim.copied += 1;
                return Some((owner, place));
            }
            victim.next_page += 1;
        }
        None
    }

    /// Makes the victim, which holds no valid page, a free block. Gives it, and the pages that it gives back beyond those that
    /// were copied.
    pub fn release_victim(&mut self, channel: u8) -> Option<(u32, u32)> {
        let blocks = &mut self.channels[usize::from(channel)];
        let victim = blocks.victim.take()?;
        blocks.free.push_back(victim.block);
        self.free_blocks += 1;
        self.blocks[victim.block as usize] = PagesOfBlock::default();
        Some((victim.block, self.shape.pages_per_block - victim.copied))
    }
}
