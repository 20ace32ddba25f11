//! With its writeback cache the kernel keeps the times of changes of files and hands them over later, even of files that
//! were removed meanwhile. Invariant: `syncfs` fails for what was lost, and not for what was removed.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crate::common::{Dice, Disk, Mount, assert_clean, image, mount_type, run, wait_for};
use rustix::fs::syncfs;
use rustix::io::Errno;

/// What `sync -f` does: any error of the volume since the last one that was told.
fn sync_volume(path: &Path) -> Result<(), Errno> {
    syncfs(File::open(path).unwrap())
}

/// The server answered that there is no such inode, or that it is stale, and the next `syncfs` failed with that.
#[test]
fn a_sync_does_not_fail_for_times_of_what_was_removed() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    assert_eq!(mount_type(&mount.path).as_deref(), Some("fuse.flexfs"));
    type Remove = fn(&Path);
    let removals: [(&str, Remove); 4] = [
        ("unlink", |path| fs::remove_file(path.join("file")).unwrap()),
        ("rename over", |path| {
            fs::write(path.join("other"), b"other").unwrap();
            fs::rename(path.join("other"), path.join("file")).unwrap();
        }),
        ("rmdir", |path| fs::remove_dir(path.join("directory")).unwrap()),
        ("unlink of a file that is written", |path| {
            fs::write(path.join("file"), b"more").unwrap();
            fs::remove_file(path.join("file")).unwrap();
        }),
    ];
    for (name, remove) in removals {
        fs::write(mount.join("file"), b"file").unwrap();
        fs::create_dir_all(mount.join("directory")).unwrap();
        assert_eq!(sync_volume(&mount.path), Ok(()), "before {name}");
        remove(&mount.path);
        for _ in 0..2 {
            assert_eq!(sync_volume(&mount.path), Ok(()), "{name}");
        }
    }
    mount.unmount();
    assert_clean(&image);
}

/// What a file that is there has lost is told by `syncfs`. A kernel may hand over without waiting for the answer; then a
/// later `syncfs` tells.
#[test]
fn a_sync_fails_for_what_a_living_file_has_lost() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::new(dir.path(), "8m");
    let image = image(&disk.0, "64MiB");
    let mount = Mount::new(&image);
    let file = File::create(mount.join("file")).unwrap();
    file.write_all_at(b"file", 0).unwrap();
    assert_eq!(sync_volume(&mount.path), Ok(()));
    // The disk under the image is filled by another, and the server finds out at a call that waits for it.
    let _ = fs::write(disk.0.join("filler"), Dice::new(1).bytes(8 << 20));
    let failed = (0..200).find_map(|number| {
        let made = fs::create_dir(mount.join(number.to_string()));
        made.and_then(|()| File::open(&mount.path)?.sync_all()).err()
    });
    assert!(failed.is_some(), "the disk is not full");
    assert_eq!(sync_volume(&mount.path), Ok(()), "nothing is handed over");
    file.write_all_at(b"more", 0).unwrap();
    wait_for("a sync that fails", || sync_volume(&mount.path).is_err());
    run(Command::new("mount").args(["-o", "remount,size=64m"]).arg(&disk.0));
}
