//! One history, and the power cut at every operation of it and of the recoveries.
//!
//! Invariant: after a cut the volume opens, each acknowledged sector holds what it was given, the request under way is there
//! or not (as a whole where the scheme says so), everything is in order, and what is written then is there after the next
//! opening.

use std::fmt;

use emulator::{Chip, FaultConfig, TornKind};
use ftl::{BlockDevice, Counts, Error};
use nand::NandError;

use super::rig::{Cached, Rig, RigKind};
use super::script::{Requests, Step, script};
use super::shadow::Shadow;
use crate::crash::Tear;

/// A cut: in which step, at which of its operations, how that is torn, and the same for cuts in the recoveries from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub step: usize,
    pub tears: Vec<(u64, TornKind)>,
}

/// How an operation is torn, in the words of the command line: no page shares its word line with another.
fn named(kind: TornKind) -> Tear {
    Tear { kind, pairs: false }
}

impl fmt::Display for Cut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "--step {}", self.step)?;
        self.tears.iter().try_for_each(|(operation, tear)| write!(out, " --cut {operation}:{}", named(*tear)))
    }
}

/// What cuts of a history came to.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Operations that were cut, each in every way.
    pub points: u64,
    pub cuts: u64,
    pub double_cuts: u64,
    pub triple_cuts: u64,
    /// What the history did while nothing was cut.
    pub merges: u64,
    pub partial_merges: u64,
    pub switches: u64,
    pub map_writes: u64,
    pub map_copies: u64,
    pub swaps: u64,
    pub violations: Vec<(Cut, String)>,
}

impl Findings {
    /// Adds another history's.
    pub fn add(&mut self, other: &Findings) {
        self.points += other.points;
        self.cuts += other.cuts;
        self.double_cuts += other.double_cuts;
        self.triple_cuts += other.triple_cuts;
        self.merges += other.merges;
        self.partial_merges += other.partial_merges;
        self.switches += other.switches;
        self.map_writes += other.map_writes;
        self.map_copies += other.map_copies;
        self.swaps += other.swaps;
    }

    fn count(&mut self, counts: &Counts) {
        self.merges += counts.merges;
        self.partial_merges += counts.partial_merges;
        self.switches += counts.switches;
        self.map_writes += counts.map_writes;
        self.map_copies += counts.map_copies;
        self.swaps += counts.swaps;
    }
}

/// A history on a rig.
#[derive(Clone, Copy, Debug)]
pub struct History {
    pub rig: Rig,
    pub seed: u64,
    pub steps: usize,
}

/// A device before a step, and what it must hold.
struct Before<'a> {
    device: &'a Cached<Chip>,
    shadow: &'a Shadow,
    step: Step,
    number: usize,
    sectors: &'a [u64],
}

impl History {
    /// The command that tries a cut of it again.
    pub fn command(&self, cut: &Cut) -> String {
        let (scheme, rig) = (self.rig.scheme, self.rig.kind.name());
        format!("flexfs torture --ftl {scheme} --rig {rig} --history {} {cut}", self.seed)
    }

    /// No cut at all: the history as it is, to its end.
    pub fn uncut(&self) -> Cut {
        Cut { step: self.steps.saturating_sub(1), tears: Vec::new() }
    }

    /// Runs the history, and cuts every operation of it in every way; of the recoveries, every operation for one of these.
    pub fn run(&self) -> Findings {
        let mut findings = Findings::default();
        let walked = self.walk(&mut findings, &mut |before, operations, findings| {
            let operations = if before.number < self.rig.quiet_steps() { 0 } else { operations };
            (0..operations).for_each(|operation| self.cut_everywhere(before, operation, findings));
        });
        if let Err(error) = walked {
            findings.violations.push((self.uncut(), error));
        }
        findings
    }

    /// Runs the history up to a cut, and tries that cut alone.
    pub fn replay(&self, cut: &Cut) -> Result<(), String> {
        let mut outcome = Err(format!("the history has no step {}", cut.step));
        self.walk(&mut Findings::default(), &mut |before, _, _| {
            if before.number == cut.step {
                outcome = self.try_cut(before, &cut.tears).map(drop);
            }
        })?;
        outcome
    }

    /// Runs the history, and does something for each step with what was before it and the operations that it took.
    fn walk(
        &self,
        findings: &mut Findings,
        visit: &mut dyn FnMut(&Before<'_>, u64, &mut Findings),
    ) -> Result<(), String> {
        let mut device = self.rig.format(self.rig.chip(self.seed)?)?;
        let sectors = self.rig.sectors_used(device.sectors());
        let pages = u64::from(device.device().chip().profile().geometry.pages_per_block);
        let mut shadow = Shadow::default();
        for (number, step) in
            script(self.seed, self.steps, &sectors, pages, self.rig.requests()).into_iter().enumerate()
        {
            let at = |error: &dyn fmt::Display| format!("step {number}, {step}: {error}");
            let before = device.clone();
            let start = device.device().chip().operations();
            let done = if step == Step::Remount {
                findings.count(device.device().counts());
                device = self.rig.reopen(device).map_err(|error| at(&error))?;
                true
            } else {
                take(&mut device, &step, &shadow).map_err(|error| at(&error))?
            };
            let operations = device.device().chip().operations() - start;
            visit(&Before { device: &before, shadow: &shadow, step, number, sectors: &sectors }, operations, findings);
            if done {
                shadow.did(&step);
            }
            if number % 16 == 0 {
                shadow.judge(&mut device, &sectors).map_err(|error| at(&error))?;
            }
        }
        findings.count(device.device().counts());
        in_order(&mut device)?;
        shadow.judge(&mut device, &sectors)
    }

    /// Cuts one operation in every way, and the recovery from one of these again at every operation.
    fn cut_everywhere(&self, before: &Before<'_>, operation: u64, findings: &mut Findings) {
        findings.points += 1;
        for (at, tear) in TornKind::CERTAIN.into_iter().enumerate() {
            findings.cuts += 1;
            let first = (operation, tear);
            let recovery = self.note(before, vec![first], findings);
            // Which way, goes round.
            if (operation + before.number as u64) % TornKind::CERTAIN.len() as u64 != at as u64 {
                continue;
            }
            for again in 0..recovery.unwrap_or(0) {
                let turn = |by: u64| TornKind::CERTAIN.get(((again + by) % 6) as usize).copied().unwrap_or_default();
                let second = (again, turn(operation));
                findings.double_cuts += 1;
                let more = self.note(before, vec![first, second], findings).unwrap_or(0);
                if more > 0 && again == before.number as u64 % recovery.unwrap_or(1).max(1) {
                    for third in 0..more {
                        findings.triple_cuts += 1;
                        self.note(before, vec![first, second, (third, turn(third + 1))], findings);
                    }
                }
            }
        }
    }

    /// Tries a cut, and keeps what was wrong after it. Operations of the last recovery, where nothing was.
    fn note(&self, before: &Before<'_>, tears: Vec<(u64, TornKind)>, findings: &mut Findings) -> Option<u64> {
        match self.try_cut(before, &tears) {
            Ok(recovery) => Some(recovery),
            Err(error) => {
                let error = format!("{}, {}: {error}", self.rig.scheme, before.step);
                findings.violations.push((Cut { step: before.number, tears }, error));
                None
            }
        }
    }

    /// Cuts, recovers and judges. Programs and erases of the last recovery.
    fn try_cut(&self, before: &Before<'_>, tears: &[(u64, TornKind)]) -> Result<u64, String> {
        let Some((&(operation, tear), again)) = tears.split_first() else { return Ok(0) };
        let mut device = before.device.clone();
        arm(device.device_mut().chip_mut(), operation, tear, self.seed);
        let mut chip = if before.step == Step::Remount {
            self.cut_reopening(device)?
        } else {
            expect_cut(take(&mut device, &before.step, before.shadow).map(drop))?;
            device.into_device().into_chip()
        };
        for &(operation, tear) in again {
            chip.power_on();
            arm(&mut chip, operation, tear, self.seed + 1);
            expect_cut(self.rig.open(&mut chip).map(drop))?;
        }
        chip.power_on();
        let start = chip.operations();
        let mut device = self.rig.open(&mut chip).map_err(|error| format!("it does not open: {error}"))?;
        let recovery = device.device().chip().operations() - start;
        let mut shadow = before.shadow.clone();
        shadow.judge_cut(&before.step, self.rig.promise(), &mut device, before.sectors)?;
        // On a long chip it takes long to read everything.
        if self.rig.kind != RigKind::Long || operation % 32 == 0 {
            in_order(&mut device)?;
        }
        self.go_on(device, shadow, before)?;
        Ok(recovery)
    }

    /// Unmounts and opens a volume, which is cut in one of these. The chip.
    fn cut_reopening(&self, mut device: Cached<Chip>) -> Result<Chip, String> {
        let flushed = device.flush();
        let mut chip = device.into_device().into_chip();
        match flushed {
            Ok(()) => expect_cut(self.rig.open(&mut chip).map(drop))?,
            cut => expect_cut(cut)?,
        }
        Ok(chip)
    }

    /// Some requests, an opening, and everything is there.
    fn go_on(&self, mut device: Cached<&mut Chip>, mut shadow: Shadow, before: &Before<'_>) -> Result<(), String> {
        for step in script(self.seed + before.number as u64, 4, before.sectors, 4, Requests::Short) {
            if step != Step::Remount
                && take(&mut device, &step, &shadow).map_err(|error| format!("then {step}: {error}"))?
            {
                shadow.did(&step);
            }
        }
        let mut device = self.rig.reopen(device).map_err(|error| format!("it does not open again: {error}"))?;
        shadow.judge(&mut device, before.sectors).map_err(|error| format!("after another opening: {error}"))
    }
}

/// Takes a step on a device. Whether it was done: a request that is too large at once is not.
pub(super) fn take<N: nand::Nand>(device: &mut Cached<N>, step: &Step, shadow: &Shadow) -> Result<bool, Error> {
    let outcome = match *step {
        Step::Write { sector, count } => {
            device.write(sector, &shadow.bytes_of_next(sector, count, device.sector_bytes()))
        }
        Step::Trim { sector, count } => device.trim(sector, count),
        Step::Idle => device.device_mut().background().map(drop),
        Step::Flush | Step::Remount => device.flush(),
    };
    match outcome {
        Err(Error::TooLarge { .. }) => Ok(false),
        outcome => outcome.map(|()| true),
    }
}

/// Nothing on the volume contradicts anything else.
pub(super) fn in_order<N: nand::Nand>(device: &mut Cached<N>) -> Result<(), String> {
    let findings = device.device_mut().check().map_err(|error| format!("check: {error}"))?;
    if findings.is_empty() { Ok(()) } else { Err(findings.join("; ")) }
}

fn arm(chip: &mut Chip, operation: u64, torn: TornKind, seed: u64) {
    chip.faults_mut().set(FaultConfig { seed, torn, ..FaultConfig::default() });
    chip.faults_mut().cut_power_at(operation);
}

fn expect_cut(outcome: Result<(), Error>) -> Result<(), String> {
    match outcome {
        Err(Error::Nand(NandError::PowerOff)) => Ok(()),
        Err(error) => Err(format!("before the cut: {error}")),
        Ok(()) => Err("there is nothing to cut at that operation".to_owned()),
    }
}
