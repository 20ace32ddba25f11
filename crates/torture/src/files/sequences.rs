//! The cases there are of a chip, but for internal processes: sequences of one and two operations, random histories, and
//! formatting. Invariant: the same arguments give the same cases in the same order.

use super::case::{Case, Script};
use super::judge::Depth;
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
const SEQUENCE_DEPTH: Depth = Depth { every_tear: true, again: [2, 1], ..Depth::WHOLE };
/// How random histories are.
const MIX_DEPTH: Depth = Depth { every_tear: false, again: [4, 1], ..Depth::WHOLE };

/// Times a volume is mounted at most before its chip is formatted.
const FORMAT_MOUNTS: usize = 6;
fn case(setup: &'static Setup, ground: Ground, text: &str, quiet: usize) -> Result<Case, String> {
    let script = Script::Ops { ops: Op::list(text)?, quiet };
    Ok(Case { setup, ground, script, depth: SEQUENCE_DEPTH })
}

/// What sequences on a chip are made of.
pub(super) fn operations(setup: &Setup) -> impl Iterator<Item = &'static str> + Clone {
    let long = if setup.writes_native() { LONG.as_slice() } else { &[] };
    let dated = if setup.keeps_callers_times() { DATED.as_slice() } else { &[] };
    OPERATIONS.iter().chain(long).chain(dated).copied()
}

/// What comes of an operation alone, and of a pair: a persistence point (a sync, or an unmount) comes after each operation,
/// or after the last alone.
const ALONE: [&str; 2] = ["{one}; sync", "{one}; unmount"];
pub(super) const PAIRED: [&str; 3] = ["{one}; {two}; sync", "{one}; sync; {two}; sync", "{one}; sync; {two}; unmount"];

/// All sequences of one and two operations, where there are any.
pub fn sequences(setup: &'static Setup) -> Result<Vec<Case>, String> {
    let (Some(ground), mut cases) = (setup.sequences_on, singles(setup)?) else { return Ok(Vec::new()) };
    for one in operations(setup) {
        for two in operations(setup) {
            for end in PAIRED {
                cases.push(case(setup, ground, &end.replace("{one}", one).replace("{two}", two), 0)?);
            }
        }
    }
    Ok(cases)
}

/// The sequences of one operation.
pub(super) fn singles(setup: &'static Setup) -> Result<Vec<Case>, String> {
    let Some(ground) = setup.sequences_on else { return Ok(Vec::new()) };
    let all = operations(setup).flat_map(|one| ALONE.map(|end| end.replace("{one}", one)));
    all.map(|text| case(setup, ground, &text, 0)).collect()
}

/// A part of the sequences of two: each operation before the one that stands so many places behind it, so that each comes
/// first and second. As many turns as there are operations, three times, have every pair with each of its ends, once.
pub(super) fn pairs_of_turn(setup: &'static Setup, turn: u64) -> Result<Vec<Case>, String> {
    let Some(ground) = setup.sequences_on else { return Ok(Vec::new()) };
    let operations: Vec<&str> = operations(setup).collect();
    let turn = (turn % (PAIRED.len() * operations.len()) as u64) as usize;
    let texts = operations.iter().enumerate().map(|(at, one)| {
        let two = operations[(at + turn) % operations.len()];
        PAIRED[(at + turn / operations.len()) % PAIRED.len()].replace("{one}", one).replace("{two}", two)
    });
    texts.map(|text| case(setup, ground, &text, 0)).collect()
}

/// Random histories of so many steps each on a volume; in every third one programs and erases fail.
pub fn mixes(setup: &'static Setup, ground: Ground, seeds: impl IntoIterator<Item = u64>, steps: usize) -> Vec<Case> {
    let mix = |seed: u64| Script::Mix { seed, keep: (0..steps).collect(), failing: seed % 3 == 2 };
    seeds.into_iter().map(|seed| Case { setup, ground, script: mix(seed), depth: MIX_DEPTH }).collect()
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
            case.depth = Depth { every_tear: false, again: [0, 0], ..Depth::WHOLE };
            let findings = case.run(&base, Cuts::Planned);
            assert_eq!((findings.violations, findings.refused), (vec![], 0), "{text}");
        }
    }
}
