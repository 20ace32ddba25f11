//! How much wear a share of SLC writes costs, and how large a share the rest of a life allows (FlexFS §4.2).
//!
//! Wear is told in bytes of native block capacity: a block that is opened takes a whole one of the writing budget, whatever
//! it is programmed as. A rate is bytes in a wear window. Nothing here promises more than the arithmetic: what is
//! opened for any reason comes off the budget that is left, so a wrong forecast is put right by the next one.

/// A lifetime to be guaranteed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Goal {
    /// The lifetime (L_min), ns.
    pub life_ns: u64,
    /// Length of a wear window (T_s), ns.
    pub window_ns: u64,
}

/// Wear windows in a life, unless told otherwise.
const WINDOWS: u64 = 1000;

impl Goal {
    /// A goal with windows of the usual length.
    pub fn of_life(life_ns: u64) -> Self {
        Self { life_ns, window_ns: (life_ns / WINDOWS).max(1) }
    }

    /// What is left of the life after so many ns of it, in windows.
    pub fn windows_left(self, elapsed_ns: u64) -> f64 {
        self.life_ns.saturating_sub(elapsed_ns) as f64 / self.window_ns.max(1) as f64
    }
}

/// Who decides on the wear index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Controller {
    /// FlexFS §4.2.3: once in a window, by what came in the three before.
    Paper,
    /// As data comes, by the writing budget of the rest of the life.
    #[default]
    WholeLife,
}

/// One block in so many keeps a cycle to itself at least: when the last ones are spent, not every block can be at its end.
const UNEVEN: u64 = 10;

/// Of so many cycles that blocks have left, those that can be spent, where blocks that are behind the most worn one keep
/// `behind` of theirs.
pub fn usable_cycles(left: u64, blocks: u64, behind: u32) -> u64 {
    left.saturating_sub((blocks / UNEVEN).max(blocks * u64::from(behind)))
}

/// The writing budget of a window, WB(t_i), FlexFS Eq. (7): an equal share of what is left.
pub fn writing_budget(left_bytes: u64, windows_left: u64) -> u64 {
    left_bytes / windows_left.max(1)
}

/// The writing budget used when `input_bytes` arrive and the share `wear_index` of them goes to SLC blocks and is
/// migrated later: OW = IW · (2δ + 1), FlexFS Eq. (8), where 2 is `bits_per_cell`, native over SLC.
pub fn output_bytes(input_bytes: u64, wear_index: f64, bits_per_cell: u8) -> u64 {
    let wear_index = wear_index.clamp(0.0, 1.0);
    input_bytes + (input_bytes as f64 * wear_index * f64::from(bits_per_cell)) as u64
}

/// The wear index that spends `budget_bytes` on `input_bytes`: δ = (WB − IW) / (2 · IW), FlexFS Eq. (9), between 0
/// and 1.
pub fn wear_index(budget_bytes: u64, input_bytes: u64, bits_per_cell: u8) -> f64 {
    spending(budget_bytes as f64, input_bytes as f64, 0.0, f64::from(bits_per_cell))
}

/// The same where each byte costs `overhead` more than it should, and one in SLC `slc_extra` more than a native one.
fn spending(budget_bytes: f64, input_bytes: f64, overhead: f64, slc_extra: f64) -> f64 {
    if input_bytes <= 0.0 {
        return 1.0;
    }
    let spare_bytes = budget_bytes - input_bytes * (1.0 + overhead);
    (spare_bytes / (slc_extra * input_bytes)).clamp(0.0, 1.0)
}

/// Of what goes to SLC in quiet times, the part that is reckoned to be moved at most.
const MOVED_PART: f64 = 0.9;

/// Where a life stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// The writing budget that is left, less what is owed already.
    pub left_bytes: f64,
    pub windows_left: f64,
    /// Bytes in a window: as they come now, as they came in the last window, and as they have come in all this life.
    pub rate_now: f64,
    pub rate_window: f64,
    pub rate_mean: f64,
    /// The same as `rate_mean`, where what came so far is taken for a quarter of the life at least: what comes at its beginning,
    /// when a volume is filled, need not come again.
    pub rate_life: f64,
    /// What a byte costs beyond Eq. (8): nodes, index and collection, in bytes.
    pub overhead: f64,
    /// Of what went to SLC, the part that was moved, or is to be.
    pub moved_part: f64,
    pub bits_per_cell: u8,
}

impl Course {
    /// The wear index for now: the most that one of two forecasts allows. If it goes on like now, or like in the last
    /// window, to the end of the life, that spends the rest evenly; a part of what goes to SLC is taken to be gone before it
    /// is moved. And what comes now may last for a window, and then be as it was in the mean: a burst is allowed to
    /// spend what quieter times have left. Neither allows anything that everything native would need, at the rate of the
    /// mean: a quiet time may be the pause before the next burst.
    pub fn wear_index(&self) -> f64 {
        let (rate, windows) = (self.rate_now, self.windows_left);
        // In the last window nothing comes after that would make up for less luck.
        let (quiet, moved_at_most) = if windows > 1.0 { (rate.min(self.rate_window), MOVED_PART) } else { (rate, 1.0) };
        let native_bytes = self.rate_life * windows * (1.0 + self.overhead);
        let even = if self.left_bytes > native_bytes { self.allowed(quiet * windows) / moved_at_most } else { 0.0 };
        let burst = self.allowed(rate * windows.min(1.0) + self.rate_mean * (windows - 1.0).max(0.0));
        even.max(burst).min(1.0)
    }

    /// How many windows the budget lasts, if everything goes to native blocks.
    pub fn lasts_windows(&self) -> f64 {
        let rate = self.rate_mean * (1.0 + self.overhead);
        if rate > 0.0 { self.left_bytes.max(0.0) / rate } else { f64::INFINITY }
    }

    fn allowed(&self, input_bytes: f64) -> f64 {
        let slc_extra = f64::from(self.bits_per_cell) - 1.0 + self.moved_part;
        spending(self.left_bytes, input_bytes, self.overhead, slc_extra)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;
    const MIB: u64 = 1 << 20;
    /// FlexFS Table 3.
    const TABLE_3: [u64; 10] = [40, 40, 40, 80, 80, 20, 20, 40, 40, 40];

    #[test]
    fn figure_8_uses_three_two_and_one_blocks() {
        assert_eq!(output_bytes(512 * KIB, 1.0, 2), 1536 * KIB);
        assert_eq!(output_bytes(512 * KIB, 0.5, 2), 1024 * KIB);
        assert_eq!(output_bytes(512 * KIB, 0.0, 2), 512 * KIB);
    }

    #[test]
    fn cycles_that_blocks_keep_are_no_part_of_the_budget() {
        assert_eq!([usable_cycles(1000, 100, 0), usable_cycles(1000, 100, 2), usable_cycles(5, 100, 0)], [990, 800, 0]);
    }

    #[test]
    fn a_budget_below_the_input_leaves_nothing_for_slc() {
        assert_eq!(wear_index(400 * KIB, 512 * KIB, 2), 0.0);
        assert_eq!(wear_index(1024 * KIB, 512 * KIB, 2), 0.5);
        assert_eq!(wear_index(9000 * KIB, 512 * KIB, 2), 1.0);
    }

    /// A life under our controller, in steps of a hundredth of a window: the mean of δ in each window, and what is left.
    fn life(input_mib: [u64; 10]) -> ([f64; 10], f64) {
        const STEPS: usize = 100;
        let (mut left, mut arrived, mut means) = (1200.0 * MIB as f64, 0.0, [0.0; 10]);
        let (mut recent, mut last) = ([0.0; 12], [0.0; STEPS]);
        for (window, mib) in input_mib.into_iter().enumerate() {
            for step in 0..STEPS {
                let bytes = (mib * MIB) as f64 / STEPS as f64;
                recent.rotate_right(1);
                recent[0] = bytes;
                last.rotate_right(1);
                last[0] = bytes;
                arrived += bytes;
                let elapsed = window as f64 + (step + 1) as f64 / STEPS as f64;
                let course = Course {
                    left_bytes: left,
                    windows_left: 10.0 - elapsed + 1.0 / STEPS as f64,
                    rate_now: recent.iter().sum::<f64>() * STEPS as f64 / recent.len() as f64,
                    rate_window: last.iter().sum::<f64>() / elapsed.clamp(0.12, 1.0),
                    rate_mean: arrived / elapsed.max(0.12),
                    rate_life: arrived / elapsed.max(2.5),
                    overhead: 0.0,
                    moved_part: 1.0,
                    bits_per_cell: 2,
                };
                let wear_index = course.wear_index();
                left -= bytes * (1.0 + 2.0 * wear_index);
                means[window] += wear_index / STEPS as f64;
            }
        }
        (means, left / MIB as f64)
    }

    #[test]
    fn a_life_as_in_table_3_is_met_and_lowers_the_index_in_the_burst_alone() {
        let (means, left) = life(TABLE_3);
        let mean = means.iter().sum::<f64>() / 10.0;
        let slc: f64 = means.iter().zip(TABLE_3).map(|(index, mib)| index * mib as f64).sum::<f64>() / 440.0;
        assert!(left >= 0.0 && mean >= 0.88 && slc >= 0.80, "{means:?}: {mean}, {slc}, {left} MiB left");
        assert!(means[3] < 0.95 && means[..3].iter().chain(&means[5..]).all(|&index| index > 0.9), "{means:?}");
    }

    #[test]
    fn a_quiet_time_spends_nothing_that_the_mean_needs() {
        let course = Course {
            left_bytes: 100.0,
            windows_left: 10.0,
            rate_now: 0.0,
            rate_window: 8.0,
            rate_mean: 9.0,
            rate_life: 9.0,
            overhead: 0.0,
            moved_part: 1.0,
            bits_per_cell: 2,
        };
        assert_eq!(course.wear_index(), 1.0);
        assert_eq!(Course { rate_mean: 12.0, rate_life: 12.0, ..course }.wear_index(), 0.0);
    }

    #[test]
    fn whatever_the_order_the_budget_is_never_overspent() {
        let mut reversed = TABLE_3;
        reversed.reverse();
        let mut doubled = TABLE_3;
        doubled[7..].iter_mut().for_each(|mib| *mib *= 2);
        let mut last = [0; 10];
        last[9] = 440;
        let mut first = [0; 10];
        first[0] = 440;
        let mut much_last = TABLE_3;
        much_last[9] = 120;
        for input in [TABLE_3, reversed, doubled, last, first, much_last, [110; 10], [0; 10]] {
            let (means, left) = life(input);
            assert!(left >= -0.01, "{input:?}: {means:?}, {left} MiB left");
        }
    }
}
