//! Which block to empty next.
//!
//! Emptying a block costs a copy for each slot still live in it and gains the rest of a native block, whether it is an
//! SLC or a native one: the one with the least live in it is the best, of whichever region.

use crate::flash::blocks::Block;
use crate::format::table::Use;

/// What is known when a victim is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    /// Blocks programmed in this era or later become free only with the next checkpoint.
    pub era: u64,
    /// Bytes a destination block takes.
    pub target_bytes: u32,
}

/// How good a victim is; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Failing blocks come first.
    pub sound: bool,
    pub live_bytes: u32,
    /// It was written since the last checkpoint.
    pub recent: bool,
}

/// How good a victim a block is; `None` for no victim at all.
pub fn rank(block: &Block, outlook: Outlook) -> Option<Rank> {
    let usable = block.entry.used_as == Use::Log && !block.open && !block.stuck;
    let gains = block.entry.live_bytes > 0 && (block.entry.live_bytes < outlook.target_bytes || block.entry.failing);
    let recent = block.era >= outlook.era;
    let rank = Rank { sound: !block.entry.failing, live_bytes: block.entry.live_bytes, recent };
    (usable && gains).then_some(rank)
}

/// The block to empty, and whether a checkpoint must come first: only where the best block that needs one gains far
/// more than the best that does not.
pub fn choose(ranked: impl Iterator<Item = (Rank, u32)>, outlook: Outlook) -> Option<(u32, bool)> {
    let (mut old, mut recent) = (None::<(Rank, u32)>, None::<(Rank, u32)>);
    for candidate in ranked {
        let best = if candidate.0.recent { &mut recent } else { &mut old };
        if best.is_none_or(|best| candidate < best) {
            *best = Some(candidate);
        }
    }
    let gain = |rank: Rank| outlook.target_bytes.saturating_sub(rank.live_bytes);
    match (old, recent) {
        (Some((old, number)), Some((recent, _))) if !old.sound || gain(recent) <= 3 * gain(old) => {
            Some((number, false))
        }
        (Some((_, number)), None) => Some((number, false)),
        (_, Some((_, number))) => Some((number, true)),
        (None, None) => None,
    }
}

/// Log blocks opened between two checkpoints, at most.
pub fn checkpoint_interval_blocks(blocks: u32) -> u32 {
    (blocks / 6).clamp(4, 32)
}

/// How far a block's erase count may fall behind the most worn one's before its content is moved.
pub fn wear_gap(endurance: u32) -> u32 {
    (endurance / 100).max(16)
}
