//! A checkpoint that is under way when another is to begin.

use alloc::vec::Vec;

use emulator::Profile;

use super::{file, flash, formatted, formatted_as, mounted};
use crate::format::table::Use;
use crate::{Policy, ROOT_INO, WorkKind};

/// Files that the index has more changed pages for than a call writes of a checkpoint under way.
const FILES: u32 = 3000;

/// What a checkpoint under way was writing to the index would be in none, if another began before it was complete.
#[test]
fn a_checkpoint_under_way_is_complete_before_an_unmount_begins_the_last_one() {
    let mut fs = mounted(formatted(), Policy::BASELINE);
    let mut mono_ns = 0;
    for number in 0..FILES {
        file(&mut fs, format!("file{number}").as_bytes());
    }
    while fs.info().unwrap().under_way != Some(WorkKind::Checkpoint) {
        mono_ns += 10_000_000_000;
        file(&mut fs, format!("more{mono_ns}").as_bytes());
        for _ in 0..200 {
            if fs.info().unwrap().under_way != Some(WorkKind::Checkpoint) {
                fs.background(mono_ns, mono_ns).unwrap();
            }
        }
    }
    let (chip, outcome) = fs.unmount(1);
    outcome.unwrap();
    let mut fs = mounted(chip, Policy::BASELINE);
    for number in 0..FILES {
        assert!(fs.lookup(ROOT_INO, format!("file{number}").as_bytes()).is_ok(), "file{number}");
    }
    assert_eq!(fs.check().unwrap().findings, Vec::<String>::new());
}

/// Nothing levels the blocks of the index by themselves: what they point to is levelled, and they change with it.
#[test]
fn blocks_of_an_index_that_callers_hardly_change_do_not_fall_behind_in_wear() {
    const ENDURANCE: u32 = 40;
    let mut profile = Profile::builtin("flexfs-mlc").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 16);
    (profile.endurance.slc_erases, profile.endurance.native_erases) = (ENDURANCE, ENDURANCE);
    let mut fs = mounted(formatted_as(&profile), Policy::BASELINE);
    for number in 0..4000 {
        file(&mut fs, format!("a file with quite a long name, number {number}").as_bytes());
    }
    let ino = file(&mut fs, b"overwritten");
    fs.store_mut().checkpoint_now().unwrap();
    let index = flash(&fs).blocks().iter().filter(|(_, block)| block.entry.used_as == Use::Meta && !block.open);
    let index: Vec<u32> = index.map(|(number, _)| number).collect();
    assert!(index.len() > 4, "{index:?}");
    let mut now_ns = 0;
    for round in 0..6000 {
        fs.write(ino, round % 16 * 4096, &[3; 4096], 1).and_then(|_| fs.sync()).unwrap();
        for _ in 0..40 {
            now_ns += 1_000_000_000;
            fs.background(now_ns, now_ns).unwrap();
        }
    }
    let blocks = flash(&fs).blocks();
    let pool = blocks.iter().filter(|(_, block)| block.entry.used_as != Use::Anchor);
    let most = pool.map(|(_, block)| block.entry.erases).max().unwrap();
    let erases: Vec<u32> = index.into_iter().map(|number| blocks.get(number).entry.erases).collect();
    assert!(most > ENDURANCE / 2 && erases.iter().all(|&erases| erases + ENDURANCE / 4 >= most), "{most}: {erases:?}");
}
