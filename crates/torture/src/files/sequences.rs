//! The cases there are: all sequences of one and two operations on a small tree, random histories on a full volume and
//! on a busy one, and each internal process by itself. Invariant: the same arguments give the same cases in the same
//! order.

use std::ops::Range;

use super::case::{Case, Script};
use super::judge::Depth;
use super::processes::processes;
use super::setup::{Ground, Setup};
use crate::ops::Op;

/// The operations that sequences are made of. A sync, of whatever kind, is the persistence point between them.
const OPERATIONS: [&str; 39] = [
    "create new",
    "create B/new",
    "mkdir C",
    "mkdir A/C",
    "write foo 0 4096",
    "write foo 50 100",
    "write foo 9000 3000",
    "write A/bar 0 4096",
    "append foo 5000",
    "append A/bar 10",
    "truncate foo 3000",
    "truncate foo 8192",
    "truncate foo 20000",
    "truncate A/bar 0",
    "punch foo 0 8192",
    "punch foo 100 200",
    "allocate foo 8192 9000",
    "zero foo 2000 6000",
    "copy foo A/bar 10000",
    "link foo hard",
    "link foo B/hard",
    "symlink B/sym",
    "rename foo new",
    "rename foo B/foo",
    "rename foo A/bar",
    "rename A/bar foo",
    "rename A C",
    "rename A B",
    "rename B A/B",
    "exchange foo A/bar",
    "exchange A B",
    "whiteout foo A/bar",
    "whiteout A C",
    "unlink foo",
    "unlink A/bar",
    "rmdir B",
    "setxattr foo 9000",
    "removexattr foo",
    "chmod foo 384",
];

/// More of them, where data is written natively: these are long enough to be, and programs of one endanger others of it.
const LONG: [&str; 2] = ["write foo 0 60000", "append A/bar 40000"];

/// More of them, where callers keep the times of files: a time for a chunk that waits for it, for one that does not, and
/// for none.
const DATED: [&str; 4] = [
    "write foo 0 4096; date foo 1700000000123456789",
    "append A/bar 5000; date A/bar 1700000000123456788",
    "write foo 0 8192; sync; date foo 1700000000123456787",
    "date A/bar 5",
];

/// How sequences and formatting are cut: in every way, and recoveries at some places.
const SEQUENCE_DEPTH: Depth = Depth { every_tear: true, again: [2, 1] };
/// How random histories are.
const MIX_DEPTH: Depth = Depth { every_tear: false, again: [4, 1] };

/// Of a slice: one of so many sequences, and random histories of each setup, on a full volume and on a busy one.
const SLICE_SEQUENCES: usize = 16;
const SLICE_MIXES: u64 = 3;
const SLICE_BUSY: u64 = 2;
/// Random histories of each setup where everything is run: a slice of another seed has others.
const ALL_MIXES: u64 = 4;
const ALL_BUSY: u64 = 6;
/// How processes are cut there: in every way. A slice cuts fewer of them, and more of their recoveries.
const ALL_PROCESSES_DEPTH: Depth = Depth { every_tear: true, again: [1, 0] };
/// Times a volume is mounted at most before its chip is formatted.
const FORMAT_MOUNTS: usize = 6;
/// Operations of a random history.
const MIX_STEPS: usize = 60;

/// Everything, or a part that takes minutes; random histories have seeds from `seed` on.
pub fn cases(setups: &[&'static Setup], everything: bool, seed: u64) -> Result<Vec<Case>, String> {
    let (each, mixed, busy) =
        if everything { (1, ALL_MIXES, ALL_BUSY) } else { (SLICE_SEQUENCES, SLICE_MIXES, SLICE_BUSY) };
    let named = |case: &Case| setups.iter().any(|setup| setup.name == case.setup.name);
    let mut cases: Vec<Case> = processes()?.into_iter().map(|(_, case)| case).filter(named).collect();
    if everything {
        cases.iter_mut().for_each(|process| process.depth = ALL_PROCESSES_DEPTH);
    }
    for (ground, count) in [(Ground::Full, mixed), (Ground::Busy, busy)] {
        cases.extend(setups.iter().flat_map(|&setup| mixes(setup, ground, seed..seed + count, MIX_STEPS)));
    }
    for &setup in setups {
        cases.extend(formats(setup)?);
    }
    let mut all = Vec::new();
    for &setup in setups {
        all.extend(sequences(setup)?);
    }
    // Which of them are in a slice depends on the seed, so that slices of other seeds see others.
    cases.extend(all.into_iter().skip(seed as usize % each).step_by(each));
    Ok(cases)
}

fn case(setup: &'static Setup, ground: Ground, text: &str, quiet: usize) -> Result<Case, String> {
    let script = Script::Ops { ops: Op::list(text)?, quiet };
    Ok(Case { setup, ground, script, depth: SEQUENCE_DEPTH })
}

/// What sequences on a chip are made of.
fn operations(setup: &Setup) -> impl Iterator<Item = &'static str> + Clone {
    let long = if setup.writes_native() { LONG.as_slice() } else { &[] };
    let dated = if setup.keeps_callers_times() { DATED.as_slice() } else { &[] };
    OPERATIONS.iter().chain(long).chain(dated).copied()
}

/// All sequences of one and two operations, where there are any, with a persistence point (a sync, or an unmount) after each, or after the
/// last alone.
pub fn sequences(setup: &'static Setup) -> Result<Vec<Case>, String> {
    let (Some(ground), operations) = (setup.sequences_on, operations(setup)) else { return Ok(Vec::new()) };
    let mut cases = Vec::new();
    for one in operations.clone() {
        for text in [format!("{one}; sync"), format!("{one}; unmount")] {
            cases.push(case(setup, ground, &text, 0)?);
        }
    }
    for one in operations.clone() {
        for two in operations.clone() {
            let ends = ["; {two}; sync", "; sync; {two}; sync", "; sync; {two}; unmount"];
            for text in ends.map(|end| one.to_owned() + &end.replace("{two}", two)) {
                cases.push(case(setup, ground, &text, 0)?);
            }
        }
    }
    Ok(cases)
}

/// Random histories of so many steps each on a volume; in every third one programs and erases fail.
pub fn mixes(setup: &'static Setup, ground: Ground, seeds: Range<u64>, steps: usize) -> Vec<Case> {
    let mix = |seed: u64| Script::Mix { seed, keep: (0..steps).collect(), failing: seed % 3 == 2 };
    seeds.map(|seed| Case { setup, ground, script: mix(seed), depth: MIX_DEPTH }).collect()
}

/// Formatting of a new chip, of a used one, and of one that is nearly full and was mounted several times: where in its
/// block the newest anchor stands matters, and what the ones before it would lead to.
pub fn formats(setup: &'static Setup) -> Result<Vec<Case>, String> {
    let case = |ground, used| Case { setup, ground, script: Script::Format { used }, depth: SEQUENCE_DEPTH };
    let mut cases = vec![case(Ground::Tree, None), case(Ground::Tree, Some(Vec::new()))];
    for mounts in 0..=FORMAT_MOUNTS {
        let ops = Op::list(&"write fill1 0 90000; sync; unmount; ".repeat(mounts))?;
        cases.push(case(Ground::Full, Some(ops)));
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Base, Cuts};

    #[test]
    fn every_operation_of_a_sequence_can_be_done_first() {
        let setup = Setup::named("slc").unwrap();
        let base = Base::prepare(setup, Ground::Tree).unwrap();
        for text in OPERATIONS {
            let mut case = case(setup, Ground::Tree, text, 0).unwrap();
            case.depth = Depth { every_tear: false, again: [0, 0] };
            let findings = case.run(&base, Cuts::Planned);
            assert_eq!((findings.violations, findings.refused), (vec![], 0), "{text}");
        }
    }
}
