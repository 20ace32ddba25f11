//! Many volumes on failing media: nothing is lost while the limits are kept, and nothing wrong is read past them.

use lab::torture::{Wear, media_run};

/// `flexfs torture --media` runs as many as it is told.
const RUNS: u64 = 150;

#[test]
fn failing_blocks_and_bit_errors_lose_nothing_and_damage_never_reads_wrong() {
    let mut all = Wear::default();
    for seed in 0..RUNS {
        let run = media_run(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        all.tally += run.tally;
        all.failures += run.failures;
        all.corrected_bits += run.corrected_bits;
        all.refused_reads += run.refused_reads;
    }
    println!("{RUNS} runs: {all:?}");
    assert!(all.failures > RUNS && all.corrected_bits > 1_000 * RUNS && all.refused_reads > RUNS / 2, "{all:?}");
}
