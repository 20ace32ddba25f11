//! One case: a volume, a script of operations, and a judgement of every cut in it.
//!
//! Invariant: each program and erase that the script does while it is cut leaves at least one torn chip, and of those of
//! a step as many are judged as the depth says.

use super::base::Base;
use super::busy::stir;
use super::cut::{Cut, Cuts, draw};
use super::findings::{Findings, Violation};
use super::judge::{Depth, Suspect, judge, spread};
use super::mix::{Mix, arm};
use super::mkfs;
use super::overlap::under_way;
use super::panic::caught;
use super::setup::{Ground, Setup};
use crate::content::mix;
use crate::crash::{Emulated, History, Outcome, Record, Tap, TestedChip, Torn, Twin};
use crate::ops::{Call, Op, Step};

/// Torn chips of one step that are all written to and whose recovery is cut again, at most: where there are more, so
/// many of them, evenly spread.
const AGAIN_MAX: usize = 256;

/// What a step on a volume that is nearly full takes, in steps on others; and formatting, in the same.
const CROWDED_WEIGHT: u64 = 5;
const FORMAT_STEPS: u64 = 80;

/// What is done on a volume.
#[derive(Clone, Debug)]
pub enum Script {
    /// These operations, of which the first so many are not cut.
    Ops { ops: Vec<Op>, quiet: usize },
    /// Random operations: those of these numbers in the sequence of a seed. On a busy volume there are background steps
    /// between them.
    Mix { seed: u64, keep: Vec<usize>, failing: bool },
    /// The chip is formatted: the one with the volume, after these operations, or a new one.
    Format { used: Option<Vec<Op>> },
}

/// A script on a volume, and how thoroughly it is cut.
#[derive(Clone, Debug)]
pub struct Case {
    pub setup: &'static Setup,
    pub ground: Ground,
    pub script: Script,
    pub depth: Depth,
}

/// A script under way.
struct ScriptRun<'a> {
    case: &'a Case,
    base: &'a Base,
    only: Cuts<'a>,
    start: u64,
    findings: Findings,
}

impl Case {
    /// A script that is cut thoroughly.
    pub fn alone(setup: &'static Setup, ground: Ground, script: Script) -> Self {
        Self { setup, ground, script, depth: Depth { again: [8, 2], ..Depth::WHOLE } }
    }

    /// Runs it on its base.
    pub fn run(&self, base: &Base, only: Cuts<'_>) -> Findings {
        if let Script::Format { used } = &self.script {
            let used = used.as_ref().map(|ops| self.lived_in(base, ops));
            return mkfs::run(base, used, self.len(), self.depth, only);
        }
        let mut run =
            ScriptRun { case: self, base, only, start: base.chip.operations(), findings: Findings::default() };
        run.findings.cases = 1;
        let (mut step, mut during) = (0, "mount".to_owned());
        if let Err(error) = caught(|| run.run(&mut step, &mut during).map(drop)) {
            run.findings.violations.push(Violation { cuts: Vec::new(), step, during, error });
        }
        run.findings
    }

    /// The volume of its base after these operations.
    fn lived_in(&self, base: &Base, ops: &[Op]) -> Result<Base, String> {
        let script = Script::Ops { ops: ops.to_vec(), quiet: ops.len() };
        let case = Case { script, ..self.clone() };
        let (start, findings) = (base.chip.operations(), Findings::default());
        let mut run = ScriptRun { case: &case, base, only: Cuts::Planned, start, findings };
        let (mut step, mut during) = (0, "mount".to_owned());
        let twin = run.run(&mut step, &mut during).map_err(|error| format!("step {step}, {during}: {error}"))?;
        let now_ns = twin.now_ns;
        let (chip, mut history) = twin.unmount()?;
        history.forget_handles();
        Ok(Base { rig: base.rig.clone(), chip: chip.into_chip(), history, now_ns, shape: base.shape })
    }

    /// How many steps it has that may be left out.
    pub fn len(&self) -> usize {
        match &self.script {
            Script::Ops { ops, .. } => ops.len(),
            Script::Mix { keep, .. } => keep.len(),
            Script::Format { used } => used.as_ref().map_or(0, Vec::len),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how long it takes beside others: by its steps that are cut, and by what a look at its volume takes.
    pub fn weight(&self) -> u64 {
        let steps = match &self.script {
            Script::Ops { ops, quiet } => ops.len().saturating_sub(*quiet) as u64,
            Script::Mix { keep, .. } => keep.len() as u64,
            Script::Format { .. } => FORMAT_STEPS,
        };
        let crowded =
            matches!(self.ground, Ground::Full | Ground::Busy) && !matches!(self.script, Script::Format { .. });
        let each = if crowded { CROWDED_WEIGHT } else { 1 };
        steps.max(1) * each * self.setup.cost(self.ground)
    }

    /// Whether step `index` is cut.
    fn is_cut(&self, index: usize) -> bool {
        !matches!(self.script, Script::Ops { quiet, .. } if index < quiet)
    }
}

impl ScriptRun<'_> {
    fn run(&mut self, at: &mut usize, during: &mut String) -> Result<Twin<TestedChip>, String> {
        let base = self.base;
        let chip = TestedChip::opened(Tap::fused(base.chip.snapshot(), &base.rig.faults), base.rig.over)?;
        let mut twin = Twin::mount(chip, &base.rig.options, base.history.clone(), base.now_ns)?;
        let mut mix = match &self.case.script {
            Script::Mix { seed, keep, failing } => {
                Some(Mix::new(*seed, keep, *failing, (self.case.ground, base.shape)))
            }
            Script::Ops { .. } | Script::Format { .. } => None,
        };
        for index in 0..self.case.len() {
            if self.is_shown() {
                break;
            }
            *at = index;
            let step = match (&self.case.script, &mut mix) {
                (Script::Ops { ops, .. }, _) => {
                    let Some(op) = ops.get(index) else { break };
                    *during = op.to_string();
                    self.prepare(op, index as u64, &mut twin)?
                }
                (_, Some(mix)) => {
                    *during = "stir".to_owned();
                    let step = mix.next(index, &mut twin)?;
                    *during = format!("{step:?}");
                    step
                }
                _ => break,
            };
            if let Some(step) = step {
                twin = self.take(twin, &step, index, during)?;
            }
        }
        let counters = twin.fs.chip().emulated().counters();
        self.findings.migrated = counters.programs.cause(nand::Cause::Migration);
        self.findings.collected = counters.programs.cause(nand::Cause::Gc);
        self.findings.levelled = counters.programs.cause(nand::Cause::WearLevel);
        self.findings.failures = counters.program_failures + counters.erase_failures;
        Ok(twin)
    }

    /// The step that an operation is. What is none is done at once, and not cut.
    fn prepare(&mut self, op: &Op, seed: u64, twin: &mut Twin<TestedChip>) -> Result<Option<Step>, String> {
        match *op {
            Op::FailProgram(_) | Op::FailErase(_) => arm(twin.fs.chip_mut().tap_mut(), op),
            Op::Stir(work) => stir(twin, work, seed)?,
            _ => {
                let step = op.step(twin.history.live(), seed);
                self.findings.refused += usize::from(step.is_none());
                return Ok(step);
            }
        }
        Ok(None)
    }

    /// Takes a step and judges every cut in it and after it.
    fn take(
        &mut self,
        mut twin: Twin<TestedChip>,
        step: &Step,
        index: usize,
        during: &str,
    ) -> Result<Twin<TestedChip>, String> {
        let is_cut = self.case.is_cut(index);
        let first = twin.fs.chip().emulated().operations();
        let record = match (is_cut, self.only) {
            (false, _) => Record::Nothing,
            (true, Cuts::Planned | Cuts::First) if !self.case.depth.every_tear => Record::Every(1),
            (true, _) => Record::All,
        };
        twin.fs.chip_mut().record(record);
        let before = twin.history.clone();
        let (checkpoints, tables) = (checkpoints(&mut twin)?, tables(&twin));
        if is_cut && let Step::Call(call) = step {
            self.note_overlap(call, &mut twin)?;
        }
        let (mut twin, allowed) = self.step(twin, (index, step), before)?;
        let chip = twin.fs.chip_mut();
        chip.record(Record::Nothing);
        let (torn, done) = (chip.take_torn(), chip.emulated().operations() - first);
        if !is_cut {
            return Ok(twin);
        }
        self.findings.checkpoints += self::checkpoints(&mut twin)?.saturating_sub(checkpoints);
        self.findings.tables += u64::from(self::tables(&twin) != tables);
        if operations(&torn) as u64 != done {
            return Err(format!("{} of {done} flash operations were cut", operations(&torn)));
        }
        let torn = match self.only {
            Cuts::Only(_) => torn,
            Cuts::Planned | Cuts::First => spread(torn, self.case.depth.step_max, mix(first)),
        };
        self.findings.points += operations(&torn);
        let every = torn.len().div_ceil(AGAIN_MAX).max(1);
        for (number, torn) in torn.into_iter().enumerate() {
            let again = if number.is_multiple_of(every) { self.case.depth.again } else { [0, 0] };
            self.judge(again, Suspect { torn, history: &allowed, now_ns: twin.now_ns, step: index, during });
        }
        // Where nothing reached the chip and nothing was promised, a cut now is one that was judged before.
        if done > 0 || matches!(step, Step::Call(Call::Sync)) {
            let torn = twin.fs.chip().tap().cut_now().map_err(|error| format!("cutting between calls: {error}"))?;
            self.findings.points += 1;
            let suspect = Suspect { torn, history: &twin.history, now_ns: twin.now_ns, step: index, during };
            self.judge(self.case.depth.again, suspect);
        }
        Ok(twin)
    }

    /// Counts a call that changes something, or makes that last, where the volume's own work is under way.
    fn note_overlap(&mut self, call: &Call, twin: &mut Twin<TestedChip>) -> Result<(), String> {
        if call.mutates() || *call == Call::Sync {
            let met = under_way(twin)?;
            self.findings.met_checkpoints += usize::from(met.checkpoint);
            self.findings.met_emptyings += usize::from(met.emptying);
        }
        Ok(())
    }

    /// Whether a violation is known where one is enough.
    fn is_shown(&self) -> bool {
        matches!(self.only, Cuts::First) && !self.findings.violations.is_empty()
    }

    /// Judges a torn chip, if it is wanted; of its recovery, and of the recovery from that, `again` cuts at most.
    fn judge(&mut self, again: [usize; 2], suspect: Suspect<'_>) {
        let cut = Cut::of(&suspect.torn, self.start, suspect.step);
        let again = if mix(draw(&[cut])).is_multiple_of(self.case.depth.recovery_each) { again } else { [0, 0] };
        if !self.is_shown() && self.only.wants(0, cut) {
            judge(self.base, again, self.only, suspect, &[cut], &mut self.findings);
        }
    }

    /// Takes a step; also returns what a cut during it may leave.
    fn step(
        &mut self,
        mut twin: Twin<TestedChip>,
        (index, step): (usize, &Step),
        mut before: History,
    ) -> Result<(Twin<TestedChip>, History), String> {
        match step {
            Step::Call(call) => {
                let pieces = twin.history.pending().len();
                match twin.call(call)? {
                    Outcome::PowerLost => return Err("it runs in circles".into()),
                    Outcome::WriteOutage => return Err("it takes the chip to be at fault".into()),
                    // A sync inside the call would have emptied the list; calls that mutate never sync.
                    Outcome::Done if call.mutates() => before.adopt_pending(&twin.history.pending()[pieces..]),
                    Outcome::Refused => self.findings.refused += 1,
                    Outcome::NoSpace => self.findings.no_space += 1,
                    Outcome::Done => {}
                }
            }
            Step::Background(steps) => {
                twin.background(*steps)?;
            }
            Step::Remount | Step::Cut(_) => {
                let now_ns = twin.now_ns;
                let (chip, mut history) = twin.unmount()?;
                history.forget_handles();
                let chip = chip.restarted()?;
                twin = Twin::mount(chip, &self.base.options(mix(index as u64)), history, now_ns)?;
                twin.must_be_writable()?;
                twin.compare()?;
            }
        }
        Ok((twin, before))
    }
}

/// How many operations left these chips, which come in their order.
fn operations(torn: &[Torn]) -> usize {
    torn.chunk_by(|one, next| one.operation == next.operation).count()
}

/// Checkpoints of a volume so far.
fn checkpoints(twin: &mut Twin<TestedChip>) -> Result<u64, String> {
    twin.fs.info().map(|info| info.checkpoints).map_err(|error| format!("info: {error}"))
}

/// Where the pages of its block table stand.
fn tables(twin: &Twin<TestedChip>) -> Vec<u64> {
    twin.fs.anchor().map(|anchor| anchor.tables).unwrap_or_default()
}
