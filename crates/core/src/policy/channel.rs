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
    /// §III.C.2, Read Busy: the next in turn that no read occupies; if reads occupy all, the channel with the fewest.
    ReadBusy,
    /// Fairness and Read Busy together: of the channels that are at most a page ahead of the file's least channel, those that no
    /// read occupies, then the channel with the fewest pages of the file, then of those ever issued. A request that goes to
    /// every channel alike goes by `ReadBusy`.
    Hybrid,
    /// `FileFairness`, where the pages issued to a channel are counted until they are done: the channel with the fewest pages of
    /// the request, then of the file, then busy for the shortest time.
    FairnessByTime,
    /// `ReadBusy`, where writes make a channel busy, too: the channel that is busy for the shortest time.
    ReadBusyByTime,
    /// Fairness and Read Busy together, by time: `FairPlus`, but `ReadBusyByTime` for a request that goes to every channel alike.
    HybridByTime,
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
    /// Pages that are asked of it and not read yet.
    pub reads_pending: u32,
    /// How long its queue keeps it busy, with pages of the request that were given to it, ns.
    pub pending_ns: u64,
}

impl ChannelRule {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::RoundRobin,
        Self::FileFairness,
        Self::ReadBusy,
        Self::Hybrid,
        Self::FairnessByTime,
        Self::ReadBusyByTime,
        Self::HybridByTime,
        Self::FairPlus,
        Self::ReadBusyPlus,
        Self::WindowPlus,
    ];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::FileFairness => "fairness",
            Self::ReadBusy => "read-busy",
            Self::Hybrid => "hybrid",
            Self::FairnessByTime => "fairness-by-time",
            Self::ReadBusyByTime => "read-busy-by-time",
            Self::HybridByTime => "hybrid-by-time",
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
        matches!(self, Self::FileFairness | Self::Hybrid | Self::FairnessByTime | Self::HybridByTime | Self::FairPlus)
    }

    /// Whether it must be known where the page's neighbours are.
    pub fn asks_for_neighbours(self) -> bool {
        self == Self::WindowPlus
    }

    /// Whether reads must be told from writes in what is pending.
    pub fn asks_for_reads(self) -> bool {
        matches!(self, Self::ReadBusy | Self::Hybrid)
    }

    /// The channel for a page of a request of so many, where the turn has come to `turn`.
    pub fn choose(self, request_pages: u32, channels: &[ChannelView], turn: u64) -> usize {
        let count = channels.len().max(1);
        let first = (turn % count as u64) as usize;
        let rule = self.of_request(request_pages, count);
        if rule == Self::RoundRobin {
            return first;
        }
        let least_of_file = channels.iter().map(|channel| channel.of_file).min().unwrap_or(0);
        let key = |view: &ChannelView| {
            let &ChannelView { of_request, of_file, near, issued, reads_pending, pending_ns } = view;
            let is_ahead = u32::from(of_file > least_of_file + 1);
            match rule {
                Self::RoundRobin => (0, 0, 0, 0),
                Self::FileFairness => (of_file, 0, issued, 0),
                Self::ReadBusy => (reads_pending, 0, 0, 0),
                Self::Hybrid => (is_ahead, u32::from(reads_pending > 0), u64::from(of_file), issued),
                Self::FairnessByTime => (of_request, of_file, pending_ns, 0),
                Self::ReadBusyByTime => (0, 0, pending_ns, 0),
                Self::HybridByTime | Self::FairPlus => (of_request, is_ahead, pending_ns, u64::from(of_file)),
                Self::ReadBusyPlus => (of_request, 0, pending_ns, 0),
                Self::WindowPlus => (of_request, u32::from(near > 0), pending_ns, u64::from(near)),
            }
        };
        let in_turn = (0..count).map(|step| (first + step) % count);
        in_turn.min_by_key(|&number| channels.get(number).map(key)).unwrap_or(first)
    }

    /// What the turn has come to after a page of a request of so many went to the channel `chosen`. It stays where the rule
    /// goes by what the channels have.
    pub fn turn_after(self, request_pages: u32, channels: usize, turn: u64, chosen: usize) -> u64 {
        let count = channels.max(1) as u64;
        match self.of_request(request_pages, channels) {
            Self::RoundRobin => turn + 1,
            Self::ReadBusy | Self::ReadBusyByTime | Self::ReadBusyPlus => {
                turn + (chosen as u64 + count - turn % count) % count + 1
            }
            _ => turn,
        }
    }

    /// The rule for a request of so many pages: Fairness and Hybrid go by another rule where a request gives all channels the same
    /// number of pages.
    fn of_request(self, pages: u32, channels: usize) -> Self {
        match (self, fills_all(pages, channels)) {
            (Self::FileFairness | Self::FairnessByTime, true) => Self::RoundRobin,
            (Self::Hybrid, true) => Self::ReadBusy,
            (Self::HybridByTime, true) => Self::ReadBusyByTime,
            _ => self,
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
mod tests;
