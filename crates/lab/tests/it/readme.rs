//! The figures of FlexFS in the table of the README, against the benches that they come from. Invariant: every cell of that column
//! but `posix`, which `suites/run` counts, is compared.

use std::path::Path;

use flexfs_core::Policy;
use lab::bench::{Config, Report, Workload, run};

/// How far a figure of the README may be off.
const TOLERANCE: f64 = 0.02;

fn measure(workload: Workload, policy: Policy) -> Report {
    run(workload, &Config { policy, ..Config::default() }, &mut |_, _| {}).unwrap()
}

/// The numbers in the second cell of the row that begins with this name.
fn told(readme: &str, name: &str) -> Vec<f64> {
    let start = format!("| {name} |");
    let row = readme.lines().find_map(|line| line.strip_prefix(start.as_str()));
    let cell = row.and_then(|row| row.split('|').next()).unwrap_or_else(|| panic!("the README has no row \"{name}\""));
    let plain = cell.replace(['*', ',', 's'], "");
    plain.split('/').map(|number| number.trim().parse().unwrap_or_else(|_| panic!("{name}: \"{cell}\""))).collect()
}

#[test]
fn the_readme_tells_what_the_benches_measure() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let of_default = |workload| measure(workload, Policy::DEFAULT);
    let (small, over, gc) = (of_default(Workload::Small), of_default(Workload::Over), of_default(Workload::Gc));
    let (seq, mount) = (measure(Workload::Seq, Policy::NATIVE_ONLY), of_default(Workload::Mount));
    let reads = [mount.reads_clean, mount.reads_after_cut].map(|reads| reads.unwrap() as f64);
    let rows = [
        ("small, programs", vec![small.programs as f64]),
        ("small, flash time", vec![small.flash_s]),
        ("over, programs", vec![over.programs as f64]),
        ("over, flash time", vec![over.flash_s]),
        ("gc, flash time", vec![gc.flash_s]),
        ("written per byte, large files (`--mode mlc-only`)", vec![seq.write_amplification]),
        ("mount", reads.into()),
    ];
    for (name, measured) in rows {
        let told = told(&readme, name);
        assert_eq!(told.len(), measured.len(), "{name}");
        for (told, measured) in told.into_iter().zip(measured) {
            assert!((told - measured).abs() <= TOLERANCE * measured, "{name}: README {told}, measured {measured}");
        }
    }
}
