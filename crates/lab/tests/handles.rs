//! Open files: an inode without a name lives as long as somebody has it open, and no longer than the mount.

use flexfs_core::{Fs, Mode, MountOptions, NewNode, ROOT_INO, kind};
use lab::crash::Rig;

/// A kernel that takes a mount off the tree may drop the messages that close its last files. Such a file, unlinked
/// while it was open, stayed on the unmounted chip until the next mount that wrote.
#[test]
fn a_file_without_a_name_that_is_open_at_the_unmount_goes_with_it() {
    let options = MountOptions { mode: Mode::Baseline, ..MountOptions::default() };
    let rig = Rig::small("flexfs-mlc", 64, 16, options).unwrap();
    let mut fs = rig.format(rig.chip(1).unwrap(), 1).unwrap().fs;
    let node = NewNode { mode: kind::FILE | 0o644, uid: 0, gid: 0, rdev: 0 };
    let ino = fs.create(ROOT_INO, b"file", node, 1).unwrap().ino;
    fs.open(ino).unwrap();
    fs.write(ino, 0, &[7; 50_000], 1).unwrap();
    fs.unlink(ROOT_INO, b"file", 2).unwrap();
    fs.sync(2).unwrap();
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
