//! Makes what fails smaller: fewer steps, as long as something still goes wrong.
//!
//! Invariant: what is returned was run and fails as it says.

use super::base::Base;
use super::case::{Case, Script};
use super::cut::Cuts;
use super::findings::{Findings, Violation};
use crate::ops::Op;

/// Runs after which it is small enough.
const RUNS_MAX: usize = 60;
/// Torn chips judged after which a case is: of a long one with a few violations there are very many.
const CUTS_MAX: usize = 50_000;

/// A smaller case that fails, and its first violation. `violation` is the one of `case`.
pub fn shrink(case: &Case, violation: &Violation, base: &Base) -> (Case, Violation) {
    // What comes after the step that fails has no part in it.
    let steps = (0..case.len().min(violation.step + 1)).collect();
    let mut judged = 0;
    let (kept, found) = fewer(steps, violation.clone(), |kept| {
        if judged > CUTS_MAX {
            return None;
        }
        let findings = only(case, kept).run(base, Cuts::First);
        judged += findings.judged();
        first(findings)
    });
    let smallest = only(case, &kept);
    // Of its violations the one that takes the fewest cuts.
    let found = first(smallest.run(base, Cuts::Planned)).unwrap_or(found);
    (smallest, found)
}

/// Leaves out of `steps` what it can. `fails` says what goes wrong with those it is given; with all of them it is
/// `found`.
pub(super) fn fewer<T>(
    mut steps: Vec<usize>,
    mut found: T,
    mut fails: impl FnMut(&[usize]) -> Option<T>,
) -> (Vec<usize>, T) {
    let (mut runs, mut part) = (0, (steps.len() / 2).max(1));
    loop {
        let mut at = 0;
        while at < steps.len() && runs < RUNS_MAX {
            let tried = [&steps[..at], &steps[(at + part).min(steps.len())..]].concat();
            runs += 1;
            match fails(&tried) {
                Some(failure) => (steps, found) = (tried, failure),
                None => at += part,
            }
        }
        if part == 1 {
            return (steps, found);
        }
        part = part.div_ceil(2);
    }
}

/// The violation with the fewest cuts.
pub(super) fn first(findings: Findings) -> Option<Violation> {
    findings.violations.into_iter().min_by_key(|violation| violation.cuts.len())
}

/// The case with these of its steps alone.
fn only(case: &Case, steps: &[usize]) -> Case {
    let ops_of = |ops: &[Op]| steps.iter().filter_map(|&step| ops.get(step).cloned()).collect();
    let script = match &case.script {
        Script::Ops { ops, quiet } => {
            let quiet = steps.iter().filter(|step| *step < quiet).count();
            Script::Ops { ops: ops_of(ops), quiet }
        }
        Script::Mix { seed, keep, failing } => {
            let keep = steps.iter().filter_map(|&step| keep.get(step).copied()).collect();
            Script::Mix { seed: *seed, keep, failing: *failing }
        }
        Script::Format { used } => Script::Format { used: used.as_deref().map(ops_of) },
    };
    Case { script, ..case.clone() }
}

#[cfg(test)]
mod tests {
    use super::fewer;

    #[test]
    fn what_a_failure_does_not_need_is_left_out() {
        let needs = |steps: &[usize]| [3, 17].iter().all(|step| steps.contains(step)).then_some(steps.len());
        assert_eq!(fewer((0..40).collect(), 40, needs), (vec![3, 17], 2));
        assert_eq!(fewer(vec![5], (), |_| None), (vec![5], ()));
        assert_eq!(fewer(Vec::new(), (), |_| None), (vec![], ()));
    }
}
