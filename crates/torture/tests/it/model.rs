//! Random operations against the model, with unmounts, power cuts and remounts mixed in: no difference, ever.
//!
//! The volumes are small on purpose: collection, migration and full chips come up all the time.

use emulator::FaultConfig;
use flexfs_core::{Compression, MountOptions, Policy, Times};
use proptest::prelude::*;
use torture::crash::{Rig, Run, Tally};
use torture::ops::Words;

/// Disruptions of each kind (unmount, cut) per 1,000 steps.
const DISRUPTIONS: usize = 12;

/// Calls over all rigs together.
const CALLS: usize = 100_000;

fn options(policy: Policy, compression: Compression, cache_bytes: usize) -> MountOptions {
    MountOptions { policy, compression, cache_bytes, ..MountOptions::default() }
}

/// A chip, and how full its volume may get, in percent, before writes give way to deletions.
fn rigs() -> Vec<(&'static str, Rig, u64)> {
    use Compression::{Lz4, None};
    const BASELINE: Policy = Policy::BASELINE;
    const NATIVE_ONLY: Policy = Policy::NATIVE_ONLY;
    const SLC_ONLY: Policy = Policy::SLC_ONLY;
    let rig = |profile, blocks, pages, policy, compression, cache_bytes| {
        Rig::small(profile, blocks, pages, options(policy, compression, cache_bytes)).unwrap()
    };
    vec![
        ("mlc, 4 MiB, crowded", rig("flexfs-mlc", 64, 16, BASELINE, None, 64 << 10), 90),
        ("mlc, 4 MiB, full", rig("flexfs-mlc", 64, 16, BASELINE, None, 1 << 20), 200),
        ("mlc, 8 MiB, native", rig("flexfs-mlc", 64, 32, NATIVE_ONLY, None, 256 << 10), 90),
        ("mlc, 8 MiB, compressed", rig("flexfs-mlc", 64, 32, BASELINE, Lz4, 256 << 10), 80),
        ("mlc, 8 MiB, slc", rig("flexfs-mlc", 64, 32, SLC_ONLY, None, 256 << 10), 40),
        ("mlc, 8 MiB, hot data apart", rig("flexfs-mlc", 64, 32, Policy::LA, None, 256 << 10), 90),
        ("mlc, 8 MiB, a buffer of SLC", rig("flexfs-mlc", 64, 32, Policy::slc_buffer(20), None, 256 << 10), 90),
        ("mlc, 16 MiB, whole blocks", rig("flexfs-mlc", 32, 128, BASELINE, None, 256 << 10), 90),
        ("tlc, 16 MiB", rig("tlc-3d", 42, 24, BASELINE, None, 256 << 10), 90),
        ("tlc, 16 MiB, native, compressed", rig("tlc-3d", 42, 24, NATIVE_ONLY, Lz4, 256 << 10), 90),
        ("8 channels, 16 MiB", rig("codesign-mlc8", 64, 16, BASELINE, None, 256 << 10), 90),
        ("mlc, 8 MiB, times of the callers", of_caller(rig("flexfs-mlc", 64, 32, BASELINE, None, 256 << 10)), 90),
        ("mlc, 8 MiB, native, the same", of_caller(rig("flexfs-mlc", 64, 32, NATIVE_ONLY, None, 256 << 10)), 90),
        ("tlc, 16 MiB, compressed, the same", of_caller(rig("tlc-3d", 42, 24, BASELINE, Lz4, 256 << 10)), 90),
    ]
}

/// The same, where the callers keep the times of files.
fn of_caller(mut rig: Rig) -> Rig {
    rig.options.times = Times::OfCaller;
    rig
}

#[test]
fn a_hundred_thousand_random_operations_differ_nowhere_from_the_model() {
    let rigs = rigs();
    let each = CALLS / rigs.len() + 1;
    let (sender, receiver) = std::sync::mpsc::channel();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (sender, next, rigs) = (sender.clone(), &next, &rigs);
            scope.spawn(move || {
                while let Some((name, rig, crowded)) = rigs.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    sender.send((*name, calls(rig, *crowded, each))).unwrap();
                }
            });
        }
    });
    drop(sender);
    let mut total = Tally::default();
    let mut differences = Vec::new();
    for (name, outcome) in receiver {
        match outcome {
            Ok(tally) => {
                println!("{name}: {tally:?}");
                total += tally;
            }
            Err(difference) => differences.push(format!("{name}: {difference}")),
        }
    }
    println!("{} operations against the model, {} differences: {total:?}", total.calls, differences.len());
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert!(total.calls >= CALLS && total.cuts > 100 && total.no_space > 100, "too little happened: {total:?}");
}

/// At least so many calls, over as many seeds as that takes.
fn calls(rig: &Rig, crowded: u64, wanted: usize) -> Result<Tally, String> {
    const STEPS: usize = 3_000;
    let mut total = Tally::default();
    for seed in 1.. {
        if total.calls >= wanted {
            break;
        }
        let steps = STEPS.min(wanted - total.calls + 200);
        total += Run::seeded(rig.clone(), seed, steps, crowded, DISRUPTIONS)
            .map_err(|difference| format!("seed {seed}: {difference}"))?;
    }
    Ok(total)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Short histories, which shrink to the few steps that matter.
    #[test]
    fn short_histories_differ_nowhere_from_the_model(
        history in prop::collection::vec(any::<Words>(), 1..60),
        rig in 0..14usize,
        torn in any::<u64>(),
    ) {
        let (_, mut rig, _) = rigs().swap_remove(rig);
        rig.faults = FaultConfig::power_cuts(torn);
        let mut run = Run::new(rig, torn, 90, 60).map_err(TestCaseError::fail)?;
        for words in &history {
            run.step(words).map_err(TestCaseError::fail)?;
        }
        run.finish().map_err(TestCaseError::fail)?;
    }
}
