//! Which block to empty next.
//!
//! Emptying a block costs a copy for each slot still live in it and gains the rest of a native block, whether it is an
//! SLC or a native one: the one with the least live in it is the best, of whichever region.

use super::BlockView;

/// A block to be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    pub block: u32,
    pub live_bytes: u32,
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

/// Victims are about as good as each other within this part of a destination block: an eighth.
const AS_GOOD_PART: u32 = 8;

/// The block to empty, where a destination block takes `target_bytes`: of the victims about as good as the best
/// the one on the die with the fewest free blocks.
pub fn choose(blocks: impl Iterator<Item = BlockView> + Clone, target_bytes: u32) -> Option<Victim> {
    let (mut old, mut recent) = (None::<Rank>, None::<Rank>);
    for candidate in blocks.clone().filter_map(|block| rank(&block, target_bytes)) {
        let best = if candidate.recent { &mut recent } else { &mut old };
        if best.is_none_or(|best| candidate < best) {
            *best = Some(candidate);
        }
    }
    let even = |best: Rank| {
        let limit = best.live_bytes.saturating_add(target_bytes / AS_GOOD_PART);
        let as_good =
            |found: &Rank| (found.sound, found.recent) == (best.sound, best.recent) && found.live_bytes <= limit;
        let ranked = blocks.clone().filter_map(|block| Some((block.free_beside, rank(&block, target_bytes)?)));
        ranked.filter(|(_, found)| as_good(found)).min().map_or(best, |(_, found)| found)
    };
    let (old, recent) = (old.map(even), recent.map(even));
    let gain = |rank: Rank| target_bytes.saturating_sub(rank.live_bytes);
    let victim = |rank: Rank, after_checkpoint| {
        Some(Victim { block: rank.number, live_bytes: rank.live_bytes, after_checkpoint })
    };
    match (old, recent) {
        (Some(old), Some(recent)) if old.sound && gain(recent) > 3 * gain(old) => victim(recent, true),
        (Some(old), _) => victim(old, false),
        (None, recent) => victim(recent?, true),
    }
}

/// How finely victims are told apart by what is live in them.
const CLASSES: usize = 16;
/// Blocks ahead for which it is asked what they cost: victims soon become dearer where cheap ones are few.
const COSTED_BLOCKS: u64 = 2;

/// Bytes to be copied for one more free block, from the emptiest of these blocks on: each gains what is not live in it.
/// `None`: nothing is gained by any.
pub fn cost_of_block_bytes(blocks: impl Iterator<Item = BlockView>, target_bytes: u32) -> Option<u64> {
    let mut classes = [(0, 0); CLASSES];
    for block in blocks.filter(|block| block.is_movable() && block.live_bytes < target_bytes) {
        let class = u64::from(block.live_bytes) * CLASSES as u64 / u64::from(target_bytes);
        if let Some((gain_bytes, live_bytes)) = classes.get_mut(class as usize) {
            *gain_bytes += u64::from(target_bytes - block.live_bytes);
            *live_bytes += u64::from(block.live_bytes);
        }
    }
    let (mut gained_bytes, mut copied_bytes) = (0, 0);
    for (gain_bytes, live_bytes) in classes.into_iter().filter(|&(gain_bytes, _)| gain_bytes > 0) {
        let wanted_bytes = (COSTED_BLOCKS * u64::from(target_bytes) - gained_bytes).min(gain_bytes);
        gained_bytes += wanted_bytes;
        copied_bytes += live_bytes * wanted_bytes / gain_bytes;
    }
    (gained_bytes > 0).then(|| copied_bytes * u64::from(target_bytes) / gained_bytes)
}

/// Log blocks opened between two checkpoints, at most, where each head has so many lanes.
pub fn checkpoint_interval_blocks(blocks: u32, lanes: u32) -> u32 {
    (blocks / 6).clamp(4, 32 * lanes.max(1))
}

#[cfg(test)]
mod tests {
    use super::super::tests::block;
    use super::{BlockView, cost_of_block_bytes};

    #[test]
    fn a_checkpoint_is_due_after_as_many_blocks_of_each_lane() {
        let intervals = [(12, 1), (60, 1), (8192, 1), (8192, 8), (600, 8), (60, 8)];
        let found = intervals.map(|(blocks, lanes)| super::checkpoint_interval_blocks(blocks, lanes));
        assert_eq!(found, [4, 10, 32, 256, 100, 10]);
    }

    fn victim(block: u32, after_checkpoint: bool) -> Option<(u32, bool)> {
        Some((block, after_checkpoint))
    }

    fn choose(blocks: impl Iterator<Item = BlockView> + Clone, target_bytes: u32) -> Option<(u32, bool)> {
        super::choose(blocks, target_bytes).map(|found| (found.block, found.after_checkpoint))
    }

    #[test]
    fn a_block_more_costs_the_copies_from_all_that_must_be_emptied_for_it() {
        let cost = |live: &[u32]| cost_of_block_bytes((1..).zip(live).map(|(number, &live)| block(number, live)), 160);
        assert_eq!(cost(&[160, 0]), None, "nothing is gained");
        assert_eq!(cost(&[80; 9]), Some(160), "two half-full blocks");
        assert_eq!(cost(&[120; 9]), Some(480), "four blocks of three quarters");
        assert_eq!(cost(&[80, 80, 120, 120, 120, 120]), Some(320), "the next block and the one after it");
    }

    #[test]
    fn the_block_with_the_least_live_is_emptied_and_a_failing_one_before_it() {
        let failing = BlockView { failing: true, ..block(3, 90) };
        assert_eq!(choose([block(1, 50), block(2, 40)].into_iter(), 100), victim(2, false));
        assert_eq!(choose([block(1, 50), failing, block(2, 40)].into_iter(), 100), victim(3, false));
        assert_eq!(choose([block(1, 100), block(2, 0)].into_iter(), 100), None, "nothing is gained");
    }

    #[test]
    fn victims_about_as_good_come_from_the_die_with_the_fewest_free() {
        let beside = |number, live_bytes, free_beside| BlockView { free_beside, ..block(number, live_bytes) };
        assert_eq!(choose([beside(1, 40, 5), beside(2, 52, 3)].into_iter(), 100), victim(2, false));
        assert_eq!(choose([beside(1, 40, 5), beside(2, 53, 3)].into_iter(), 100), victim(1, false), "an eighth worse");
        let failing = BlockView { failing: true, ..beside(3, 41, 5) };
        assert_eq!(choose([failing, beside(2, 40, 3)].into_iter(), 100), victim(3, false));
    }

    #[test]
    fn a_recent_block_is_worth_a_checkpoint_only_for_far_more() {
        let recent = |live_bytes| BlockView { recent: true, ..block(2, live_bytes) };
        assert_eq!(choose([block(1, 80), recent(40)].into_iter(), 100), victim(1, false));
        assert_eq!(choose([block(1, 80), recent(39)].into_iter(), 100), victim(2, true));
        assert_eq!(choose([recent(99)].into_iter(), 100), victim(2, true));
    }
}
