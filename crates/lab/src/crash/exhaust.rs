//! Cuts the power at every flash operation of a workload, and again in the recovery.
//!
//! One thread runs the workload on a tapped chip; the torn copies go to judges on other threads. Each judge recovers a
//! copy, compares what it finds with what the history allows, lets the volume check itself, writes to it, remounts,
//! and does the same for copies torn during that recovery. Invariant: every torn copy made is judged.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use flexfs_core::{NewNode, ROOT_INO, kind};
use nand::Cause;

use super::history::History;
use super::rig::Rig;
use super::tap::{Emulated, Tap, Torn};
use super::twin::{Outcome, Twin};
use crate::content::{Fill, Texture};
use crate::model::Body;
use crate::ops::{Call, Name, Step, Supply};

/// Recoveries with at most this many operations are cut at each of them.
const EVERY_RECOVERY_OPERATION: usize = 20;

/// Of longer ones, so many operations are picked.
const SPREAD_RECOVERY_OPERATIONS: usize = 8;

/// Torn copies that may wait for a judge.
const QUEUE: usize = 64;

/// Steps of the workload between two unmounts, on average; each is one of the operations that are cut.
const REMOUNTS_PER_MILLE: usize = 6;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub rig: Rig,
    pub seed: u64,
    /// File-system operations that are cut.
    pub operations: usize,
    /// Part of the capacity to fill before they begin, and to hold, in percent.
    pub full_percent: u64,
    /// Judges.
    pub threads: usize,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Cuts in a program or an erase of the workload.
    pub cuts: usize,
    /// Cuts between two calls, right after one returned.
    pub idle_cuts: usize,
    /// Cuts in the recovery from one of those.
    pub double_cuts: usize,
    /// Programs and erases of the longest recovery.
    pub longest_recovery: usize,
    /// Programs done for migration and for collection while cutting.
    pub migration_programs: u64,
    pub gc_programs: u64,
    pub violations: Vec<Violation>,
}

/// A cut after which a guarantee does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub seed: u64,
    /// The operation cut, since the chip was made, and what the file system was doing.
    pub operation: u64,
    pub during: String,
    /// The operation of the recovery that was cut too.
    pub again: Option<u64>,
    pub error: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, cut at operation {}, {}", self.seed, self.operation, self.during)?;
        if let Some(again) = self.again {
            write!(f, ", again in the recovery at operation {again}")?;
        }
        write!(f, ": {}", self.error)
    }
}

impl Violation {
    /// What kind of violation it is: the first line of the error without its numbers.
    fn kind(&self) -> (bool, String) {
        let line = self.error.lines().next().unwrap_or_default();
        let line = line.split_once(": errno").map_or(line, |(_, refusal)| refusal);
        let words = line.split(|c: char| !c.is_ascii_alphabetic() && c != '\'');
        let plain: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        (self.again.is_some(), plain.join(" "))
    }
}

/// A torn chip and what it may hold.
struct Case {
    torn: Torn,
    history: Arc<History>,
    now_ns: i64,
    during: String,
}

/// Runs the plan.
pub fn exhaust(plan: &Plan) -> Result<Verdict, String> {
    let (sender, receiver) = sync_channel::<Case>(QUEUE);
    let receiver = Mutex::new(receiver);
    let verdict = Mutex::new(Verdict::default());
    let counters = std::thread::scope(|scope| {
        for _ in 0..plan.threads {
            scope.spawn(|| judge_all(plan, &receiver, &verdict));
        }
        drive(plan, sender)
    });
    let mut verdict = verdict.into_inner().map_err(|_| "a judge panicked".to_string())?;
    (verdict.migration_programs, verdict.gc_programs) = counters.map_err(|e| format!("seed {}: {e}", plan.seed))?;
    Ok(verdict)
}

/// Runs the workload and sends every torn copy; the judges stop when the sender is gone. Returns the programs done for
/// migration and for collection.
fn drive(plan: &Plan, sender: SyncSender<Case>) -> Result<(u64, u64), String> {
    let mut workload = Workload::prepare(plan)?;
    workload.run(&mut |case| sender.send(case).map_err(|_| "the judges have gone".to_string()))?;
    Ok(workload.counters())
}

/// The workload on its tapped chip.
struct Workload<'a> {
    plan: &'a Plan,
    twin: Option<Twin<Tap>>,
    supply: Supply,
}

impl<'a> Workload<'a> {
    /// A volume filled as far as the plan says, synced, its counters at zero.
    fn prepare(plan: &'a Plan) -> Result<Self, String> {
        let mut chip = plan.rig.chip(plan.seed)?;
        chip.set_faults(emulator::FaultConfig::default());
        let mut twin = plan.rig.format(Tap::new(chip, plan.rig.faults.clone()), plan.seed)?;
        let stat = twin.fs.statfs().map_err(|error| format!("statfs: {error}"))?;
        fill(&mut twin, stat.capacity_bytes * plan.full_percent / 100, u64::from(stat.chunk_bytes))?;
        let Twin { fs, history, now_ns } = twin;
        let mut chip = fs.into_chip().into_chip();
        chip.reset_counters();
        let tap = Tap::new(chip, plan.rig.faults.clone()).with_fuse();
        let mut twin = Twin::mount(tap, &plan.rig.options, history, now_ns)?;
        twin.settle()?;
        Ok(Self { plan, twin: Some(twin), supply: Supply::new(plan.seed) })
    }

    fn counters(&self) -> (u64, u64) {
        let programs = self.twin.as_ref().map(|twin| twin.fs.chip().emulated().counters().programs);
        programs.map_or((0, 0), |programs| (programs.cause(Cause::Migration), programs.cause(Cause::Gc)))
    }

    fn run(&mut self, send: &mut dyn FnMut(Case) -> Result<(), String>) -> Result<(), String> {
        let Some(twin) = self.twin.as_mut() else { return Err("no volume".into()) };
        let shape = self.plan.rig.shape(twin, self.plan.full_percent, REMOUNTS_PER_MILLE)?;
        for index in 0..self.plan.operations {
            let Some(mut twin) = self.twin.take() else { return Err("no volume".into()) };
            let step = shape.draw(&self.supply.words(), twin.history.live());
            let before = twin.history.clone();
            let first = twin.fs.chip().emulated().operations();
            twin.fs.chip_mut().record(true);
            let (mut twin, allowed) = self.take(twin, &step, before).map_err(|e| format!("step {index}: {e}"))?;
            let now_ns = twin.now_ns;
            let during = format!("step {index} {step:?}");
            let tap = twin.fs.chip_mut();
            tap.record(false);
            let allowed = Arc::new(allowed);
            let (torn, done) = (tap.take_torn(), tap.emulated().operations() - first);
            if torn.len() as u64 != done {
                return Err(format!("{during}: {} of {done} flash operations were cut", torn.len()));
            }
            for torn in torn {
                let case = Case { torn, history: Arc::clone(&allowed), now_ns, during: during.clone() };
                send(case)?;
            }
            let torn = tap.cut_now().map_err(|error| format!("cutting between calls: {error}"))?;
            let history = Arc::new(twin.history.clone());
            send(Case { torn, history, now_ns, during: format!("after {during}") })?;
            self.twin = Some(twin);
        }
        Ok(())
    }

    /// Takes a step; also returns what a cut during it may leave.
    fn take(&self, mut twin: Twin<Tap>, step: &Step, mut before: History) -> Result<(Twin<Tap>, History), String> {
        match step {
            Step::Call(call) => {
                let pieces = twin.history.pending().len();
                let outcome = twin.call(call)?;
                if outcome == Outcome::PowerLost {
                    return Err("it runs in circles".into());
                }
                if outcome == Outcome::Done && call.mutates() {
                    // A sync inside the call would have emptied the list; calls that mutate never sync.
                    before.adopt_pending(&twin.history.pending()[pieces..]);
                }
            }
            Step::Background(steps) => {
                twin.background(*steps)?;
            }
            Step::Remount | Step::Cut(_) => {
                let now_ns = twin.now_ns;
                let (tap, mut history) = twin.unmount()?;
                history.forget_handles();
                twin = Twin::mount(tap, &self.plan.rig.options, history, now_ns)?;
                twin.compare()?;
            }
        }
        Ok((twin, before))
    }
}

/// Writes files until so many bytes are stored, then syncs.
fn fill(twin: &mut Twin<Tap>, bytes: u64, chunk_bytes: u64) -> Result<(), String> {
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    for number in 0u64.. {
        if twin.history.live().stored_bytes() >= bytes {
            break;
        }
        let name = Name(format!("fill{number}").into_bytes());
        twin.call(&Call::Create { parent: ROOT_INO, name, node, attributes: Vec::new() })?;
        let ino = twin.history.live().child(ROOT_INO, format!("fill{number}").as_bytes());
        let ino = ino.map_err(|_| "a file just made is not there".to_string())?;
        let len = (chunk_bytes * (1 + number % 13)) as usize;
        let fill = Fill { seed: number, start: 0, texture: Texture::Noise };
        twin.call(&Call::Write { ino, offset: 0, len, fill })?;
        if twin.call(&Call::Sync)? != Outcome::Done {
            return Err(format!("the volume is full at {} bytes", twin.history.live().stored_bytes()));
        }
    }
    Ok(())
}

fn judge_all(plan: &Plan, cases: &Mutex<Receiver<Case>>, verdict: &Mutex<Verdict>) {
    loop {
        let next = cases.lock().map(|receiver| receiver.recv());
        let Ok(Ok(case)) = next else { return };
        let (operation, during) = (case.torn.operation, case.during.clone());
        let found = catch_unwind(AssertUnwindSafe(|| judge(plan, case))).unwrap_or_else(|_| {
            let error = "panicked".into();
            let violation = Violation { seed: plan.seed, operation, during, again: None, error };
            Verdict { violations: vec![violation], ..Verdict::default() }
        });
        if let Ok(mut verdict) = verdict.lock() {
            verdict.add(found);
        }
    }
}

impl Verdict {
    /// The violations by kind: how many there are of each, and the first of them.
    pub fn kinds(&self) -> Vec<(usize, &Violation)> {
        let mut kinds: BTreeMap<(bool, String), (usize, &Violation)> = BTreeMap::new();
        for violation in &self.violations {
            kinds.entry(violation.kind()).or_insert((0, violation)).0 += 1;
        }
        kinds.into_values().collect()
    }

    fn add(&mut self, other: Verdict) {
        self.cuts += other.cuts;
        self.idle_cuts += other.idle_cuts;
        self.double_cuts += other.double_cuts;
        self.longest_recovery = self.longest_recovery.max(other.longest_recovery);
        self.violations.extend(other.violations);
    }
}

/// Recovers one torn chip, and chips torn in that recovery.
fn judge(plan: &Plan, case: Case) -> Verdict {
    let Case { torn: Torn { mut chip, operation }, history, now_ns, during } = case;
    let idle = during.starts_with("after");
    let mut verdict = Verdict { cuts: usize::from(!idle), idle_cuts: usize::from(idle), ..Verdict::default() };
    let violation = |again, error| Violation { seed: plan.seed, operation, during: during.clone(), again, error };
    chip.power_on();
    let mut tap = Tap::new(chip, plan.rig.faults.clone()).with_fuse();
    tap.record(true);
    let mut again = Vec::new();
    let recovered = Twin::mount(tap, &plan.rig.options, (*history).clone(), now_ns).and_then(|mut twin| {
        twin.fs.chip_mut().record(false);
        again = twin.fs.chip_mut().take_torn();
        twin.settle()?;
        prove_writable(twin, plan)
    });
    if let Err(error) = recovered {
        verdict.violations.push(violation(None, error));
    }
    verdict.longest_recovery = again.len();
    for Torn { mut chip, operation: again } in spread(again) {
        verdict.double_cuts += 1;
        chip.power_on();
        let tap = Tap::new(chip, plan.rig.faults.clone()).with_fuse();
        let twin = Twin::mount(tap, &plan.rig.options, (*history).clone(), now_ns);
        if let Err(error) = twin.and_then(|mut twin| twin.settle()) {
            verdict.violations.push(violation(Some(again), error));
        }
    }
    verdict
}

/// All of a few, some of many.
fn spread(torn: Vec<Torn>) -> Vec<Torn> {
    if torn.len() <= EVERY_RECOVERY_OPERATION {
        return torn;
    }
    let last = torn.len() - 1;
    let picked: Vec<usize> =
        (0..SPREAD_RECOVERY_OPERATIONS).map(|i| i * last / (SPREAD_RECOVERY_OPERATIONS - 1)).collect();
    torn.into_iter().enumerate().filter(|(index, _)| picked.contains(index)).map(|(_, torn)| torn).collect()
}

/// Writes a file on a recovered volume (making room where there is none), syncs, cuts, and finds it again.
fn prove_writable(mut twin: Twin<Tap>, plan: &Plan) -> Result<(), String> {
    let name: Name = "written after the cut".into();
    let node = NewNode { mode: kind::FILE | 0o600, uid: 1, gid: 1, rdev: 0 };
    let create = Call::Create { parent: ROOT_INO, name: name.clone(), node, attributes: Vec::new() };
    until_it_fits(&mut twin, &create)?;
    let ino = twin.history.live().child(ROOT_INO, &name).map_err(|_| "the new file is not there".to_string())?;
    let fill = Fill { seed: plan.seed, start: 0, texture: Texture::Noise };
    until_it_fits(&mut twin, &Call::Write { ino, offset: 0, len: 5000, fill })?;
    until_it_fits(&mut twin, &Call::Sync)?;
    let Twin { fs, mut history, now_ns } = twin;
    history.forget_handles();
    let mut twin =
        Twin::mount(fs.into_chip(), &plan.rig.options, history, now_ns).map_err(|e| format!("after writing: {e}"))?;
    twin.settle().map_err(|error| format!("after writing and remounting: {error}")).map(drop)
}

/// Makes a call, unlinking file after file while the volume is full.
fn until_it_fits(twin: &mut Twin<Tap>, call: &Call) -> Result<(), String> {
    loop {
        match twin.call(call)? {
            Outcome::Done => return Ok(()),
            Outcome::NoSpace => {}
            other => return Err(format!("{call:?} after the recovery: {other:?}")),
        }
        let live = twin.history.live();
        let is_file = |ino| live.node(ino).is_some_and(|node| matches!(node.body, Body::File(_)));
        let victim = live.nodes().find_map(|(dir, node)| {
            let (name, _) = node.entries()?.iter().find(|&(_, &ino)| is_file(ino))?;
            Some((dir, Name(name.clone())))
        });
        let Some((parent, name)) = victim else { return Err(format!("{call:?}: no space on an empty volume")) };
        twin.call(&Call::Unlink { parent, name })?;
        twin.call(&Call::Sync)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flexfs_core::MountOptions;

    #[test]
    fn long_recoveries_are_cut_from_the_first_operation_to_the_last() {
        let rig = Rig::small("flexfs-mlc", 8, 16, MountOptions::default()).unwrap();
        let chip = rig.chip(1).unwrap();
        let torn = |count| (0..count).map(|operation| Torn { chip: chip.clone(), operation }).collect::<Vec<_>>();
        assert_eq!(spread(torn(20)).len(), 20);
        let picked: Vec<u64> = spread(torn(100)).iter().map(|torn| torn.operation).collect();
        assert_eq!((picked.len(), picked[0], picked[7]), (8, 0, 99));
    }
}
