//! Which cases a run takes: all of them, or a part.
//!
//! Of a part each chip has every operation by itself, random histories of each kind, its internal processes and its
//! formatting; pairs of operations, histories, and what a chip holds when it is formatted are drawn by the seed, others for
//! each chip. Where a look at a volume takes long, long steps and recoveries are cut less. Invariant: the cases of a chip
//! follow from the chip and the seed; which others are run beside it does not matter.

use super::case::Case;
use super::judge::Depth;
use super::processes::processes;
use super::sequences::{formats, mixes, pairs_of_turn, sequences, singles};
use super::setup::{Ground, Setup};

/// Operations of a random history.
const MIX_STEPS: usize = 60;
/// Random histories of each chip where everything is run, on a full volume and on a busy one.
const ALL_MIXES: [(Ground, u64); 2] = [(Ground::Full, 4), (Ground::Busy, 6)];
/// How processes are cut there: in every way. A part cuts fewer of them, and more of their recoveries.
const ALL_PROCESSES_DEPTH: Depth = Depth { again: [1, 0], ..Depth::WHOLE };

/// Of a part: turns of pairs of operations for each chip, and what the chips are apart by.
const PART_TURNS: u64 = 4;
const PART_TURNS_APART: u64 = 11;
/// Random histories of each chip, on a full volume and on a busy one.
const PART_MIXES: u64 = 3;
/// By so many the histories of a chip are further on with the next seed. A chip more leaves the histories of the others as they are.
const SEEDS_APART: u64 = 18;
/// Full volumes, mounted more or less often, on each of which a chip is formatted.
const PART_FORMATS: usize = 2;
/// What the torn chips of one step of a process or a history that are judged cost, at most, where a look costs more than on
/// the first chip.
const PART_STEP_COST: u64 = 64;
/// Cuts in a recovery of theirs, and in the recovery from that.
const PART_AGAIN: [usize; 2] = [2, 1];

/// Everything, or a part; random histories have seeds that follow from `seed`. One chip comes after the other.
pub fn cases(setups: &[&'static Setup], everything: bool, seed: u64) -> Result<Vec<Case>, String> {
    let chips = setups.iter().map(|setup| if everything { all(setup, seed) } else { part(setup, seed) });
    Ok(chips.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Its internal processes.
fn processes_of(setup: &'static Setup) -> Result<Vec<Case>, String> {
    let all = processes()?.into_iter().map(|(_, case)| case);
    Ok(all.filter(|case| case.setup.name == setup.name).map(|case| Case { setup, ..case }).collect())
}

fn all(setup: &'static Setup, seed: u64) -> Result<Vec<Case>, String> {
    let processes = processes_of(setup)?.into_iter();
    let mut cases: Vec<Case> = processes.map(|case| Case { depth: ALL_PROCESSES_DEPTH, ..case }).collect();
    for (ground, count) in ALL_MIXES {
        cases.extend(mixes(setup, ground, seed..seed.saturating_add(count), MIX_STEPS));
    }
    cases.extend(formats(setup)?);
    cases.extend(sequences(setup)?);
    Ok(cases)
}

fn part(setup: &'static Setup, seed: u64) -> Result<Vec<Case>, String> {
    let chip = Setup::all().iter().position(|other| other.name == setup.name).unwrap_or_default() as u64;
    let mut cases: Vec<Case> = processes_of(setup)?.into_iter().map(thinned).collect();
    for ground in [Ground::Full, Ground::Busy] {
        cases.extend(some_histories(setup, ground, seed.wrapping_mul(SEEDS_APART).wrapping_add(chip)));
    }
    cases.extend(some_formats(setup, seed.wrapping_add(chip))?);
    cases.extend(singles(setup)?);
    for next in 0..PART_TURNS {
        let turn = seed.wrapping_mul(PART_TURNS).wrapping_add(chip * PART_TURNS_APART + next);
        cases.extend(pairs_of_turn(setup, turn)?);
    }
    Ok(cases)
}

/// The case with fewer cuts in long steps, and in recoveries, where looking at a volume takes long.
fn thinned(case: Case) -> Case {
    let cost = case.setup.cost(case.ground);
    let step_max = if cost > 1 { (PART_STEP_COST / cost) as usize } else { case.depth.step_max };
    let depth = Depth { again: PART_AGAIN, recovery_each: cost, step_max, ..case.depth };
    Case { depth, ..case }
}

/// Histories that another number has not. So many follow each other that programs and erases fail in one of them.
fn some_histories(setup: &'static Setup, ground: Ground, number: u64) -> impl Iterator<Item = Case> {
    let first = number.wrapping_mul(PART_MIXES);
    mixes(setup, ground, (0..PART_MIXES).map(|next| first.wrapping_add(next)), MIX_STEPS).into_iter().map(thinned)
}

/// Formatting of a new chip, of one with a small volume, and of some with a full one.
fn some_formats(setup: &'static Setup, number: u64) -> Result<Vec<Case>, String> {
    let (on_full, mut cases): (Vec<_>, Vec<_>) =
        formats(setup)?.into_iter().partition(|case| case.ground == Ground::Full);
    let first = number.wrapping_mul(PART_FORMATS as u64) % on_full.len().max(1) as u64;
    cases.extend(on_full.into_iter().cycle().skip(first as usize).take(PART_FORMATS));
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::base::Base;
    use super::super::case::Script;
    use super::super::mix::Mix;
    use super::super::sequences::{PAIRED, operations};
    use super::*;
    use crate::ops::{Op, Step};

    const SEED: u64 = 1;

    fn told(cases: &[Case]) -> Vec<String> {
        cases.iter().map(|case| format!("{case:?}")).collect()
    }

    /// The cases of a part, with no other chip's beside them.
    fn part_of(setup: &'static Setup) -> Vec<Case> {
        cases(&[setup], false, SEED).unwrap()
    }

    /// The operations of a script whose steps are all cut.
    fn script(case: &Case) -> Option<Vec<String>> {
        match &case.script {
            Script::Ops { ops, quiet: 0 } => Some(ops.iter().map(Op::to_string).collect()),
            _ => None,
        }
    }

    #[test]
    fn a_part_has_every_operation_alone_first_and_second() {
        for setup in Setup::all().iter().filter(|setup| setup.sequences_on.is_some()) {
            let scripts: Vec<Vec<String>> = part_of(setup).iter().filter_map(script).collect();
            for operation in operations(setup) {
                let words: Vec<String> = Op::list(operation).unwrap().iter().map(Op::to_string).collect();
                for end in ["sync", "unmount"] {
                    assert!(scripts.contains(&[&words[..], &[end.to_owned()]].concat()), "{}: {operation}", setup.name);
                }
                let pairs = scripts.iter().filter(|script| script.len() > words.len() + 1);
                let (first, second): (Vec<_>, Vec<_>) = pairs.partition(|script| script.starts_with(&words));
                let last = |script: &&&Vec<String>| script[..script.len() - 1].ends_with(&words);
                assert!(!first.is_empty() && second.iter().any(|script| last(&script)), "{}: {operation}", setup.name);
            }
        }
    }

    /// The kinds of calls in a history of that many steps, in words.
    fn calls(base: &Base, case: &Case) -> BTreeSet<String> {
        let Script::Mix { seed, keep, failing } = &case.script else { return BTreeSet::new() };
        let mut twin = base.mounted().unwrap();
        let mut mix = Mix::new(*seed, keep, *failing, (case.ground, base.shape));
        let mut kinds = BTreeSet::new();
        for index in 0..keep.len() {
            match mix.next(index, &mut twin).unwrap() {
                Some(Step::Call(call)) => {
                    kinds.insert(format!("{call:?}").split([' ', '{']).next().unwrap().to_owned());
                    twin.call(&call).unwrap();
                }
                Some(Step::Background(steps)) => drop(twin.background(steps).unwrap()),
                _ => {}
            }
        }
        kinds
    }

    /// But for one of the rare ones.
    #[test]
    fn histories_of_a_part_make_every_call_where_there_are_no_pairs() {
        let wanted: BTreeSet<&str> = [
            "Create",
            "Symlink",
            "Link",
            "Unlink",
            "Rmdir",
            "Rename",
            "Write",
            "Setattr",
            "Punch",
            "Allocate",
            "Copy",
            "Setxattr",
            "Removexattr",
            "Open",
            "Sync",
        ]
        .into();
        let mut everywhere = BTreeSet::new();
        for setup in Setup::all().iter().filter(|setup| setup.sequences_on.is_none()) {
            let (full, busy): (Vec<_>, Vec<_>) = part_of(setup)
                .into_iter()
                .filter(|case| matches!(case.script, Script::Mix { .. }))
                .partition(|case| case.ground == Ground::Full);
            let mut made = BTreeSet::new();
            for cases in [full, busy] {
                let base = Base::prepare(setup, cases[0].ground).unwrap();
                made.extend(cases.iter().flat_map(|case| calls(&base, case)));
            }
            let lacking: Vec<_> = wanted.iter().filter(|&&call| !made.contains(call)).collect();
            assert!(lacking.len() <= 1, "{}: {lacking:?}", setup.name);
            everywhere.append(&mut made);
        }
        assert!(wanted.iter().all(|&call| everywhere.contains(call)), "{everywhere:?}");
    }

    #[test]
    fn a_part_has_each_kind_of_case_on_every_chip() {
        let counted = |cases: &[Case], is: fn(&Case) -> bool| cases.iter().filter(|case| is(case)).count();
        for setup in Setup::all() {
            let cases = part_of(setup);
            for ground in [Ground::Full, Ground::Busy] {
                for (wanted, count) in [(false, 2), (true, 1)] {
                    let of_kind = |case: &&Case| {
                        case.ground == ground && matches!(case.script, Script::Mix { failing, .. } if failing == wanted)
                    };
                    assert_eq!(cases.iter().filter(of_kind).count(), count, "{}", setup.name);
                }
            }
            let formats = [
                counted(&cases, |case| matches!(case.script, Script::Format { used: None })),
                counted(&cases, |case| {
                    matches!(case.script, Script::Format { used: Some(_) }) && case.ground == Ground::Tree
                }),
                counted(&cases, |case| {
                    matches!(case.script, Script::Format { used: Some(_) }) && case.ground == Ground::Full
                }),
            ];
            assert_eq!(formats, [1, 1, PART_FORMATS], "{}", setup.name);
            let whole = |case: &Case| (case.depth.recovery_each, case.depth.step_max) == (1, usize::MAX);
            assert!(cases.iter().all(|case| case.setup.cost(case.ground) > 1 || whole(case)), "{}", setup.name);
            assert!(counted(&cases, |case| case.depth.every_tear) > 3, "{} is not cut in every way", setup.name);
        }
    }

    #[test]
    fn a_part_has_every_chip_ground_process_and_format() {
        let setups: Vec<&Setup> = Setup::all().iter().collect();
        let part = cases(&setups, false, SEED).unwrap();
        for setup in Setup::all() {
            assert!(part.iter().any(|case| case.setup.name == setup.name), "{}", setup.name);
        }
        for ground in Ground::ALL {
            assert!(part.iter().any(|case| case.ground == ground), "{}", ground.name());
        }
        let same = |one: &Case, other: &Case| {
            let place = |case: &Case| (case.setup.name, case.ground.name(), format!("{:?}", case.script));
            place(one) == place(other)
        };
        for (name, process) in processes().unwrap() {
            assert!(part.iter().any(|case| same(case, &process)), "{name} on {}", process.setup.name);
        }
        let used = |case: &Case| format!("{} {:?}", case.ground.name(), case.script);
        let formats: BTreeSet<String> = formats(setups[0]).unwrap().iter().map(used).collect();
        let taken: BTreeSet<String> = part.iter().map(used).collect();
        assert!(formats.is_subset(&taken));
    }

    #[test]
    fn pairs_are_others_on_each_chip_and_with_each_seed() {
        let pairs = |setup, seed| -> BTreeSet<Vec<String>> {
            let all = cases(&[setup], false, seed).unwrap();
            all.iter().filter(|case| case.depth.every_tear).filter_map(script).filter(|ops| ops.len() > 2).collect()
        };
        let [one, other] = ["slc", "lz4"].map(|name| Setup::named(name).unwrap());
        for (mine, theirs) in [(pairs(one, 1), pairs(one, 2)), (pairs(one, 1), pairs(other, 1))] {
            assert!(mine.len() > 70 && mine.is_disjoint(&theirs));
        }
    }

    #[test]
    fn turns_have_every_pair_once() {
        let setup = Setup::named("callers-allocating").unwrap();
        let turns = (PAIRED.len() * operations(setup).count()) as u64;
        let pairs = (0..turns).flat_map(|turn| told(&pairs_of_turn(setup, turn).unwrap()));
        let turned: Vec<String> = told(&singles(setup).unwrap()).into_iter().chain(pairs).collect();
        let all = told(&sequences(setup).unwrap());
        assert_eq!(turned.len(), all.len());
        assert_eq!(BTreeSet::from_iter(turned), BTreeSet::from_iter(all));
    }

    #[test]
    fn a_part_follows_from_the_seed_and_the_chip() {
        let setups: Vec<&Setup> = Setup::all().iter().collect();
        let whole = |seed| told(&cases(&setups, false, seed).unwrap());
        assert_eq!(whole(1), whole(1));
        assert_eq!(whole(1), Setup::all().iter().flat_map(|setup| told(&part_of(setup))).collect::<Vec<_>>());
        let histories =
            |seed| -> BTreeSet<String> { whole(seed).into_iter().filter(|case| case.contains("Mix")).collect() };
        assert!(histories(1).is_disjoint(&histories(2)));
        // The largest seed is one like any other.
        assert_eq!(whole(u64::MAX).len(), whole(1).len());
    }

    #[test]
    fn everything_is_all_that_there_is() {
        let setups: Vec<&Setup> = Setup::all().iter().collect();
        let everything = cases(&setups, true, SEED).unwrap();
        let sequences: usize = setups.iter().map(|setup| sequences(setup).unwrap().len()).sum();
        let (histories, formatted) = (setups.len() * (4 + 6), setups.len() * 9);
        assert_eq!(everything.len(), processes().unwrap().len() + histories + formatted + sequences);
        assert!(everything.iter().all(|case| (case.depth.recovery_each, case.depth.step_max) == (1, usize::MAX)));
    }
}
