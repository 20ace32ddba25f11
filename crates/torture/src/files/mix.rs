//! The steps of a random history, and what is done to its volume and its chip before each.
//!
//! Invariant: a step follows from its number, the seed and the volume, so that a history of some of the steps can be run.

use super::busy::stir;
use super::setup::Ground;
use crate::content::mix;
use crate::crash::{Tap, TestedChip, Twin};
use crate::ops::{Op, Shape, Step, Supply, Words, Work};

/// Where programs and erases fail, one does every so many steps: few chips lose more of their blocks. The next waits for
/// the one before: blocks are kept for one that fails, until room is made for another.
const FAILING_EVERY: usize = 24;

/// On [`Ground::Busy`] work is brought under way every so many steps.
const STIRRED_EVERY: usize = 20;
/// There one step in so many is of background work; so many steps of that at most.
const BACKGROUND_EVERY: u16 = 3;
const BACKGROUND_STEPS: u16 = 4;

/// A random history under way.
pub(super) struct Mix {
    seed: u64,
    failing: bool,
    busy: bool,
    shape: Shape,
    /// The steps that are taken: their numbers, and what they are drawn from.
    steps: Vec<(usize, Words)>,
    /// Failures that wait for the one before.
    failures_due: u32,
    /// How often the steps so far were to find work under way.
    stirred: usize,
}

impl Mix {
    /// The steps of these numbers in the history of a seed.
    pub fn new(seed: u64, keep: &[usize], failing: bool, (ground, shape): (Ground, Shape)) -> Self {
        let mut supply = Supply::new(seed);
        let all: Vec<Words> = (0..=keep.iter().copied().max().unwrap_or(0)).map(|_| supply.words()).collect();
        let steps = keep.iter().filter_map(|&number| Some((number, *all.get(number)?))).collect();
        Self { seed, failing, busy: ground == Ground::Busy, shape, steps, failures_due: 0, stirred: 0 }
    }

    /// Makes the volume ready for step `index`, and draws it; `None` past the last one.
    pub fn next(&mut self, index: usize, twin: &mut Twin<TestedChip>) -> Result<Option<Step>, String> {
        let Some(&(number, words)) = self.steps.get(index) else { return Ok(None) };
        if self.busy && number / STIRRED_EVERY >= self.stirred {
            self.stirred = number / STIRRED_EVERY + 1;
            let turn = self.stirred as u64;
            let work = if self.seed % 2 == turn % 2 { Work::Checkpoint } else { Work::Emptying };
            stir(twin, work, mix(self.seed ^ mix(turn)))?;
        }
        self.arm(number, &words, twin.fs.chip_mut().tap_mut());
        if self.busy && words[11].is_multiple_of(BACKGROUND_EVERY) {
            return Ok(Some(Step::Background(1 + usize::from(words[10] % BACKGROUND_STEPS))));
        }
        Ok(Some(self.shape.draw(&words, twin.history.live())))
    }

    /// Makes an operation of the chip fail if one is due.
    fn arm(&mut self, number: usize, words: &Words, tap: &mut Tap) {
        self.failures_due += u32::from(self.failing && number.is_multiple_of(FAILING_EVERY));
        if self.failures_due > 0 && !tap.chip_mut().faults_mut().failure_is_armed() {
            self.failures_due -= 1;
            let soon = u64::from(words[10] % 8);
            arm(tap, &if words[9].is_multiple_of(3) { Op::FailErase(soon) } else { Op::FailProgram(soon) });
        }
    }
}

/// Makes an operation of the chip fail.
pub(super) fn arm(tap: &mut Tap, op: &Op) {
    match *op {
        Op::FailProgram(number) => tap.chip_mut().faults_mut().fail_program_at(number),
        Op::FailErase(number) => tap.chip_mut().faults_mut().fail_erase_at(number),
        _ => {}
    }
}
