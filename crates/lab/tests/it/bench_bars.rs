//! The bars of the issue, on the virtual figures of the workloads; nothing here looks at a real clock.

use flexfs_core::Policy;
use lab::bench::{Config, Report, Workload, run};

fn measure(workload: Workload, bytes: u64, policy: Policy) -> Report {
    let config = Config { bytes: Some(bytes), policy, ..Config::default() };
    let report = run(workload, &config, &mut |_, _| {}).unwrap();
    println!("{report:?}");
    report
}

#[test]
fn small_files_cost_little_more_than_two_programs_each() {
    let report = measure(Workload::Small, 512 << 20, Policy::BASELINE);
    assert!(report.programs <= 4_200 && report.flash_s <= 1.85, "{report:?}");
}

#[test]
fn a_synced_overwrite_costs_one_program() {
    let report = measure(Workload::Over, 512 << 20, Policy::BASELINE);
    assert!(report.programs <= 2_090 && report.flash_s <= 0.95, "{report:?}");
}

#[test]
fn sequential_native_writes_are_not_amplified() {
    let report = measure(Workload::Seq, 512 << 20, Policy::NATIVE_ONLY);
    assert!(report.write_amplification <= 1.02, "{report:?}");
}

/// All was written to SLC first, and migrated by callers as soon as blocks ran out: 1.71 times the flash time.
#[test]
fn sequential_writes_without_idle_time_take_no_longer_than_native_ones() {
    let [default, native] =
        [Policy::DEFAULT, Policy::NATIVE_ONLY].map(|policy| measure(Workload::Seq, 512 << 20, policy));
    assert!(default.flash_s <= native.flash_s, "{default:?}, {native:?}");
    // What was let into SLC blocks is paid evenly.
    let operations = default.operations.as_ref().unwrap();
    assert!(operations.longest_us <= operations.median_us + 370_000.0, "{default:?}");
}

#[test]
fn random_overwrites_of_a_full_chip_stay_cheap() {
    for policy in [Policy::BASELINE, Policy::DEFAULT] {
        let report = measure(Workload::Gc, 64 << 20, policy);
        assert!(report.flash_s <= 28.0 && report.programs <= 36_000, "{report:?}");
    }
}

/// Two log heads, and a region to decide about, cost 23,246 programs and 10.3 ms, though both regions are the same cells.
#[test]
fn overwrites_take_one_region_where_cells_hold_one_bit() {
    let profile = emulator::Profile::builtin("flexfs-slc").unwrap();
    for policy in [Policy::DEFAULT, Policy::NATIVE_ONLY] {
        let config = Config { profile: profile.clone(), bytes: Some(64 << 20), policy, ..Config::default() };
        let report = run(Workload::Gc, &config, &mut |_, _| {}).unwrap();
        let p999_us = report.operations.as_ref().unwrap().p999_us;
        assert!(report.programs <= 22_900 && p999_us <= 3_000.0, "{report:?}");
    }
}

#[test]
fn a_mount_reads_few_pages_whatever_came_before() {
    let report = measure(Workload::Mount, 512 << 20, Policy::BASELINE);
    assert!(report.reads_clean.unwrap() <= 24 && report.reads_after_cut.unwrap() <= 400, "{report:?}");
}

#[test]
fn dies_have_about_as_many_free_blocks_after_random_overwrites() {
    let mut profile = emulator::Profile::builtin("codesign-mlc8").unwrap();
    profile.geometry.pages_per_block = 16;
    let config = Config { profile, bytes: Some(64 << 20), lanes: Some(8), ..Config::default() };
    let free_blocks = run(Workload::Gc, &config, &mut |_, _| {}).unwrap().free_blocks;
    let (least, greatest) = (free_blocks.iter().min().unwrap(), free_blocks.iter().max().unwrap());
    assert!(free_blocks.len() == 8 && greatest - least <= 3, "{free_blocks:?}");
}

#[test]
fn lanes_of_paired_pages_skip_hardly_more_than_one() {
    let profile = emulator::Profile::builtin("codesign-mlc8").unwrap();
    for workload in [Workload::Small, Workload::Over] {
        let [one, eight] = [1, 8].map(|lanes| {
            let (profile, lanes) = (profile.clone(), Some(lanes));
            let config =
                Config { profile, bytes: Some(512 << 20), policy: Policy::NATIVE_ONLY, lanes, ..Config::default() };
            run(workload, &config, &mut |_, _| {}).unwrap()
        });
        assert!(eight.programs * 100 <= one.programs * 105, "{eight:?}, {one:?}");
        assert!(eight.used_units * 100 <= one.used_units * 105, "{eight:?}, {one:?}");
        assert_eq!((eight.erases, one.erases), (0, 0), "units of erased blocks are not counted");
    }
}

#[test]
fn a_mount_reads_eight_lanes_in_hardly_more_time_than_one() {
    let profile = emulator::Profile::builtin("codesign-mlc8").unwrap();
    for (policy, further) in [(Policy::SLC_ONLY, 7 * 128), (Policy::DEFAULT, 7 * (2 * 128 + 254))] {
        let [one, eight] = [1, 8].map(|lanes| {
            let (profile, lanes) = (profile.clone(), Some(lanes));
            let config = Config { profile, bytes: Some(256 << 20), policy, lanes, ..Config::default() };
            run(Workload::Mount, &config, &mut |_, _| {}).unwrap()
        });
        assert!(eight.reads_clean.unwrap() <= 16 + 8, "{eight:?}");
        assert!(eight.reads_after_cut.unwrap() <= 330 + further, "{eight:?}");
        assert!(eight.read_only_after_cut_s.unwrap() <= 1.3 * one.read_only_after_cut_s.unwrap(), "{eight:?}, {one:?}");
    }
}

#[test]
fn nearly_all_of_a_chip_can_be_written_in_any_mode_that_uses_native_cells() {
    for (bytes, least) in [(512 << 20, 0.96), (64 << 20, 0.90)] {
        for policy in [Policy::BASELINE, Policy::NATIVE_ONLY, Policy::DEFAULT] {
            let report = measure(Workload::Capacity, bytes, policy);
            assert!(report.capacity.unwrap().fraction >= least, "{report:?}");
        }
    }
}
