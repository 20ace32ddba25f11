//! Recoveries on chips where hardly a block is free.

use alloc::vec::Vec;

use emulator::{Chip, Profile};
use nand::Nand;

use super::{file, flash, formatted_as, mounted};
use crate::policy::budget::Call;
use crate::{Fs, MountOptions, Policy};

/// The first program of a recovery is the anchor that counts it: with the second, the next one knows of it.
const COUNTED: u64 = 2;

/// A full volume after so many overwrites, each synced; then the power failed.
fn full(overwrites: u64) -> Chip {
    let mut profile = Profile::builtin("tlc-3d").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 24);
    let mut fs = mounted(formatted_as(&profile), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    let mut chunks = 0;
    while fs.write(ino, chunks * 4096, &[1; 4096], 1).and_then(|_| fs.sync()).is_ok() {
        chunks += 1;
    }
    // Some blocks are nearly empty: where a program of the recovery fails, collection has to gain by them.
    for chunk in (0..chunks - 40).step_by(40) {
        fs.punch(ino, chunk * 4096, 36 * 4096, 1).unwrap();
    }
    fs.sync().unwrap();
    for turn in 0..overwrites {
        fs.write(ino, turn * 7 % chunks * 4096, &[2; 4096], 1).and_then(|_| fs.sync()).unwrap();
    }
    fs.into_chip()
}

fn looked_at(chip: Chip) -> Fs<Chip> {
    let options = MountOptions { read_only: true, ..MountOptions::default() };
    Fs::mount(chip, options).map_err(|(_, error)| error).unwrap()
}

/// Takes free blocks out of use until no more are left than a recovery opens.
fn short_of_blocks(chip: Chip) -> Chip {
    let fs = looked_at(chip);
    let surplus = flash(&fs).free_blocks().saturating_sub(fs.store().records().space().budget(Call::REMOVAL).recovery);
    let sound = |&block: &u32| flash(&fs).free().holds(block) && !flash(&fs).blocks().get(block).entry.failing;
    let free: Vec<u32> = (0..64).rev().filter(sound).take(surplus as usize).collect();
    let mut chip = fs.into_chip();
    free.into_iter().for_each(|block| chip.mark_bad(block).unwrap());
    let fs = looked_at(chip);
    assert_eq!(flash(&fs).free_blocks(), fs.store().records().space().budget(Call::REMOVAL).recovery);
    fs.into_chip()
}

/// A second recovery took fresh blocks though there were no more than it needed. The first of them failed, and none was
/// left for the index; the heads, which it had left alone, had room for everything.
#[test]
fn a_second_recovery_goes_on_in_the_blocks_of_the_heads_where_there_are_no_more_than_it_needs() {
    let mut stayed = 0;
    for overwrites in 1..=12 {
        let mut chip = full(overwrites);
        chip.faults_mut().cut_power_at(COUNTED);
        let (mut chip, _) = Fs::mount(chip, MountOptions::default()).err().unwrap();
        chip.power_on();
        let before = looked_at(short_of_blocks(chip));
        let free: Vec<u32> = (0..64).filter(|&block| flash(&before).free().holds(block)).collect();
        let chip = before.into_chip();
        let after = mounted(chip.clone(), Policy::BASELINE);
        if after.blocks().any(|block| block.head == Some("slc") && free.contains(&block.number)) {
            // The block that the head stood in was full.
            continue;
        }
        stayed += 1;
        for failing in 0..8 {
            let mut chip = chip.clone();
            chip.faults_mut().fail_program_at(failing);
            let mut fs = mounted(chip, Policy::BASELINE);
            assert_eq!(fs.info().unwrap().ended, None, "{overwrites} overwrites, program {failing} fails");
        }
    }
    assert!(stayed > 0, "a head with room was left");
}
