//! What programs expect of a file system beyond reading and writing, through the kernel: space, holes, copies, locks,
//! access control lists, times of access, numbers of inodes.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{self, Dice, Mount, assert_clean, image};
use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom, XattrFlags};
use rustix::io::Errno;
use rustix::thread::{Gid, Uid};

fn writable(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Bytes that `statvfs` calls free.
fn free_bytes(mount: &Mount) -> u64 {
    let stat = rustix::fs::statvfs(&mount.path).unwrap();
    stat.f_bavail * stat.f_frsize
}

#[test]
fn reserved_space_counts_at_once_and_holds_on_a_full_volume_and_over_a_remount() {
    const RESERVED: u64 = 4 << 20;
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let file = writable(&mount.join("reserved"));
    let before = free_bytes(&mount);
    rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, RESERVED).unwrap();
    let meta = file.metadata().unwrap();
    assert_eq!((meta.len(), meta.blocks() * 512), (0, RESERVED));
    assert!(free_bytes(&mount) <= before - RESERVED);
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 1 << 20);
    let refused = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 30);
    assert_eq!(refused, Err(Errno::NOSPC));

    let mut rest = File::create(mount.join("rest")).unwrap();
    let noise = Dice::new(1).bytes(1 << 20);
    while rest.write_all(&noise).and_then(|()| rest.sync_all()).is_ok() {}
    drop((rest, file));
    let image = mount.image.clone();
    mount.unmount();
    let mount = Mount::new(&image);
    assert!(free_bytes(&mount) < 1 << 20, "the volume is full");
    let file = writable(&mount.join("reserved"));
    let data = Dice::new(2).bytes(RESERVED as usize);
    file.write_all_at(&data, 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    assert!(fs::read(mount.join("reserved")).unwrap() == data);
    mount.unmount();
    assert_clean(&image);
}

#[test]
fn a_hole_reads_as_zeros_and_what_would_shift_bytes_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let path = mount.join("file");
    let mut expected = Dice::new(2).bytes(100_000);
    fs::write(&path, &expected).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 5000, 50_001).unwrap();
    expected[5000..55_001].fill(0);
    assert!(fs::read(&path).unwrap() == expected);
    for shifting in [FallocateFlags::COLLAPSE_RANGE, FallocateFlags::INSERT_RANGE] {
        assert_eq!(rustix::fs::fallocate(&file, shifting, 0, 4096), Err(Errno::OPNOTSUPP));
    }
    assert!(fs::read(&path).unwrap() == expected);
    drop(file);
    mount.unmount();
}

#[test]
fn a_range_can_be_made_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let mut expected = Dice::new(3).bytes(100_000);
    fs::write(mount.join("file"), &expected).unwrap();
    let file = writable(&mount.join("file"));
    rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, 1000, 50_000).unwrap();
    expected[1000..51_000].fill(0);
    rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, 90_000, 30_000).unwrap();
    expected.truncate(90_000);
    expected.resize(120_000, 0);
    assert!(fs::read(mount.join("file")).unwrap() == expected);
    assert!(file.metadata().unwrap().blocks() * 512 >= 120_000, "its space is reserved");
    drop(file);
    mount.unmount();
}

/// With a writeback cache the kernel knows of bytes that the server has not seen; asked for data it must not answer
/// that there is none, or whoever copies the file leaves it out.
#[test]
fn data_is_found_though_it_was_never_synced() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    for round in 0..50u64 {
        let path = mount.join(format!("file{round}"));
        let file = writable(&path);
        file.set_len(1 << 20).unwrap();
        let at = (round + 1) * 8192;
        file.write_all_at(&[7; 4096], at).unwrap();
        let seek = |from| rustix::fs::seek(&file, from);
        assert_eq!(seek(SeekFrom::Data(0)), Ok(at), "round {round}");
        assert_eq!(seek(SeekFrom::Hole(at)), Ok(at + 4096));
        assert_eq!(seek(SeekFrom::Data(at + 4096)), Err(Errno::NXIO));
        assert_eq!(seek(SeekFrom::Hole(0)), Ok(0));
        file.write_all_at(&[8; 10], (1 << 20) - 10).unwrap();
        assert_eq!(seek(SeekFrom::Data(at + 4096)), Ok((1 << 20) - 4096));
        assert_eq!(seek(SeekFrom::Hole((1 << 20) - 1)), Ok(1 << 20));
        drop(file);
        let file = File::open(&path).unwrap();
        assert_eq!(rustix::fs::seek(&file, SeekFrom::Data(0)), Ok(at));
    }
    mount.unmount();
}

#[test]
fn a_range_is_copied_between_files_and_within_one() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let mut bytes = Dice::new(5).bytes(300_000);
    let (from, to) = (writable(&mount.join("from")), writable(&mount.join("to")));
    from.write_all_at(&bytes, 0).unwrap();
    let copy = |a: &File, at: u64, b: &File, to: u64, len: usize| {
        let (mut at, mut to, mut left) = (at, to, len);
        while left > 0 {
            match rustix::fs::copy_file_range(a, Some(&mut at), b, Some(&mut to), left).unwrap() {
                0 => break,
                count => left -= count,
            }
        }
        len - left
    };
    assert_eq!(copy(&from, 1, &to, 12_345, 200_000), 200_000);
    let mut expected = vec![0; 12_345];
    expected.extend_from_slice(&bytes[1..200_001]);
    assert!(fs::read(mount.join("to")).unwrap() == expected);
    assert_eq!(copy(&from, 290_000, &to, 0, 50_000), 10_000, "the source ends");
    expected[..10_000].copy_from_slice(&bytes[290_000..]);
    assert!(fs::read(mount.join("to")).unwrap() == expected);
    assert_eq!(copy(&from, 0, &from, 300_000, 300_000), 300_000);
    bytes.extend_from_within(..);
    drop((from, to));
    let image = mount.image.clone();
    mount.unmount();
    let mount = Mount::new(&image);
    assert!(fs::read(mount.join("from")).unwrap() == bytes && fs::read(mount.join("to")).unwrap() == expected);
    mount.unmount();
}

#[test]
fn a_file_reaches_to_the_largest_offset() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let file = writable(&mount.join("file"));
    let last = i64::MAX as u64 - 1;
    file.write_all_at(b"x", last).unwrap();
    file.sync_all().unwrap();
    assert_eq!(file.metadata().unwrap().len(), i64::MAX as u64);
    assert!(file.metadata().unwrap().blocks() <= 8, "it is nearly all hole");
    let mut byte = [0];
    file.read_exact_at(&mut byte, last).unwrap();
    assert_eq!(&byte, b"x");
    assert_eq!(rustix::fs::seek(&file, SeekFrom::Data(0)), Ok(last / 4096 * 4096));
    file.set_len(10).unwrap();
    assert_eq!(fs::read(mount.join("file")).unwrap(), [0; 10]);
    drop(file);
    let image = mount.image.clone();
    mount.unmount();
    assert_clean(&image);
}

#[test]
fn a_file_without_a_name_from_the_start_is_refused_as_unsupported() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let opened =
        OpenOptions::new().write(true).custom_flags(rustix::fs::OFlags::TMPFILE.bits() as i32).open(&mount.path);
    assert_eq!(opened.unwrap_err().raw_os_error(), Some(Errno::OPNOTSUPP.raw_os_error()));
    mount.unmount();
}

#[test]
fn locks_keep_others_out() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let path = mount.join("file");
    fs::write(&path, "x").unwrap();
    let (one, two) = (writable(&path), writable(&path));
    rustix::fs::flock(&one, FlockOperation::LockExclusive).unwrap();
    assert_eq!(rustix::fs::flock(&two, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
    rustix::fs::flock(&one, FlockOperation::Unlock).unwrap();
    rustix::fs::flock(&two, FlockOperation::NonBlockingLockShared).unwrap();
    rustix::fs::flock(&two, FlockOperation::Unlock).unwrap();
    // A record lock is a process's own: SQLite, which lives by them, sees another one's.
    let database = rusqlite::Connection::open(mount.join("db")).unwrap();
    database.execute_batch("PRAGMA journal_mode = DELETE; CREATE TABLE t (x); BEGIN EXCLUSIVE;").unwrap();
    let script = "import sqlite3, sys\ntry:\n sqlite3.connect(sys.argv[1], timeout=0).execute('SELECT * FROM t')\n\
                  except sqlite3.OperationalError as e: print(e)";
    if let Ok(output) = Command::new("python3").args(["-c", script]).arg(mount.join("db")).output() {
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "database is locked");
    }
    drop((database, one, two));
    mount.unmount();
}

#[test]
fn inode_numbers_stay_over_a_remount_and_are_never_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let ino = |mount: &Mount, name: &str| fs::metadata(mount.join(name)).unwrap().ino();
    for name in ["a", "b", "c"] {
        fs::write(mount.join(name), name).unwrap();
    }
    let before: Vec<u64> = ["a", "b", "c"].map(|name| ino(&mount, name)).into();
    fs::remove_file(mount.join("c")).unwrap();
    fs::rename(mount.join("b"), mount.join("d")).unwrap();
    let image = mount.image.clone();
    mount.unmount();
    let mount = Mount::new(&image);
    assert_eq!([ino(&mount, "a"), ino(&mount, "d")], before[..2]);
    fs::write(mount.join("c"), "again").unwrap();
    assert!(!before.contains(&ino(&mount, "c")));
    mount.unmount();
}

/// An access control list as the kernel has it: (tag, permissions, id).
fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, perm, id) in entries {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&perm.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

const ACCESS: &str = "system.posix_acl_access";
const NOBODY: u32 = 65_534;

fn attribute(path: &Path, name: &str) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; 1024];
    let count = rustix::fs::getxattr(path, name, &mut value[..])?;
    value.truncate(count);
    Ok(value)
}

#[test]
fn access_control_lists_decide_are_inherited_and_go_with_the_mode() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let path = mount.join("file");
    fs::write(&path, "for some").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let may_read =
        |path: &Path| Command::new("cat").arg(path).uid(NOBODY).gid(NOBODY).output().unwrap().status.success();
    assert!(!may_read(&path));
    let acl = list(&[(1, 6, !0), (2, 4, NOBODY), (4, 0, !0), (0x10, 4, !0), (0x20, 0, !0)]);
    rustix::fs::setxattr(&path, ACCESS, &acl, XattrFlags::empty()).unwrap();
    assert!(may_read(&path), "the list lets them in");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640, "the mode shows the mask");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(!may_read(&path), "the mask follows the mode");

    let parent = mount.join("dir");
    fs::create_dir(&parent).unwrap();
    let default = list(&[(1, 7, !0), (2, 5, NOBODY), (4, 5, !0), (0x10, 7, !0), (0x20, 0, !0)]);
    rustix::fs::setxattr(&parent, "system.posix_acl_default", &default, XattrFlags::empty()).unwrap();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(parent.join("inner"), "inherited").unwrap();
    fs::create_dir(parent.join("below")).unwrap();
    assert!(may_read(&parent.join("inner")));
    assert_eq!(attribute(&parent.join("below"), "system.posix_acl_default").as_deref(), Ok(&default[..]));
    assert_eq!(fs::metadata(parent.join("inner")).unwrap().permissions().mode() & 0o777, 0o660, "no umask counts");
    // What says no more than the mode is not kept.
    let minimal = list(&[(1, 6, !0), (4, 4, !0), (0x20, 4, !0)]);
    rustix::fs::setxattr(&path, ACCESS, &minimal, XattrFlags::empty()).unwrap();
    assert_eq!(attribute(&path, ACCESS), Err(Errno::NODATA));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    mount.unmount();
}

/// Who is in a file's group by a supplementary one only lost set-group-id with the list, for requests name no such groups.
#[test]
fn a_list_set_by_a_member_of_the_group_leaves_set_group_id() {
    const GROUP: u32 = 54_321;
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let path = mount.join("file");
    let acl = list(&[(1, 6, !0), (2, 4, 1), (4, 6, !0), (0x10, 6, !0), (0x20, 0, !0)]);
    for (groups, mode) in [(&[GROUP, 7][..], 0o2660), (&[7], 0o660)] {
        fs::write(&path, "shared").unwrap();
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(GROUP)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o2660)).unwrap();
        std::thread::scope(|scope| {
            let set = scope.spawn(|| {
                let groups: Vec<Gid> = groups.iter().map(|&group| Gid::from_raw(group)).collect();
                rustix::thread::set_thread_groups(&groups).unwrap();
                rustix::thread::set_thread_gid(Gid::from_raw(NOBODY)).unwrap();
                rustix::thread::set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
                rustix::fs::setxattr(&path, ACCESS, &acl, XattrFlags::empty())
            });
            set.join().unwrap().unwrap();
        });
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode, "{groups:?}");
        fs::remove_file(&path).unwrap();
    }
    mount.unmount();
}

#[test]
fn reading_leaves_a_time_only_where_the_mount_asks_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    for (options, leaves) in [(&["-o", "noatime"][..], false), (&["-o", "relatime"][..], true)] {
        let mount = Mount::with(&image, options);
        let path = mount.join("file");
        fs::write(&path, "text").unwrap();
        let image = mount.image.clone();
        mount.unmount();
        // Nothing of it is in the kernel's cache now.
        let mount = Mount::with(&image, options);
        let before = fs::metadata(&path).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let mut text = String::new();
        File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!(after.accessed().unwrap() > before.accessed().unwrap(), leaves, "{options:?}");
        mount.unmount();
        let mount = Mount::with(&image, options);
        assert_eq!(fs::metadata(&path).unwrap().accessed().unwrap(), after.accessed().unwrap(), "it is kept");
        mount.unmount();
    }
}

/// An image made from a tree left the lists out but kept the modes: the group bits, which had been the mask, became the
/// group's permissions.
#[test]
fn an_image_made_from_a_tree_has_its_access_control_lists() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let tree = mount.join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "for some").unwrap();
    let acl = list(&[(1, 6, !0), (2, 6, NOBODY), (4, 0, !0), (0x10, 6, !0), (0x20, 0, !0)]);
    rustix::fs::setxattr(tree.join("file"), ACCESS, &acl, XattrFlags::empty()).unwrap();
    let default = list(&[(1, 7, !0), (2, 5, NOBODY), (4, 5, !0), (0x10, 7, !0), (0x20, 0, !0)]);
    rustix::fs::setxattr(&tree, "system.posix_acl_default", &default, XattrFlags::empty()).unwrap();

    let made = dir.path().join("made.img");
    common::run(common::flexfs(["mkfs", "--size", "64MiB", "--from"]).arg(&tree).arg(&made));
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let second = Mount::on(&made, &other, &[]);
    assert_eq!(attribute(&second.join("file"), ACCESS).as_deref(), Ok(&acl[..]));
    assert_eq!(fs::metadata(second.join("file")).unwrap().permissions().mode() & 0o777, 0o660);
    assert_eq!(attribute(&second.path, "system.posix_acl_default").as_deref(), Ok(&default[..]));
    second.unmount();
    mount.unmount();
}
