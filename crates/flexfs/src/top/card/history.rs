//! The answers of a card's server so far: the newest, and the rates between those before it.
//!
//! Invariant: the time between two answers is what they say themselves.

use std::collections::VecDeque;

use super::snapshot::CardSnapshot;

/// As many answers are remembered as a wide screen shows.
const HISTORY_MAX: usize = 256;

const NS_PER_S: u128 = 1_000_000_000;

/// Bytes a second between two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardRates {
    pub host_read: u64,
    pub host_written: u64,
    pub flash_read: u64,
    pub programmed: u64,
}

impl CardRates {
    /// `None` where the answers are of two servers, or of one moment.
    fn between(before: &CardSnapshot, after: &CardSnapshot) -> Option<Self> {
        let (before, after) = (&before.served, &after.served);
        let elapsed_ns = after.elapsed_ns.checked_sub(before.elapsed_ns).filter(|&ns| ns > 0)?;
        let rate = |before: u64, after: u64| {
            let bytes = u128::from(after.saturating_sub(before));
            u64::try_from(bytes * NS_PER_S / u128::from(elapsed_ns)).unwrap_or(u64::MAX)
        };
        Some(Self {
            host_read: rate(before.host.read_bytes, after.host.read_bytes),
            host_written: rate(before.host.written_bytes, after.host.written_bytes),
            flash_read: rate(before.flash.read_bytes, after.flash.read_bytes),
            programmed: rate(before.flash.programmed_bytes, after.flash.programmed_bytes),
        })
    }
}

/// The newest answer, and the rates up to it.
pub struct CardHistory {
    pub snapshot: CardSnapshot,
    /// The newest first.
    rates: VecDeque<Option<CardRates>>,
}

impl CardHistory {
    pub fn new(snapshot: CardSnapshot) -> Self {
        Self { snapshot, rates: VecDeque::new() }
    }

    /// Goes on to a newer answer.
    pub fn take(&mut self, snapshot: CardSnapshot) {
        self.rates.push_front(CardRates::between(&self.snapshot, &snapshot));
        self.rates.truncate(HISTORY_MAX);
        self.snapshot = snapshot;
    }

    /// The rates up to the newest answer.
    pub fn rates(&self) -> Option<&CardRates> {
        self.rates.front().and_then(Option::as_ref)
    }

    /// The rates up to each answer, the newest first.
    pub fn all_rates(&self) -> impl Iterator<Item = Option<&CardRates>> {
        self.rates.iter().map(Option::as_ref)
    }
}
