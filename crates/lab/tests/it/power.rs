//! The power goes off in every program and every erase of busy workloads on nearly full chips, with torn pages, lost
//! paired pages and garbage left by erases, and again in the recoveries: G1 and G2 hold at each.

use lab::torture::{Campaign, Case, Findings, Ground, Script, Setup, formats, mixes, processes, sequences};

/// One of so many sequences is run here; `flexfs torture --exhaustive` runs them all.
const SEQUENCES_EACH: usize = 40;

fn run(cases: Vec<Case>) -> Findings {
    let report = Campaign { cases, threads: 2, fail_fast: false }.run(&|_, _, _| {});
    println!("{:?}", report.findings);
    for (count, case, violation) in &report.told {
        println!("{count} like: {violation}\n  {}", case.command(violation));
    }
    assert_eq!(report.violations, 0);
    report.findings
}

#[test]
fn a_cut_at_every_flash_operation_of_busy_volumes_loses_nothing_synced() {
    let mixes = Setup::all().iter().flat_map(|setup| mixes(setup, 0..4, 60)).collect();
    let findings = run(mixes);
    assert!(findings.migrated > 0 && findings.collected > 0 && findings.failures > 0, "{findings:?}");
    assert!(findings.double_cuts > 0 && findings.triple_cuts > 0, "no recovery wrote anything: {findings:?}");
}

#[test]
fn a_cut_at_every_flash_operation_of_each_internal_process_loses_nothing_synced() {
    run(processes().unwrap().into_iter().map(|(_, case)| case).collect());
}

#[test]
fn a_cut_anywhere_in_sequences_of_one_and_two_operations_leaves_a_state_between_them() {
    let all = Setup::all().iter().flat_map(|setup| sequences(setup).unwrap());
    let findings = run(all.step_by(SEQUENCES_EACH).collect());
    assert!(findings.cuts > 5_000, "{findings:?}");
}

#[test]
fn a_cut_while_a_chip_is_formatted_leaves_no_volume_or_a_whole_one() {
    let findings = run(Setup::all().iter().flat_map(|setup| formats(setup).unwrap()).collect());
    assert!(findings.points > 14 * 40 && findings.double_cuts > findings.points, "{findings:?}");
}

#[test]
fn cuts_in_calls_and_recoveries_of_a_full_chip_whose_programs_fail_leave_it_writable() {
    let setup = Setup::named("tlc-lz4").unwrap();
    let script = |seed| Script::Mix { seed, keep: vec![0], failing: true };
    let findings = run((0..40).map(|seed| Case::alone(setup, Ground::Full, script(seed))).collect());
    assert!(findings.double_cuts > 100, "{findings:?}");
}
