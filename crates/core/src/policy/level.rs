//! When the content of a block that is hardly erased moves to a worn one.

use super::{BlockView, Holds};

/// How far a block's erase count may fall behind the most worn one's before its content is moved: more would be a part of
/// the life that matters, less would wear blocks for little. As the most worn one, erased `most` times, comes to its end, the gap
/// closes to a quarter: the others would be left with cycles that nothing uses. After its end nothing is gained by that.
fn wear_gap(endurance: u32, most: u32) -> u32 {
    let usual = usual_gap(endurance);
    match endurance.saturating_sub(most) {
        0 => usual,
        left => usual.min(left).max(usual / LAST_PART),
    }
    .max(GAP_LEAST)
}

fn usual_gap(endurance: u32) -> u32 {
    (endurance / 100).max(16).min(endurance / 4)
}

/// To one in so many the gap closes.
const LAST_PART: u32 = 4;

/// Cycles by which a block is behind the most worn one in the mean when that comes to its end: half of the gap that is left.
pub fn behind_at_end(endurance: u32) -> u32 {
    usual_gap(endurance) / LAST_PART / 2
}

/// Erase counts are never closer than that by levelling.
const GAP_LEAST: u32 = 2;

/// The block whose content is to move to the most worn free one, `worn_erases` times erased: the least erased one, if it
/// has fallen far behind. Callers go on with it. Blocks of anchors wear by themselves.
pub fn choose(
    blocks: impl Iterator<Item = BlockView> + Clone,
    worn_erases: impl FnOnce() -> u32,
    endurance: u32,
) -> Option<u32> {
    let movable = blocks.clone().filter(BlockView::is_movable);
    let (erases, number) = movable.map(|block| (block.erases, block.number)).min()?;
    let most = blocks
        .filter(|block| !matches!(block.holds, Holds::Bad | Holds::Anchors))
        .map(|block| block.erases)
        .max()
        .unwrap_or(0);
    let limit = wear_gap(endurance, most);
    // From one young block to another would wear both for nothing.
    (most > erases + limit && worn_erases() > erases + limit / 2).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::super::tests::block;
    use super::*;

    #[test]
    fn content_moves_only_from_a_block_far_behind_to_one_far_ahead() {
        let blocks = |least| [block(1, 10), BlockView { erases: least, ..block(2, 10) }].into_iter();
        let worn = |erases| [BlockView { erases, holds: Holds::Nothing, ..block(3, 0) }].into_iter();
        let chosen = |most, free| choose(blocks(5).chain(worn(most)), || free, 1000);
        assert_eq!(chosen(17, 17), Some(1));
        assert_eq!(chosen(16, 16), None);
        assert_eq!(chosen(17, 8), None);
    }

    #[test]
    fn the_gap_closes_as_the_most_worn_block_comes_to_its_end() {
        let gap = |most| wear_gap(100, most);
        assert_eq!([gap(0), gap(84), gap(90), gap(97), gap(100)], [16, 16, 10, 4, 16]);
        assert_eq!((wear_gap(10_000, 0), wear_gap(10_000, 9_950), wear_gap(10, 0)), (100, 50, 2));
    }
}
