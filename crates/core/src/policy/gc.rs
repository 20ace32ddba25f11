//! Collection ahead of need: which block idle time empties when free ones are about to run out.
//!
//! Invariant: a victim gains at least an eighth of a block, so that idle time does not copy for ever.

use super::victim::{self, Victim};
use super::{BlockView, Region};

/// Blocks that idle time collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Regions {
    /// Those of the native region, as the paper does (FlexFS §4.3): migration empties the others.
    Native,
    /// Those of either region: whichever costs the fewest copies.
    Both,
}

/// Eighths of a destination block that may be live in a victim ahead of need: emptying fuller ones wears far more than it
/// gains, and there would be no end to it.
const LIVE_EIGHTHS: u64 = 7;

/// The block to empty, where a destination block takes `target_bytes`.
pub fn choose(blocks: impl Iterator<Item = BlockView> + Clone, target_bytes: u32, regions: Regions) -> Option<Victim> {
    let collected = |block: &BlockView| regions == Regions::Both || block.region == Region::Native;
    let gains_enough = |found: &Victim| u64::from(found.live_bytes) * 8 <= u64::from(target_bytes) * LIVE_EIGHTHS;
    victim::choose(blocks.filter(collected), target_bytes).filter(gains_enough)
}

#[cfg(test)]
mod tests {
    use super::super::tests::block;
    use super::*;

    #[test]
    fn the_paper_collects_native_blocks_only() {
        let native = BlockView { region: Region::Native, ..block(2, 60) };
        let chosen = |regions| choose([block(1, 10), native].into_iter(), 100, regions).map(|victim| victim.block);
        assert_eq!(chosen(Regions::Both), Some(1));
        assert_eq!(chosen(Regions::Native), Some(2));
    }

    #[test]
    fn a_block_that_gains_less_than_an_eighth_is_left_alone() {
        assert!(choose([block(1, 87)].into_iter(), 100, Regions::Both).is_some());
        assert!(choose([block(1, 88)].into_iter(), 100, Regions::Both).is_none());
    }
}
