//! Where the pages of files go: which channel, and which of its dies. Invariant: a placement is a name and two choices that know
//! nothing of a drive's state.

use flexfs_core::channel::ChannelRule;

use crate::drive::shape::LONG_OVER_PAGES;

/// How the channel of a page is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelChoice {
    /// By a rule of the file system, which places each write anew.
    ByRule(ChannelRule),
    /// By the page's place in its file: each write goes to the channel of the one before. File *n* begins at channel
    /// 5 *n* mod 8.
    ByOffset,
}

/// Where pages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePlacement {
    pub name: &'static str,
    pub channel: ChannelChoice,
    pub striping: DieStriping,
}

/// The requests whose pages on a channel go to plane pairs, and these to its dies in turn. Pages of others go to the open block
/// of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DieStriping {
    Never,
    /// Of over 16 pages: Dynamic Depth (§III.C.3).
    LongRequests,
    Always,
}

impl DieStriping {
    pub(super) fn holds_for(self, request_pages: u32) -> bool {
        match self {
            Self::Never => false,
            Self::LongRequests => request_pages > LONG_OVER_PAGES,
            Self::Always => true,
        }
    }
}

impl FilePlacement {
    /// One counter of pages over all channels.
    pub const ROUND_ROBIN: Self = Self::by_rule("round-robin", ChannelRule::RoundRobin, DieStriping::Never);
    pub const ROUND_ROBIN_STRIPED: Self =
        Self::by_rule("round-robin, striped dies", ChannelRule::RoundRobin, DieStriping::Always);
    pub const STATIC: Self =
        Self { name: "static striping", channel: ChannelChoice::ByOffset, striping: DieStriping::Never };
    /// File Channel Fairness (§III.C.1), by the letter.
    pub const FAIRNESS: Self = Self::by_rule("fairness", ChannelRule::FileFairness, DieStriping::Never);
    /// Read Busy (§III.C.2), by the letter.
    pub const READ_BUSY: Self = Self::by_rule("read-busy", ChannelRule::ReadBusy, DieStriping::Never);
    /// All three schemes, by the letter.
    pub const HYBRID: Self = Self::by_rule("hybrid", ChannelRule::Hybrid, DieStriping::LongRequests);
    pub const FAIRNESS_BY_TIME: Self =
        Self::by_rule("fairness-by-time", ChannelRule::FairnessByTime, DieStriping::Never);
    pub const READ_BUSY_BY_TIME: Self =
        Self::by_rule("read-busy-by-time", ChannelRule::ReadBusyByTime, DieStriping::Never);
    pub const HYBRID_BY_TIME: Self =
        Self::by_rule("hybrid-by-time", ChannelRule::HybridByTime, DieStriping::LongRequests);
    /// Dynamic Depth (§III.C.3).
    pub const DEPTH: Self = Self::by_rule("depth", ChannelRule::RoundRobin, DieStriping::LongRequests);
    pub const FAIR_PLUS: Self = Self::by_rule("fair+", ChannelRule::FairPlus, DieStriping::Never);
    pub const READ_BUSY_PLUS: Self = Self::by_rule("read-busy+", ChannelRule::ReadBusyPlus, DieStriping::Never);
    pub const HYBRID_PLUS: Self = Self::by_rule("hybrid+", ChannelRule::FairPlus, DieStriping::LongRequests);
    pub const STRIPED_PLUS: Self = Self::by_rule("striped+", ChannelRule::FairPlus, DieStriping::Always);
    pub const WINDOW_PLUS: Self = Self::by_rule("window+", ChannelRule::WindowPlus, DieStriping::Always);

    const fn by_rule(name: &'static str, rule: ChannelRule, striping: DieStriping) -> Self {
        Self { name, channel: ChannelChoice::ByRule(rule), striping }
    }
}
