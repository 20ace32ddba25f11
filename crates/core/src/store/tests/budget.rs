//! The space budget, on real volumes.

use emulator::Chip;

use super::{file, flash, formatted, mounted};
use crate::flash::head::HeadId;
use crate::manage::job::Job;
use crate::{Allocate, Fs, Ino, Policy};

/// A volume, just mounted, with a file of forty chunks.
fn with_a_file() -> (Fs<Chip>, Ino) {
    let mut fs = mounted(formatted(), Policy::SLC_ONLY);
    let ino = file(&mut fs, b"file");
    fs.write(ino, 0, &[1; 40 * 4096], 1).unwrap();
    let (chip, done) = fs.unmount(1);
    done.unwrap();
    (mounted(chip, Policy::SLC_ONLY), ino)
}

/// Blocks that the last page had emptied once counted as free for a recovery, which keeps them, as that page may have
/// been torn. With a block that failed, two cuts later there was none for the index.
#[test]
fn blocks_that_the_last_page_emptied_are_not_free_for_certain() {
    let (mut fs, ino) = with_a_file();
    let before = flash(&fs).free_blocks();
    assert_eq!(flash(&fs).free().certain(), before);
    fs.punch(ino, 0, 40 * 4096, 1).unwrap();
    fs.sync().unwrap();
    assert!(flash(&fs).free_blocks() >= before + 3, "{before} before, {} now", flash(&fs).free_blocks());
    assert!(flash(&fs).free().certain() <= before, "{}", flash(&fs).free().certain());
    fs.store_mut().checkpoint_now().unwrap();
    assert_eq!(flash(&fs).free().certain(), flash(&fs).free_blocks());
}

/// The same where a checkpoint was under way when the last page emptied them: it ended without the change.
#[test]
fn blocks_emptied_while_a_checkpoint_is_written_are_not_free_for_certain_after_it() {
    let (mut fs, ino) = with_a_file();
    let before = flash(&fs).free_blocks();
    file(&mut fs, b"another");
    fs.store_mut().run(Job::Checkpoint).unwrap();
    fs.punch(ino, 0, 40 * 4096, 1).unwrap();
    fs.sync().unwrap();
    fs.store_mut().finish_checkpoint().unwrap();
    assert!(flash(&fs).free_blocks() >= before + 3, "{before} before, {} now", flash(&fs).free_blocks());
    assert!(flash(&fs).free().certain() <= before, "{}", flash(&fs).free().certain());
}

/// The page that a head had written last counted as doubtful until the head wrote another, though a checkpoint covered
/// it. With hot data alone being written, collection found hardly a block that was free for certain, and a checkpoint
/// came with nearly every block.
#[test]
fn a_head_that_rests_since_a_checkpoint_keeps_no_block_from_being_free_for_certain() {
    let allocate = Allocate { window_pages: 100, ..Allocate::PAPER };
    let mut fs = mounted(formatted(), Policy::LA.with_allocation(allocate));
    let (hot, cold) = (file(&mut fs, b"hot"), file(&mut fs, b"cold"));
    for byte in 0..4 {
        fs.write(hot, 0, &[byte; 4096], 1).and_then(|_| fs.sync()).unwrap();
    }
    assert!(flash(&fs).slots().head(HeadId::SlcHot).block().is_some());
    fs.write(cold, 0, &[1; 40 * 4096], 1).and_then(|_| fs.sync()).unwrap();
    fs.store_mut().checkpoint_now().unwrap();
    let before = flash(&fs).free().certain();
    fs.punch(cold, 0, 40 * 4096, 1).and_then(|()| fs.sync()).unwrap();
    fs.write(cold, 0, &[2; 4096], 1).and_then(|_| fs.sync()).unwrap();
    assert!(flash(&fs).free().certain() >= before + 3, "{before} before, {} now", flash(&fs).free().certain());
}

/// A block was kept for one that fails only on chips where some had. On a full TLC chip the first one failed in a
/// recovery, collection after it took the last that was free, and the next recovery had none for the index.
#[test]
fn a_full_chip_keeps_a_block_for_the_first_that_fails() {
    let mut fs = mounted(formatted(), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    let (mut chunks, mut least) = (0, u32::MAX);
    while fs.write(ino, chunks * 4096, &[1; 4096], 1).and_then(|_| fs.sync()).is_ok() {
        chunks += 1;
    }
    for chunk in 0..4 * chunks {
        fs.write(ino, (chunk * chunk + chunk / 3) % chunks * 4096, &[2; 4096], 1).and_then(|_| fs.sync()).unwrap();
        least = least.min(flash(&fs).free_blocks().saturating_sub(fs.store().records().space().index_floor()));
    }
    assert_eq!(least, 4, "the caller's, one to collect into, one for what a recovery copies, one that may fail");
}
