//! Entropy as data: a step is drawn from a few words, so a failing history is a list of words that a property
//! tester can shrink. Invariant: any words give a valid step, and fewer or smaller words a simpler one.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The words of one step.
pub type Words = [u16; 12];

/// Reads words one after another; past their end every roll is 0.
pub struct Dice<'a> {
    words: &'a [u16],
}

impl<'a> Dice<'a> {
    pub fn new(words: &'a [u16]) -> Self {
        Self { words }
    }

    /// A number below `sides` (0 where that is 0).
    pub fn roll(&mut self, sides: usize) -> usize {
        let Some((&word, rest)) = self.words.split_first() else { return 0 };
        self.words = rest;
        if sides == 0 { 0 } else { usize::from(word) % sides }
    }

    /// One of the given.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let at = self.roll(from.len());
        from.get(at).copied()
    }

    /// True in `times` of 100 cases.
    pub fn chance(&mut self, times: usize) -> bool {
        // The complement, so that words shrunk to zero mean "no".
        self.roll(100) >= 100 - times
    }
}

/// An endless, seeded supply of steps' words.
pub struct Supply(ChaCha8Rng);

impl Supply {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn words(&mut self) -> Words {
        self.0.random()
    }

    /// A number below `sides`.
    pub fn below(&mut self, sides: u64) -> u64 {
        self.0.random_range(0..sides.max(1))
    }
}
