//! The block table in memory: what every block is used for, how much of it is still needed, and when it may be
//! erased again.
//!
//! Invariant (reuse): a block is reusable only if nothing in it is needed, replay from the last checkpoint never
//! reads it, every record that emptied it is durable and counts, and every copy taken from it stands on completed
//! word lines.

use alloc::vec::Vec;

use nand::CellMode;

use crate::format::anchor::ANCHOR_BLOCKS;
use crate::format::table::{BlockEntry, Use};

/// A block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    pub entry: BlockEntry,
    /// A log head stands in it.
    pub open: bool,
    /// The era it was last programmed in, or must be kept for; 0 before this mount.
    pub era: u64,
    /// Sequence number of the last record that took something live from it.
    pub kill_seq: u64,
    /// Number of the last copy taken from it.
    pub copy_no: u64,
    /// Something live in it cannot be read: it is never emptied.
    pub stuck: bool,
}

impl Block {
    /// The cell mode it is programmed in.
    pub fn mode(&self) -> CellMode {
        if self.entry.native { CellMode::Native } else { CellMode::Slc }
    }
}

/// How far the log has got, for the reuse rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Horizon {
    /// The era the last durable checkpoint began: what was programmed in earlier ones is of no use to replay.
    pub era: u64,
    /// Everything below is durable, in complete groups, and out of reach of a torn program.
    pub committed_seq: u64,
    /// Every copy up to this number stands on a completed word line.
    pub safe_copy: u64,
}

/// All blocks.
pub struct BlockTable {
    blocks: Vec<Block>,
    /// Live bytes in the log.
    pub live_bytes: u64,
    /// Bad blocks.
    pub bad: u32,
}

impl BlockTable {
    /// The table of these entries.
    pub fn new(entries: Vec<BlockEntry>) -> Self {
        let blocks = entries.into_iter().map(|entry| Block { entry, ..Block::default() }).collect();
        let mut table = Self { blocks, live_bytes: 0, bad: 0 };
        table.recount();
        table
    }

    /// Adds up the live bytes of the log and the bad blocks once more, after blocks changed their use.
    pub fn recount(&mut self) {
        let log = self.blocks.iter().filter(|block| block.entry.used_as == Use::Log);
        self.live_bytes = log.map(|block| u64::from(block.entry.live_bytes)).sum();
        self.bad = self.blocks.iter().filter(|block| block.entry.used_as == Use::Bad).count() as u32;
    }

    /// Number of blocks.
    pub fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// A block; a default (free) one outside the chip.
    pub fn get(&self, block: u32) -> Block {
        self.blocks.get(block as usize).copied().unwrap_or_default()
    }

    /// A block, to change it.
    pub fn get_mut(&mut self, block: u32) -> Option<&mut Block> {
        self.blocks.get_mut(block as usize)
    }

    /// All blocks with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Block)> {
        self.blocks.iter().enumerate().map(|(number, block)| (number as u32, block))
    }

    /// Counts `bytes` more (or, where negative, fewer) as needed in `block`. `false`: the books do not balance.
    pub fn add_live(&mut self, block: u32, bytes: i64) -> bool {
        let Some(found) = self.blocks.get_mut(block as usize) else { return false };
        let now = i64::from(found.entry.live_bytes) + bytes;
        let Ok(live_bytes) = u32::try_from(now) else { return false };
        found.entry.live_bytes = live_bytes;
        if found.entry.used_as == Use::Log {
            self.live_bytes = self.live_bytes.saturating_add_signed(bytes);
        }
        true
    }

    /// Whether a block can be erased and used for something new.
    pub fn reusable(&self, number: u32, horizon: Horizon) -> bool {
        let block = self.get(number);
        match block.entry.used_as {
            Use::Free => !block.open && number < self.len(),
            Use::Meta => block.entry.live_bytes == 0 && !block.open && block.era < horizon.era,
            Use::Log => Self::emptied(&block, horizon) && block.era < horizon.era,
            Use::Anchor | Use::Bad => false,
        }
    }

    /// Whether a block can be used once the next checkpoint is durable, and not before.
    pub fn waits_for_checkpoint(&self, number: u32, horizon: Horizon) -> bool {
        let block = self.get(number);
        let empty = matches!(block.entry.used_as, Use::Log | Use::Meta) && block.entry.live_bytes == 0 && !block.open;
        empty && !self.reusable(number, horizon)
    }

    fn emptied(block: &Block, horizon: Horizon) -> bool {
        block.entry.live_bytes == 0
            && !block.open
            && block.kill_seq < horizon.committed_seq
            && block.copy_no <= horizon.safe_copy
    }

    /// Blocks that can be used for something new.
    pub fn reusable_count(&self, horizon: Horizon) -> u32 {
        let sound = self.iter().filter(|(_, block)| !block.entry.failing);
        sound.filter(|&(number, _)| self.reusable(number, horizon)).count() as u32
    }

    /// The reusable block to take next: not failing, least erased, erased ones first, those that anchors may need last.
    pub fn pick(&self, horizon: Horizon) -> Option<u32> {
        let candidates = self.iter().filter(|&(number, block)| !block.entry.failing && self.reusable(number, horizon));
        let key = |number: u32, block: &Block| {
            let erases = block.entry.erases + u32::from(!block.entry.erased);
            (erases, !block.entry.erased, number < ANCHOR_BLOCKS)
        };
        candidates.min_by_key(|&(number, block)| key(number, block)).map(|(number, _)| number)
    }
}
