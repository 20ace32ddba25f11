//! Blocks for anchors, where blocks fail.

use alloc::vec::Vec;

use emulator::{Chip, Profile};

use super::{file, flash, formatted, formatted_as, mounted};
use crate::flash::Phase;
use crate::flash::anchor_log::PartnerState;
use crate::format::anchor::ANCHOR_BLOCKS;
use crate::policy::budget::Call;
use crate::{Fs, Policy};

/// The block kept for the next that fails counted as free as soon as the last pages had emptied it. A recovery, which
/// cannot rely on those, had none; anchors went on in the only block left, and the next cut used up its pages.
#[test]
fn the_block_kept_for_anchors_is_free_for_a_recovery() {
    let mut fs = mounted(formatted(), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    let chunks = fs.statfs().unwrap().free_bytes * 8 / 10 / 4096;
    let mut lacked = 0;
    for chunk in 0..2 * chunks {
        fs.write(ino, (chunk * chunk + chunk / 3) % chunks * 4096, &[2; 4096], 1).and_then(|_| fs.sync()).unwrap();
        if chunk > chunks && chunk.is_multiple_of(chunks / 4) {
            fs.store_mut().checkpoint_now().unwrap();
            let flash = fs.store_mut().records_mut().log.flash_mut();
            let free: Vec<u32> = (0..ANCHOR_BLOCKS).filter(|&block| flash.free().holds(block)).collect();
            free.into_iter().for_each(|block| flash.slots_mut().retire(block).unwrap());
            lacked += u32::from(fs.store().lacks_spare_anchor_block());
        }
        fs.store_mut().make_room(Call::REMOVAL).unwrap();
        assert!(!fs.store().lacks_spare_anchor_block(), "write {chunk}");
    }
    assert!(lacked > 2, "there was one whenever one was asked for");
}

/// An anchor follows what was gathered before it. Where that failed to be programmed and went elsewhere, the index
/// went on pointing to the failed page until the next commit: what was written could not be read.
#[test]
fn what_fails_to_be_programmed_before_an_anchor_of_a_new_pair_is_read_from_its_new_place() {
    let mut profile = Profile::builtin("tlc-3d").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 24);
    let mut fs = mounted(formatted_as(&profile), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    fs.sync().unwrap();
    fs.write(ino, 0, &[7; 4096], 1).unwrap();
    fs.store_mut().records_mut().log.flash_mut().lose_anchor_block().unwrap();
    fs.chip_mut().faults_mut().fail_program_at(0);
    fs.store_mut().keep_anchor_blocks().unwrap();
    assert_eq!(flash(&fs).blocks().failing_count(), 1, "that of the chunk");
    let mut found = [0; 4096];
    fs.read(ino, 0, &mut found).unwrap();
    assert_eq!(found, [7; 4096]);
}

/// It once took one more unit of the only block left, of the few that a recovery may need there.
#[test]
fn a_pair_that_is_whole_again_goes_on_in_its_new_block() {
    let mut fs = mounted(formatted(), Policy::BASELINE);
    fs.sync().unwrap();
    let flash = fs.store_mut().records_mut().log.flash_mut();
    while !flash.own_step().unwrap() {}
    let left = flash.lose_anchor_block().unwrap();
    fs.store_mut().keep_anchor_blocks().unwrap();
    let anchors = super::flash(&fs).anchors();
    let (newest, end) = anchors.newest();
    assert_eq!(end, 1);
    assert!(newest != left && anchors.pair().contains(&left));
}

/// Each recovery took three anchors of the only block left, the third to name the block that data were moved to. Where
/// recoveries were cut, the pages kept for three of them were used up by two.
#[test]
fn a_recovery_takes_two_anchors_of_the_only_block_left_and_completes_the_pair() {
    let mut fs = mounted(formatted(), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    let free = |fs: &Fs<Chip>| -> Vec<u32> {
        let free = super::flash(fs).free();
        (0..ANCHOR_BLOCKS).filter(|&block| free.holds(block)).collect()
    };
    let mut chunk = 0;
    while free(&fs).len() > 4 {
        fs.write(ino, chunk * 4096, &[chunk as u8; 4096], 1).and_then(|_| fs.sync()).unwrap();
        chunk += 1;
    }
    // Elsewhere blocks are free.
    fs.punch(ino, 0, 100 * 4096, 1).and_then(|()| fs.sync()).unwrap();
    fs.store_mut().checkpoint_now().unwrap();
    let kept = free(&fs);
    let flash = fs.store_mut().records_mut().log.flash_mut();
    flash.lose_anchor_block().unwrap();
    let left = flash.anchors().newest().0;
    kept.into_iter().for_each(|block| flash.slots_mut().retire(block).unwrap());
    let mut chip = fs.into_chip();
    let anchors = |chip: &Chip| chip.written_pages().iter().filter(|&&(block, _)| block == left).count();
    let before = anchors(&chip);
    chip.cut_power().unwrap();
    chip.power_on();
    let mut fs = mounted(chip, Policy::BASELINE);
    assert_eq!(super::flash(&fs).phase(), Phase::Mounted);
    assert_ne!(super::flash(&fs).anchors().other(), PartnerState::Missing);
    assert_ne!(super::flash(&fs).anchors().newest().0, left);
    assert_eq!(anchors(fs.chip_mut()) - before, 2);
}

/// Each mount once erased the block that anchors go on in next, though nothing stood in it.
#[test]
fn mounts_of_a_volume_at_rest_erase_anchor_blocks_only_as_those_fill_up() {
    let mut profile = Profile::builtin("flexfs-mlc").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 64);
    let mut chip = formatted_as(&profile);
    let before = chip.counters().erases.total();
    let (mounts, units) = (40, 32);
    for round in 0..mounts {
        let mut fs = mounted(chip, Policy::BASELINE);
        file(&mut fs, format!("file{round}").as_bytes());
        let (unmounted, outcome) = fs.unmount(1);
        outcome.unwrap();
        chip = unmounted;
    }
    // Two anchors of its own, two that are clean.
    let filled = mounts * 4 / units;
    let erases = chip.counters().erases.total() - before;
    assert!(erases <= 2 * filled, "{erases} erases, {filled} blocks filled");
}
