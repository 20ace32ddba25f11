//! A chip that refuses, by its own rules, what the volume's tables allow: they are wrong, as those of a forged image may be.
//!
//! A page far behind the last one of an open block is programmed, so that nothing before it can be any more.

use emulator::Chip;
use flexfs_core::{Ended, Fs, MountOptions, NewNode, ROOT_INO, kind};
use nand::{Cause, Nand};
use torture::content::{Fill, Texture};
use torture::crash::Rig;

const FILE: NewNode = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
const BYTES: usize = 50_000;

/// A volume that lost its power, with a file, and one that was removed while it was open.
fn torn() -> (Rig, Chip, Vec<u8>) {
    let rig = Rig::small("flexfs-mlc", 64, 16, MountOptions::default()).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let bytes = Fill { seed: 1, start: 0, texture: Texture::Noise }.bytes(BYTES);
    let [file, gone] = [&b"file"[..], b"gone"].map(|name| fs.create(ROOT_INO, name, FILE, 1).unwrap().ino);
    for ino in [file, gone] {
        fs.write(ino, 0, &bytes, 1).unwrap();
    }
    fs.open(gone).unwrap();
    fs.unlink(ROOT_INO, b"gone", 1).unwrap();
    fs.sync().unwrap();
    fs.chip_mut().cut_power().unwrap();
    let mut chip = fs.into_chip();
    chip.power_on();
    (rig, chip, bytes)
}

/// The mount was refused, after some of what it does had been written: the fuzzer found a volume whose removed files could
/// not be cleaned up, and which nobody could read any more for that.
#[test]
fn a_volume_that_a_mount_cannot_clean_up_can_be_read() {
    let (rig, chip, bytes) = torn();
    let (mut damaged, mut written_before) = (0, 0);
    for block in 0..chip.geometry().blocks {
        let mut chip = chip.snapshot();
        let Some(mode) = chip.block_mode(block) else { continue };
        let last = chip.layout(mode).units() - 1;
        if chip.next_unit(block) >= last {
            continue;
        }
        let garbage = vec![0x5a; (chip.geometry().page_bytes + chip.geometry().spare_bytes) as usize];
        let (data, spare) = garbage.split_at(chip.geometry().page_bytes as usize);
        chip.program(block, last, mode, data, spare, Cause::Host).unwrap();
        let before = chip.operations();
        let mounted = Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error);
        let mut fs = mounted.unwrap_or_else(|error| panic!("block {block}: {error}"));
        let ino = fs.lookup(ROOT_INO, b"file").unwrap().ino;
        let mut found = vec![0; BYTES];
        assert_eq!(fs.read(ino, 0, &mut found), Ok(BYTES));
        assert!(found == bytes, "block {block}");
        if let Some(ended) = fs.info().unwrap().ended {
            assert_eq!(ended, Ended::Damaged, "block {block}");
            damaged += 1;
            written_before += u32::from(fs.chip().operations() > before);
        }
    }
    assert!(
        damaged > 1 && written_before > 0,
        "{damaged} could only be read, {written_before} after something was written"
    );
}
