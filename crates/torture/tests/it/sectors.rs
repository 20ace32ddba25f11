//! Translation layers under power cuts and on a failing medium.

use emulator::{Chip, FaultConfig, Profile, TornKind};
use ftl::{BlockDevice, Device, Format, Options, Scheme};
use torture::sectors::{Campaign, Cut, History, Rig, RigKind, campaign, media_runs};

/// Cuts histories of every scheme on every kind of chip.
fn tortured(scheme: Scheme, histories: u64, steps: usize) {
    let asked = Campaign { schemes: vec![scheme], histories, steps, seed: 1, threads: 2 };
    let report = campaign(&asked, &|_, _| {});
    println!("{scheme}: {:?}", torture::sectors::Findings { violations: Vec::new(), ..report.findings.clone() });
    let told: Vec<String> = report
        .found
        .iter()
        .take(5)
        .map(|found| format!("{:?} {}: {}", found.history, found.cut, found.error))
        .collect();
    assert!(told.is_empty(), "{} violations: {told:#?}", report.found.len());
    assert!(report.findings.merges > 0 && report.findings.cuts > 1_000, "{:?}", report.findings);
}

#[test]
fn a_cut_at_any_operation_of_the_log_block_scheme_loses_nothing_acknowledged() {
    tortured(Scheme::LogBlock, 2, 60);
}

#[test]
fn a_cut_at_any_operation_of_the_scheme_without_map_blocks_loses_nothing_acknowledged() {
    tortured(Scheme::LogBlockScanned, 2, 60);
}

#[test]
fn a_cut_at_any_operation_of_page_mapping_loses_nothing_acknowledged() {
    tortured(Scheme::PageGreedy, 2, 60);
    tortured(Scheme::PageCostBenefit, 1, 60);
}

#[test]
fn a_cut_at_any_operation_with_replacement_blocks_loses_nothing_acknowledged() {
    tortured(Scheme::Replacement, 2, 60);
}

#[test]
fn a_cut_at_any_operation_of_fast_loses_nothing_acknowledged() {
    tortured(Scheme::Fast, 1, 40);
}

#[test]
fn a_cut_at_any_operation_of_dftl_loses_nothing_acknowledged() {
    tortured(Scheme::Dftl, 1, 60);
}

#[test]
fn failing_blocks_and_flipped_bits_lose_no_sector_of_any_scheme() {
    for scheme in Scheme::ALL {
        let report = media_runs(scheme, 0..100, 2);
        let told: Vec<_> = report.violations.iter().take(5).collect();
        assert!(told.is_empty(), "{scheme}: {} violations: {told:#?}", report.violations.len());
        assert!(report.failures > 50 && report.corrected_bits > 500, "{report:?}");
    }
}

/// A partial merge skipped the places that nothing was written to, so that of a log block with 6 pages in order the last one
/// was programmed next. Torn, that one read as erased, while the page behind the sixth was what an opening used up; later
/// sectors went to the torn page, and were lost.
#[test]
fn a_partial_merge_that_is_cut_leaves_a_log_block_that_can_be_written_on() {
    let mut profile = Profile::builtin("k9f5608u0m").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (40, 8);
    let format = Format { volume: 1, extra_blocks: 12, logs: 2, map_blocks: 0 };
    let chip = Chip::new(&profile, 1).unwrap();
    let mut device = Device::format(chip, Scheme::LogBlockScanned, &format, Options::default()).unwrap();
    let page = |version: u8| vec![version; 512];
    for sector in 0..6 {
        device.write(sector, &page(sector as u8)).unwrap();
    }
    device.write(8, &page(8)).unwrap();
    let operations = device.chip().operations();
    // Both log blocks are in use: a third one takes a partial merge of the first.
    let mut merged = device.clone();
    merged.write(16, &page(16)).unwrap();
    assert_eq!(merged.counts().partial_merges, 1);
    let all = merged.chip().operations() - operations;
    for operation in 0..all {
        let mut device = device.clone();
        device.chip_mut().faults_mut().set(FaultConfig { torn: TornKind::Weak, ..FaultConfig::default() });
        device.chip_mut().faults_mut().cut_power_at(operation);
        device.write(16, &page(16)).unwrap_err();
        let mut chip = device.into_chip();
        chip.power_on();
        let mut device = Device::open(chip, Options::default()).unwrap();
        for sector in 0..6 {
            device.write(sector, &page(100 + sector as u8)).unwrap();
        }
        let mut found = page(0);
        for sector in 0..6 {
            device.read(sector, &mut found).unwrap_or_else(|error| panic!("cut at operation {operation}: {error}"));
            assert_eq!(found, page(100 + sector as u8), "cut at operation {operation}");
        }
    }
}

/// Each merge that the power cut short left a block with a few copies, which counted from then on; three in a row, in a step and in
/// the recoveries from it, took the last free block, and the volume did not open any more.
#[test]
fn power_cuts_in_a_row_in_merges_of_replacement_blocks_take_no_free_block_each() {
    let rig = Rig { scheme: Scheme::Replacement, kind: RigKind::Wide };
    let tears = vec![(6, TornKind::Old), (5, TornKind::Weak), (2, TornKind::Full)];
    History { rig, seed: 5, steps: 139 }.replay(&Cut { step: 138, tears }).unwrap();
}

/// An erase of an old map block that was cut left pages that read once more and then never again, as a page of the map that is
/// lost does. The opening that met it gave this free block to a head, and erased it in the end, with the copies in it; in
/// another history it cleaned such a block twice, which was free twice then.
#[test]
fn an_opening_of_dftl_that_meets_a_lost_page_of_the_map_erases_nothing_that_counts() {
    let replay = |kind, steps, step, tears| {
        let rig = Rig { scheme: Scheme::Dftl, kind };
        History { rig, seed: 1, steps }.replay(&Cut { step, tears }).unwrap();
    };
    replay(RigKind::Small, 110, 53, vec![(1, TornKind::Old), (2, TornKind::Unstable)]);
    replay(RigKind::Long, 515, 514, vec![(0, TornKind::Uncorrectable), (1, TornKind::Garbage)]);
}

/// Of a request that found fewer free blocks than were foreseen, half was written, which ended inside a data block: a cut
/// left a part of that block.
#[test]
fn a_request_that_is_split_again_ends_where_a_data_block_ends() {
    let rig = Rig { scheme: Scheme::LogBlockScanned, kind: RigKind::Large };
    for (operation, tear) in [(48, TornKind::Full), (51, TornKind::Old), (86, TornKind::Full), (87, TornKind::Old)] {
        let cut = Cut { step: 11, tears: vec![(operation, tear)] };
        History { rig, seed: 3, steps: 12 }.replay(&cut).unwrap();
    }
}

/// The command of a history that went wrong without a cut named a step that no history has.
#[test]
fn a_history_that_goes_wrong_without_a_cut_is_named_so_that_it_runs_again() {
    let history = History { rig: Rig { scheme: Scheme::LogBlock, kind: RigKind::Large }, seed: 1, steps: 20 };
    let cut = history.uncut();
    assert_eq!(history.command(&cut), "flexfs torture --ftl log-block --rig large --history 1 --step 19");
    history.replay(&cut).unwrap();
}
