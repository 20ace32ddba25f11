//! What is on the screen of a volume: the newest answer, and the rates and shares of those before it.
//!
//! Invariant: all of it follows from the answers, in their order; the time between two is what they say themselves.

use std::collections::VecDeque;

use super::snapshot::{Programmed, Snapshot};

/// As many answers are remembered as a wide screen shows.
const HISTORY_MAX: usize = 256;

const NS_PER_S: u128 = 1_000_000_000;

/// Bytes a second between two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Programmed for callers.
    pub host: u64,
    /// Read from flash, whatever for.
    pub read: u64,
    /// Programmed to empty SLC blocks.
    pub migration: u64,
    /// Programmed to make room.
    pub collection: u64,
}

impl Rates {
    /// `None` where the answers are of two mounts, or of one moment.
    fn between(before: &Snapshot, after: &Snapshot) -> Option<Self> {
        let elapsed_ns = after.mounted.elapsed_ns.checked_sub(before.mounted.elapsed_ns).filter(|&ns| ns > 0)?;
        let rate = |bytes: &dyn Fn(&Snapshot) -> u64| {
            let bytes = u128::from(bytes(after).saturating_sub(bytes(before)));
            u64::try_from(bytes * NS_PER_S / u128::from(elapsed_ns)).unwrap_or(u64::MAX)
        };
        let programmed = |bytes: fn(&Programmed) -> u64| rate(&|answer| bytes(&answer.programmed_bytes));
        Some(Self {
            host: programmed(|bytes| bytes.host),
            read: rate(&|answer| answer.mounted.read_bytes),
            migration: programmed(|bytes| bytes.migration),
            collection: programmed(|bytes| bytes.gc),
        })
    }
}

/// What is remembered of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub alpha: Option<f64>,
    pub delta: Option<f64>,
    /// Since the answer before.
    pub rates: Option<Rates>,
}

/// What is on the screen.
pub struct State {
    pub snapshot: Snapshot,
    /// The newest first, which is that of the snapshot.
    pub history: VecDeque<Sample>,
}

impl State {
    pub fn new(snapshot: Snapshot) -> Self {
        let history = VecDeque::from([sample(&snapshot, None)]);
        Self { snapshot, history }
    }

    /// Goes on to a newer answer.
    pub fn take(&mut self, snapshot: Snapshot) {
        self.history.push_front(sample(&snapshot, Rates::between(&self.snapshot, &snapshot)));
        self.history.truncate(HISTORY_MAX);
        self.snapshot = snapshot;
    }

    /// The rates up to the newest answer.
    pub fn rates(&self) -> Option<Rates> {
        self.history.front().and_then(|sample| sample.rates)
    }
}

fn sample(snapshot: &Snapshot, rates: Option<Rates>) -> Sample {
    let delta = snapshot.life.as_ref().map(|life| life.delta);
    Sample { alpha: snapshot.mounted.alpha, delta, rates }
}
