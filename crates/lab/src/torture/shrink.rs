//! Makes a case that fails smaller: fewer operations, as long as something still goes wrong.
//!
//! Invariant: what is returned was run and fails as it says.

use super::case::{Case, Findings, Script};
use super::cut::Cuts;
use super::judge::Violation;
use super::setup::Base;

/// Runs of a case after which it is small enough.
const RUNS_MAX: usize = 60;

/// A smaller case that fails, and its first violation. `violation` is the one of `case`.
pub fn shrink(case: &Case, violation: &Violation, base: &Base) -> (Case, Violation) {
    // What comes after the step that fails has no part in it.
    let (mut smallest, mut found) = (without(case, violation.step + 1, case.len()), violation.clone());
    let (mut runs, mut part) = (0, (smallest.len() / 2).max(1));
    loop {
        let mut at = 0;
        while at < smallest.len() && runs < RUNS_MAX {
            let tried = without(&smallest, at, part);
            runs += 1;
            match first(tried.run(base, Cuts::First)) {
                Some(violation) => (smallest, found) = (tried, violation),
                None => at += part,
            }
        }
        if part == 1 {
            // Of its violations the one that takes the fewest cuts.
            let found = first(smallest.run(base, Cuts::Planned)).unwrap_or(found);
            return (smallest, found);
        }
        part = part.div_ceil(2);
    }
}

/// The violation with the fewest cuts.
pub(super) fn first(findings: Findings) -> Option<Violation> {
    findings.violations.into_iter().min_by_key(|violation| violation.cuts.len())
}

/// The case without `count` operations from `at` on.
fn without(case: &Case, at: usize, count: usize) -> Case {
    let mut smaller = case.clone();
    let range = at.min(case.len())..(at + count).min(case.len());
    match &mut smaller.script {
        Script::Ops { ops, quiet } => {
            *quiet -= range.clone().filter(|index| index < quiet).count();
            ops.drain(range);
        }
        Script::Mix { keep, .. } => drop(keep.drain(range)),
        Script::Format { used: Some(ops) } => drop(ops.drain(range)),
        Script::Format { used: None } => {}
    }
    smaller
}
