//! Times of files on a mount: calls that depend on each other leave times in their order, and what `stat` said after a
//! sync is what it says ever after.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use crate::common::{self, Dice, Disk, Mount, flexfs, image, is_one_line, need_root, output, run, stats};
use rustix::fs::{FallocateFlags, Timespec, Timestamps, UTIME_NOW, fallocate, futimens};
use rustix::io::Errno;

const TRIALS: usize = 300;

/// Both ways to mount: with the kernel's times for what it keeps back, and with the server's for all.
const MANNERS: [&str; 2] = ["rw", "writethrough"];

fn changed(path: &Path) -> i64 {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::symlink_metadata(path).unwrap();
    meta.mtime() * 1_000_000_000 + meta.mtime_nsec()
}

fn touch(file: &File) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    futimens(file, &Timestamps { last_access: now, last_modification: now }).unwrap();
}

/// The server stamped by a finer clock than the kernel: a file written after a directory was made was older than it, which
/// misleads `make` and `find -newer`.
#[test]
fn calls_that_depend_on_each_other_leave_times_in_their_order() {
    for manner in MANNERS {
        let dir = tempfile::tempdir().unwrap();
        let mount = Mount::with(&image(dir.path(), "32MiB"), &["-o", manner]);
        let touched = File::create(mount.join("touched")).unwrap();
        let mut backwards = Vec::new();
        for trial in 0..TRIALS {
            let path = |name: &str| mount.join(format!("{name}{trial}"));
            let mut times = Vec::new();
            let mut note = |call: &'static str, path: &Path| times.push((changed(path), call));
            match trial % 3 {
                0 => fs::create_dir(path("made")).unwrap(),
                1 => drop(File::create(path("made")).unwrap()),
                _ => symlink("target", path("made")).unwrap(),
            }
            note("make", &path("made"));
            let written = OpenOptions::new().write(true).create_new(true).open(path("written")).unwrap();
            written.write_all_at(b"x", 0).unwrap();
            note("write", &path("written"));
            touch(&touched);
            note("utimensat", &mount.join("touched"));
            written.write_all_at(b"y", 1).unwrap();
            note("write again", &path("written"));
            touch(&touched);
            touched.write_all_at(b"z", trial as u64).unwrap();
            note("utimensat, then write", &mount.join("touched"));
            fs::rename(path("written"), path("moved")).unwrap();
            note("rename", &mount.path);
            fallocate(&written, FallocateFlags::empty(), 0, 5_000).unwrap();
            note("fallocate", &path("moved"));
            fs::remove_file(path("moved")).unwrap();
            note("unlink", &mount.path);
            backwards.extend(times.windows(2).filter(|two| two[0].0 > two[1].0).map(|two| (trial, two.to_vec())));
        }
        assert!(backwards.is_empty(), "{manner}: {} of {TRIALS}: {:?}", backwards.len(), backwards[0]);
        drop(touched);
        mount.unmount();
    }
}

/// Changes a file in all the ways that leave a time, some of them within one tick of the kernel's clock.
fn change(path: &Path, dice: &mut Dice) {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    for _ in 0..1 + dice.below(6) {
        let (offset, len) = (dice.below(60_000), 1 + dice.below(20_000));
        match dice.below(10) {
            0 => fallocate(&file, FallocateFlags::empty(), offset, len).unwrap(),
            1 => fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len).unwrap(),
            2 => fallocate(&file, FallocateFlags::ZERO_RANGE, offset, len).unwrap(),
            3 => file.set_len(offset).unwrap(),
            // To the size it has.
            4 => file.set_len(file.metadata().unwrap().len()).unwrap(),
            5 => {
                let (mut from, mut to) = (0, 100_000);
                rustix::fs::copy_file_range(&file, Some(&mut from), &file, Some(&mut to), len as usize).unwrap();
            }
            6 => touch(&file),
            7 => rustix::fs::fsetxattr(&file, "user.x", b"1", rustix::fs::XattrFlags::empty()).unwrap(),
            8 => {
                fs::hard_link(path, path.with_extension("link")).unwrap();
                fs::remove_file(path.with_extension("link")).unwrap();
            }
            _ => file.sync_all().unwrap(),
        }
        file.write_all_at(&dice.bytes(len as usize), offset).unwrap();
    }
}

/// After `fallocate` and the like the server had another time than the kernel, which showed its own until it forgot the
/// file.
#[test]
fn what_stat_said_after_a_sync_is_what_it_says_ever_after() {
    need_root("has the kernel forget what it knows of files");
    for manner in MANNERS {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path(), "64MiB");
        let mount = Mount::with(&image, &["-o", manner]);
        fs::create_dir(mount.join("dir")).unwrap();
        let mut dice = Dice::new(25);
        for number in 0..150 {
            change(&mount.join(format!("dir/file{number}")), &mut dice);
        }
        rustix::fs::sync();
        File::open(&mount.path).unwrap().sync_all().unwrap();
        let said = stats(&mount.path);
        assert!(said.len() > 150, "{}", said.len());
        common::drop_caches();
        common::assert_same_stats(&said, &stats(&mount.path), manner);
        mount.kill();
        let mount = Mount::with(&image, &["-o", manner]);
        common::assert_same_stats(&said, &stats(&mount.path), manner);
        mount.unmount();
        let mount = Mount::with(&image, &["-o", manner]);
        common::assert_same_stats(&said, &stats(&mount.path), manner);
        mount.unmount();
    }
}

/// The first and the last second of which all times can be kept.
const KEPT: [i64; 2] = [-9_223_372_036, 9_223_372_035];

fn set(file: &File, accessed: i64, modified: i64) -> rustix::io::Result<()> {
    let time = |tv_sec| Timespec { tv_sec, tv_nsec: 500_000_000 };
    futimens(file, &Timestamps { last_access: time(accessed), last_modification: time(modified) })
}

/// The nearest time was kept, of which the kernel did not know: `stat` said something else after a remount.
#[test]
fn a_time_that_cannot_be_kept_is_refused_and_changes_nothing() {
    use std::os::unix::fs::MetadataExt;
    for manner in MANNERS {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path(), "32MiB");
        let mount = Mount::with(&image, &["-o", manner]);
        let file = File::create(mount.join("file")).unwrap();
        let times = || {
            let meta = file.metadata().unwrap();
            [(meta.atime(), meta.atime_nsec()), (meta.mtime(), meta.mtime_nsec())]
        };
        for kept in KEPT {
            set(&file, kept, kept).unwrap();
            for lost in [KEPT[0] - 2, KEPT[1] + 2, i64::MIN, i64::MAX] {
                for (accessed, modified) in [(lost, 0), (0, lost)] {
                    assert_eq!(set(&file, accessed, modified), Err(Errno::INVAL), "{manner}: {lost}");
                }
            }
            assert_eq!(times(), [(kept, 500_000_000); 2], "{manner}");
        }
        let said = times();
        drop(file);
        mount.unmount();
        let mount = Mount::with(&image, &["-o", manner]);
        let meta = fs::metadata(mount.join("file")).unwrap();
        assert_eq!([(meta.atime(), meta.atime_nsec()), (meta.mtime(), meta.mtime_nsec())], said, "{manner}");
        mount.unmount();
    }
}

#[test]
fn a_copy_into_an_image_names_the_file_whose_time_cannot_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "8MiB");
    // Not every file system can hold such a time.
    let disk = Disk::new(dir.path(), "1M");
    let tree = disk.0.join("tree");
    fs::create_dir(&tree).unwrap();
    let file = File::create(tree.join("file")).unwrap();
    let made = dir.path().join("made.img");
    let fails = |told: &str| {
        let commands = [
            flexfs(["put"]).arg(&image).arg(&tree).arg("/").output().unwrap(),
            output(flexfs(["mkfs", "--size", "8MiB", "--from"]).arg(&tree).arg(&made)),
        ];
        for ended in commands {
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(ended.status.code() == Some(1) && is_one_line(&ended.stderr), "{said}");
            assert!(said.contains(tree.join("file").to_str().unwrap()) && said.contains(told), "{said}");
        }
        assert!(!made.exists());
        common::assert_clean(&image);
    };
    for lost in [KEPT[0] - 2, KEPT[1] + 2] {
        set(&file, 0, lost).unwrap();
        fails("last modification cannot be kept: times are from 1677 to 2262");
    }
    for kept in KEPT {
        set(&file, kept, kept).unwrap();
        run(flexfs(["put"]).arg(&image).arg(&tree).arg("/"));
        run(flexfs(["mkfs", "--force", "--size", "8MiB", "--from"]).arg(&tree).arg(&made));
    }
    fs::remove_file(&made).unwrap();
    set(&file, KEPT[1] + 2, 0).unwrap();
    let ended = output(flexfs(["put"]).arg(&image).arg(&tree).arg("/"));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("last access cannot be kept"));
}
