//! A random history on one volume, with unmounts, remounts and power cuts mixed in, judged at every step.
//!
//! Invariant: every volume that is mounted after a cut or an unmount is compared byte for byte with what the history
//! allows before the next call is made on it.

use emulator::Chip;
use flexfs_core::{Fs, MountOptions};
use nand::Cause;

use super::history::History;
use super::rig::Rig;
use super::tap::{Emulated, Tap};
use super::tested_chip::TestedChip;
use super::twin::{Outcome, Reading, Twin};
use crate::ops::{Shape, Step, Supply, Words};

/// Steps between two full comparisons where nothing else asks for one.
const COMPARE_EVERY: usize = 200;

/// Mounts that may be cut before one must succeed: no single armed cut can need more.
const MOUNT_TRIES: usize = 3;

/// Programs and erases after which a single step is taken for endless.
const FUSE_OPERATIONS: u64 = 20_000;

/// What a run went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls made on volume and model.
    pub calls: usize,
    pub refused: usize,
    pub no_space: usize,
    pub remounts: usize,
    pub cuts: usize,
    /// Cuts in a mount.
    pub mount_cuts: usize,
    /// The times that the volume took its chip to be at fault.
    pub outages: usize,
    /// Programs that moved data, for migration and for collection.
    pub migrated: u64,
    pub collected: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.refused += other.refused;
        self.no_space += other.no_space;
        self.remounts += other.remounts;
        self.cuts += other.cuts;
        self.mount_cuts += other.mount_cuts;
        self.outages += other.outages;
        self.migrated += other.migrated;
        self.collected += other.collected;
    }
}

/// A run under way.
pub struct Run {
    rig: Rig,
    shape: Shape,
    twin: Option<Twin<TestedChip>>,
    tally: Tally,
    steps: usize,
    /// Whether a power cut is part of the history; otherwise the fuse is armed.
    cut_armed: bool,
    /// Bad blocks when the chip began to refuse every program and erase, if it does.
    bad_before_outage: Option<usize>,
}

impl Run {
    /// A fresh volume.
    pub fn new(rig: Rig, seed: u64, crowded_percent: u64, disruptions: usize) -> Result<Self, String> {
        let chip = rig.chip(seed)?;
        Self::on(rig, chip, seed, crowded_percent, disruptions)
    }

    /// A fresh volume on a chip made by the caller.
    pub fn on(rig: Rig, chip: Chip, seed: u64, crowded_percent: u64, disruptions: usize) -> Result<Self, String> {
        let mut twin = rig.format(rig.tested(chip, seed)?, seed)?;
        let shape = rig.shape(&mut twin, crowded_percent, disruptions)?;
        Ok(Self {
            rig,
            shape,
            twin: Some(twin),
            tally: Tally::default(),
            steps: 0,
            cut_armed: false,
            bad_before_outage: None,
        })
    }

    /// Runs `steps` seeded steps on a fresh volume and compares at the end; an error names the step.
    pub fn seeded(rig: Rig, seed: u64, steps: usize, crowded: u64, disruptions: usize) -> Result<Tally, String> {
        let mut run = Self::new(rig, seed, crowded, disruptions)?;
        let mut supply = Supply::new(seed);
        for _ in 0..steps {
            run.step(&supply.words())?;
        }
        run.finish()
    }

    /// The volume and its model.
    pub fn twin_mut(&mut self) -> Option<&mut Twin<TestedChip>> {
        self.twin.as_mut()
    }

    /// The chip under the volume, to arm faults on.
    pub fn chip_mut(&mut self) -> Option<&mut Chip> {
        self.twin.as_mut().map(|twin| twin.fs.chip_mut().emulated_mut())
    }

    /// The chip refuses so many programs and erases to come; with [`u64::MAX`] all until the next mount.
    pub fn refuse_writes(&mut self, count: u64) {
        let Some(chip) = self.chip_mut() else { return };
        chip.faults_mut().refuse_writes(count);
        self.bad_before_outage = (count == u64::MAX).then(|| chip.bad_blocks().count());
    }

    /// The step that these words would be, for people.
    pub fn peek(&self, words: &Words) -> Option<Step> {
        self.twin.as_ref().map(|twin| self.shape.draw(words, twin.history.live()))
    }

    /// Compares the whole volume with the model now.
    pub fn compare(&mut self) -> Result<(), String> {
        match &mut self.twin {
            Some(twin) if twin.fs.chip().emulated().is_powered() => twin.compare(),
            _ => Ok(()),
        }
    }

    /// Draws a step and takes it.
    pub fn step(&mut self, words: &Words) -> Result<(), String> {
        let Some(mut twin) = self.twin.take() else { return Err("the run has failed".into()) };
        let step = self.shape.draw(words, twin.history.live());
        self.steps += 1;
        let at = self.steps;
        let within = |error: String| format!("step {at}, {step:?}: {error}");
        if !self.cut_armed {
            twin.fs.chip_mut().emulated_mut().faults_mut().cut_power_at(FUSE_OPERATIONS);
        }
        let outcome = match &step {
            Step::Call(call) => {
                self.tally.calls += 1;
                twin.call(call)
            }
            Step::Background(steps) => twin.background(*steps),
            Step::Remount => {
                self.tally.remounts += 1;
                self.twin = Some(self.remount(twin).map_err(within)?);
                return Ok(());
            }
            Step::Cut(operations) => {
                twin.fs.chip_mut().emulated_mut().faults_mut().cut_power_at(*operations);
                self.cut_armed = true;
                Ok(Outcome::Done)
            }
        };
        match outcome.map_err(within)? {
            Outcome::PowerLost => {
                let Twin { fs, history, now_ns } = twin;
                twin = self.after_cut(fs.into_chip().into_chip(), history, now_ns).map_err(within)?;
            }
            Outcome::WriteOutage => {
                let Twin { fs, history, now_ns } = twin;
                self.tally.outages += 1;
                twin =
                    self.mount(fs.into_chip().into_chip(), history, now_ns).and_then(Self::settle).map_err(within)?;
            }
            Outcome::Refused => self.tally.refused += 1,
            Outcome::NoSpace => self.tally.no_space += 1,
            Outcome::Done => {}
        }
        self.twin = Some(twin);
        if self.steps.is_multiple_of(COMPARE_EVERY) { self.compare().map_err(within) } else { Ok(()) }
    }

    /// A last comparison, a last unmount, and one more look.
    pub fn finish(self) -> Result<Tally, String> {
        self.end().map(|(tally, ..)| tally)
    }

    /// The same; also gives the unmounted chip, what it holds, and the time.
    pub fn end(mut self) -> Result<(Tally, Chip, History, i64), String> {
        let Some(mut twin) = self.twin.take() else { return Err("the run has failed".into()) };
        self.cut_armed = false;
        twin.fs.chip_mut().emulated_mut().faults_mut().cut_power_at(FUSE_OPERATIONS);
        twin.compare().map_err(|error| format!("at the end: {error}"))?;
        let twin = self.remount(twin).map_err(|error| format!("last remount: {error}"))?;
        let programs = twin.fs.chip().emulated().counters().programs;
        (self.tally.migrated, self.tally.collected) = (programs.cause(Cause::Migration), programs.cause(Cause::Gc));
        let now_ns = twin.now_ns;
        let (chip, history) = twin.unmount()?;
        Ok((self.tally, chip.into_chip(), history, now_ns))
    }

    fn remount(&mut self, twin: Twin<TestedChip>) -> Result<Twin<TestedChip>, String> {
        let now_ns = twin.now_ns;
        let (chip, history) = twin.unmount()?;
        let chip = chip.into_chip();
        if !chip.is_powered() {
            return self.after_cut(chip, history, now_ns);
        }
        let mut twin = self.mount(chip, history, now_ns)?;
        if twin.history.pending().is_empty() {
            twin.compare()?;
        } else {
            twin = Self::settle(twin)?;
        }
        Ok(twin)
    }

    fn after_cut(&mut self, mut chip: Chip, history: History, now_ns: i64) -> Result<Twin<TestedChip>, String> {
        self.blow()?;
        self.tally.cuts += 1;
        chip.power_on();
        Self::settle(self.mount(chip, history, now_ns)?)
    }

    /// Mounts; a cut that is armed may go off in it.
    fn mount(&mut self, mut chip: Chip, mut history: History, now_ns: i64) -> Result<Twin<TestedChip>, String> {
        self.end_outage(&mut chip, &history, now_ns)?;
        for _ in 0..MOUNT_TRIES {
            let options = MountOptions { now_ns, ..self.rig.options.clone() };
            let mounted = match TestedChip::open(Tap::new(chip, self.rig.faults.clone()), self.rig.over) {
                Ok(tested) => Fs::mount(tested, options).map_err(|(left, error)| (left.into_chip(), error.to_string())),
                Err(failed) => Err((failed.tap.into_chip(), failed.error.to_string())),
            };
            match mounted {
                Ok(fs) => {
                    if history.pending().is_empty() {
                        history.forget_handles();
                    }
                    let mut twin = Twin { fs, history, now_ns };
                    twin.must_not_be_damaged()?;
                    return Ok(twin);
                }
                Err((returned, _)) if !returned.is_powered() => {
                    self.blow()?;
                    self.tally.mount_cuts += 1;
                    chip = returned;
                    chip.power_on();
                }
                Err((_, error)) => return Err(format!("mount: {error}")),
            }
        }
        Err("mount: it programs or erases without end".into())
    }

    /// If the chip refuses every program and erase: what is on it can be read, no block was marked bad, and it works again.
    fn end_outage(&mut self, chip: &mut Chip, history: &History, now_ns: i64) -> Result<(), String> {
        let Some(before) = self.bad_before_outage.take() else { return Ok(()) };
        let marked = chip.bad_blocks().count() - before;
        if marked > 0 {
            return Err(format!("{marked} blocks were marked bad while the chip refused everything"));
        }
        let mut copy = chip.snapshot();
        copy.faults_mut().cancel_cut();
        let copy = TestedChip::opened(Tap::new(copy, self.rig.faults.clone()), self.rig.over)?;
        let mut twin = Twin::mount(copy, &self.rig.options, history.clone(), now_ns)?;
        twin.settle(Reading::Once).map_err(|error| format!("mounted while the chip refuses everything: {error}"))?;
        chip.faults_mut().refuse_writes(0);
        Ok(())
    }

    /// The power went off: as the history wants, or by the fuse.
    fn blow(&mut self) -> Result<(), String> {
        match std::mem::take(&mut self.cut_armed) {
            true => Ok(()),
            false => Err(format!("it took {FUSE_OPERATIONS} programs and erases and was not done")),
        }
    }

    fn settle(mut twin: Twin<TestedChip>) -> Result<Twin<TestedChip>, String> {
        twin.settle(Reading::Twice)?;
        Ok(twin)
    }
}
