//! Emptying blocks, on real volumes.

use alloc::vec;
use alloc::vec::Vec;

use emulator::{Chip, Profile};
use nand::Cause;

use super::{file, flash, formatted, formatted_as, mounted};
use crate::flash::blocks::Block;
use crate::manage::job::{Job, View};
use crate::policy::budget::Call;
use crate::store::collector::Why;
use crate::{Fs, Policy};

const CHUNK_BYTES: u64 = 4096;
const CHUNKS: u64 = 16;

/// A volume written natively and mounted SLC-only moves to SLC what fits into one block of that. It once tried so with
/// the rest as well, and had no second block for it where only one was free.
#[test]
fn what_one_slc_block_does_not_hold_stays_native() {
    let mut fs = mounted(formatted(), Policy::NATIVE_ONLY);
    let ino = file(&mut fs, b"file");
    let block_bytes = flash(&fs).shape().native.content_slots() as usize * CHUNK_BYTES as usize;
    fs.write(ino, 0, &vec![1; 3 * block_bytes], 1).unwrap();
    let (chip, done) = fs.unmount(1);
    done.unwrap();
    let mut fs = mounted(chip, Policy::SLC_ONLY);
    assert!(!fs.store().records().is_overfull(), "it is too full");
    let slc_bytes = flash(&fs).shape().slc.content_slots() * CHUNK_BYTES as u32;
    let native_bytes = |fs: &Fs<Chip>| -> u32 {
        let native = flash(fs).blocks().iter().filter(|(_, block)| block.entry.native);
        native.map(|(_, block)| block.entry.live_bytes).sum()
    };
    let empty_one_above = |fs: &mut Fs<Chip>, bytes: u32| {
        let above = |block: &Block| block.entry.native && block.entry.live_bytes > bytes;
        let victim = flash(fs).blocks().iter().find(|(_, block)| above(block)).map(|(number, _)| number).unwrap();
        fs.store_mut().empty_block(victim, Why::Room).unwrap();
        assert_eq!(flash(fs).blocks().get(victim).entry.live_bytes, 0);
    };
    let before = native_bytes(&fs);
    empty_one_above(&mut fs, slc_bytes);
    assert_eq!(native_bytes(&fs), before, "it was moved to SLC");
    fs.punch(ino, CHUNK_BYTES, 3 * block_bytes as u64, 1).unwrap();
    fs.sync().unwrap();
    // The first chunk, and the file's inode.
    for _ in 0..2 {
        if native_bytes(&fs) > 0 {
            empty_one_above(&mut fs, 0);
        }
    }
    assert_eq!(native_bytes(&fs), 0, "something small stays native");
}

/// Background work once went on with a block that callers had emptied and filled again since: what it found there
/// it had not looked for, and it gave the block up until the next mount.
#[test]
fn a_victim_that_was_emptied_and_used_again_is_let_go() {
    let mut fs = mounted(formatted(), Policy::SLC_ONLY);
    let ino = file(&mut fs, b"file");
    let overwrite = |fs: &mut Fs<Chip>, turn: u64| {
        fs.write(ino, turn % CHUNKS * CHUNK_BYTES, &[turn as u8; CHUNK_BYTES as usize], 1).unwrap();
        fs.sync().unwrap();
    };
    (0..3 * CHUNKS).for_each(|turn| overwrite(&mut fs, turn));
    let full = |block: &Block| !block.open && block.entry.live_bytes > CHUNK_BYTES as u32;
    let (victim, before) = flash(&fs).blocks().iter().find(|(_, block)| full(block)).map(|(n, b)| (n, *b)).unwrap();
    fs.store_mut().run(Job::Level { victim }).unwrap();
    fs.store_mut().run(Job::Copy { victim }).unwrap();
    assert!(fs.store().look(Call::REMOVAL).victim().is_some(), "it is empty already");
    let used_again = (0..10_000).any(|turn| {
        overwrite(&mut fs, turn);
        let block = flash(&fs).blocks().get(victim);
        block.entry.erases > before.entry.erases && full(&block)
    });
    assert!(used_again && fs.store().look(Call::REMOVAL).victim().is_some(), "it was not used again meanwhile");
    let programs = fs.chip().counters().programs.cause(Cause::WearLevel);
    fs.store_mut().finish_emptying().unwrap();
    assert!(!flash(&fs).blocks().get(victim).stuck);
    assert_eq!(fs.chip().counters().programs.cause(Cause::WearLevel), programs, "something was moved");
    assert_eq!(fs.check().unwrap().findings, Vec::<alloc::string::String>::new());
}

/// An operation ended by damage right after a program failed left slots that the index did not follow: the next one
/// went on like that.
#[test]
fn an_operation_first_follows_what_moved_while_another_failed() {
    let mut profile = Profile::builtin("tlc-3d").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 24);
    let mut fs = mounted(formatted_as(&profile), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    fs.sync().unwrap();
    fs.write(ino, 0, &[7; CHUNK_BYTES as usize], 1).unwrap();
    fs.chip_mut().faults_mut().fail_program_at(0);
    fs.store_mut().records_mut().log.flash_mut().flush_units().unwrap();
    assert!(flash(&fs).has_moved(), "the chunk");
    file(&mut fs, b"another");
    assert!(!flash(&fs).has_moved());
    let mut found = [0; CHUNK_BYTES as usize];
    fs.read(ino, 0, &mut found).unwrap();
    assert_eq!(found, [7; CHUNK_BYTES as usize]);
}
