//! The space budget, on real volumes.

use emulator::Chip;

use super::{file, flash, formatted, mounted};
use crate::manage::job::Job;
use crate::store::budget;
use crate::{Fs, Ino, Policy};

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
        least = least.min(flash(&fs).free_blocks().saturating_sub(budget::index_floor(fs.store().records())));
    }
    assert_eq!(least, 4, "the caller's, one to collect into, one for what a recovery copies, one that may fail");
}
