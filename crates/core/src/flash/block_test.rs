//! The test of a block that failed, once nothing in it is needed: it is marked bad for good only where it fails again, and
//! another block passes the same at that time.
//!
//! A round erases a block, programs pages of it with a pattern and reads them back. Two rounds of at most three decide. A
//! round that the suspect fails counts only once another block, the control, has passed one: where no block does, the chip
//! is to blame. Invariants: a step is one program, one erase or a few reads. The control stays a free block that anybody may
//! take between two steps; the suspect is not used until the verdict.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Layout, Nand, NandError};

use super::blocks::{Block, Found};
use super::outage::Operation;
use super::slots::{Slots, is_nearly_lost};
use super::{Flash, STEP_READS};
use crate::error::{Error, Result};

/// Rounds of the same outcome that decide.
const ROUNDS: u32 = 2;
/// Controls in a row that fail, before the chip counts as failing.
const CONTROLS_MAX: u32 = 3;
/// Units that are tested of a block that somebody waits for.
const UNITS_AT_ONCE: u32 = 2;
/// What pages are programmed with in every other round, and inverted in the others. No kind of slot has these lowest three
/// bits, nor their inverse: a page of them is never taken for one of the volume's.
const PATTERN: u8 = 0xb8;

/// What comes next in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundStep {
    Erase,
    Program { unit: u32 },
    Read { unit: u32 },
}

/// A round under way.
#[derive(Clone, Copy, Debug)]
struct Round {
    block: u32,
    /// How often the block was erased by now.
    erases: u32,
    next: RoundStep,
}

/// How a suspect has to read what it was programmed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadsBack {
    /// With bits of the ECC to spare.
    Easily,
    /// Right, with whatever the ECC has to correct: a weak block is better than none.
    Right,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestTurn {
    Suspect,
    /// The suspect failed its last round.
    Control,
}

/// A test under way.
#[derive(Clone, Copy, Debug)]
pub struct BlockTest {
    suspect: u32,
    /// Units that are programmed.
    units: u32,
    reads_back: ReadsBack,
    passed: u32,
    failed: u32,
    turn: TestTurn,
    /// Controls that failed since one passed.
    controls_failed: u32,
    round: Option<Round>,
}

/// How far a test has come.
enum TestState {
    UnderWay(BlockTest),
    /// No block is free to be the control.
    LacksControl,
    Passed,
    Failed,
}

/// Which blocks may be controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controls {
    /// None that the newest anchor lists as erased, if it is clean: after a cut in the test it would be found programmed.
    Unlisted,
    /// Any that is free, where there would be no place for an anchor otherwise, and what stands behind the newest shows it.
    Any,
}

/// What came of a test that somebody waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The block holds a pattern.
    Good,
    /// The block is marked bad.
    Bad,
    Open,
}

impl BlockTest {
    fn of(suspect: u32, units: u32, reads_back: ReadsBack) -> Self {
        Self {
            suspect,
            units,
            reads_back,
            passed: 0,
            failed: 0,
            turn: TestTurn::Suspect,
            controls_failed: 0,
            round: None,
        }
    }

    /// The byte that the next round programs pages with.
    fn pattern(&self) -> u8 {
        if (self.passed + self.failed).is_multiple_of(2) { PATTERN } else { !PATTERN }
    }

    /// The same test after a round.
    fn after(self, passed: bool, is_worn_out: bool) -> Self {
        let test = Self { round: None, ..self };
        match (self.turn, passed) {
            (TestTurn::Suspect, true) => Self { passed: self.passed + 1, ..test },
            (TestTurn::Suspect, false) => Self { turn: TestTurn::Control, ..test },
            // The control is a suspect itself from now on.
            (TestTurn::Control, false) => {
                Self { controls_failed: self.controls_failed + u32::from(!is_worn_out), ..test }
            }
            (TestTurn::Control, true) => {
                Self { failed: self.failed + 1, turn: TestTurn::Suspect, controls_failed: 0, ..test }
            }
        }
    }

    fn program<N: Nand>(&self, slots: &mut Slots<N>, block: u32, unit: u32) -> Result<bool> {
        let (geometry, pages) = (&slots.shape.geometry, slots.nand.layout(CellMode::Native).pages_per_unit());
        let data = vec![self.pattern(); (pages * geometry.page_bytes) as usize];
        let spare = vec![self.pattern(); (pages * geometry.spare_bytes) as usize];
        slots.count_written(Cause::Metadata, data.len());
        let outcome = slots.nand.program(block, unit, CellMode::Native, &data, &spare, Cause::Metadata);
        slots.outcome_of(Operation::Program, block, outcome)
    }

    /// Whether the pages of a few units, from this one on, read as they were programmed. Of a control no more is asked.
    fn reads<N: Nand>(&self, slots: &mut Slots<N>, block: u32, unit: u32) -> Result<bool> {
        let layout = slots.nand.layout(CellMode::Native);
        let units = unit..(unit + units_read(layout)).min(self.units);
        let pages: Vec<u32> = units.flat_map(|unit| layout.unit_pages(unit).iter().copied()).collect();
        let easily = self.turn == TestTurn::Suspect && self.reads_back == ReadsBack::Easily;
        let mut data = vec![0; slots.shape.geometry.page_bytes as usize];
        let mut spare = vec![0; slots.shape.geometry.spare_bytes as usize];
        for page in pages {
            match slots.nand.read(block, page, 0, &mut data, &mut spare, Cause::Metadata) {
                Ok(info) if easily && is_nearly_lost(info) => return Ok(false),
                Ok(_) if data.iter().chain(&spare).any(|&byte| byte != self.pattern()) => return Ok(false),
                Ok(_) => {}
                Err(NandError::Uncorrectable { .. }) => return Ok(false),
                Err(error) => return Err(Error::Nand(error)),
            }
        }
        Ok(true)
    }
}

/// Units that a step reads.
fn units_read(layout: &Layout) -> u32 {
    (STEP_READS as u32 / layout.pages_per_unit().max(1)).max(1)
}

impl Round {
    /// One step; whether the block passed the round, once that is known.
    fn step<N: Nand>(&mut self, slots: &mut Slots<N>, test: &BlockTest) -> Result<Option<bool>> {
        let passes = match self.next {
            RoundStep::Erase => slots.erase(self.block, Cause::Metadata)?,
            RoundStep::Program { unit } => test.program(slots, self.block, unit)?,
            RoundStep::Read { unit } => test.reads(slots, self.block, unit)?,
        };
        let (erased, is_control) = (passes && self.next == RoundStep::Erase, test.turn == TestTurn::Control);
        if let Some(mut found) = slots.blocks.get_mut(self.block) {
            self.erases = found.entry.erases;
            *found = Block::erased(self.erases);
            found.entry.erased = erased && is_control;
            found.entry.failing = !is_control || !passes;
            found.found = if erased && !is_control { Found::Nothing } else { Found::Pages };
        }
        let read = units_read(slots.nand.layout(CellMode::Native));
        let next = match self.next {
            RoundStep::Erase => Some(RoundStep::Program { unit: 0 }),
            RoundStep::Program { unit } if unit + 1 < test.units => Some(RoundStep::Program { unit: unit + 1 }),
            RoundStep::Program { .. } => Some(RoundStep::Read { unit: 0 }),
            RoundStep::Read { unit } => (unit + read < test.units).then_some(RoundStep::Read { unit: unit + read }),
        };
        match next.filter(|_| passes) {
            Some(next) => {
                self.next = next;
                Ok(None)
            }
            None => Ok(Some(passes)),
        }
    }
}

/// The blocks of a chip, as a test sees them.
pub struct TestView<'a, N: Nand>(pub &'a Flash<N>);

impl<N: Nand> TestView<'_, N> {
    /// Whether there is a step to do in the test of a block that failed.
    pub fn can_go_on(&self) -> bool {
        match &self.0.test {
            None => self.next_suspect().is_some(),
            Some(test) if test.turn == TestTurn::Control => {
                self.control_goes_on(test.round) || self.next_control(Controls::Unlisted).is_some()
            }
            Some(_) => true,
        }
    }

    /// The next block to be tested.
    pub fn next_suspect(&self) -> Option<u32> {
        if self.0.blocks().failing_count() == 0 { None } else { self.suspects().next() }
    }

    /// Blocks that failed and that nothing needs any more. Those of the pair for anchors are tested where they are missed.
    fn suspects(&self) -> impl Iterator<Item = u32> {
        let (anchors, blocks, horizon) = (&self.0.anchors, self.0.blocks(), self.0.horizon());
        let is_listed = |block: &u32| anchors.pair_changed || anchors.last.is_some() && anchors.pair.contains(block);
        let failed = blocks.iter().filter(|(_, block)| block.entry.failing).map(|(number, _)| number);
        failed.filter(move |block| !is_listed(block) && blocks.reusable(*block, horizon))
    }

    /// The least worn free block of those that may be controls.
    fn next_control(&self, controls: Controls) -> Option<u32> {
        let anchors = &self.0.anchors;
        let is_unlisted = anchors.last.as_ref().is_none_or(|last| anchors.is_own() && !last.clean);
        let any = is_unlisted || controls == Controls::Any;
        let free = self.0.blocks().free(self.0.horizon()).filter(|(_, block)| any || !block.entry.erased);
        free.min_by_key(|(_, block)| block.cycles()).map(|(number, _)| number)
    }

    /// Whether a control is as its last step left it: nobody has taken it since.
    fn control_goes_on(&self, round: Option<Round>) -> bool {
        let Some(Round { block, erases, next }) = round else { return false };
        let entry = self.0.blocks().get(block).entry;
        let untouched = entry.erases == erases && entry.erased == (next == RoundStep::Program { unit: 0 });
        untouched && !entry.failing && self.0.blocks().reusable(block, self.0.horizon())
    }
}

/// Whoever tests the blocks of a chip.
pub struct Tester<'a, N: Nand>(pub &'a mut Flash<N>);

impl<N: Nand> Tester<'_, N> {
    /// Does one step of the test of a block that failed.
    pub fn step(&mut self) -> Result<()> {
        let units = self.0.slots.nand.layout(CellMode::Native).units();
        let test = self
            .0
            .test
            .or_else(|| self.view().next_suspect().map(|suspect| BlockTest::of(suspect, units, ReadsBack::Easily)));
        let Some(test) = test else { return Ok(()) };
        match self.advance(test, Controls::Unlisted)? {
            TestState::UnderWay(test) => self.0.test = Some(test),
            TestState::LacksControl => {}
            TestState::Passed => {
                self.0.test = None;
                self.readmit(test.suspect);
            }
            TestState::Failed => {
                self.0.test = None;
                self.0.slots.retire(test.suspect)?;
            }
        }
        Ok(())
    }

    /// Tests all blocks that failed, as far as there are controls: where nobody waits, or nothing can be done otherwise.
    pub fn finish_all(&mut self, reads_back: ReadsBack) -> Result<()> {
        self.0.test = None;
        let units = self.0.slots.nand.layout(CellMode::Native).units();
        let suspects: Vec<u32> = self.view().suspects().collect();
        for suspect in suspects {
            let test = BlockTest::of(suspect, units, reads_back);
            if self.0.blocks().get(suspect).entry.failing && self.verdict(test, Controls::Unlisted)? == Verdict::Good {
                self.readmit(suspect);
            }
        }
        Ok(())
    }

    /// Tests a few pages of a block that failed, at once.
    pub(super) fn test_now(&mut self, suspect: u32, controls: Controls) -> Result<Verdict> {
        if self.view().next_control(controls).is_none() {
            return Ok(Verdict::Open);
        }
        let units = self.0.slots.nand.layout(CellMode::Native).units().min(UNITS_AT_ONCE);
        self.verdict(BlockTest::of(suspect, units, ReadsBack::Easily), controls)
    }

    /// Does a test to its end, if there are controls. One that was erased is so again afterwards: the anchor that is about to
    /// be written may list it so, and be clean.
    fn verdict(&mut self, mut test: BlockTest, controls: Controls) -> Result<Verdict> {
        let mut erased_control = None;
        loop {
            if test.turn == TestTurn::Control && test.round.is_none() {
                let control = self.view().next_control(controls);
                erased_control = control.filter(|&block| self.0.blocks().get(block).entry.erased);
            }
            let state = self.advance(test, controls)?;
            let goes_on = matches!(state, TestState::UnderWay(BlockTest { round: Some(_), .. }));
            if let Some(control) = erased_control.take_if(|_| !goes_on) {
                self.0.slots.erase(control, Cause::Metadata)?;
            }
            test = match state {
                TestState::UnderWay(test) => test,
                TestState::LacksControl => return Ok(Verdict::Open),
                TestState::Passed => return Ok(Verdict::Good),
                TestState::Failed => {
                    self.0.slots.retire(test.suspect)?;
                    return Ok(Verdict::Bad);
                }
            }
        }
    }

    /// One step of a test.
    fn advance(&mut self, test: BlockTest, controls: Controls) -> Result<TestState> {
        let is_suspect = test.turn == TestTurn::Suspect;
        let under_way = test.round.filter(|_| is_suspect || self.view().control_goes_on(test.round));
        let block = match (under_way, test.turn) {
            (Some(round), _) => Some(round.block),
            (None, TestTurn::Suspect) => Some(test.suspect),
            (None, TestTurn::Control) => self.view().next_control(controls),
        };
        let Some(block) = block else { return Ok(TestState::LacksControl) };
        let erases = self.0.blocks().get(block).entry.erases;
        let mut round = under_way.unwrap_or(Round { block, erases, next: RoundStep::Erase });
        let next = match round.step(&mut self.0.slots, &test)? {
            Some(passed) => test.after(passed, self.0.blocks().is_worn_out(block)),
            None => BlockTest { round: Some(round), ..test },
        };
        match next {
            BlockTest { controls_failed: CONTROLS_MAX.., .. } => Err(self.0.slots.outage.declare()),
            BlockTest { passed: ROUNDS.., .. } => Ok(TestState::Passed),
            BlockTest { failed: ROUNDS.., .. } => Ok(TestState::Failed),
            next => Ok(TestState::UnderWay(next)),
        }
    }

    /// A block that passed its test is free.
    fn readmit(&mut self, block: u32) {
        if let Some(mut found) = self.0.slots.blocks.get_mut(block) {
            found.entry.failing = false;
        }
    }

    fn view(&self) -> TestView<'_, N> {
        TestView(self.0)
    }
}
