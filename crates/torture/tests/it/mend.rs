//! Volumes of which a page cannot be read any more are mended: sound again, with the contents of every file (if not its
//! name) but what stood in that page, wherever the power goes meanwhile, and however often they are mended.

use std::collections::BTreeSet;

use emulator::{Chip, Corruption};
use flexfs_core::{Ended, Error, Fs, Ino, MountOptions, NewNode, Policy, ROOT_INO, kind};
use torture::crash::Rig;

const FILES: u8 = 12;
const FILE_BYTES: usize = 2 * 4096;

/// An unmounted volume of directories with a file in each, and what is in those.
fn volume() -> (Rig, Chip, BTreeSet<Vec<u8>>) {
    let options = MountOptions { policy: Policy::SLC_ONLY, cache_bytes: 64 << 10, ..MountOptions::default() };
    let rig = Rig::small("flexfs-mlc", 32, 16, options).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let new = |mode| NewNode { mode, uid: 0, gid: 0, rdev: 0 };
    let mut was = BTreeSet::new();
    for number in 0..FILES {
        let name = [b'a' + number];
        let dir = fs.create(ROOT_INO, &name, new(kind::DIR | 0o755), 1).unwrap().ino;
        let ino = fs.create(dir, b"file", new(kind::FILE | 0o644), 1).unwrap().ino;
        fs.setxattr(ino, b"user.one", b"1", false, false, 1).unwrap();
        fs.setxattr(ino, b"user.two", b"2", false, false, 1).unwrap();
        fs.write(ino, 0, &[number; FILE_BYTES], 1).unwrap();
        was.insert(vec![number; FILE_BYTES]);
        if number % 3 == 0 {
            fs.sync().unwrap();
        }
    }
    let (chip, unmounted) = fs.unmount(1);
    unmounted.unwrap();
    (rig, chip, was)
}

fn mount(chip: Chip, rig: &Rig) -> Fs<Chip> {
    Fs::mount(chip, rig.options.clone()).map_err(|(_, error)| error).unwrap()
}

/// The contents of all files below a directory.
fn contents(fs: &mut Fs<Chip>, dir: Ino, found: &mut BTreeSet<Vec<u8>>) {
    let mut names = Vec::new();
    fs.readdir(dir, 0, &mut |entry| {
        names.push(entry);
        true
    })
    .unwrap();
    for entry in names {
        if entry.kind == kind::DIR {
            contents(fs, entry.ino, found);
            continue;
        }
        let mut data = vec![0; FILE_BYTES + 1];
        let count = fs.read(entry.ino, 0, &mut data).unwrap();
        data.truncate(count);
        found.insert(data);
    }
}

/// A sound volume without at most one of the files there were.
fn must_be_whole(chip: Chip, rig: &Rig, was: &BTreeSet<Vec<u8>>, place: &str) {
    let mut fs = mount(chip, rig);
    let report = fs.check().unwrap();
    assert!(report.findings.is_empty(), "{place}: {}", report.findings.join("\n"));
    let mut found = BTreeSet::new();
    contents(&mut fs, ROOT_INO, &mut found);
    let lost = was.difference(&found).count();
    assert!(lost <= 1, "{place}: {lost} files are lost");
}

/// The chip once for each page that a check notices, with that page unreadable.
fn damaged(rig: &Rig, chip: &Chip) -> Vec<(String, Chip)> {
    let damage = |(block, page)| {
        let mut damaged = chip.snapshot();
        damaged.faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
        (format!("block {block}, page {page}"), damaged)
    };
    let noticed = |chip: &Chip| !mount(chip.snapshot(), rig).check().unwrap().findings.is_empty();
    chip.written_pages().into_iter().map(damage).filter(|(_, chip)| noticed(chip)).collect()
}

/// Mends and unmounts, or builds the volume again where its index cannot be read; the chip, and whether all went well.
fn mend(chip: Chip, rig: &Rig) -> (Chip, Result<(), Error>) {
    let chip = match Fs::mount(chip, rig.options.clone()) {
        Ok(mut fs) => {
            // Without the root's inode it is read-only.
            let damaged = fs.info().unwrap().ended == Some(Ended::Damaged);
            match fs.mend(true, 1) {
                Ok(_) => return fs.unmount(1),
                Err(Error::Corrupt { .. }) => fs.into_chip(),
                Err(Error::ReadOnly) if damaged => fs.into_chip(),
                Err(error) => return (fs.into_chip(), Err(error)),
            }
        }
        Err((chip, Error::Corrupt { .. })) => chip,
        Err((chip, error)) => return (chip, Err(error)),
    };
    build_again(chip, rig)
}

fn build_again(chip: Chip, rig: &Rig) -> (Chip, Result<(), Error>) {
    match Fs::salvage(chip, [9; 16], rig.options.clone(), &mut |_, _| {}) {
        Ok((fs, _)) => fs.unmount(1),
        Err((chip, error)) => (chip, Err(error)),
    }
}

/// A page of nodes holds names and inodes of one file, or of many: their contents stand elsewhere. Where it held the
/// root's inode, too, and the end of the last group, all of that group was taken for unfinished.
#[test]
fn mending_loses_no_more_than_the_page_that_cannot_be_read() {
    let (rig, chip, was) = volume();
    let damaged = damaged(&rig, &chip);
    assert!(damaged.len() > 20, "{} pages matter", damaged.len());
    for (place, chip) in damaged {
        let (chip, outcome) = mend(chip, &rig);
        outcome.unwrap_or_else(|error| panic!("{place}: {error}"));
        must_be_whole(chip.snapshot(), &rig, &was, &place);
        // What one salvage took for part of the volume is that for the next one, too.
        let (chip, outcome) = build_again(chip, &rig);
        outcome.unwrap_or_else(|error| panic!("{place}: {error}"));
        must_be_whole(chip, &rig, &was, &place);
    }
}

#[test]
fn a_mend_that_is_cut_anywhere_can_be_done_again() {
    let (rig, chip, was) = volume();
    let (mut cuts, mut whole) = (0, 0);
    for (place, chip) in damaged(&rig, &chip) {
        for cut in 0.. {
            let mut torn = chip.snapshot();
            torn.faults_mut().cut_power_at(cut);
            let (mut torn, outcome) = mend(torn, &rig);
            if outcome.is_ok() && torn.is_powered() {
                break;
            }
            torn.power_on();
            let place = format!("{place}, cut at {cut}");
            let (mended, outcome) = mend(torn, &rig);
            outcome.unwrap_or_else(|error| panic!("{place}: {error}"));
            must_be_whole(mended, &rig, &was, &place);
            cuts += 1;
        }
        whole += 1;
    }
    println!("{cuts} cuts in mends of {whole} volumes");
    assert!(cuts > 5 * whole, "{cuts} cuts in {whole} mends");
}
