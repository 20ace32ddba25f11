//! Dynamic allocation as it goes on: idle time, window by window, and the region of the next page.
//!
//! Invariants: an idle time counts for the window of the pages before it, so that a window that is exactly one burst has
//! the pause after it; over any run of pages that are not hot the share in SLC is what is allowed (α, where no rule lets all
//! in) to within a page, but for those that were forced elsewhere, which the next ones make up for.

use super::job::View;
use super::{Manager, buffer};
use crate::policy::Region;
use crate::policy::admission::SlcRule;
use crate::policy::allocate::{self, Allocate, WHOLE, WINDOWS};

/// Pages that later ones make up for, at most, millionths.
const DRIFT_MAX: i64 = 64 * WHOLE as i64;

/// Deals pages to the regions.
#[derive(Clone, Copy, Debug, Default)]
struct Dealer {
    /// Pages that SLC should have got and did not, millionths; negative: got and should not have.
    drift: i64,
}

impl Dealer {
    /// The region of the next page, where the share is `slc_share`.
    fn next(self, slc_share: u32) -> Region {
        let half = i64::from(WHOLE) / 2;
        if self.drift + i64::from(slc_share) >= half { Region::Slc } else { Region::Native }
    }

    /// Hears where a page went.
    fn count(&mut self, slc_share: u32, region: Region) {
        let got = if region == Region::Slc { i64::from(WHOLE) } else { 0 };
        self.drift = (self.drift + i64::from(slc_share) - got).clamp(-DRIFT_MAX, DRIFT_MAX);
    }
}

/// What was measured in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// When it began, ns by the clock of requests.
    start_ns: i64,
    pages: u32,
    /// Hot pages among them that went to SLC.
    hot_pages: u32,
    idle_ns: u64,
}

/// What a policy that allocates remembers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allocation {
    /// The windows measured, newest first, and how many there are.
    windows: [Window; WINDOWS],
    measured: usize,
    /// The one under way.
    window: Window,
    /// When the last request came.
    request_ns: Option<i64>,
    slc_share: u32,
    data: Dealer,
    /// Nodes go to the regions in the same share, and count in no window.
    nodes: Dealer,
}

impl Default for Allocation {
    fn default() -> Self {
        Self {
            windows: [Window::default(); WINDOWS],
            measured: 0,
            window: Window::default(),
            request_ns: None,
            slc_share: WHOLE,
            data: Dealer::default(),
            nodes: Dealer::default(),
        }
    }
}

impl Allocation {
    /// Hears that a request came; idle time begins `t_wait_ns` after the one before.
    pub fn heard_of_request(&mut self, mono_ns: i64, t_wait_ns: i64) {
        if let Some(before_ns) = self.request_ns {
            let idle_ns = mono_ns.saturating_sub(before_ns).saturating_sub(t_wait_ns);
            self.window.idle_ns = self.window.idle_ns.saturating_add(u64::try_from(idle_ns).unwrap_or(0));
        }
        self.request_ns = Some(mono_ns);
    }

    /// When the last request came, ns by a clock that never jumps.
    pub fn request_ns(&self) -> Option<i64> {
        self.request_ns
    }

    /// α, millionths.
    pub fn slc_share(&self) -> u32 {
        self.slc_share
    }

    /// The share of pages that goes to SLC by a rule, before what room and life allow, millionths.
    pub fn share_by(&self, rule: SlcRule) -> u32 {
        match rule {
            SlcRule::IdleTime => self.slc_share,
            SlcRule::FewBlocks | SlcRule::LongPause => WHOLE,
        }
    }

    /// Pages until the window under way ends, where all of the next one would go to SLC with so many blocks to spare; else 0.
    pub fn pages_left(&self, allocate: Allocate, view: &impl View, spare_blocks: i64) -> u64 {
        if share_that_fits(view, spare_blocks, allocate.window_pages) < WHOLE {
            return 0;
        }
        u64::from(allocate.window_pages.saturating_sub(self.window.pages))
    }

    /// Hears that a page of data was placed. The first one after a full window ends that.
    fn count_page(&mut self, allocate: Allocate, t_trig_ns: u64) {
        if self.window.pages >= allocate.window_pages {
            self.windows.rotate_right(1);
            if let Some(newest) = self.windows.first_mut() {
                *newest = self.window;
            }
            self.measured = (self.measured + 1).min(WINDOWS);
            self.window = Window { start_ns: self.request_ns.unwrap_or(i64::MIN), ..Window::default() };
            self.slc_share = self.predicted_share(allocate, t_trig_ns);
        }
        self.window.pages += 1;
    }

    fn measured(&self) -> impl Iterator<Item = &Window> {
        self.windows.iter().take(self.measured)
    }

    /// Hot pages to expect in a window (n_p^hot): the mean of the last ones.
    fn hot_pages(&self) -> u32 {
        let sum: u64 = self.measured().map(|window| u64::from(window.hot_pages)).sum();
        (sum / self.measured.max(1) as u64) as u32
    }

    /// When the first window began that counts, ns by the clock of requests.
    pub fn since_ns(&self) -> i64 {
        if self.measured < WINDOWS {
            i64::MIN
        } else {
            self.measured().last().map_or(i64::MIN, |window| window.start_ns)
        }
    }

    /// α for the next window. The first one without a pause says nothing yet: a burst may be longer than it.
    fn predicted_share(&self, allocate: Allocate, t_trig_ns: u64) -> u32 {
        match allocate::predicted_idle_ns(self.measured().map(|window| window.idle_ns)) {
            None => WHOLE,
            Some(0) if self.measured < 2 => WHOLE,
            // Even if all of them are hot, and none need be migrated.
            Some(0) => 0,
            Some(predicted_ns) => allocate::slc_share(predicted_ns, allocate.migration_ns(self.hot_pages(), t_trig_ns)),
        }
    }
}

/// The share of so many pages that may go to SLC, for all to fit so many blocks to spare, millionths.
fn share_that_fits(view: &impl View, spare_blocks: i64, pages: u32) -> u32 {
    let slot_bytes = view.slot_bytes().max(1);
    let block_pages = (view.slc_block_bytes() / slot_bytes, view.target_bytes() / slot_bytes);
    allocate::slc_share_that_fits(spare_blocks, pages, block_pages)
}

impl Manager {
    /// The share of callers' pages that goes to SLC (α), millionths; `None` where the policy does not allocate.
    pub fn slc_share(&self) -> Option<u32> {
        self.policy.allocate().map(|_| self.allocation.slc_share)
    }

    /// The region of a caller's next page of data, where the policy allocates.
    pub(super) fn allocated(&self) -> Option<Region> {
        self.dealt(self.allocation.data)
    }

    /// The region of the next page of nodes, where the policy allocates.
    pub(super) fn allocated_nodes(&self) -> Option<Region> {
        self.dealt(self.allocation.nodes)
    }

    fn dealt(&self, dealer: Dealer) -> Option<Region> {
        self.deals().then(|| dealer.next(self.share_allowed()))
    }

    /// Whether pages of callers are dealt to both regions: by idle time, or for the chip to live as long as it is to.
    pub(super) fn deals(&self) -> bool {
        let migrates = self.policy.host() == Region::Slc && self.policy.relocated() == Region::Native;
        self.policy.allocate().is_some() || migrates && self.has_goal()
    }

    /// α, or all pages where a rule lets them in; less where there is no room, or not enough life left, for as much.
    fn share_allowed(&self) -> u32 {
        self.allocation.share_by(self.pace.slc_rule).min(self.pace.slc_share_max).min(self.wear_index())
    }

    /// Whether there is no room for as much of the next window in SLC as idle time would allow. Hot pages need none: others
    /// like them become obsolete.
    pub(super) fn is_crowded(&self, view: &impl View) -> bool {
        let cold_pages = |allocate: Allocate| allocate.window_pages.saturating_sub(self.allocation.hot_pages());
        let fits = |allocate: Allocate| share_that_fits(view, view.headroom(), cold_pages(allocate));
        self.policy.allocate().is_some_and(|allocate| fits(allocate) < self.allocation.slc_share)
    }

    /// The share of pages that may go to SLC at most, for the blocks to spare to last to the end of the window: callers
    /// would have to migrate for more.
    pub(super) fn slc_share_max(&self, view: &impl View) -> u32 {
        if let Some(percent) = self.policy.slc_blocks_max() {
            return buffer::share_of_buffer(percent, view);
        }
        let Some(allocate) = self.policy.allocate() else { return WHOLE };
        let left = allocate.window_pages.saturating_sub(self.allocation.window.pages);
        let left = if left > 0 { left } else { allocate.window_pages };
        let hot_left = self.allocation.hot_pages().saturating_sub(self.allocation.window.hot_pages);
        share_that_fits(view, view.headroom(), left.saturating_sub(hot_left))
    }

    /// Hears where a page of data of a caller went, and whether it is hot.
    pub fn heard_of_data(&mut self, region: Region, hot: bool) {
        self.count_arrival(region);
        let t_trig_ns = self.policy.migrate().map_or(0, |migrate| migrate.t_trig_ns.unsigned_abs());
        if let Some(allocate) = self.policy.allocate() {
            self.allocation.count_page(allocate, t_trig_ns);
            self.allocation.window.hot_pages += u32::from(hot && region == Region::Slc);
        }
        if self.deals() && !hot {
            let slc_share = self.share_allowed();
            self.allocation.data.count(slc_share, region);
            if region == Region::Slc {
                self.let_in.count(self.pace.slc_rule);
            }
        }
    }

    /// Hears where a page of nodes of a caller went, and whether it is hot.
    pub fn heard_of_nodes(&mut self, region: Region, hot: bool) {
        self.count_arrival(region);
        if self.deals() && !hot {
            let slc_share = self.share_allowed();
            self.allocation.nodes.count(slc_share, region);
            if region == Region::Slc {
                self.let_in.count(self.pace.slc_rule);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    const MS: i64 = 1_000_000;

    /// Pages of a burst that go to SLC, of `pages` that come at `at_ns`.
    fn burst(manager: &mut Manager, at_ns: i64, pages: u32) -> u32 {
        manager.heard_of_request(at_ns);
        let mut slc_pages = 0;
        for _ in 0..pages {
            let region = manager.allocated().unwrap();
            slc_pages += u32::from(region == Region::Slc);
            manager.heard_of_data(region, false);
        }
        slc_pages
    }

    #[test]
    fn a_window_of_exactly_one_burst_has_the_pause_after_it() {
        let mut manager = Manager::new(Policy::DA);
        // Nothing was measured before the second burst.
        assert_eq!(burst(&mut manager, 0, 1024), 1024);
        let expected = allocate::slc_share(9_000 * MS as u64, Allocate::PAPER.migration_ns(0, 15_000_000));
        for number in 1..20 {
            let slc_pages = burst(&mut manager, number * 10_000 * MS, 1024);
            let near = i64::from(slc_pages) - i64::from(expected) * 1024 / 1_000_000;
            assert!(near.abs() <= 1, "burst {number}: {slc_pages} pages, α {:?}", manager.slc_share());
        }
    }

    #[test]
    fn without_idle_time_all_goes_to_native_blocks_after_two_windows() {
        let mut manager = Manager::new(Policy::DA);
        // The page that ends the second window is placed before.
        assert_eq!(burst(&mut manager, 0, 5000), 2049);
        assert_eq!(manager.slc_share(), Some(0));
    }

    #[test]
    fn pages_that_were_forced_elsewhere_are_made_up_for() {
        let mut dealer = Dealer::default();
        (0..10).for_each(|_| dealer.count(500_000, Region::Slc));
        let natively = (0..20).filter(|_| {
            let region = dealer.next(500_000);
            dealer.count(500_000, region);
            region == Region::Native
        });
        assert_eq!(natively.count(), 15);
    }
}
