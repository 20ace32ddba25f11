//! Which block is cleaned: decisions, no chip.
//!
//! Invariant: a block of which every page counts is never chosen, since nothing is gained by it.

/// Blocks of which the fewest pages that count are looked for at once: the compiler compares several in one instruction.
const GROUP_BLOCKS: usize = 64;

/// How a block to clean is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// The one with the fewest pages that count (P/G).
    Greedy,
    /// The one with the best ratio of gain to cost, weighed by age: (1 − u) · age / 2u, where u is the share of pages that
    /// count (Kawaguchi et al. 1995, P/C).
    CostBenefit,
}

/// The pages of a block that count, and whether the block may be cleaned: one number, which is least for the closed block
/// with the fewest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockFill(u16);

impl BlockFill {
    const OPEN: u16 = 1 << 15;

    /// No page counts, and the block is not to be cleaned.
    pub const UNUSED: Self = Self(Self::OPEN);

    /// Pages that count.
    pub fn valid(self) -> u16 {
        self.0 & !Self::OPEN
    }

    /// Whether it may be cleaned.
    pub fn is_closed(self) -> bool {
        self.0 & Self::OPEN == 0
    }

    /// A page more counts.
    pub fn add(&mut self) {
        self.0 += 1;
    }

    /// A page less counts.
    pub fn subtract(&mut self) {
        self.0 -= u16::from(self.valid() > 0);
    }

    pub fn set_closed(&mut self, is_closed: bool) {
        self.0 = self.valid() | if is_closed { 0 } else { Self::OPEN };
    }
}

impl Cleaning {
    /// The block to clean, among those of so many pages for which `is_its_kind` holds: by its place in `blocks`. `age` says
    /// how many programs ago a block was written.
    pub fn choose(
        self,
        blocks: &[BlockFill],
        pages: u32,
        is_its_kind: impl Fn(u32) -> bool,
        age: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        match self {
            Cleaning::Greedy => fewest(blocks, pages, is_its_kind),
            Cleaning::CostBenefit => {
                let numbered = (0..).zip(blocks);
                let closed = numbered.filter(|(block, fill)| fill.is_closed() && is_its_kind(*block));
                let gaining = closed.filter(|(_, fill)| u32::from(fill.valid()) < pages);
                let best = gaining.max_by_key(|(block, fill)| {
                    let valid = u128::from(fill.valid());
                    let gain = (u128::from(pages) - valid) * u128::from(age(*block));
                    // Nothing is cheaper than a block of which no page counts.
                    if valid == 0 { u128::MAX } else { gain * 1024 / (2 * valid) }
                });
                best.map(|(block, _)| block)
            }
        }
    }
}

/// The first of the closed blocks with the fewest pages that count.
fn fewest(blocks: &[BlockFill], pages: u32, is_its_kind: impl Fn(u32) -> bool) -> Option<u32> {
    // A closed block with a page that does not count is below it.
    let mut least = BlockFill((pages as u16).min(BlockFill::OPEN));
    let mut chosen = None;
    for (first, group) in (0..).step_by(GROUP_BLOCKS).zip(blocks.chunks(GROUP_BLOCKS)) {
        if group.iter().copied().fold(least, BlockFill::min) == least {
            continue;
        }
        for (block, &fill) in (first..).zip(group) {
            if fill < least && is_its_kind(block) {
                (least, chosen) = (fill, Some(block));
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn closed(valid: u16) -> BlockFill {
        BlockFill(valid)
    }

    #[test]
    fn age_makes_a_fuller_block_worth_cleaning() {
        let blocks = [BlockFill::UNUSED, closed(10), closed(16), closed(32)];
        let age = |block| [0, 5, 500, 10_000][block as usize];
        let choose = |cleaning: Cleaning| cleaning.choose(&blocks, 32, |_| true, age);
        assert_eq!((choose(Cleaning::Greedy), choose(Cleaning::CostBenefit)), (Some(1), Some(2)));
        assert_eq!(Cleaning::Greedy.choose(&[closed(32)], 32, |_| true, age), None);
    }

    #[test]
    fn greedy_takes_the_first_of_the_emptiest_closed_blocks() {
        let mut blocks: Vec<BlockFill> = (0..1000).map(|block| closed(20 + block % 7)).collect();
        let choose = |blocks: &[BlockFill]| Cleaning::Greedy.choose(blocks, 32, |block| block % 2 == 1, |_| 0);
        assert_eq!(choose(&blocks), Some(7));
        (blocks[300], blocks[501], blocks[777]) = (closed(1), closed(3), closed(3));
        assert_eq!(choose(&blocks), Some(501), "block 300 is of another kind");
        blocks[501].set_closed(false);
        blocks[777].subtract();
        assert_eq!((choose(&blocks), blocks[777].valid(), blocks[501].valid()), (Some(777), 2, 3));
        assert_eq!(choose(&[BlockFill::UNUSED; 3]), None);
    }
}
