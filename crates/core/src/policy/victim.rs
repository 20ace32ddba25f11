//! Which block to empty next.
//!
//! Emptying a block costs a copy for each slot still live in it and gains the rest of a native block, whether it is an
//! SLC or a native one: the one with the least live in it is the best, of whichever region.

use crate::flash::blocks::Block;
use crate::format::table::Use;

/// What is known when a victim is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    /// Blocks programmed at or after this sequence number become free only with the next checkpoint.
    pub checkpoint_seq: u64,
    /// Bytes a destination block takes.
    pub target_bytes: u32,
}

/// How good a victim is: smaller is better; `None` for no victim at all.
pub fn rank(block: &Block, outlook: Outlook) -> Option<(bool, bool, u32)> {
    let usable = block.entry.used_as == Use::Log && !block.open && !block.stuck;
    let gains = block.entry.live_bytes > 0 && (block.entry.live_bytes < outlook.target_bytes || block.entry.failing);
    let recent = block.last_seq >= outlook.checkpoint_seq;
    (usable && gains).then_some((!block.entry.failing, recent, block.entry.live_bytes))
}

/// Log blocks opened between two checkpoints, at most.
pub fn checkpoint_interval_blocks(blocks: u32) -> u32 {
    (blocks / 8).clamp(4, 32)
}

/// How far a block's erase count may fall behind the most worn one's before its content is moved.
pub fn wear_gap(endurance: u32) -> u32 {
    (endurance / 100).max(16)
}
