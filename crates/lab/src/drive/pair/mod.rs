//! Two pairs of a file system and a translation layer, both with collection (Qiu et al., §III.A, Fig. 6).
//!
//! *Page-mapped*: files are written in place, the layer maps pages and collects each channel by itself. *Co-design*: the file
//! system writes out of place and collects over all channels, the layer maps blocks, and a block TRIM is an erase. In both a
//! page is appended to an open block of the channel whose turn it is. Invariant: a page of a file has one valid copy, and a
//! block is erased once it holds none.

mod block_map;
mod collection;
mod condition;
mod erase_blocks;
mod page_log;

pub use collection::{CollectionEnd, CollectionPace, CollectionRule, CollectionScope};
pub use condition::condition;
pub use page_log::LogShape;

use block_map::BlocksBelow;
use collection::Collection;
use erase_blocks::EraseBlocks;
use page_log::{LogHead, PageLog};

use super::load::PageSpan;
use super::{BackgroundStep, CommandKind, DriveError, DriveTimes, PageStore, PendingTimes, PlannedRequest};

/// Below so many free blocks of a channel a write is followed by several steps of collection, idle die or not.
const FREE_BLOCKS_SHORT: usize = 3;
const STEPS_WHEN_SHORT: u32 = 4;

/// What a pair did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    pub host_pages: u64,
    pub copies: u64,
    pub erases: u64,
    /// Steps that did not wait for an idle die.
    pub hurried_steps: u64,
}

/// A file system over a translation layer.
#[derive(Clone)]
pub struct StoragePair {
    times: DriveTimes,
    /// The blocks of the page log are physical ones where the layer maps pages, and logical ones where it maps blocks.
    log: PageLog,
    below: BlocksBelow,
    chip: EraseBlocks,
    collection: Collection,
    turn: u64,
    counts: PairCounts,
}

impl StoragePair {
    /// Files in place, over an FTL that maps `pages`.
    pub fn page_mapped(shape: LogShape, pages: u32, rule: CollectionRule) -> Self {
        Self::over(BlocksBelow::Same, shape, pages, rule)
    }

    /// Files of `pages` out of place, over an FTL that maps blocks.
    pub fn codesign(shape: LogShape, pages: u32, rule: CollectionRule) -> Self {
        Self::over(BlocksBelow::mapped(shape), shape, pages, rule)
    }

    fn over(below: BlocksBelow, shape: LogShape, pages: u32, rule: CollectionRule) -> Self {
        Self {
            times: DriveTimes::TABLE_I,
            log: PageLog::new(shape, pages),
            below,
            chip: EraseBlocks::new(shape.blocks(), shape.pages_per_block),
            collection: Collection::new(rule, shape),
            turn: 0,
            counts: PairCounts::default(),
        }
    }

    pub fn counts(&self) -> PairCounts {
        self.counts
    }

    /// How often each part that collects by itself has begun.
    pub fn begins(&self) -> impl Iterator<Item = u64> {
        self.collection.begins()
    }

    /// Entries of the translation layer's map.
    pub fn map_entries(&self) -> u32 {
        match &self.below {
            BlocksBelow::Same => self.log.pages(),
            BlocksBelow::Mapped(map) => map.entries(),
        }
    }

    /// Where a page of the log stands on the chip.
    fn physical(&self, page: u32) -> Result<(u32, u32), DriveError> {
        let pages_per_block = self.log.shape().pages_per_block;
        let block = page / pages_per_block;
        let physical = self.below.physical(block).ok_or(DriveError::NeverWritten { page })?;
        Ok((physical, page % pages_per_block))
    }

    /// Appends a page, and gives the die of the channel that it stands on.
    fn append(&mut self, channel: u8, head: LogHead, page: u32, stamp: u64) -> Result<u8, DriveError> {
        let at = self.log.append(channel, head, page)?;
        self.below.take(at / self.log.shape().pages_per_block)?;
        let (block, page) = self.physical(at)?;
        self.chip.program(block, page, stamp)?;
        Ok(self.log.shape().die_of(block))
    }

    /// The die of the block that a channel collects, if there is one.
    fn die_of_victim(&mut self, channel: u8) -> Option<u8> {
        let block = self.log.victim(channel)?;
        self.below.physical(block).map(|physical| self.log.shape().die_of(physical))
    }

    /// A step of collection on a channel: a page is copied, or the block that holds none is erased.
    fn collect(&mut self, channel: u8) -> Result<Option<BackgroundStep>, DriveError> {
        let Some(die) = self.die_of_victim(channel) else { return Ok(None) };
        let duration_ns = match self.log.next_of_victim(channel) {
            Some((owner, at)) => {
                let (block, page) = self.physical(at)?;
                let stamp = self.chip.stamp(block, page);
                self.append(channel, LogHead::Copies, owner, stamp)?;
                self.counts.copies += 1;
                self.times.copy_ns()
            }
            None => {
                let Some((block, pages_given_back)) = self.log.release_victim(channel) else { return Ok(None) };
                let physical = self.below.trim(block).ok_or(DriveError::NoFreeBlock { channel })?;
                self.chip.erase(physical);
                self.counts.erases += 1;
                self.collection.gave_back(channel, pages_given_back);
                self.times.erase_ns
            }
        };
        Ok(Some(BackgroundStep { channel, die, duration_ns }))
    }

    /// What a write of a page on a channel brings with it.
    fn follow_write(&mut self, channel: u8, out: &mut PlannedRequest) -> Result<(), DriveError> {
        self.collection.look(channel, &self.log);
        if !self.collection.is_on(channel) {
            return Ok(());
        }
        match self.collection.pace() {
            CollectionPace::WhereIdle if self.log.free_blocks(channel) < FREE_BLOCKS_SHORT => {
                for _ in 0..STEPS_WHEN_SHORT {
                    let Some(step) = self.collect(channel)? else { break };
                    self.counts.hurried_steps += 1;
                    out.steps.push(step);
                }
            }
            CollectionPace::WhereIdle => {}
            CollectionPace::AtOnce => {
                let channels = self.collection.channels_with(channel);
                while self.collection.is_on(channel) {
                    let before = out.steps.len();
                    for channel in channels.clone() {
                        out.steps.extend(self.collect(channel)?);
                    }
                    self.collection.look(channel, &self.log);
                    if out.steps.len() == before {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

impl PageStore for StoragePair {
    fn read(&mut self, span: &PageSpan, out: &mut PlannedRequest) -> Result<(), DriveError> {
        for page in span.first..span.first + span.pages {
            let at = self.log.place(page).ok_or(DriveError::NeverWritten { page })?;
            let (block, page) = self.physical(at)?;
            out.stamps.push(self.chip.stamp(block, page));
            let shape = self.log.shape();
            out.add(CommandKind::Read, shape.channel_of(block), shape.die_of(block), (0, 1));
        }
        Ok(())
    }

    fn write(
        &mut self,
        span: &PageSpan,
        first_stamp: u64,
        _: &PendingTimes,
        out: &mut PlannedRequest,
    ) -> Result<(), DriveError> {
        for (page, stamp) in (span.first..span.first + span.pages).zip(first_stamp..) {
            let channel = (self.turn % u64::from(self.log.shape().channels)) as u8;
            self.turn += 1;
            let die = self.append(channel, LogHead::Host, page, stamp)?;
            self.counts.host_pages += 1;
            out.add(CommandKind::Program, channel, die, (0, 1));
            self.follow_write(channel, out)?;
        }
        Ok(())
    }

    fn background(&mut self, channel: u8, is_idle: &dyn Fn(u8) -> bool) -> Result<Option<BackgroundStep>, DriveError> {
        self.collection.look(channel, &self.log);
        if !self.collection.is_on(channel) || !self.die_of_victim(channel).is_some_and(is_idle) {
            return Ok(None);
        }
        self.collect(channel)
    }

    fn is_collecting(&self, channel: u8) -> bool {
        self.collection.is_on(channel) && self.collection.pace() == CollectionPace::WhereIdle
    }
}

#[cfg(test)]
mod tests;
