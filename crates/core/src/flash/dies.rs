//! The dies that a lane takes its blocks from, as long as one of them has a free block.
//!
//! Invariant: each die is the home of a lane, and each lane has a home. With one lane every die is its home.

use nand::Geometry;

/// The dies that a lane is at home on.
#[derive(Clone, Copy, Debug)]
pub struct HomeDies {
    dies: u32,
    lanes: u32,
    lane: u32,
}

impl HomeDies {
    /// Every die.
    pub const ALL: Self = Self { dies: 1, lanes: 1, lane: 0 };

    /// The dies of lane `lane` of `lanes` on a chip.
    pub fn of(geometry: &Geometry, lanes: u8, lane: u8) -> Self {
        Self { dies: geometry.dies(), lanes: u32::from(lanes.max(1)), lane: u32::from(lane) }
    }

    /// Whether a block stands on one of them.
    pub fn hold(self, block: u32) -> bool {
        let die = block % self.dies;
        die % self.lanes == self.lane || self.lane % self.dies == die
    }

    /// Whether it matters on which die a block stands.
    pub fn are_some(self) -> bool {
        self.lanes > 1
    }

    /// How many of these blocks stand on each die.
    pub(super) fn count_each(self, blocks: impl Iterator<Item = u32>) -> alloc::vec::Vec<u32> {
        let mut counts = alloc::vec![0; self.dies as usize];
        for block in blocks {
            if let Some(count) = counts.get_mut((block % self.dies) as usize) {
                *count += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_die_is_the_home_of_a_lane_and_every_lane_has_one() {
        for (dies, lanes) in [(1, 1), (8, 1), (8, 4), (8, 8), (2, 4), (3, 2)] {
            let homes = |lane| HomeDies { dies, lanes, lane };
            let counts: alloc::vec::Vec<u32> =
                (0..lanes).map(|lane| (0..dies).filter(|&die| homes(lane).hold(die)).count() as u32).collect();
            assert!(counts.iter().all(|&count| count > 0), "{dies} {lanes}: {counts:?}");
            assert!((0..dies).all(|die| (0..lanes).any(|lane| homes(lane).hold(die))));
            assert!(counts.iter().all(|&count| count <= dies.div_ceil(lanes)), "{counts:?}");
        }
    }
}
