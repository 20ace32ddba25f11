//! When collection begins and ends (Qiu et al., §III.A.2). Invariant: free blocks below 5 % begin it; what ends it is the rule's.

use super::page_log::{LogShape, PageLog};

/// Percent of the blocks: fewer free ones begin collection.
const BEGIN_PERCENT: u32 = 5;
/// Percent: so much ends it.
const END_PERCENT: u32 = 10;

/// What collects by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionScope {
    EachChannel,
    WholeDrive,
}

/// What the paper's "reclaims more than 10 % of the whole capacity" may mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionEnd {
    /// So much is free.
    Free,
    /// So much was given back since the begin.
    GivenBack,
}

/// How fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionPace {
    /// A step at a time on each channel, where the victim's die is idle.
    WhereIdle,
    /// All steps to the end behind the write that begins it, as the paper's text has it.
    AtOnce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionRule {
    pub scope: CollectionScope,
    pub end: CollectionEnd,
    pub pace: CollectionPace,
}

#[derive(Clone, Copy, Debug, Default)]
struct CollectionState {
    is_on: bool,
    begins: u64,
    /// Pages given back since it began.
    given_back: u64,
}

/// What is being collected.
#[derive(Clone)]
pub struct Collection {
    rule: CollectionRule,
    shape: LogShape,
    /// Of each channel, or one of the drive.
    parts: Vec<CollectionState>,
}

impl Collection {
    pub fn new(rule: CollectionRule, shape: LogShape) -> Self {
        let parts = match rule.scope {
            CollectionScope::EachChannel => usize::from(shape.channels),
            CollectionScope::WholeDrive => 1,
        };
        Self { rule, shape, parts: vec![CollectionState::default(); parts] }
    }

    pub fn pace(&self) -> CollectionPace {
        self.rule.pace
    }

    pub fn begins(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().map(|part| part.begins)
    }

    pub fn is_on(&self, channel: u8) -> bool {
        self.parts[self.part_of(channel)].is_on
    }

    /// The channels that are collected with this one.
    pub fn channels_with(&self, channel: u8) -> std::ops::Range<u8> {
        match self.rule.scope {
            CollectionScope::EachChannel => channel..channel + 1,
            CollectionScope::WholeDrive => 0..self.shape.channels,
        }
    }

    /// Begins or ends by the free blocks that there are now.
    pub fn look(&mut self, channel: u8, log: &PageLog) {
        let (free, blocks) = match self.rule.scope {
            CollectionScope::EachChannel => (log.free_blocks(channel) as u32, self.shape.blocks_per_channel),
            CollectionScope::WholeDrive => (log.all_free_blocks(), self.shape.blocks()),
        };
        let number = self.part_of(channel);
        let part = &mut self.parts[number];
        let pages_wanted = u64::from(blocks) * u64::from(self.shape.pages_per_block) * u64::from(END_PERCENT) / 100;
        let is_enough = match self.rule.end {
            CollectionEnd::Free => free >= blocks * END_PERCENT / 100,
            CollectionEnd::GivenBack => part.given_back >= pages_wanted,
        };
        if !part.is_on && free < blocks * BEGIN_PERCENT / 100 {
            *part = CollectionState { is_on: true, begins: part.begins + 1, given_back: 0 };
        } else if part.is_on && is_enough {
            part.is_on = false;
        }
    }

    /// Pages became free for others.
    pub fn gave_back(&mut self, channel: u8, pages: u32) {
        let part = self.part_of(channel);
        self.parts[part].given_back += u64::from(pages);
    }

    fn part_of(&self, channel: u8) -> usize {
        match self.rule.scope {
            CollectionScope::EachChannel => usize::from(channel),
            CollectionScope::WholeDrive => 0,
        }
    }
}
