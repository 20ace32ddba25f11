//! Which block to empty next.
//!
//! Emptying a block costs a copy for each slot still live in it and gains the rest of a native block, whether it is an
//! SLC or a native one: the one with the least live in it is the best, of whichever region.

use super::BlockView;

/// A block to be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    pub block: u32,
    /// A checkpoint should come first: with it, a block can be used again that gains far more than any other.
    pub after_checkpoint: bool,
}

/// How good a victim is; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Failing blocks come first.
    sound: bool,
    live_bytes: u32,
    /// It was written since the last checkpoint.
    recent: bool,
    number: u32,
}

/// How good a victim a block is where a destination block takes `target_bytes`; `None` for no victim at all.
fn rank(block: &BlockView, target_bytes: u32) -> Option<Rank> {
    let gains = block.live_bytes < target_bytes || block.failing;
    let BlockView { failing, live_bytes, recent, number, .. } = *block;
    (block.is_movable() && gains).then_some(Rank { sound: !failing, live_bytes, recent, number })
}

/// The block to empty, where a destination block takes `target_bytes`.
pub fn choose(blocks: impl Iterator<Item = BlockView>, target_bytes: u32) -> Option<Victim> {
    let (mut old, mut recent) = (None::<Rank>, None::<Rank>);
    for candidate in blocks.filter_map(|block| rank(&block, target_bytes)) {
        let best = if candidate.recent { &mut recent } else { &mut old };
        if best.is_none_or(|best| candidate < best) {
            *best = Some(candidate);
        }
    }
    let gain = |rank: Rank| target_bytes.saturating_sub(rank.live_bytes);
    match (old, recent) {
        (Some(old), Some(recent)) if old.sound && gain(recent) > 3 * gain(old) => {
            Some(Victim { block: recent.number, after_checkpoint: true })
        }
        (Some(old), _) => Some(Victim { block: old.number, after_checkpoint: false }),
        (None, recent) => recent.map(|recent| Victim { block: recent.number, after_checkpoint: true }),
    }
}

/// Log blocks opened between two checkpoints, at most.
pub fn checkpoint_interval_blocks(blocks: u32) -> u32 {
    (blocks / 6).clamp(4, 32)
}

#[cfg(test)]
mod tests {
    use super::super::tests::block;
    use super::*;

    fn victim(block: u32, after_checkpoint: bool) -> Option<Victim> {
        Some(Victim { block, after_checkpoint })
    }

    #[test]
    fn the_block_with_the_least_live_is_emptied_and_a_failing_one_before_it() {
        let failing = BlockView { failing: true, ..block(3, 90) };
        assert_eq!(choose([block(1, 50), block(2, 40)].into_iter(), 100), victim(2, false));
        assert_eq!(choose([block(1, 50), failing, block(2, 40)].into_iter(), 100), victim(3, false));
        assert_eq!(choose([block(1, 100), block(2, 0)].into_iter(), 100), None, "nothing is gained");
    }

    #[test]
    fn a_recent_block_is_worth_a_checkpoint_only_for_far_more() {
        let recent = |live_bytes| BlockView { recent: true, ..block(2, live_bytes) };
        assert_eq!(choose([block(1, 80), recent(40)].into_iter(), 100), victim(1, false));
        assert_eq!(choose([block(1, 80), recent(39)].into_iter(), 100), victim(2, true));
        assert_eq!(choose([recent(99)].into_iter(), 100), victim(2, true));
    }
}
