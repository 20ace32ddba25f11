//! Short random histories against the model, with unmounts and power cuts: what differs shrinks to the few steps that
//! matter.

use emulator::FaultConfig;
use flexfs_core::{Compression, Mode, MountOptions};
use lab::crash::{Rig, Run};
use lab::ops::Words;
use proptest::prelude::*;

fn options(mode: Mode, compression: Compression, cache_bytes: usize) -> MountOptions {
    MountOptions { mode, compression, cache_bytes, ..MountOptions::default() }
}

/// A chip, and how full its volume may get, in percent, before writes give way to deletions.
fn rigs() -> Vec<(&'static str, Rig, u64)> {
    use Compression::{Lz4, None};
    use Mode::{Baseline, NativeOnly};
    let rig = |profile, blocks, pages, mode, compression, cache_bytes| {
        Rig::small(profile, blocks, pages, options(mode, compression, cache_bytes)).unwrap()
    };
    vec![
        ("mlc, 4 MiB, crowded", rig("flexfs-mlc", 64, 16, Baseline, None, 64 << 10), 90),
        ("mlc, 4 MiB, full", rig("flexfs-mlc", 64, 16, Baseline, None, 1 << 20), 200),
        ("mlc, 8 MiB, native", rig("flexfs-mlc", 64, 32, NativeOnly, None, 256 << 10), 90),
        ("mlc, 8 MiB, compressed", rig("flexfs-mlc", 64, 32, Baseline, Lz4, 256 << 10), 80),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Short histories, which shrink to the few steps that matter.
    #[test]
    fn short_histories_differ_nowhere_from_the_model(
        history in prop::collection::vec(any::<Words>(), 1..60),
        rig in 0..4usize,
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
