//! Translation layers under power cuts and on a failing medium.

use ftl::Scheme;
use lab::sectors::{Campaign, campaign, media_runs};

/// Cuts histories of every scheme on every kind of chip.
fn tortured(scheme: Scheme, histories: u64, steps: usize) {
    let asked = Campaign { schemes: vec![scheme], histories, steps, seed: 1, threads: 2 };
    let report = campaign(&asked, &|_, _| {});
    println!("{scheme}: {:?}", lab::sectors::Findings { violations: Vec::new(), ..report.findings.clone() });
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
fn failing_blocks_and_flipped_bits_lose_no_sector_of_any_scheme() {
    for scheme in Scheme::ALL {
        let report = media_runs(scheme, 0..100, 2);
        let told: Vec<_> = report.violations.iter().take(5).collect();
        assert!(told.is_empty(), "{scheme}: {} violations: {told:#?}", report.violations.len());
        assert!(report.failures > 50 && report.corrected_bits > 0, "{report:?}");
    }
}
