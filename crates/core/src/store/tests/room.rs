//! What callers pay ahead of need.

use alloc::vec::Vec;

use super::{file, flash, formatted, mounted};
use crate::Policy;

/// Copies that a call makes ahead, at least, for it to be one that pays.
const PAYING: u64 = 32;

/// The copies that each overwrite of a full volume makes before it is synced; in one of them a program fails.
fn copies_of_overwrites(turns: u64, failing: Option<u64>) -> Vec<u64> {
    let mut fs = mounted(formatted(), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    let mut chunks = 0;
    while fs.write(ino, chunks * 4096, &[1; 4096], 1).and_then(|_| fs.sync()).is_ok() {
        chunks += 1;
    }
    let mut copies = Vec::new();
    for turn in 0..turns {
        if failing == Some(turn) {
            fs.chip_mut().faults_mut().fail_program_at(4);
        }
        let before = flash(&fs).numbers().copies();
        fs.write(ino, (turn * turn + turn / 3) % chunks * 4096, &[2; 4096], 1).unwrap();
        copies.push(flash(&fs).numbers().copies() - before);
        fs.sync().unwrap();
    }
    assert_eq!(fs.chip().counters().program_failures, u64::from(failing.is_some()));
    copies
}

/// On a chip near its end blocks failed in what was copied ahead, and the copies went on until hardly a block was left: the
/// volume became read-only with nothing written.
#[test]
fn copies_made_ahead_end_where_a_block_fails_in_them() {
    let sound = copies_of_overwrites(100, None);
    let paying: Vec<u64> = (0..).zip(&sound).filter(|&(_, &copies)| copies >= PAYING).map(|(turn, _)| turn).collect();
    let mut ended = 0;
    for &turn in paying.iter().take(12) {
        let copies = copies_of_overwrites(turn + 1, Some(turn)).pop();
        // Where the block is missed at once, the call itself must make room.
        ended += u32::from(copies.is_some_and(|copies| copies < PAYING / 4));
    }
    assert!(ended >= 8, "{ended} of {paying:?}");
}
