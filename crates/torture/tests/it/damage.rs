//! One damaged page under a mounted volume: an operation that meets it is done or is not, and others go on.
//!
//! Each programmed page of a volume with one fragmented file is damaged in turn, on a copy of its own.

use emulator::{Chip, Corruption};
use flexfs_core::{Ended, Error, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, RenameMode, Result, SetAttr, kind};
use torture::content::{Fill, Texture};
use torture::crash::Rig;

const FILE: NewNode = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
/// Pieces of the fragmented file: more of the index than is kept in memory.
const PIECES: u64 = 700;
const STEP_BYTES: u64 = 8192;
/// Small files made after it.
const OTHERS: u64 = 200;

/// A volume with a damaged page, and in it the fragmented file and a small one.
struct Damaged {
    fs: Fs<Chip>,
    victim: Ino,
    good: Ino,
}

/// Does something to each damaged volume; how often it was refused.
fn for_each_page(policy: Policy, mut act: impl FnMut(&mut Damaged) -> Result<()>) -> u32 {
    let options = MountOptions { policy, cache_bytes: 128 << 10, ..MountOptions::default() };
    let rig = Rig::small("flexfs-mlc", 96, 16, options).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let [victim, good] = [&b"victim"[..], b"good"].map(|name| fs.create(ROOT_INO, name, FILE, 1).unwrap().ino);
    let piece = Fill { seed: 1, start: 0, texture: Texture::Noise }.bytes(4096);
    (0..PIECES).for_each(|number| assert_eq!(fs.write(victim, number * STEP_BYTES, &piece, 1).unwrap(), piece.len()));
    // Between the fragmented file's last pieces and the inodes to come: no page of the index holds both.
    for number in 0..OTHERS {
        let other = fs.create(ROOT_INO, format!("other{number}").as_bytes(), FILE, 1).unwrap().ino;
        fs.write(other, 0, b"something", 1).unwrap();
    }
    let (chip, unmounted) = fs.unmount(1);
    unmounted.unwrap();

    let mut refused = 0;
    for (block, page) in chip.written_pages() {
        let mut fs = Fs::mount(chip.snapshot(), rig.options.clone()).map_err(|(_, error)| error).unwrap();
        fs.getattr(victim).unwrap();
        fs.chip_mut().faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
        if let Err(error) = act(&mut Damaged { fs, victim, good }) {
            assert_eq!(error.errno(), 5, "block {block}, page {page}: {error}");
            refused += 1;
        }
    }
    refused
}

impl Damaged {
    /// Whether the name is there, though what it leads to may be unreadable.
    fn has(&mut self, name: &[u8]) -> bool {
        !matches!(self.fs.lookup(ROOT_INO, name), Err(Error::NotFound))
    }
}

/// A new version moved over a file whose index could not be read lost its only name.
#[test]
fn what_is_moved_over_a_damaged_file_keeps_one_of_its_names() {
    for_each_page(Policy::BASELINE, |damaged| {
        let moved = damaged.fs.rename(ROOT_INO, b"good", ROOT_INO, b"victim", RenameMode::Replace, 3);
        damaged.fs.sync()?;
        assert_eq!(damaged.has(b"good"), moved.is_err());
        let (leads_to, good) = (damaged.fs.lookup(ROOT_INO, b"victim")?.ino, damaged.good);
        assert_eq!(leads_to == good, moved.is_ok());
        moved.map(drop)
    });
}

/// It was refused, but the name was gone, and the file's space with it for good.
#[test]
fn a_damaged_file_can_be_removed() {
    let refused = for_each_page(Policy::BASELINE, |damaged| {
        let removed = damaged.fs.unlink(ROOT_INO, b"victim", 3);
        damaged.fs.sync()?;
        assert_eq!(damaged.has(b"victim"), removed.is_err());
        if let Ok(attr) = damaged.fs.getattr(damaged.victim) {
            assert_eq!(attr.nlink == 0, removed.is_ok());
        }
        removed
    });
    assert!(refused <= 1, "only the page that holds its inode and name may be in the way");
}

/// An append to such a file was taken in, and then kept everything from being synced.
#[test]
fn what_a_damaged_file_takes_in_keeps_nobody_from_syncing() {
    for policy in [Policy::BASELINE, Policy::NATIVE_ONLY] {
        let refused = for_each_page(policy, |damaged| {
            let appended = damaged.fs.write(damaged.victim, PIECES * STEP_BYTES, b"tail", 3);
            damaged.fs.sync().unwrap();
            let other = damaged.fs.write(damaged.good, 4096, b"more", 5);
            damaged.fs.sync().unwrap();
            appended.and(other).map(drop)
        });
        assert!(refused <= 2, "{refused}: only the other file's inode and its place in the index may be in the way");
    }
}

/// A shorter size that was refused took what had been written and not synced yet with it.
#[test]
fn a_size_that_is_refused_leaves_what_was_just_written() {
    for_each_page(Policy::BASELINE, |damaged| {
        let at = 5 * STEP_BYTES;
        damaged.fs.write(damaged.victim, at, b"NEWDATA", 3)?;
        let cut = damaged.fs.setattr(damaged.victim, SetAttr { size: Some(STEP_BYTES), ..SetAttr::default() }, 3);
        let mut found = [0; 7];
        let count = damaged.fs.read(damaged.victim, at, &mut found)?;
        assert_eq!((count, &found == b"NEWDATA"), if cut.is_ok() { (0, false) } else { (7, true) });
        cut.map(drop)
    });
}

/// It was refused half-way: counted, but without a name.
#[test]
fn a_file_made_with_attributes_is_there_or_is_not_counted() {
    for_each_page(Policy::BASELINE, |damaged| {
        let before = damaged.fs.statfs()?.files;
        let attributes: [(&[u8], &[u8]); 2] = [(b"system.a", b"1"), (b"system.b", b"2")];
        let made = damaged.fs.create_with(ROOT_INO, b"made", FILE, &attributes, 3);
        damaged.fs.sync()?;
        assert_eq!(damaged.fs.statfs()?.files - before, u64::from(made.is_ok()));
        assert_eq!(damaged.has(b"made"), made.is_ok());
        made.map(drop)
    });
}

/// A file was made and synced while the page of the index could not be read that its place was to be in: making it takes
/// no look there. The log was then applied with one, and every mount since refused.
#[test]
fn what_was_synced_beside_an_unreadable_page_of_the_index_is_there_after_the_next_mount() {
    let bytes = Fill { seed: 2, start: 0, texture: Texture::Noise }.bytes(5000);
    let (mut sound, mut read_only) = (0, 0);
    for_each_page(Policy::BASELINE, |volume| {
        let late = volume.fs.create(ROOT_INO, b"late", FILE, 2)?.ino;
        assert_eq!(volume.fs.write(late, 0, &bytes, 2)?, bytes.len());
        volume.fs.sync()?;
        let mounted = Fs::mount(volume.fs.chip().snapshot(), MountOptions { now_ns: 3, ..MountOptions::default() });
        let mut fs = mounted.map_err(|(_, error)| panic!("mount: {error}")).unwrap();
        match fs.info().unwrap().ended {
            None => sound += 1,
            Some(Ended::Damaged) => read_only += 1,
            ended => panic!("{ended:?}"),
        }
        let mut found = vec![0; bytes.len()];
        let found_ino = fs.lookup(ROOT_INO, b"late").unwrap().ino;
        assert!(fs.read(found_ino, 0, &mut found).unwrap() == bytes.len() && found == bytes);
        Ok(())
    });
    assert!(sound > 500 && read_only > 0, "{sound} sound, {read_only} read-only");
}
