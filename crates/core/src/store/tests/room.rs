//! What callers pay ahead of need, and when room is worked out again.

use alloc::vec::Vec;

use emulator::{Counters, Profile};

use super::{file, flash, formatted, formatted_as, mounted};
use crate::{Error, Policy};

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

/// Counts of a volume's chip after each file, until the volume is full: files are written by calls of `call_bytes` each.
/// One of every three is removed, and one of every five is written twice over.
fn counted(policy: Policy, call_bytes: usize) -> Vec<Counters> {
    let mut profile = Profile::builtin("flexfs-mlc").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (128, 64);
    let mut fs = mounted(formatted_as(&profile), policy);
    let mut counted = Vec::new();
    let mut failed = None;
    for number in 0..200u64 {
        // Pauses of all lengths, so that pages go to both regions.
        fs.request((number * number % 7 * 1_000_000_000 + number * 100_000_000_000) as i64);
        let ino = file(&mut fs, alloc::format!("file{number}").as_bytes());
        for offset in (0..2 << 20).step_by(call_bytes) {
            let at = if number % 5 == 4 { offset % (1 << 20) } else { offset };
            match fs.write(ino, at as u64, &alloc::vec![number as u8; call_bytes], 1) {
                Ok(count) if count == call_bytes => {}
                Ok(_) => failed = Some(Error::NoSpace),
                Err(error) => failed = Some(error),
            }
            if failed.is_some() {
                break;
            }
        }
        counted.push(*fs.chip().counters());
        if number % 3 == 2 {
            fs.unlink(crate::ROOT_INO, alloc::format!("file{}", number - 1).as_bytes(), 1).unwrap();
        }
        if failed.is_some() {
            break;
        }
    }
    assert_eq!(failed, Some(Error::NoSpace));
    counted
}

/// Room is made once for many chunks where each of them would have found it: nothing else happens on flash.
#[test]
fn a_long_write_does_on_flash_what_its_chunks_would() {
    for policy in [Policy::DEFAULT, Policy::BASELINE, Policy::LA, Policy::NATIVE_ONLY] {
        let (long, short) = (counted(policy, 64 << 10), counted(policy, 4 << 10));
        assert!(long.len() > 10, "{}", policy.name());
        for (number, (long, short)) in long.iter().zip(&short).enumerate() {
            assert_eq!(long, short, "{} differs in file {number}", policy.name());
        }
    }
}
