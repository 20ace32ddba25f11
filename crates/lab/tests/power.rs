//! The power goes off in every program and every erase of a busy workload on a nearly full chip, with torn pages, lost
//! paired pages and garbage left by erases, and again in the recovery: G1 and G2 hold at each.

use flexfs_core::{Compression, Mode, MountOptions};
use lab::crash::{Plan, Rig, Verdict, exhaust};

const OPERATIONS: usize = 500;

fn plan(profile: &str, blocks: u32, pages: u32, mode: Mode, seed: u64) -> Plan {
    let compression = Compression::None;
    let options = MountOptions { mode, compression, cache_bytes: 256 << 10, ..MountOptions::default() };
    let rig = Rig::small(profile, blocks, pages, options).unwrap();
    Plan { rig, seed, operations: OPERATIONS, full_percent: 85, threads: 2 }
}

fn run(plan: &Plan) -> Verdict {
    let verdict = exhaust(plan).unwrap();
    println!(
        "{} operations: {} cuts, {} between operations, {} again in recovery (of at most {} operations); {} pages \
         migrated, {} collected; {} violations",
        plan.operations,
        verdict.cuts,
        verdict.idle_cuts,
        verdict.double_cuts,
        verdict.longest_recovery,
        verdict.migration_programs,
        verdict.gc_programs,
        verdict.violations.len()
    );
    for (count, first) in verdict.kinds() {
        println!("{count} like: {first}");
    }
    assert!(verdict.violations.is_empty(), "{} violations", verdict.violations.len());
    assert!(verdict.cuts > OPERATIONS && verdict.idle_cuts == plan.operations, "{verdict:?}");
    assert!(verdict.double_cuts > 0, "no recovery wrote anything");
    verdict
}

#[test]
fn a_cut_at_every_flash_operation_of_a_migrating_volume_loses_nothing_synced() {
    let verdict = run(&plan("flexfs-mlc", 64, 16, Mode::Baseline, 1));
    assert!(verdict.migration_programs > 0 && verdict.gc_programs > 0, "{verdict:?}");
}

#[test]
fn a_cut_at_every_flash_operation_of_a_native_volume_loses_nothing_synced() {
    let verdict = run(&plan("flexfs-mlc", 64, 16, Mode::NativeOnly, 2));
    assert!(verdict.gc_programs > 0, "{verdict:?}");
}

#[test]
fn a_cut_at_every_flash_operation_of_a_one_shot_tlc_volume_loses_nothing_synced() {
    // One program takes twelve slots here, so there are fewer of them than operations.
    let plan = plan("tlc-3d", 42, 24, Mode::Baseline, 3);
    run(&Plan { operations: 2 * OPERATIONS, ..plan });
}
