//! Directories on a mount: the kernel keeps their listings, and opens them without asking the server.
//!
//! Invariant: a listing begun after a change shows it, and a directory that is removed while it is open can be looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Dir, Mode, RawDir, RenameFlags, fchmod, fstat, renameat_with};
use rustix::io::Errno;

use crate::common::{Mount, assert_clean, image, mount_type, run};

fn names(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn opened(dir: &Path) -> Dir {
    Dir::read_from(File::open(dir).unwrap()).unwrap()
}

#[test]
fn a_listing_shows_what_was_changed_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    let (one, two) = (mount.join("one"), mount.join("two"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    fs::write(mount.join("outside"), "x").unwrap();
    type Change = fn(&Path, &Path);
    let changes: [(Change, &[&str], &[&str]); 10] = [
        (|one, _| fs::write(one.join("file"), "x").unwrap(), &["file"], &[]),
        (|one, _| fs::create_dir(one.join("dir")).unwrap(), &["dir", "file"], &[]),
        (|one, _| symlink("file", one.join("link")).unwrap(), &["dir", "file", "link"], &[]),
        (|one, two| fs::hard_link(one.join("file"), two.join("hard")).unwrap(), &["dir", "file", "link"], &["hard"]),
        (|one, two| fs::rename(one.join("dir"), two.join("moved")).unwrap(), &["file", "link"], &["hard", "moved"]),
        (|one, _| fs::rename(one.join("file"), one.join("link")).unwrap(), &["link"], &["hard", "moved"]),
        (|_, two| fs::remove_dir(two.join("moved")).unwrap(), &["link"], &["hard"]),
        (|one, _| fs::rename(one.join("../outside"), one.join("inside")).unwrap(), &["inside", "link"], &["hard"]),
        (
            |one, two| renameat_with(CWD, one.join("link"), CWD, two.join("white"), RenameFlags::WHITEOUT).unwrap(),
            &["inside", "link"],
            &["hard", "white"],
        ),
        (|one, _| fs::remove_file(one.join("inside")).unwrap(), &["link"], &["hard", "white"]),
    ];
    for (number, (change, in_one, in_two)) in changes.into_iter().enumerate() {
        // Listed before, so that the kernel has something to keep.
        for _ in 0..2 {
            names(&one);
            names(&two);
        }
        change(&one, &two);
        let expected = [in_one, in_two].map(|names| names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!([names(&one), names(&two)], expected, "after change {number}");
    }
    mount.unmount();
    assert_clean(&image);
}

/// The next batch of a listing, as one call of the kernel gives it: nothing at its end.
fn batch<Handle: std::os::fd::AsFd>(listing: &mut RawDir<'_, Handle>) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(entry) = listing.next() {
        names.push(entry.unwrap().file_name().to_str().unwrap().to_owned());
        if listing.is_buffer_empty() {
            break;
        }
    }
    names
}

/// The kernel does not look whether the listing that it keeps has gone stale while a reader is in the middle: that reader
/// went on in what another had begun before the change.
#[test]
fn a_listing_does_not_go_on_in_an_older_one() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "16MiB"));
    type Change = fn(&Path, &str);
    let changes: [Change; 4] = [
        |dir, last| fs::remove_file(dir.join(last)).unwrap(),
        |dir, last| fs::rename(dir.join(last), dir.join("../elsewhere")).unwrap(),
        |dir, last| fs::rename(dir.join(last), dir.join("a")).unwrap(),
        |dir, last| renameat_with(CWD, dir.join("../outside"), CWD, dir.join(last), RenameFlags::EXCHANGE).unwrap(),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let listed = mount.join(number.to_string());
        fs::create_dir(&listed).unwrap();
        fs::create_dir_all(mount.join("outside")).unwrap();
        for name in ["a", "b", "c", "d"] {
            fs::write(listed.join(name), "x").unwrap();
        }
        let (older, newer) = (File::open(&listed).unwrap(), File::open(&listed).unwrap());
        let (mut older_bytes, mut newer_bytes) = (Vec::with_capacity(4096), Vec::with_capacity(4096));
        let mut older = RawDir::new(&older, older_bytes.spare_capacity_mut());
        let mut newer = RawDir::new(&newer, newer_bytes.spare_capacity_mut());
        let before = batch(&mut older);
        assert_eq!(before.len(), 6, "{before:?}");
        change(&listed, &before[5]);
        let mut after = batch(&mut newer);
        assert_eq!(batch(&mut older), [""; 0]);
        after.extend(batch(&mut newer));
        let expected = names(&listed);
        assert_eq!(after.iter().filter(|name| *name != "." && *name != "..").count(), expected.len(), "{after:?}");
    }
    mount.unmount();
}

/// The listing of a moved directory was kept, and its `..` led to the parent before.
#[test]
fn the_listing_of_a_moved_directory_shows_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "16MiB"));
    for name in ["one/child", "two/other"] {
        fs::create_dir_all(mount.join(name)).unwrap();
    }
    let parent = |dir: &str| {
        // To its end, from where on the kernel keeps it.
        let entries: Vec<_> = opened(&mount.join(dir)).map(Result::unwrap).collect();
        let entry = entries.iter().find(|entry| entry.file_name() == c"..");
        entry.unwrap().ino()
    };
    let ino = |name: &str| fs::metadata(mount.join(name)).unwrap().ino();
    assert_eq!([parent("one/child"), parent("two/other")], [ino("one"), ino("two")]);
    fs::rename(mount.join("one/child"), mount.join("two/child")).unwrap();
    assert_eq!(parent("two/child"), ino("two"));
    fs::create_dir(mount.join("one/third")).unwrap();
    assert_eq!([parent("one/third"), parent("two/other")], [ino("one"), ino("two")]);
    renameat_with(CWD, mount.join("one/third"), CWD, mount.join("two/other"), RenameFlags::EXCHANGE).unwrap();
    assert_eq!([parent("one/third"), parent("two/other")], [ino("one"), ino("two")]);
    mount.unmount();
}

#[test]
fn a_listing_goes_on_where_telldir_said() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "16MiB"));
    for number in 0..1_000 {
        fs::write(mount.join(number.to_string()), "").unwrap();
    }
    // The second time the kernel answers alone.
    for round in 0..2 {
        let entries: Vec<_> = opened(&mount.path).map(Result::unwrap).collect();
        assert_eq!(entries.len(), 1_002);
        let mut stream = opened(&mount.path);
        for at in [500, 3, 999, 0, 1_001] {
            stream.seek(entries[at].offset()).unwrap();
            let rest: Vec<_> = stream.by_ref().map(|entry| entry.unwrap().file_name().to_owned()).collect();
            let expected: Vec<_> = entries[at + 1..].iter().map(|entry| entry.file_name().to_owned()).collect();
            assert_eq!(rest, expected, "from {at} on, round {round}");
            stream.rewind();
        }
    }
    mount.unmount();
}

/// A name that stays is listed once, whatever happens to others meanwhile, and whoever else lists.
#[test]
fn twenty_thousand_names_are_listed_while_others_change() {
    const STAYING: usize = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    for number in 0..STAYING {
        fs::write(mount.join(format!("stays{number}")), "").unwrap();
    }
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !ended.load(Ordering::Relaxed) {
                let (name, other) = (mount.join(format!("comes{number}")), mount.join(format!("goes{number}")));
                fs::write(&name, "").unwrap();
                fs::rename(&name, &other).unwrap();
                if number % 2 == 0 {
                    fs::remove_file(&other).unwrap();
                }
                number += 1;
            }
        });
        let listers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..3 {
                        let mut seen = BTreeMap::<String, u32>::new();
                        for entry in fs::read_dir(&mount.path).unwrap() {
                            *seen.entry(entry.unwrap().file_name().into_string().unwrap()).or_default() += 1;
                        }
                        let once = (0..STAYING).filter(|number| seen.get(&format!("stays{number}")) == Some(&1));
                        assert_eq!(once.count(), STAYING);
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = listers.into_iter().map(|lister| lister.join()).collect();
        ended.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(Result::is_ok), "a listing missed a name, or had it twice");
    });
    mount.unmount();
    assert_clean(&image);
}

#[test]
fn a_removed_directory_that_is_open_can_be_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    for options in ["rw", "writethrough", "relatime"] {
        let mount = Mount::with(&image, &["-o", options]);
        let free = || rustix::fs::statvfs(&mount.path).unwrap().f_ffree;
        let before = free();
        for name in ["removed", "replaced", "other"] {
            fs::create_dir(mount.join(name)).unwrap();
        }
        let handles = ["removed", "replaced"].map(|name| File::open(mount.join(name)).unwrap());
        let inodes = handles.each_ref().map(|handle| fstat(handle).unwrap().st_ino);
        fs::remove_dir(mount.join("removed")).unwrap();
        fs::rename(mount.join("other"), mount.join("replaced")).unwrap();
        for (handle, ino) in handles.iter().zip(inodes) {
            fchmod(handle, Mode::from_raw_mode(0o710)).unwrap();
            let found = fstat(handle).unwrap();
            assert_eq!((found.st_nlink, found.st_ino, found.st_mode), (0, ino, 0o40710), "{options}");
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(handle));
            assert_eq!(fs::File::create(format!("{path}/new")).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        }
        drop(handles);
        assert_eq!(fs::metadata(mount.join("replaced")).unwrap().nlink(), 2);
        fs::remove_dir(mount.join("replaced")).unwrap();
        // The kernel says late what it has forgotten.
        crate::common::wait_for("the removed directories to go", || free() >= before);
        mount.unmount();
        assert_clean(&image);
    }
}

#[test]
fn a_directory_is_not_held_by_a_removal_that_fails() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    for name in ["full/child", "other"] {
        fs::create_dir_all(mount.join(name)).unwrap();
    }
    let full = File::open(mount.join("full")).unwrap();
    assert_eq!(rustix::fs::rmdir(mount.join("full")), Err(Errno::NOTEMPTY));
    assert_eq!(rustix::fs::rename(mount.join("other"), mount.join("full")), Err(Errno::NOTEMPTY));
    assert_eq!(fstat(&full).unwrap().st_nlink, 3);
    fs::remove_dir_all(mount.join("full")).unwrap();
    assert_eq!(fstat(&full).unwrap().st_nlink, 0);
    drop(full);
    mount.unmount();
    assert_clean(&image);
}

/// Inodes of a volume that are in use.
fn used_inodes(mount: &Mount) -> u64 {
    let stat = rustix::fs::statvfs(&mount.path).unwrap();
    stat.f_files - stat.f_ffree
}

/// What is held when the server dies is gone afterwards.
#[test]
fn a_removed_directory_does_not_outlive_its_mount() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    let before = used_inodes(&mount);
    fs::create_dir(mount.join("held")).unwrap();
    let held = File::open(mount.join("held")).unwrap();
    fs::remove_dir(mount.join("held")).unwrap();
    assert_eq!(used_inodes(&mount), before + 1, "it is not held");
    File::open(&mount.path).unwrap().sync_all().unwrap();
    mount.kill();
    drop(held);
    let mount = Mount::new(&image);
    assert_eq!(used_inodes(&mount), before);
    mount.unmount();
    assert_clean(&image);
}

/// How many requests the second of two equal looks makes.
fn requests_of_second(mount: &Mount, look: impl Fn()) -> u64 {
    look();
    let before = mount.server_reads();
    look();
    mount.server_reads() - before
}

#[test]
fn the_kernel_lists_again_without_asking() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let build = |mount: &Mount| {
        assert_eq!(mount_type(&mount.path).as_deref(), Some("fuse.flexfs"));
        for number in 0..107 {
            let dir = mount.join(format!("dir{number}"));
            fs::create_dir(&dir).unwrap();
            for name in 0..10 {
                fs::write(dir.join(name.to_string()), "x").unwrap();
            }
        }
    };
    let mount = Mount::new(&image);
    build(&mount);
    let listed = requests_of_second(&mount, || {
        for entry in fs::read_dir(mount.join("dir1")).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().len(), 1);
        }
    });
    // The kernel takes it that a listing has left a time of access.
    assert!(listed <= 2, "{listed} requests for a second listing");
    let found = requests_of_second(&mount, || {
        run(Command::new("find").arg(&mount.path).args(["-size", "+100k"]));
    });
    assert!(found <= 190, "{found} requests for a second find of 107 directories");
    mount.unmount();
}

/// A listing from the kernel's cache would leave no time.
#[test]
fn each_listing_leaves_a_time_with_relatime() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::with(&image(dir.path(), "16MiB"), &["-o", "relatime"]);
    fs::create_dir(mount.join("dir")).unwrap();
    for _ in 0..3 {
        run(Command::new("touch").args(["-a", "-d", "2001-02-03T04:05:06Z"]).arg(mount.join("dir")));
        let then = fs::metadata(mount.join("dir")).unwrap().atime();
        names(&mount.join("dir"));
        assert!(fs::metadata(mount.join("dir")).unwrap().atime() > then);
    }
    mount.unmount();
}
