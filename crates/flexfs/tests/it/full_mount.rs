//! A volume that fills up under a mount: whoever writes on is told, and what `statfs` calls available can be had.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;

use crate::common::{Mount, assert_clean, image, wait_for};
use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// How much the kernel may take beyond the space, before the writer is told.
const BEYOND_BYTES: u64 = 64 << 20;

/// Through the kernel's writeback cache a writer was never told: `dd` went on without end.
#[test]
fn a_write_beyond_the_space_fails_soon_after_it() {
    for manner in ["rw", "writethrough"] {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path(), "48MiB");
        let mount = Mount::with(&image, &["-o", manner]);
        let stat = statvfs(&mount.path).unwrap();
        let space = stat.f_blocks * stat.f_frsize;
        let mut file = File::create(mount.join("endless")).unwrap();
        let (bytes, mut taken) = (vec![7; 1 << 20], 0);
        let failure = loop {
            match file.write(&bytes) {
                Ok(count) => taken += count as u64,
                Err(error) => break error,
            }
            assert!(taken <= space + BEYOND_BYTES, "{manner}: {taken} bytes were taken for {space}");
        };
        assert_eq!(failure.kind(), ErrorKind::StorageFull, "{manner}: {failure}");
        // What was held back is lost, which is said here as well; the file can be removed, and the space used again.
        let _ = file.sync_all();
        drop(file);
        fs::remove_file(mount.join("endless")).unwrap();
        // The kernel tells the server of the last close when it comes to it: until then the file keeps its space.
        wait_for("the space of the removed file", || {
            let stat = statvfs(&mount.path).unwrap();
            stat.f_bavail * stat.f_frsize > 2 * bytes.len() as u64
        });
        fs::write(mount.join("after"), &bytes).unwrap();
        File::open(mount.join("after")).unwrap().sync_all().unwrap();
        mount.unmount();
        assert_clean(&image);
        let mount = Mount::with(&image, &["-o", manner]);
        assert!(fs::read(mount.join("after")).unwrap() == bytes);
        mount.unmount();
    }
}

/// Programs that overwrite what they have, on a full volume, are not told of the failures of others.
#[test]
fn a_full_volume_takes_what_it_has_space_for() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "32MiB");
    let mount = Mount::new(&image);
    let mut kept = File::options().read(true).write(true).create_new(true).open(mount.join("kept")).unwrap();
    kept.write_all(&[1; 1 << 20]).unwrap();
    kept.sync_all().unwrap();
    let mut endless = File::create(mount.join("endless")).unwrap();
    let refused = (0..200).any(|_| endless.write_all(&[2; 1 << 20]).is_err());
    assert!(refused, "the volume is not full");
    let _ = endless.sync_all();
    for round in 3..6 {
        use std::os::unix::fs::FileExt;
        kept.write_all_at(&[round; 1 << 20], 0).unwrap();
        kept.sync_all().unwrap();
    }
    drop((kept, endless));
    mount.unmount();
    let mount = Mount::new(&image);
    assert!(fs::read(mount.join("kept")).unwrap() == [5; 1 << 20]);
    mount.unmount();
}

/// The place in the index that reserved chunks may come to take was not left out of what `statfs` called available.
#[test]
fn what_statfs_calls_available_can_be_reserved_less_a_percent() {
    for size in ["32MiB", "256MiB"] {
        let dir = tempfile::tempdir().unwrap();
        let mount = Mount::new(&image(dir.path(), size));
        fs::write(mount.join("there"), vec![1; 3 << 20]).unwrap();
        File::open(mount.join("there")).unwrap().sync_all().unwrap();
        for round in 0..3 {
            let stat = statvfs(&mount.path).unwrap();
            let len = stat.f_bavail * stat.f_frsize / 100 * 99;
            let file = File::create(mount.join("reserved")).unwrap();
            fallocate(&file, FallocateFlags::empty(), 0, len)
                .unwrap_or_else(|error| panic!("{size}, {round}: {error}"));
            assert!(file.metadata().unwrap().size() == len && file.metadata().unwrap().blocks() * 512 >= len);
            drop(file);
            fs::remove_file(mount.join("reserved")).unwrap();
        }
        mount.unmount();
    }
}
