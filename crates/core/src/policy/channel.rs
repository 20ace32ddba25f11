//! Which channel a page goes to: the lane of a head, whose blocks stand on dies of their own.
//!
//! Invariant: a lane that is chosen is one of those there are.

/// The lane whose turn it is, where callers' pages go to `lanes` in turn and `turn` of them went before, or groups of
/// `run_pages` of them.
pub fn in_turn(turn: u64, run_pages: u32, lanes: u8) -> u8 {
    (turn / u64::from(run_pages.max(1)) % u64::from(lanes.max(1))) as u8
}

/// Pages of a sync of `pages` that go to one native lane before the next: each lane skips pages after the sync, to spare those
/// that share their cells, so that no more than one for each `pair_pages` is written to.
pub fn run_of_sync(pages: u32, pair_pages: u32, lanes: u8) -> u32 {
    match (pages / pair_pages.max(1)).max(1) {
        most if most >= u32::from(lanes) => 1,
        most => pages.div_ceil(most).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_go_to_the_lanes_in_turn() {
        let lanes: [u8; 6] = core::array::from_fn(|turn| in_turn(turn as u64, 1, 4));
        assert_eq!(lanes, [0, 1, 2, 3, 0, 1]);
        let runs: [u8; 6] = core::array::from_fn(|turn| in_turn(turn as u64, 2, 4));
        assert_eq!(runs, [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn a_sync_goes_to_a_native_lane_for_each_pairing_distance() {
        assert_eq!([1, 7, 8, 15, 16, 20, 31, 32].map(|pages| run_of_sync(pages, 8, 4)), [1, 7, 8, 15, 8, 10, 11, 1]);
    }
}
