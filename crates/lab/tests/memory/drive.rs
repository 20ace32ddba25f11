//! The memory of the drive that maps only blocks.

use emulator::{Chip, Profile};
use ftl::{BlockMapDrive, DriveFormat};

use super::{HEAP, alone};

/// Bytes for a block, and beside that.
const BLOCK_BYTES: usize = 12;
const FIXED_BYTES: usize = 8 << 10;

#[test]
fn a_drive_takes_twelve_bytes_a_block_at_most() {
    let _turn = alone();
    for gib in [1_u64, 8] {
        let profile = Profile::builtin("codesign-mlc8").unwrap().with_capacity(gib << 30).unwrap();
        let blocks = profile.geometry.blocks as usize;
        let chip = Chip::without_data(&profile, 1).unwrap();
        let drive = BlockMapDrive::create(chip, &DriveFormat { number: 1, blank: true }).map_err(|(_, error)| error);
        let drive = drive.unwrap();
        let (told, with_drive) = (drive.ram_bytes(), HEAP.current_usage());
        let started = BlockMapDrive::start(drive.into_chip()).map_err(|(_, error)| error).unwrap();
        let after_start = HEAP.current_usage();
        let chip = started.into_chip();
        let live = with_drive.max(after_start) - HEAP.current_usage();
        assert!(live <= BLOCK_BYTES * blocks + FIXED_BYTES, "{gib} GiB: {live} bytes for {blocks} blocks");
        assert!(told.abs_diff(live) < FIXED_BYTES, "{gib} GiB: it tells of {told} bytes, {live} are live");
        drop(chip);
    }
}
