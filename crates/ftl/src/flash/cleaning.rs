//! Which block is cleaned: decisions, no chip.
//!
//! Invariant: a block of which every page counts is never chosen, since nothing is gained by it.

/// How a block to clean is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// The one with the fewest pages that count (P/G).
    Greedy,
    /// The one with the best ratio of gain to cost, weighed by age: (1 − u) · age / 2u, where u is the share of pages that
    /// count (Kawaguchi et al. 1995, P/C).
    CostBenefit,
}

/// What the choice goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockView {
    pub block: u32,
    /// Pages that count.
    pub valid: u32,
    /// Programs since one was made in the block.
    pub age: u64,
}

impl Cleaning {
    /// The block to clean, among blocks of so many pages.
    pub fn choose(self, blocks: impl Iterator<Item = BlockView>, pages: u32) -> Option<u32> {
        let gaining = blocks.filter(|view| view.valid < pages);
        let chosen = match self {
            Cleaning::Greedy => gaining.min_by_key(|view| view.valid),
            Cleaning::CostBenefit => gaining.max_by_key(|view| {
                let gain = u128::from(pages - view.valid) * u128::from(view.age);
                // Nothing is cheaper than a block of which no page counts.
                if view.valid == 0 { u128::MAX } else { gain * 1024 / (2 * u128::from(view.valid)) }
            }),
        };
        chosen.map(|view| view.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_makes_a_fuller_block_worth_cleaning() {
        let view = |block, valid, age| BlockView { block, valid, age };
        let blocks = [view(1, 10, 5), view(2, 16, 500), view(3, 32, 10_000)];
        let choose = |cleaning: Cleaning| cleaning.choose(blocks.into_iter(), 32);
        assert_eq!((choose(Cleaning::Greedy), choose(Cleaning::CostBenefit)), (Some(1), Some(2)));
        assert_eq!(Cleaning::Greedy.choose([view(3, 32, 1)].into_iter(), 32), None);
    }
}
