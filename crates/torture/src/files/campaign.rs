//! Many cases, run beside each other, and what came of them.
//!
//! Invariant: the report depends on the cases alone, not on how many threads ran them or in which order.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::base::Base;
use super::case::{Case, Script};
use super::cut::Cuts;
use super::findings::{Findings, Violation};
use super::panic::caught;
use super::shrink::shrink;
use crate::crash::VolumeOver;
use crate::ops::Op;
use crate::parallel::parallel;

/// Violations, mostly of different kinds, that are made smaller; others are told as they are.
pub(super) const SHRUNK_MAX: usize = 10;

/// What to run.
pub struct Campaign {
    pub cases: Vec<Case>,
    pub threads: usize,
    /// Whether the first case that shows a violation is the last.
    pub fail_fast: bool,
}

/// What was done, and found, since work told so last.
pub struct Headway<'a> {
    /// The chip it was done on, where one chip comes after the other.
    pub chip: Option<&'static str>,
    /// How much of how much work it was.
    pub done: u64,
    pub total: u64,
    pub cuts: u64,
    /// Each violation, with the command that shows it.
    pub violations: &'a [String],
}

/// Is told of each case, or history, that is done.
pub type Progress<'a> = &'a (dyn Fn(Headway<'_>) + Sync);

/// What came of it.
pub struct Report {
    pub findings: Findings,
    /// Violations, however often they were seen.
    pub violations: usize,
    /// One of each kind: how many there are of it, a case that shows one, and that one; the first are made as small as can be.
    pub told: Vec<(usize, Case, Violation)>,
}

/// What names a base: the setup, what it is over, the ground.
type BaseName = (&'static str, VolumeOver, &'static str);

fn base_of(case: &Case) -> BaseName {
    (case.setup.name, case.setup.over, case.ground.name())
}

/// How `flexfs torture` is told what volumes are over.
pub(super) fn in_option(over: VolumeOver) -> String {
    match over {
        VolumeOver::Chip => String::new(),
        VolumeOver::Codesign => format!(" --over {}", VolumeOver::CODESIGN),
    }
}

impl Campaign {
    /// Runs all cases.
    pub fn run(&self, progress: Progress<'_>) -> Report {
        let bases = self.bases();
        let base = |case: &Case| bases.get(&base_of(case));
        let (total, last) = (self.cases.iter().map(Case::weight).sum(), AtomicUsize::new(self.cases.len()));
        let numbered: Vec<(usize, &Case)> = self.cases.iter().enumerate().collect();
        let mut outcomes = parallel(self.threads, &numbered, |&(number, case)| {
            if number > last.load(Ordering::Relaxed) {
                return Findings::default();
            }
            let findings = match base(case) {
                Some(Ok(base)) => case.run(base, Cuts::Planned),
                Some(Err(error)) => Findings::unprepared(error),
                None => Findings::unprepared("it is missing"),
            };
            let found = &findings.violations;
            if !found.is_empty() && self.fail_fast {
                last.fetch_min(number, Ordering::Relaxed);
            }
            let told: Vec<String> =
                found.iter().map(|violation| format!("{violation}\n  {}", case.command(violation))).collect();
            let (chip, done, cuts) = (Some(case.setup.name), case.weight(), findings.judged() as u64);
            progress(Headway { chip, done, total, cuts, violations: &told });
            findings
        });
        // Which of those behind the last one were run is a matter of chance.
        outcomes.truncate(last.into_inner().saturating_add(1));
        let mut report = Report { findings: Findings::default(), violations: 0, told: Vec::new() };
        let mut kinds: BTreeMap<(usize, String), (usize, &Case, Violation)> = BTreeMap::new();
        for (case, findings) in self.cases.iter().zip(outcomes) {
            report.findings.add(&findings);
            report.violations += findings.violations.len();
            for violation in findings.violations {
                kinds.entry(violation.kind()).or_insert((0, case, violation)).0 += 1;
            }
        }
        let kinds: Vec<_> = kinds.into_values().take(if self.fail_fast { 1 } else { usize::MAX }).collect();
        let (first, others) = kinds.split_at(kinds.len().min(SHRUNK_MAX));
        report.told = parallel(self.threads, first, |(count, case, violation)| {
            let (case, violation) = match base(case) {
                Some(Ok(base)) => shrink(case, violation, base),
                _ => ((*case).clone(), violation.clone()),
            };
            (*count, case, violation)
        });
        report.told.extend(others.iter().map(|(count, case, violation)| (*count, (*case).clone(), violation.clone())));
        report
    }

    /// The bases that the cases begin with, or why one cannot be made.
    fn bases(&self) -> BTreeMap<BaseName, Result<Base, String>> {
        let kinds: BTreeMap<_, _> = self.cases.iter().map(|case| (base_of(case), (case.setup, case.ground))).collect();
        let kinds: Vec<_> = kinds.into_iter().collect();
        let made = parallel(self.threads, &kinds, |&(names, (setup, ground))| {
            (names, caught(|| Base::prepare(setup, ground)))
        });
        made.into_iter().collect()
    }
}

impl Case {
    /// The command that runs this case again with these cuts alone.
    pub fn command(&self, violation: &Violation) -> String {
        let (name, ground, over) = (self.setup.name, self.ground.name(), in_option(self.setup.over));
        let mut command = format!("flexfs torture{over} --chip {name} --ground {ground}");
        let told = match &self.script {
            Script::Ops { ops, quiet } => {
                let quiet = if *quiet > 0 { format!(" --quiet {quiet}") } else { String::new() };
                format!(" --ops '{}'{quiet}", in_words(ops))
            }
            Script::Format { used: None } => " --format new".to_owned(),
            Script::Format { used: Some(ops) } if ops.is_empty() => " --format used".to_owned(),
            Script::Format { used: Some(ops) } => format!(" --format used --ops '{}'", in_words(ops)),
            Script::Mix { seed, keep, failing } => {
                let failing = if *failing { " --failing" } else { "" };
                format!(" --mix {seed} --keep {}{failing}", in_ranges(keep))
            }
        };
        command.push_str(&told);
        for cut in &violation.cuts {
            // Writing to a string does not fail.
            let _ = write!(command, " --cut {cut}");
        }
        command
    }
}

/// Operations as they are typed.
fn in_words(ops: &[Op]) -> String {
    ops.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Ascending numbers in short, as they are typed: `1-3,7`.
pub(super) fn in_ranges(numbers: &[usize]) -> String {
    if numbers.is_empty() {
        return "''".to_owned();
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let runs =
        runs.into_iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_in_short() {
        assert_eq!(in_ranges(&[0, 1, 2, 5, 8, 9]), "0-2,5,8-9");
        assert_eq!(in_ranges(&[]), "''");
    }
}
