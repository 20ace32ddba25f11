//! Dynamic allocation (FlexFS §4.1.2): the share α of callers' pages that goes to SLC, by the idle time there is to migrate
//! them.
//!
//! Invariant: α is between 0 and 1, and 1 until idle time was measured.

/// How the share is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allocate {
    /// Pages of callers in a window, for each of which idle time is measured (N_p).
    pub window_pages: u32,
    /// What erasing an SLC block takes for each page of it, ns (T_erase^SLC / S_p^SLC).
    pub erase_page_ns: u64,
}

impl Allocate {
    /// The paper's parameters (§5.1.1): N_p of 1,024 pages; an SLC block of 64 pages is erased in 2 ms.
    pub const PAPER: Self = Self { window_pages: 1024, erase_page_ns: 2_000_000 / 64 };

    /// The time to migrate a window's pages but for those that need not be (T_mig), ns: FlexFS Eq. (2), and with hot pages
    /// Eq. (4).
    pub fn migration_ns(self, hot_pages: u32, t_trig_ns: u64) -> u64 {
        u64::from(self.window_pages.saturating_sub(hot_pages))
            .saturating_mul(t_trig_ns.saturating_add(self.erase_page_ns))
    }
}

/// Windows that the prediction looks back on.
pub const WINDOWS: usize = 10;
/// The newest of them, which weigh more.
const RECENT_WINDOWS: usize = 3;
/// How much more.
const RECENT_WEIGHT: u64 = 2;

/// The idle time to expect in the next window (T_idle^pred), ns: a mean of that of the last ones, newest first, the latest
/// three of double weight. `None`: none was measured.
pub fn predicted_idle_ns(newest_first: impl Iterator<Item = u64>) -> Option<u64> {
    let (mut sum_ns, mut weights) = (0u64, 0);
    for (age, idle_ns) in newest_first.take(WINDOWS).enumerate() {
        let weight = if age < RECENT_WINDOWS { RECENT_WEIGHT } else { 1 };
        sum_ns = sum_ns.saturating_add(idle_ns.saturating_mul(weight));
        weights += weight;
    }
    (weights > 0).then(|| sum_ns / weights)
}

/// A whole, in the unit of shares.
pub const WHOLE: u32 = 1_000_000;

/// The share of pages that goes to SLC (α), millionths: FlexFS Eq. (1).
pub fn slc_share(predicted_idle_ns: u64, migration_ns: u64) -> u32 {
    if predicted_idle_ns >= migration_ns {
        return WHOLE;
    }
    (u128::from(predicted_idle_ns) * u128::from(WHOLE) / u128::from(migration_ns)) as u32
}

/// The greatest share of so many pages that may go to SLC for all to fit `spare_blocks`, where a block takes so many pages as
/// SLC and natively, millionths.
pub fn slc_share_that_fits(spare_blocks: i64, pages: u32, block_pages: (u32, u32)) -> u32 {
    let whole = i128::from(WHOLE);
    let (slc_pages, native_pages) = (i128::from(block_pages.0.max(1)), i128::from(block_pages.1.max(1)));
    // With x of the pages in SLC: x / slc_pages + (pages - x) / native_pages = spare_blocks.
    let gained = native_pages - slc_pages;
    if gained <= 0 || pages == 0 {
        return WHOLE;
    }
    let left = i128::from(spare_blocks) * native_pages - i128::from(pages);
    let (fit, all) = (left * slc_pages, gained * i128::from(pages));
    if fit >= all {
        return WHOLE;
    }
    (fit * whole / all).clamp(0, whole) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn the_latest_three_windows_weigh_double() {
        assert_eq!(predicted_idle_ns([].into_iter()), None);
        assert_eq!(predicted_idle_ns([6, 0].into_iter()), Some(3));
        // Three of 8 at weight 2 and seven of 2 at weight 1; the eleventh is forgotten.
        let windows = [8, 8, 8, 2, 2, 2, 2, 2, 2, 2, 1000];
        assert_eq!(predicted_idle_ns(windows.into_iter()), Some((3 * 2 * 8 + 7 * 2) / 13));
    }

    #[test]
    fn the_share_is_idle_time_over_the_time_of_migration_by_equations_1_and_2() {
        let migration_ns = Allocate::PAPER.migration_ns(0, 15_000_000);
        assert_eq!(migration_ns, 1024 * (15_000_000 + 31_250));
        assert_eq!(slc_share(20 * SECOND_NS, migration_ns), WHOLE);
        assert_eq!(slc_share(migration_ns, migration_ns), WHOLE);
        assert_eq!(slc_share(83 * SECOND_NS / 10, migration_ns), 539_241);
        assert_eq!(slc_share(0, migration_ns), 0);
        assert_eq!(slc_share(0, 0), WHOLE);
    }

    #[test]
    fn as_much_goes_to_slc_as_the_blocks_to_spare_allow() {
        // 128 pages are two SLC blocks or a native one.
        let share = |spare_blocks| slc_share_that_fits(spare_blocks, 128, (64, 128));
        assert_eq!([share(-3), share(1), share(2), share(9)], [0, 0, WHOLE, WHOLE]);
        assert_eq!(slc_share_that_fits(3, 256, (64, 128)), WHOLE / 2);
        assert_eq!(slc_share_that_fits(0, 256, (64, 64)), WHOLE);
    }

    #[test]
    fn hot_pages_need_no_time_by_equation_4() {
        let time_ns = |hot| Allocate::PAPER.migration_ns(hot, 15_000_000);
        assert_eq!((time_ns(256), time_ns(2000)), (time_ns(0) / 4 * 3, 0));
    }
}
