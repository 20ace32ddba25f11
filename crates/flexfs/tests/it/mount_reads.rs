//! What a mount reads: pages of the chip, from its start to the first call that is answered.
//!
//! Invariant: the server's own counters are asked, which count every page that it read since it opened the chip.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::common::{Dice, Mount, image, info};
use emulator::Chip;
use flexfs_core::{Fs, HOST_CACHE_BYTES, MountOptions};

const FILES: u64 = 2000;

/// An image whose root directory holds as many small files, each synced, so that a page holds few of their nodes; with
/// its mount.
fn filled(dir: &Path) -> Mount {
    let mount = Mount::with(&image(dir, "64MiB"), &["-o", "nosync_image"]);
    for number in 0..FILES {
        let mut file = File::create(mount.join(name(number))).unwrap();
        file.write_all(&Dice::new(number).bytes(1000)).unwrap();
        file.sync_all().unwrap();
    }
    mount
}

fn name(number: u64) -> String {
    format!("small {number}")
}

/// Page reads, and reading calls, of the server of a mount until it has answered a call.
fn until_first_call(image: &Path) -> (u64, u64) {
    let mount = Mount::new(image);
    fs::metadata(mount.join(name(7))).unwrap();
    let calls = mount.server_reads();
    let reads = info(image)["mounted"]["operations"]["reads"].clone();
    mount.unmount();
    // The timer refreshes blocks for wear levelling; on a slow machine it begins before its figures are asked for.
    let before_timer = reads.as_object().unwrap().iter().filter(|(cause, _)| *cause != "wear_level");
    (before_timer.map(|(_, count)| count.as_u64().unwrap()).sum(), calls)
}

#[test]
fn a_mount_at_rest_reads_few_pages_however_many_files() {
    let dir = tempfile::tempdir().unwrap();
    let mount = filled(dir.path());
    let image = mount.image.clone();
    mount.unmount();
    let (reads, _) = until_first_call(&image);
    assert!(reads <= 30, "{reads} page reads until the first call was answered");
}

#[test]
fn a_mount_after_a_power_cut_reads_hardly_more_than_the_core() {
    let dir = tempfile::tempdir().unwrap();
    let mount = filled(dir.path());
    let (image, copy) = (mount.image.clone(), dir.path().join("copy.img"));
    mount.kill();
    fs::copy(&image, &copy).unwrap();
    let chip = Chip::open_image(&copy, false).unwrap();
    let options = MountOptions { cache_bytes: HOST_CACHE_BYTES, ..MountOptions::default() };
    let fs = Fs::mount(chip, options).map_err(|(_, error)| error).unwrap();
    let alone = fs.chip().counters().reads.total();
    let (reads, calls) = until_first_call(&image);
    assert!(reads * 10 <= alone * 11, "{reads} page reads until the first call was answered, {alone} by the core");
    // A call for the data of a page and one for its spare bytes, and few for all else: no other chip was read before.
    assert!(calls <= 2 * reads + 200, "{calls} calls for {reads} page reads");
}
