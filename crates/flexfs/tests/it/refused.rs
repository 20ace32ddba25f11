//! Volumes that no mount can make anything of, whatever their chips hold: each is refused in one line.
//!
//! Invariant of all: a command that would have written leaves the image as it is to the last byte.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::forge::{ANCHOR_MAGIC, ZERO_ID, corrupt, forge_anchors, places};
use crate::common::{Dice, Mount, assert_refused_and_unchanged, flexfs, run};
use emulator::Corruption;

/// Where an anchor says how many blocks the chip has, how many levels the index, and how many pages the block table.
const BLOCKS_AT: usize = 64;
const LEVELS_AT: usize = 136;
const TABLE_COUNT_AT: usize = 322;

fn empty(dir: &Path) -> PathBuf {
    let image = dir.join("flash.img");
    run(flexfs(["mkfs", "--size", "16MiB", "--volume-id", ZERO_ID]).arg(&image));
    image
}

#[test]
fn a_volume_whose_anchors_are_lost_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = empty(dir.path());
    let good = fs::read(&image).unwrap();
    let mut flipped = good.clone();
    places(&good, ANCHOR_MAGIC).into_iter().for_each(|at| flipped[at + BLOCKS_AT] ^= 1);
    fs::write(&image, flipped).unwrap();
    assert_refused_and_unchanged(&image, "no FlexFS on this chip");
    fs::write(&image, good).unwrap();
    corrupt(&image, ANCHOR_MAGIC, Corruption::Uncorrectable);
    assert_refused_and_unchanged(&image, "no FlexFS on this chip");
}

/// The first read of each anchor is the last good one.
#[test]
fn pages_that_a_refused_mount_used_up_are_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let image = empty(dir.path());
    forge_anchors(&image, |anchor| anchor[BLOCKS_AT] ^= 1);
    corrupt(&image, ANCHOR_MAGIC, Corruption::Unstable);
    assert_refused_and_unchanged(&image, "no FlexFS on this chip");
}

#[test]
fn a_volume_whose_anchors_make_no_sense_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = empty(dir.path());
    let good = fs::read(&image).unwrap();
    type Forgery<'a> = (&'a str, &'a dyn Fn(&mut [u8]));
    let forgeries: [Forgery; 3] = [
        ("a chip of another shape", &|anchor| anchor[BLOCKS_AT] ^= 1),
        ("corrupt", &|anchor| anchor[TABLE_COUNT_AT] ^= 1),
        ("corrupt: the root directory", &|anchor| anchor[LEVELS_AT..LEVELS_AT + 4].fill(0)),
    ];
    for (why, change) in forgeries {
        fs::write(&image, &good).unwrap();
        forge_anchors(&image, change);
        assert_refused_and_unchanged(&image, why);
    }
}

/// After a power cut a mount reads the log, and writes the outcome: not of a log of which a page is lost.
#[test]
fn a_log_that_lost_a_page_after_a_power_cut_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let image = empty(dir.path());
    let mount = Mount::new(&image);
    let write = |name, bytes: &[u8]| {
        let mut file = fs::File::create(mount.join(name)).unwrap();
        file.write_all(bytes).and_then(|()| file.sync_all()).unwrap();
    };
    // The first block, which formatting began, gets no summary; that of the next says that the lost page counts.
    write("before", &Dice::new(1).bytes(300 << 10));
    write("a file to lose", b"contents");
    write("behind", &Dice::new(2).bytes(300 << 10));
    mount.kill();
    corrupt(&image, b"a file to lose", Corruption::Uncorrectable);
    assert_refused_and_unchanged(&image, "corrupt: ");
}
