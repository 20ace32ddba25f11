//! The channel that a page goes to. The file system knows the page's file, and its request
//! (Qiu et al., §III.B and C).
//!
//! Invariant: a rule chooses a channel of the chip; among equal channels the turn decides.

/// Channels that a rule can tell apart.
pub const CHANNELS_MAX: usize = 32;

/// A file's pages before and after a page that are its neighbours.
pub const WINDOW_PAGES: u64 = 7;

/// How a channel is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChannelRule {
    /// The next in turn.
    #[default]
    RoundRobin,
    /// §III.C.1, File Channel Fairness: the next in turn for a request that goes to every channel alike, else the channel with
    /// the fewest pages of the file, then with the fewest pages ever issued.
    FileFairness,
    /// The channel with the fewest pages of the request, then at most a page ahead of the file's least channel, then busy for
    /// the shortest time, then with the fewest pages of the file.
    FairPlus,
    /// The channel with the fewest pages of the request, then busy for the shortest time, with reads or writes (beyond
    /// §III.C.2, Read Busy).
    ReadBusyPlus,
    /// The channel with the fewest pages of the request, then without a neighbour of the page in its file, then busy for the
    /// shortest time, then with the fewest neighbours.
    WindowPlus,
}

/// A channel, as a rule sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChannelView {
    /// Pages of the request that were given to it.
    pub of_request: u32,
    /// Pages of the file that it holds, without the replaced page.
    pub of_file: u32,
    /// Neighbours of the page in its file that it holds.
    pub near: u32,
    /// Pages that were ever issued to it.
    pub issued: u64,
    /// How long its queue keeps it busy, ns.
    pub pending_ns: u64,
}

impl ChannelRule {
    /// All that have a name.
    pub const ALL: [Self; 5] =
        [Self::RoundRobin, Self::FileFairness, Self::FairPlus, Self::ReadBusyPlus, Self::WindowPlus];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::FileFairness => "fairness",
            Self::FairPlus => "fair+",
            Self::ReadBusyPlus => "read-busy+",
            Self::WindowPlus => "window+",
        }
    }

    /// The rule of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.name() == name)
    }

    /// Whether it looks at the channels at all, and not at the turn alone.
    pub fn asks_for_channels(self) -> bool {
        self != Self::RoundRobin
    }

    /// Whether it must be known where the file's pages are.
    pub fn asks_for_file(self) -> bool {
        matches!(self, Self::FileFairness | Self::FairPlus)
    }

    /// Whether it must be known where the page's neighbours are.
    pub fn asks_for_neighbours(self) -> bool {
        self == Self::WindowPlus
    }

    /// The channel for a page of a request of so many, where the turn has come to `turn`.
    pub fn choose(self, request_pages: u32, channels: &[ChannelView], turn: u64) -> usize {
        let count = channels.len().max(1);
        let first = (turn % count as u64) as usize;
        if self == Self::RoundRobin || self == Self::FileFairness && fills_all(request_pages, count) {
            return first;
        }
        let least_of_file = channels.iter().map(|channel| channel.of_file).min().unwrap_or(0);
        let key = |view: &ChannelView| match self {
            Self::RoundRobin => (0, false, 0, 0),
            Self::FileFairness => (view.of_file, false, view.issued, 0),
            Self::FairPlus => (view.of_request, view.of_file > least_of_file + 1, view.pending_ns, view.of_file),
            Self::ReadBusyPlus => (view.of_request, false, view.pending_ns, 0),
            Self::WindowPlus => (view.of_request, view.near > 0, view.pending_ns, view.near),
        };
        let in_turn = (0..count).map(|step| (first + step) % count);
        in_turn.min_by_key(|&number| channels.get(number).map(key)).unwrap_or(first)
    }

    /// What the turn has come to after a page of a request of so many went to the channel `chosen`. It stays where the rule
    /// goes by what the channels have.
    pub fn turn_after(self, request_pages: u32, channels: usize, turn: u64, chosen: usize) -> u64 {
        let count = channels.max(1) as u64;
        match self {
            Self::RoundRobin => turn + 1,
            Self::FileFairness if fills_all(request_pages, channels) => turn + 1,
            Self::ReadBusyPlus => turn + (chosen as u64 + count - turn % count) % count + 1,
            Self::FileFairness | Self::FairPlus | Self::WindowPlus => turn,
        }
    }
}

/// Whether a request gives every channel as many pages.
fn fills_all(request_pages: u32, channels: usize) -> bool {
    request_pages > 0 && (request_pages as usize).is_multiple_of(channels.max(1))
}

/// Pages of a sync of `pages` that go to one native lane before the next. Each lane skips pages after the sync, to spare the pages
/// that share their cells, so that a sync writes to no more than one lane for each `pair_pages`.
pub fn run_of_sync(pages: u32, pair_pages: u32, lanes: u8) -> u32 {
    match (pages / pair_pages.max(1)).max(1) {
        most if most >= u32::from(lanes) => 1,
        most => pages.div_ceil(most).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: ChannelView = ChannelView { of_request: 0, of_file: 0, near: 0, issued: 0, pending_ns: 0 };

    #[test]
    fn every_rule_is_found_by_its_name() {
        assert!(ChannelRule::ALL.into_iter().all(|channel| ChannelRule::named(channel.name()) == Some(channel)));
        assert_eq!(ChannelRule::named("fair"), None);
    }

    #[test]
    fn where_nothing_else_tells_the_turn_does() {
        for channel in ChannelRule::ALL {
            assert_eq!(
                [0, 1, 5, 8, 11].map(|turn| channel.choose(3, &[IDLE; 8], turn)),
                [0, 1, 5, 0, 3],
                "{channel:?}"
            );
        }
    }

    #[test]
    fn fairness_takes_the_channel_with_the_fewest_pages_of_the_file() {
        let channels =
            [(2, 0), (1, 9), (1, 7), (3, 0)].map(|(of_file, issued)| ChannelView { of_file, issued, ..IDLE });
        assert_eq!(ChannelRule::FileFairness.choose(3, &channels, 0), 2);
        assert_eq!(
            ChannelRule::FileFairness.choose(8, &channels, 3),
            3,
            "a request that fills every channel goes in turn"
        );
    }

    #[test]
    fn fair_plus_spreads_a_request_over_channels_not_ahead() {
        let of_file = |pages: [u32; 4]| pages.map(|of_file| ChannelView { of_file, ..IDLE });
        assert_eq!(ChannelRule::FairPlus.choose(2, &of_file([2, 1, 0, 1]), 0), 2);
        let given = [1, 0, 0, 0].map(|of_request| ChannelView { of_request, ..IDLE });
        assert_eq!(ChannelRule::FairPlus.choose(2, &given, 0), 1);
        let mut busy = of_file([1, 2, 3, 1]);
        (busy[0].pending_ns, busy[3].pending_ns) = (900, 800);
        assert_eq!(ChannelRule::FairPlus.choose(2, &busy, 0), 1, "a page ahead, but idle");
    }

    #[test]
    fn read_busy_plus_takes_the_least_busy_channel_once_a_request() {
        let mut busy = [900, 300, 700, 500].map(|pending_ns| ChannelView { pending_ns, ..IDLE });
        assert_eq!(ChannelRule::ReadBusyPlus.choose(3, &busy, 0), 1);
        busy[1].of_request = 1;
        assert_eq!(ChannelRule::ReadBusyPlus.choose(3, &busy, 0), 3, "another page of the same request");
    }

    #[test]
    fn window_plus_keeps_neighbours_apart() {
        let near = [1, 2, 0, 0].map(|near| ChannelView { near, ..IDLE });
        assert_eq!(ChannelRule::WindowPlus.choose(1, &near, 0), 2);
        assert_eq!(ChannelRule::WindowPlus.choose(1, &near, 3), 3);
        let mut all = [1, 2, 1, 1].map(|near| ChannelView { near, ..IDLE });
        all[0].pending_ns = 5;
        assert_eq!(ChannelRule::WindowPlus.choose(1, &all, 0), 2, "the least busy, then with the fewest neighbours");
    }

    #[test]
    fn the_turn_goes_on_behind_the_channel_that_was_chosen_in_turn() {
        assert_eq!(ChannelRule::RoundRobin.turn_after(3, 8, 13, 5), 14);
        assert_eq!(
            [(3, 13), (16, 14)].map(|(pages, _)| ChannelRule::FileFairness.turn_after(pages, 8, 13, 5)),
            [13, 14]
        );
        assert_eq!([5, 7, 4].map(|chosen| ChannelRule::ReadBusyPlus.turn_after(3, 8, 13, chosen)), [14, 16, 21]);
        assert_eq!(ChannelRule::WindowPlus.turn_after(3, 8, 13, 2), 13);
    }

    #[test]
    fn a_sync_takes_a_native_lane_for_each_pairing_distance() {
        assert_eq!([1, 7, 8, 15, 16, 20, 31, 32].map(|pages| run_of_sync(pages, 8, 4)), [1, 7, 8, 15, 8, 10, 11, 1]);
    }
}
