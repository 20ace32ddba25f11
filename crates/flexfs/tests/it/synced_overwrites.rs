//! Synced overwrites through the default mount: the kernel sets the time of a change after its data, and both are one
//! program of the chip. The times are those that `stat` gave, whatever comes after the sync.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::common::{Dice, Mount, drop_caches, image, info, mount_type, need_root};
use rustix::fs::{Timespec, Timestamps, futimens};

/// Chunks of a file here.
const CHUNKS: u64 = 64;
const CHUNK_BYTES: usize = 4096;
/// Longer than a tick of the kernel's clock for files, so that each write gets a time of its own.
const PAUSE: Duration = Duration::from_millis(5);

fn written(path: &Path) -> File {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    file.write_all_at(&Dice::new(1).bytes(CHUNKS as usize * CHUNK_BYTES), 0).unwrap();
    file.sync_all().unwrap();
    file
}

/// Programs of the mounted chip for callers' data and for metadata.
fn programs(image: &Path) -> u64 {
    let programs = &info(image)["mounted"]["operations"]["programs"];
    ["host", "metadata"].iter().map(|cause| programs[cause].as_u64().unwrap()).sum()
}

fn overwrite(file: &File, count: u64, sync: fn(&File) -> std::io::Result<()>) {
    let mut dice = Dice::new(2);
    for _ in 0..count {
        let offset = dice.below(CHUNKS) * CHUNK_BYTES as u64;
        file.write_all_at(&dice.bytes(CHUNK_BYTES), offset).unwrap();
        sync(file).unwrap();
        thread::sleep(PAUSE);
    }
}

/// Two programs each: one of them a page of nodes for the time.
#[test]
fn a_synced_overwrite_is_one_program_through_a_mount() {
    const COUNT: u64 = 500;
    for sync in [File::sync_all, File::sync_data] {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path(), "64MiB");
        let mount = Mount::new(&image);
        assert_eq!(mount_type(&mount.path).as_deref(), Some("fuse.flexfs"));
        let file = written(&mount.join("file"));
        let before = programs(&image);
        overwrite(&file, COUNT, sync);
        let taken = programs(&image) - before;
        // Summaries of blocks, a node for the chunk in the first slot of a block, and the timer between data and time.
        assert!(taken <= COUNT + COUNT * 11 / 200, "{taken} programs for {COUNT} overwrites");
        drop(file);
        mount.unmount();
    }
}

/// A file's times in nanoseconds.
fn times(path: &Path) -> [i64; 2] {
    let meta = fs::metadata(path).unwrap();
    [meta.mtime() * 1_000_000_000 + meta.mtime_nsec(), meta.ctime() * 1_000_000_000 + meta.ctime_nsec()]
}

fn set_mtime(file: &File) {
    let time = Timespec { tv_sec: 1_234_567, tv_nsec: 789_012_345 };
    futimens(file, &Timestamps { last_access: time, last_modification: time }).unwrap();
}

/// Writes whole chunks and parts of chunks of files, sets times before and behind, and syncs.
fn change(mount: &Mount, turn: u64) {
    for number in 0..12 {
        let path = mount.join(format!("file{number}"));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        let mut dice = Dice::new(turn * 100 + number);
        let (offset, len) = match number % 3 {
            0 => (dice.below(CHUNKS) * CHUNK_BYTES as u64, CHUNK_BYTES),
            1 => (dice.below(100_000), 1 + dice.below(10_000) as usize),
            _ => (0, 3 * CHUNK_BYTES),
        };
        if number % 4 == 1 {
            set_mtime(&file);
        }
        file.write_all_at(&dice.bytes(len), offset).unwrap();
        if number % 4 == 2 {
            set_mtime(&file);
        }
        if number % 2 == 0 {
            file.sync_all().unwrap()
        } else {
            file.sync_data().unwrap()
        }
        if number % 4 == 3 {
            thread::sleep(PAUSE);
            file.write_all_at(&dice.bytes(CHUNK_BYTES), 0).unwrap();
            set_mtime(&file);
            file.sync_data().unwrap();
        }
    }
}

#[test]
fn times_after_a_sync_stay_to_the_nanosecond() {
    need_root("has the kernel forget what it knows of files");
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mut mount = Mount::new(&image);
    for turn in 0..6 {
        assert_eq!(mount_type(&mount.path).as_deref(), Some("fuse.flexfs"));
        change(&mount, turn);
        let all = |mount: &Mount| -> Vec<[i64; 2]> {
            (0..12).map(|number| times(&mount.join(format!("file{number}")))).collect()
        };
        let said = all(&mount);
        assert!(said.iter().filter(|[mtime_ns, _]| *mtime_ns == 1_234_567_789_012_345).count() >= 6, "{said:?}");
        drop_caches();
        assert_eq!(all(&mount), said, "turn {turn}, once the kernel forgot them");
        if turn % 2 == 0 {
            mount.kill()
        } else {
            mount.unmount()
        }
        mount = Mount::new(&image);
        assert_eq!(all(&mount), said, "turn {turn}, after the next mount");
    }
    mount.unmount();
}
