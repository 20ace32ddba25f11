//! Open files: an inode without a name lives as long as somebody has it open, and no longer than the mount.

use emulator::Corruption;
use flexfs_core::{Compression, Error, Fs, Ino, MountOptions, NewNode, ROOT_INO, kind};
use nand::Nand;
use torture::crash::Rig;

const CHUNKS: u64 = 8000;

const FILE: NewNode = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };

/// A kernel that takes a mount off the tree may drop the messages that close its last files. Such a file, unlinked
/// while it was open, stayed on the unmounted chip until the next mount that wrote.
#[test]
fn a_file_without_a_name_that_is_open_at_the_unmount_goes_with_it() {
    let rig = Rig::small("flexfs-mlc", 64, 16, MountOptions::default()).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let ino = fs.create(ROOT_INO, b"file", FILE, 1).unwrap().ino;
    fs.open(ino).unwrap();
    fs.write(ino, 0, &[7; 50_000], 1).unwrap();
    fs.unlink(ROOT_INO, b"file", 2).unwrap();
    fs.sync().unwrap();
    assert_eq!(fs.statfs().unwrap().files, 2, "it is still open");
    let (chip, unmounted) = fs.unmount(3);
    unmounted.unwrap();

    let options = MountOptions { read_only: true, ..MountOptions::default() };
    let mut fs = Fs::mount(chip, options).map_err(|(_, error)| error).unwrap();
    assert_eq!(fs.statfs().unwrap().files, 1, "only the root is left");
    assert!(fs.getattr(ino).is_err());
    let report = fs.check().unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

/// A damaged index page under such a file kept the unmount from writing what was buffered for others, and later mounts
/// from succeeding.
#[test]
fn a_file_without_a_name_that_cannot_be_removed_harms_no_other() {
    let options = MountOptions { cache_bytes: 64 << 10, compression: Compression::Lz4, ..MountOptions::default() };
    let rig = Rig::small("flexfs-mlc", 64, 16, options).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let open = fs.create(ROOT_INO, b"open", FILE, 1).unwrap().ino;
    // Every other chunk, so that they fill more pages of the index than are kept in memory.
    for chunk in 0..CHUNKS {
        fs.write(open, chunk * 8192, &[7; 4096], 1).unwrap();
    }
    let other = fs.create(ROOT_INO, b"other", FILE, 1).unwrap().ino;
    let (chip, unmounted) = fs.unmount(1);
    unmounted.unwrap();

    let (mut pages, mut refused, mut kept) = (0, 0, 0);
    for (block, page) in chip.written_pages() {
        pages += 1;
        let Ok(mut fs) = Fs::mount(chip.snapshot(), rig.options.clone()) else { panic!("it was unmounted") };
        fs.open(open).unwrap();
        fs.unlink(ROOT_INO, b"open", 2).unwrap();
        fs.write(other, 0, b"buffered", 2).unwrap();
        fs.chip_mut().faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
        let (chip, unmounted) = fs.unmount(3);
        refused += u32::from(unmounted.is_err());
        match Fs::mount(chip, rig.options.clone()) {
            Ok(mut fs) => {
                let uncounted = fs.check().unwrap().findings.into_iter().find(|line| is_uncounted(line));
                assert_eq!(uncounted, None, "block {block}, page {page}");
                kept += u32::from(holds(fs, other, b"buffered", (block, page)));
            }
            Err((_, error)) => assert!(unmounted.is_err(), "block {block}, page {page}: {error}"),
        }
    }
    println!("{pages} pages: {refused} unmounts refused, the other file whole after {kept}");
    assert!(kept >= pages - 2, "all but the root of the index, and the page that the other file itself stands in");
}

/// Whether a finding says that a block holds more than is counted, so that it may be erased.
fn is_uncounted(finding: &str) -> bool {
    let numbers: Vec<u64> = finding.split(' ').filter_map(|word| word.parse().ok()).collect();
    finding.contains("counted as live") && matches!(numbers[..], [counted, live] if live > counted)
}

/// Whether the file holds the bytes, and not what it held before.
fn holds<N: Nand>(mut fs: Fs<N>, ino: Ino, bytes: &[u8], at: (u32, u32)) -> bool {
    let mut found = [0; 100];
    match fs.read(ino, 0, &mut found) {
        Ok(count) => {
            assert!(found[..count] == *bytes || count == 0, "{at:?}");
            count > 0
        }
        Err(Error::Corrupt { .. }) => false,
        Err(error) => panic!("{at:?}: {error}"),
    }
}
