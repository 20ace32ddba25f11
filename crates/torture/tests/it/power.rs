//! The power goes off in every program and every erase of busy workloads on nearly full chips, with torn pages, lost
//! paired pages and garbage left by erases, and again in the recoveries: G1 and G2 hold at each.

use std::sync::Mutex;

use torture::files::{
    Base, Campaign, Case, Cut, Cuts, Depth, Findings, Ground, Script, Setup, formats, mixes, processes, sequences,
};

/// One of so many sequences is run here; `flexfs torture --exhaustive` runs them all.
const SEQUENCES_EACH: usize = 40;

fn run(cases: Vec<Case>) -> Findings {
    let report = Campaign { cases, threads: 2, fail_fast: false }.run(&|_| {});
    println!("{:?}", report.findings);
    for (count, case, violation) in &report.told {
        println!("{count} like: {violation}\n  {}", case.command(violation));
    }
    assert_eq!(report.violations, 0);
    report.findings
}

/// The case with so many cuts in each recovery, and in the recovery from that. `flexfs torture` makes more of them.
fn thinned(again: [usize; 2]) -> impl Fn(Case) -> Case {
    move |case| Case { depth: Depth { again, ..case.depth }, ..case }
}

#[test]
fn a_cut_at_every_flash_operation_of_busy_volumes_loses_nothing_synced() {
    // A look at a volume with lanes takes long: of these there is the history in which programs fail.
    let seeds = |setup: &Setup| if setup.has_lanes() { 2..3 } else { 0..3 };
    let mixes = Setup::all().iter().flat_map(|setup| mixes(setup, Ground::Full, seeds(setup), 50));
    let findings = run(mixes.map(thinned([2, 1])).collect());
    assert!(findings.migrated > 0 && findings.collected > 0 && findings.failures > 0, "{findings:?}");
    assert!(findings.double_cuts > 0 && findings.triple_cuts > 0, "no recovery wrote anything: {findings:?}");
}

#[test]
fn a_cut_at_every_flash_operation_of_calls_that_meet_work_under_way_loses_nothing_synced() {
    let failing = mixes(Setup::named("tlc-native").unwrap(), Ground::Busy, 2..3, 50);
    let seeds = |setup: &Setup| if setup.has_lanes() { 1..2 } else { 0..2 };
    let mixes = Setup::all().iter().flat_map(|setup| mixes(setup, Ground::Busy, seeds(setup), 50)).chain(failing);
    let findings = run(mixes.map(thinned([1, 0])).collect());
    assert!(findings.failures > 0, "{findings:?}");
    assert!(findings.met_checkpoints > 40 && findings.met_emptyings > 100, "{findings:?}");
}

/// Calls that meet work under way, at least, in a case that is made for it.
const MET_MIN: u64 = 10;

/// How often a process happened in its case.
fn happened(process: &str, findings: &Findings) -> u64 {
    match process {
        "migration" => findings.migrated,
        "collection" => findings.collected,
        "renewal" => findings.levelled.min(findings.checkpoints),
        "levelling" | "changes while blocks are emptied" => findings.levelled,
        "retirement" | "retirement of a word line" => findings.failures,
        "running out of space" => findings.no_space as u64,
        "checkpoint" => findings.checkpoints,
        "block table" => findings.tables.saturating_sub(1),
        "overlap with a checkpoint" => findings.met_checkpoints as u64 / MET_MIN,
        "overlap with emptying" => findings.met_emptyings as u64 / MET_MIN,
        _ => 1,
    }
}

#[test]
fn a_cut_at_every_flash_operation_of_each_internal_process_loses_nothing_synced() {
    let cases = Mutex::new(processes().unwrap().into_iter());
    let work = || {
        while let Some((process, case)) = { cases.lock().unwrap().next() } {
            let setup = case.setup.name;
            let findings = run(vec![thinned([0, 0])(case)]);
            assert!(findings.points > 3 && happened(process, &findings) > 0, "{process} on {setup}: {findings:?}");
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
}

#[test]
fn a_cut_anywhere_in_sequences_of_one_and_two_operations_leaves_a_state_between_them() {
    let all = Setup::all().iter().flat_map(|setup| sequences(setup).unwrap());
    let findings = run(all.step_by(SEQUENCES_EACH).collect());
    assert!(findings.cuts > 5_000, "{findings:?}");
}

#[test]
fn a_cut_while_a_chip_is_formatted_leaves_no_volume_or_a_whole_one() {
    let formats = Setup::all().iter().flat_map(|setup| formats(setup).unwrap());
    let findings = run(formats.map(thinned([1, 0])).collect());
    assert!(findings.points > 14 * 40 && findings.double_cuts > findings.points, "{findings:?}");
}

#[test]
fn cuts_in_calls_and_recoveries_of_a_full_chip_whose_programs_fail_leave_it_writable() {
    let setup = Setup::named("tlc-lz4").unwrap();
    let script = |seed| Script::Mix { seed, keep: vec![0], failing: true };
    let cases = (0..3).map(|seed| Case::alone(setup, Ground::Full, script(seed)));
    let findings = run(cases.map(thinned([8, 0])).collect());
    assert!(findings.double_cuts > 100, "{findings:?}");
}

/// `statfs` told a quarter of a megabyte to be free, and a create was refused: pages of the index stood in three small
/// blocks, and two checkpoints would have taken two more each, where the capacity left out four.
#[test]
fn space_that_statfs_promises_after_cuts_on_a_full_chip_with_failed_blocks_can_be_written() {
    let setup = Setup::named("tlc-native").unwrap();
    let base = Base::prepare(setup, Ground::Busy).unwrap();
    let some: Vec<usize> = (0..=2).chain(6..=14).chain(23..=34).collect();
    let all: Vec<usize> = (0..60).collect();
    let replays = [
        (some, vec!["400:weak", "4:weak"]),
        (all.clone(), vec!["2462:full"]),
        (all, vec!["2627:full", "15:old", "5:old"]),
    ];
    for (keep, cuts) in replays {
        let case = Case::alone(setup, Ground::Busy, Script::Mix { seed: 2, keep, failing: true });
        let wanted: Vec<Cut> = cuts.iter().map(|cut| cut.parse().unwrap()).collect();
        let findings = case.run(&base, Cuts::Only(&wanted));
        let told: Vec<String> = findings.violations.iter().map(ToString::to_string).collect();
        assert_eq!(told, [""; 0], "{cuts:?}");
        assert_eq!(findings.cuts, 1, "{cuts:?} is not among its cuts");
    }
}

/// A lane of the index stood in a block that nothing had been written to yet. In the recovery its first program failed there, so that
/// the block was tested; the next recovery went on in it as the anchor said, where the test had left native pages.
#[test]
fn a_listed_block_of_a_lane_is_not_tested_in_a_recovery() {
    let setup = Setup::named("lanes-tlc").unwrap();
    let base = Base::prepare(setup, Ground::Full).unwrap();
    let case = Case::alone(setup, Ground::Full, Script::Mix { seed: 2, keep: vec![0, 1, 2], failing: true });
    let wanted: Vec<Cut> = ["8:old", "18:unstable"].map(|cut| cut.parse().unwrap()).into();
    let findings = case.run(&base, Cuts::Only(&wanted));
    let told: Vec<String> = findings.violations.iter().map(ToString::to_string).collect();
    assert_eq!((told.as_slice(), findings.cuts), (&[][..] as &[String], 1));
}
