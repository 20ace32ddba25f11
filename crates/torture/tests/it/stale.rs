//! What a salvage finds of a file may be out of date: chunks that a newer one, which cannot be read, has replaced. Such a
//! file does not come back to its place.

use emulator::{Chip, Corruption};
use flexfs_core::{Doubt, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, Salvaged, SetAttr, kind};
use nand::{Cause, Nand};
use torture::crash::Rig;

const CHUNK: usize = 4096;

fn rig() -> Rig {
    let options = MountOptions { policy: Policy::SLC_ONLY, ..MountOptions::default() };
    Rig::small("flexfs-mlc", 32, 16, options).unwrap()
}

fn make(fs: &mut Fs<Chip>, name: &[u8]) -> Ino {
    fs.create(ROOT_INO, name, NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 }, 1).unwrap().ino
}

fn write(fs: &mut Fs<Chip>, ino: Ino, chunk: u64, byte: u8) {
    fs.write(ino, chunk * CHUNK as u64, &[byte; CHUNK], 1).unwrap();
    fs.sync().unwrap();
}

/// Damages the pages that hold these bytes.
fn damage(chip: &mut Chip, byte: u8, corruption: Corruption) {
    let (mut data, mut spare) = (vec![0; CHUNK], vec![0; 32]);
    for (block, page) in chip.written_pages() {
        chip.read(block, page, 0, &mut data, &mut spare, Cause::Host).unwrap();
        if data == [byte; CHUNK] {
            chip.faults_mut().corrupt_page(block, page, corruption).unwrap();
        }
    }
}

/// Unmounts and erases the index.
fn without_index(fs: Fs<Chip>, rig: &Rig) -> Chip {
    let (chip, unmounted) = fs.unmount(1);
    unmounted.unwrap();
    let options = MountOptions { read_only: true, ..rig.options.clone() };
    let fs = Fs::mount(chip, options).map_err(|(_, error)| error).unwrap();
    let index: Vec<u32> = fs.blocks().filter(|block| block.used_as == "index").map(|block| block.number).collect();
    let mut chip = fs.into_chip();
    index.into_iter().for_each(|block| chip.erase(block, Cause::Metadata).unwrap());
    chip
}

fn salvage(chip: Chip, rig: &Rig) -> (Fs<Chip>, Salvaged) {
    Fs::salvage(chip, *b"salvaged volume!", rig.options.clone(), &mut |_, _| {}).map_err(|(_, error)| error).unwrap()
}

/// What stood in a page with a wrong checksum was known only if its block had a summary: of the blocks that are written
/// now none has. The chunk came back as it was before, in its place.
#[test]
fn an_older_chunk_does_not_replace_one_with_a_wrong_checksum_in_a_block_that_is_not_full() {
    let rig = rig();
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let (file, other) = (make(&mut fs, b"file"), make(&mut fs, b"other"));
    write(&mut fs, file, 0, 1);
    (0..30).for_each(|chunk| write(&mut fs, other, chunk, 9));
    write(&mut fs, file, 0, 3);
    let mut chip = without_index(fs, &rig);
    damage(&mut chip, 3, Corruption::FlipBits(9));
    let (mut fs, salvaged) = salvage(chip, &rig);
    assert_eq!(salvaged.moved, [(b"lost+found/file".to_vec(), Doubt::Incomplete { chunks: 1 })]);
    let mut data = [7; CHUNK];
    fs.read(file, 0, &mut data).unwrap();
    assert_eq!(data, [0; CHUNK]);
    assert!(fs.lookup(ROOT_INO, b"other").is_ok());
}

/// A file of three chunks of which the middle one was punched out; the record of that has been erased.
fn punched(rig: &Rig) -> Chip {
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let (file, cold, hot) = (make(&mut fs, b"file"), make(&mut fs, b"cold"), make(&mut fs, b"hot"));
    for chunk in 0..3 {
        write(&mut fs, file, chunk, 1 + chunk as u8);
        write(&mut fs, cold, chunk, 9);
    }
    (3..20).for_each(|chunk| write(&mut fs, cold, chunk, 9));
    write(&mut fs, hot, 0, 8);
    // The record stands among what is written over, and of the inode beside it there is a newer one.
    (0..40).for_each(|_| write(&mut fs, hot, 0, 8));
    fs.punch(file, CHUNK as u64, CHUNK as u64, 1).unwrap();
    fs.sync().unwrap();
    (0..40).for_each(|_| write(&mut fs, hot, 0, 8));
    fs.setattr(file, SetAttr { mode: Some(0o600), ..SetAttr::default() }, 1).unwrap();
    (0..600).for_each(|_| write(&mut fs, hot, 0, 8));
    without_index(fs, rig)
}

/// A salvage counted a file's chunks only: where one that had been punched out was there again and another could not be
/// read, the file came back to its place with the bytes that were punched out, and with zeros for those that were lost.
#[test]
fn a_chunk_that_was_punched_out_does_not_make_up_for_one_that_cannot_be_read() {
    let rig = rig();
    let gone = [(b"lost+found/file".to_vec(), Doubt::Incomplete { chunks: 1 })];
    let chip = punched(&rig);
    let (mut fs, salvaged) = salvage(chip.clone(), &rig);
    assert_eq!(salvaged.moved, gone, "the record of the hole is still there");
    let lost_found = fs.lookup(ROOT_INO, b"lost+found").unwrap().ino;
    let file = fs.lookup(lost_found, b"file").unwrap().ino;
    let mut data = [0; CHUNK];
    fs.read(file, CHUNK as u64, &mut data).unwrap();
    assert_eq!(data, [2; CHUNK], "what was punched out is not there");
    for corruption in [Corruption::Uncorrectable, Corruption::FlipBits(9)] {
        let mut chip = chip.clone();
        damage(&mut chip, 3, corruption);
        let (mut fs, salvaged) = salvage(chip, &rig);
        assert_eq!(salvaged.moved, gone);
        assert!(fs.lookup(ROOT_INO, b"file").is_err() && fs.lookup(ROOT_INO, b"cold").is_ok());
    }
}
