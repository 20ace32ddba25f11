//! Very many files on a large chip: what a mount, a look-up and memory cost hardly grows with them.
//!
//! The chip is a sparse image file, so that the counting allocator sees no contents.

use emulator::{Chip, Profile};
use lab::bench::{Config, scale_on};

use crate::{HEAP, alone};

const CHIP_BYTES: u64 = 16 << 30;
const MOST_HEAP_BYTES: usize = 32 << 20;

#[test]
fn a_million_files_cost_a_mount_a_look_up_and_memory_little() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let profile = Profile::default().with_capacity(CHIP_BYTES).unwrap();
    let base = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let chip = Chip::create_image(dir.path().join("flash.img"), &profile, 1).unwrap();
    let report = scale_on(chip, &Config::default(), &mut |_, _| {}).unwrap();
    let heap = HEAP.peak_usage() - base;
    println!("{report:?}, peak heap {heap} bytes");
    let scale = report.scale.unwrap();
    assert_eq!(scale.files, 1_000_000);
    assert!(scale.mount_reads <= 256 && scale.stat_reads_worst <= 12 && scale.create_rate >= 0.7, "{scale:?}");
    assert!(heap <= MOST_HEAP_BYTES, "{heap} bytes, the emulator's tables included");
}
