//! What FlexFS costs over FUSE itself: the same calls through the kernel to a FlexFS on a chip in memory and to a
//! file system that does nothing but keep bytes.
//!
//! Both are served by this process in the same way, one at a time, in turns. Invariant: a figure is the best of
//! several rounds of each, and every call that is counted was answered by the file system, never from the kernel's
//! caches; no mount is left behind.

mod null;
mod target;
mod workload;

use anyhow::{Context, Result};
use emulator::Profile;
use flexfs_core::Policy;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

use target::Target;
use workload::{PHASES, Plan};

use crate::interrupt::Interrupt;

/// How often both are measured.
const ROUNDS: usize = 8;

/// Bytes of the chip where nobody says otherwise.
pub const DEFAULT_BYTES: u64 = 1 << 30;

/// Keeps this thread, and those it starts, on one processor while it lives.
struct OneProcessor {
    before: CpuSet,
}

impl OneProcessor {
    fn hold() -> Result<Self> {
        let context = "cannot keep to one processor";
        let before = sched_getaffinity(None).context(context)?;
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|&number| before.is_set(number)).context(context)?);
        sched_setaffinity(None, &one).context(context)?;
        Ok(Self { before })
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        // Where they cannot be had back the rest is slower, for both file systems.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// One figure, of the one and of the other.
pub struct Figure {
    name: &'static str,
    unit: &'static str,
    flexfs: f64,
    null: f64,
}

impl Figure {
    fn ratio(&self) -> f64 {
        self.flexfs / self.null
    }
}

/// Measures; `progress` is told what is done of how much.
pub fn run(profile: &Profile, policy: Policy, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<Figure>> {
    let interrupt = Interrupt::watch()?;
    let dir = tempfile::Builder::new().prefix("flexfs-bench-").tempdir().context("cannot make a directory to mount")?;
    let root = dir.path().canonicalize().with_context(|| dir.path().display().to_string())?;
    let plan = Plan::for_chip(profile.capacity_bytes());
    let total = (2 * ROUNDS * PHASES.len()) as u64;
    let mut done = 0;
    let mut step = || {
        done += 1;
        progress(done, total);
        interrupt.check()
    };
    let mut best = [[0f64; 2]; PHASES.len()];
    for round in 0..ROUNDS {
        // Whoever comes second finds a warmer machine, so they take turns in that too.
        for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            for alone in [false, true] {
                let _held = alone.then(OneProcessor::hold).transpose()?;
                let target = if which == 0 { Target::flexfs(&root, profile, policy)? } else { Target::null(&root)? };
                for (phase, best) in PHASES.iter().zip(&mut best).filter(|(phase, _)| phase.alone == alone) {
                    let rate = (phase.run)(&target, &plan).with_context(|| phase.name)?;
                    best[which] = best[which].max(rate);
                    step()?;
                }
                target.end()?;
            }
        }
    }
    let figures = PHASES.iter().zip(best);
    Ok(figures.map(|(phase, [flexfs, null])| Figure { name: phase.name, unit: phase.unit, flexfs, null }).collect())
}

/// The figures for programs.
pub fn to_json(figures: &[Figure]) -> Value {
    let each = figures.iter().map(|figure| {
        json!({
            "name": figure.name,
            "unit": figure.unit,
            "flexfs": figure.flexfs,
            "null": figure.null,
            "ratio": figure.ratio(),
        })
    });
    json!({ "figures": each.collect::<Vec<_>>() })
}

/// The figures for people.
pub fn to_table(figures: &[Figure]) -> String {
    let mut lines = vec![format!("{:<12}{:>6}{:>12}{:>12}{:>8}", "", "", "flexfs", "null", "ratio")];
    lines.extend(figures.iter().map(|figure| {
        let Figure { name, unit, flexfs, null } = figure;
        format!("{name:<12}{unit:>6}{flexfs:>12.0}{null:>12.0}{:>8.2}", figure.ratio())
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_flexfs_over_null_in_table_and_json() {
        let figures = [Figure { name: "create", unit: "/s", flexfs: 100.0, null: 400.0 }];
        assert_eq!(to_json(&figures)["figures"][0]["ratio"], 0.25);
        let table = to_table(&figures);
        assert!(
            table.lines().nth(1).is_some_and(|line| line.starts_with("create") && line.ends_with("0.25")),
            "{table}"
        );
    }
}
