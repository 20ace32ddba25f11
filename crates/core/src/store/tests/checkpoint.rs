//! A checkpoint that is under way when another is to begin.

use alloc::vec::Vec;

use super::{file, formatted, mounted};
use crate::{Policy, ROOT_INO, Work};

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
    while fs.info().unwrap().under_way != Some(Work::Checkpoint) {
        mono_ns += 10_000_000_000;
        file(&mut fs, format!("more{mono_ns}").as_bytes());
        for _ in 0..200 {
            if fs.info().unwrap().under_way != Some(Work::Checkpoint) {
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
