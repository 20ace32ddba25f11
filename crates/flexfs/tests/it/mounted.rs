//! The program as a mounted file system: POSIX calls through the kernel, and every way a mount can end.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{
    Dice, Disk, Mount, assert_clean, assert_same_tree, flexfs, image, info, is_one_line, listing, mount_type,
    need_root, output, run, umount, wait_for,
};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use rustix::io::Errno;
use rustix::process::Signal;

#[test]
fn files_keep_what_is_written_to_them_at_any_offset() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let path = mount.join("file");
    let bytes = Dice::new(1).bytes(300_000);
    fs::write(&path, &bytes).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    file.write_all_at(b"patch", 123_456).unwrap();
    file.write_all_at(b"end", 1_000_000).unwrap();
    let mut expected = bytes;
    expected[123_456..123_461].copy_from_slice(b"patch");
    expected.resize(1_000_000, 0);
    expected.extend_from_slice(b"end");
    assert!(fs::read(&path).unwrap() == expected);
    file.set_len(200_001).unwrap();
    file.set_len(250_000).unwrap();
    expected.truncate(200_001);
    expected.resize(250_000, 0);
    assert!(fs::read(&path).unwrap() == expected);
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more").unwrap();
    expected.extend_from_slice(b"more");
    let image = mount.image.clone();
    drop(file);
    mount.unmount();
    assert_clean(&image);
    let mount = Mount::new(&image);
    assert!(fs::read(mount.join("file")).unwrap() == expected);
    mount.unmount();
}

#[test]
fn names_can_be_made_moved_swapped_linked_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let at = |name: &str| mount.join(name);
    fs::create_dir(at("d")).unwrap();
    fs::write(at("d/a"), "a").unwrap();
    fs::write(at("b"), "b").unwrap();
    fs::hard_link(at("b"), at("d/b2")).unwrap();
    assert_eq!(fs::metadata(at("b")).unwrap().nlink(), 2);
    symlink("d/a", at("s")).unwrap();
    assert_eq!(fs::read_link(at("s")).unwrap(), Path::new("d/a"));
    assert_eq!(fs::read_to_string(at("s")).unwrap(), "a");

    let refused = rustix::fs::renameat_with(CWD, at("b"), CWD, at("d/a"), RenameFlags::NOREPLACE);
    assert_eq!(refused, Err(Errno::EXIST));
    rustix::fs::renameat_with(CWD, at("b"), CWD, at("d/a"), RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read_to_string(at("b")).unwrap(), "a");
    assert_eq!(fs::read_to_string(at("d/a")).unwrap(), "b");
    fs::rename(at("b"), at("d/a")).unwrap();
    assert_eq!(fs::read_to_string(at("s")).unwrap(), "a");
    assert_eq!(fs::read_to_string(at("d/b2")).unwrap(), "b");
    assert_eq!(fs::metadata(at("d/b2")).unwrap().nlink(), 1);

    assert_eq!(fs::remove_dir(at("d")).unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    assert_eq!(fs::rename(at("d"), at("d/inside")).unwrap_err().kind(), ErrorKind::InvalidInput);
    fs::remove_dir_all(at("d")).unwrap();
    fs::remove_file(at("s")).unwrap();
    assert_eq!(listing(&mount.path), []);
    assert_eq!(fs::metadata(&mount.path).unwrap().nlink(), 2);
    mount.unmount();
}

#[test]
fn a_name_that_was_missed_is_found_once_it_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    assert_eq!(fs::metadata(mount.join("late")).unwrap_err().kind(), ErrorKind::NotFound);
    fs::write(mount.join("other"), "x").unwrap();
    fs::rename(mount.join("other"), mount.join("late")).unwrap();
    assert_eq!(fs::read_to_string(mount.join("late")).unwrap(), "x");
    let long = "n".repeat(255);
    fs::write(mount.join(&long), "").unwrap();
    let error = fs::write(mount.join(long + "n"), "").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::NAMETOOLONG.raw_os_error()));
    mount.unmount();
}

#[test]
fn a_large_directory_lists_every_name_once_with_dots() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let big = mount.join("big");
    fs::create_dir(&big).unwrap();
    let mut expected: Vec<String> = (0..3000).map(|number| format!("entry number {number}")).collect();
    for name in &expected {
        File::create(big.join(name)).unwrap();
    }
    expected.sort();
    let mut names: Vec<String> =
        fs::read_dir(&big).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, expected);

    let listed = rustix::fs::Dir::read_from(File::open(&big).unwrap()).unwrap();
    let dots: Vec<(String, u64)> = listed
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_bytes().starts_with(b"."))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.ino()))
        .collect();
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_eq!(dots, [(".".to_owned(), inode(&big)), ("..".to_owned(), inode(&mount.path))]);

    for entry in fs::read_dir(&big).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    fs::remove_dir(&big).unwrap();
    mount.unmount();
}

#[test]
fn permissions_owners_and_times_stay_as_set_across_a_remount() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let path = mount.join("file");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4751)).unwrap();
    let before_1970 = std::time::UNIX_EPOCH - Duration::new(1000, 250_000_000);
    let after = std::time::UNIX_EPOCH + Duration::new(4_000_000_000, 1);
    File::open(&path).unwrap().set_times(fs::FileTimes::new().set_modified(before_1970).set_accessed(after)).unwrap();
    let image = mount.image.clone();
    mount.unmount();
    let mount = Mount::new(&image);
    let meta = fs::metadata(mount.join("file")).unwrap();
    assert_eq!(meta.permissions().mode() & 0o7777, 0o4751);
    assert_eq!((meta.modified().unwrap(), meta.accessed().unwrap()), (before_1970, after));
    assert_eq!((meta.uid(), meta.gid()), (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()));
    mount.unmount();
}

#[test]
fn what_is_made_in_a_set_group_id_directory_gets_its_group() {
    need_root("gives files away");
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let shared = mount.join("shared");
    fs::create_dir(&shared).unwrap();
    std::os::unix::fs::chown(&shared, None, Some(4242)).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o2775)).unwrap();
    fs::write(shared.join("file"), "").unwrap();
    fs::create_dir(shared.join("dir")).unwrap();
    symlink("x", shared.join("link")).unwrap();
    for name in ["file", "dir", "link"] {
        assert_eq!(fs::symlink_metadata(shared.join(name)).unwrap().gid(), 4242, "{name}");
    }
    assert_eq!(fs::metadata(shared.join("dir")).unwrap().mode() & 0o2000, 0o2000);
    assert_eq!(fs::metadata(shared.join("file")).unwrap().mode() & 0o2000, 0);
    mount.unmount();
}

#[test]
fn special_files_keep_their_type_and_device_number() {
    need_root("makes device nodes");
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let device = rustix::fs::makedev(259, 70_000);
    let mode = Mode::from_raw_mode(0o640);
    rustix::fs::mknodat(CWD, mount.join("pipe"), FileType::Fifo, mode, 0).unwrap();
    rustix::fs::mknodat(CWD, mount.join("block"), FileType::BlockDevice, mode, device).unwrap();
    rustix::fs::mknodat(CWD, mount.join("socket"), FileType::Socket, mode, 0).unwrap();
    let image = mount.image.clone();
    mount.unmount();
    let mount = Mount::new(&image);
    assert!(fs::metadata(mount.join("pipe")).unwrap().file_type().is_fifo());
    assert!(fs::metadata(mount.join("socket")).unwrap().file_type().is_socket());
    let block = fs::metadata(mount.join("block")).unwrap();
    assert!(block.file_type().is_block_device());
    assert_eq!(block.rdev(), device);
    mount.unmount();
}

#[test]
fn a_removed_file_lives_until_it_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let path = mount.join("file");
    let bytes = Dice::new(3).bytes(500_000);
    fs::write(&path, &bytes).unwrap();
    let mut file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(b"tail").unwrap();
    file.sync_all().unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut read = Vec::new();
    file.read_to_end(&mut read).unwrap();
    assert!(read == [&bytes[..], b"tail"].concat());
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    drop(file);
    let image = mount.image.clone();
    mount.unmount();
    assert_clean(&image);
    assert_eq!(info(&image)["files"], 1, "only the root is left");
}

#[test]
fn a_full_volume_says_so_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "16MiB"));
    let mut dice = Dice::new(4);
    let mut kept = Vec::new();
    let full = loop {
        let path = mount.join(format!("file{}", kept.len()));
        let bytes = dice.bytes(256 << 10);
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        match written {
            Ok(()) => kept.push((path, bytes)),
            Err(error) => break error,
        }
        assert!(kept.len() < 64, "more was written than the chip holds");
    };
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    for (path, bytes) in &kept {
        assert!(fs::read(path).unwrap() == *bytes, "{}", path.display());
    }
    for entry in fs::read_dir(&mount.path).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    fs::write(mount.join("again"), dice.bytes(1 << 20)).unwrap();
    File::open(mount.join("again")).unwrap().sync_all().unwrap();
    let image = mount.image.clone();
    mount.unmount();
    assert_clean(&image);
}

#[test]
fn statfs_tells_capacity_and_what_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let empty = rustix::fs::statvfs(&mount.path).unwrap();
    assert!(empty.f_blocks * empty.f_frsize > 50 << 20);
    assert!(empty.f_blocks * empty.f_frsize <= 64 << 20);
    fs::write(mount.join("file"), Dice::new(5).bytes(8 << 20)).unwrap();
    File::open(mount.join("file")).unwrap().sync_all().unwrap();
    let filled = rustix::fs::statvfs(&mount.path).unwrap();
    let taken = (empty.f_bfree - filled.f_bfree) * filled.f_frsize;
    assert!(taken >= 8 << 20, "{taken}");
    assert_eq!(filled.f_namemax, 255);
    mount.unmount();
}

#[test]
fn what_was_synced_survives_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    let bytes = Dice::new(6).bytes(700_000);
    fs::create_dir(mount.join("d")).unwrap();
    let mut file = File::create(mount.join("d/file")).unwrap();
    file.write_all(&bytes).unwrap();
    file.sync_all().unwrap();
    mount.kill();
    drop(file);
    assert_eq!(info(&image)["clean"], false);
    assert_clean(&image);
    let mount = Mount::new(&image);
    assert!(fs::read(mount.join("d/file")).unwrap() == bytes);
    mount.unmount();
    assert_eq!(info(&image)["clean"], true);
}

#[test]
fn what_nobody_synced_reaches_flash_by_itself() {
    let is_there_after = |wait_ms: u64| {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path(), "64MiB");
        let mount = Mount::new(&image);
        fs::create_dir(mount.join("made")).unwrap();
        symlink("target", mount.join("made/link")).unwrap();
        std::thread::sleep(Duration::from_millis(wait_ms));
        mount.kill();
        let mount = Mount::new(&image);
        let found = fs::read_link(mount.join("made/link"));
        mount.unmount();
        found.is_ok_and(|target| target == Path::new("target"))
    };
    // A busy machine may take its time.
    assert!([1_500, 30_000, 300_000].into_iter().any(is_there_after));
}

#[test]
fn sigterm_and_sigint_unmount_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path(), "64MiB");
        let mut mount = Mount::new(&image);
        fs::write(mount.join("file"), "kept").unwrap();
        mount.signal(signal);
        let status = mount.wait();
        assert!(status.success(), "{status}: {}", mount.complaints());
        assert_eq!(mount_type(&mount.path), None);
        assert_eq!(info(&image)["clean"], true);
        let mount = Mount::new(&image);
        assert_eq!(fs::read_to_string(mount.join("file")).unwrap(), "kept");
        mount.unmount();
    }
}

#[test]
fn a_signal_while_files_are_open_ends_the_mount_with_the_last_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mut mount = Mount::new(&image);
    let mut file = File::create(mount.join("file")).unwrap();
    mount.signal(Signal::TERM);
    wait_for("the mount to leave the tree", || mount_type(&mount.path).is_none());
    file.write_all(b"written after the signal").unwrap();
    assert!(mount.is_served());
    drop(file);
    let status = mount.wait();
    assert!(status.success(), "{status}: {}", mount.complaints());
    assert_clean(&image);
    let mount = Mount::new(&image);
    assert_eq!(fs::read_to_string(mount.join("file")).unwrap(), "written after the signal");
    mount.unmount();
}

#[test]
fn a_dying_server_leaves_a_newer_mount_on_its_path_alone() {
    let dir = tempfile::tempdir().unwrap();
    let first = image(dir.path(), "64MiB");
    let second = dir.path().join("second.img");
    run(flexfs(["mkfs", "--size", "64MiB"]).arg(&second));
    let mut old = Mount::new(&first);
    umount(&old.path);
    let new = Mount::on(&second, &old.path, &[]);
    assert!(old.wait().success());
    assert_eq!(mount_type(&new.path).as_deref(), Some("fuse.flexfs"));
    fs::write(new.join("file"), "on the second").unwrap();
    new.unmount();
    assert_eq!(info(&first)["files"], 1);
    assert_eq!(info(&second)["files"], 2);
}

#[test]
fn a_mounted_image_is_refused_to_everybody_else() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let attempts = [
        output(flexfs(["mount"]).arg(&image).arg(&other)),
        output(flexfs(["dump"]).arg(&image)),
        output(flexfs(["fsck"]).arg(&image)),
        output(flexfs(["mkfs", "--size", "64MiB", "--force"]).arg(&image)),
    ];
    for attempt in attempts {
        assert!(!attempt.status.success());
        assert!(is_one_line(&attempt.stderr), "{}", String::from_utf8_lossy(&attempt.stderr));
        assert!(String::from_utf8_lossy(&attempt.stderr).contains("in use"));
    }
    assert_eq!(mount_type(&other), None);
    fs::write(mount.join("file"), "unharmed").unwrap();
    mount.unmount();
    assert_clean(&image);
}

#[test]
fn one_command_makes_chip_and_mount_point_and_mounts_again_later() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    let path = dir.path().join("mnt");
    let mount = Mount::on(&image, &path, &["--create", "64MiB"]);
    fs::write(mount.join("file"), "kept").unwrap();
    mount.unmount();
    let mount = Mount::on(&image, &path, &["--create", "64MiB"]);
    assert_eq!(fs::read_to_string(mount.join("file")).unwrap(), "kept");
    mount.unmount();
}

#[test]
fn in_the_background_it_returns_once_mounted_and_umount_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    let path = dir.path().join("mnt");
    for round in 0..2 {
        let mut command = flexfs(["mount", "--background", "--create", "64MiB"]);
        let status = command.arg(&image).arg(&path).stdin(Stdio::null()).status().unwrap();
        assert!(status.success());
        assert_eq!(mount_type(&path.canonicalize().unwrap()).as_deref(), Some("fuse.flexfs"));
        fs::write(path.join(format!("round{round}")), "").unwrap();
        umount(&path);
    }
    assert_eq!(info(&image)["files"], 3);
    assert_eq!(info(&image)["clean"], true);
}

#[test]
fn in_the_background_a_failed_mount_is_told_by_exit_status_and_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mnt");
    fs::create_dir(&path).unwrap();
    let output = output(flexfs(["mount", "-b"]).arg(dir.path().join("none.img")).arg(&path));
    assert_eq!(output.status.code(), Some(1));
    assert!(is_one_line(&output.stderr), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(mount_type(&path), None);
}

#[test]
fn where_nothing_comes_of_the_mount_nothing_that_was_made_for_it_stays() {
    let dir = tempfile::tempdir().unwrap();
    let small = ["mount", "--create", "2MiB", "--profile", "k9f5608u0m"];
    let output = output(flexfs(small).arg(dir.path().join("flash.img")).arg(dir.path().join("mnt")));
    assert_eq!(output.status.code(), Some(1));
    assert!(is_one_line(&output.stderr), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(listing(dir.path()), []);
}

#[test]
fn a_read_only_mount_shows_everything_and_changes_no_byte_of_the_image() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    fs::create_dir(mount.join("d")).unwrap();
    fs::write(mount.join("d/file"), Dice::new(7).bytes(100_000)).unwrap();
    mount.unmount();
    let before = fs::read(&image).unwrap();
    let mount = Mount::with(&image, &["--ro"]);
    assert!(fs::read(mount.join("d/file")).unwrap() == Dice::new(7).bytes(100_000));
    assert_eq!(fs::write(mount.join("new"), "").unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    mount.unmount();
    assert!(fs::read(&image).unwrap() == before);
}

#[test]
fn a_corrupt_page_is_an_error_for_what_it_held_and_the_rest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let mount = Mount::new(&image);
    let contents: Vec<Vec<u8>> = (0..20).map(|number| Dice::new(100 + number).bytes(40_960)).collect();
    for (number, bytes) in contents.iter().enumerate() {
        fs::write(mount.join(format!("file{number}")), bytes).unwrap();
    }
    mount.unmount();
    assert_clean(&image);
    let hurt = &contents[7][8192..8192 + 64];
    let mut chip = fs::read(&image).unwrap();
    let places: Vec<usize> =
        chip.windows(64).enumerate().filter(|(_, found)| *found == hurt).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        chip[at + 9] ^= 0x10;
    }
    fs::write(&image, chip).unwrap();

    let fsck = output(flexfs(["fsck"]).arg(&image));
    assert_eq!(fsck.status.code(), Some(4), "{}", String::from_utf8_lossy(&fsck.stdout));
    let mount = Mount::new(&image);
    for (number, bytes) in contents.iter().enumerate() {
        let file = File::open(mount.join(format!("file{number}"))).unwrap();
        for (piece, expected) in bytes.chunks(4096).enumerate() {
            let mut read = [0; 4096];
            let result = file.read_exact_at(&mut read, piece as u64 * 4096);
            if (number, piece) == (7, 2) {
                assert_eq!(result.unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
            } else {
                result.unwrap();
                assert!(read == expected, "file{number}, page {piece}");
            }
        }
    }
    mount.unmount();
}

#[test]
fn a_write_by_somebody_else_ends_set_user_id() {
    need_root("becomes another user");
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let path = mount.join("tool");
    let as_nobody = |script: &str| {
        run(Command::new("sh").args(["-c", script, "sh"]).arg(&path).uid(65534).gid(65534));
    };
    let prepare = || {
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6777)).unwrap();
    };
    let mode = || fs::metadata(&path).unwrap().mode() & 0o7777;
    prepare();
    fs::write(&path, "root keeps it\n").unwrap();
    assert_eq!(mode(), 0o6777);
    as_nobody("echo more >> \"$1\"");
    assert_eq!(mode(), 0o777);
    prepare();
    as_nobody(": > \"$1\"");
    assert_eq!(mode(), 0o777);
    prepare();
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    assert_eq!(mode(), 0o777);
    mount.unmount();
}

#[test]
fn every_mode_and_compression_reads_what_another_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "64MiB");
    let kept = dir.path().join("kept");
    fs::create_dir(&kept).unwrap();
    let settings: [&[&str]; 6] = [
        &["--mode", "baseline"],
        &["--mode", "slc-only"],
        &["--policy", "la"],
        &["-o", "policy=slc-buffer=12%"],
        &["--mode", "mlc-only"],
        &["--compress", "lz4"],
    ];
    for (round, arguments) in settings.iter().enumerate() {
        let mount = Mount::with(&image, arguments);
        let text = format!("line {round}\n").repeat(10_000);
        let bytes = Dice::new(round as u64).bytes(200_000);
        for dir in [&mount.path, &kept] {
            fs::write(dir.join(format!("text{round}")), &text).unwrap();
            fs::write(dir.join(format!("bytes{round}")), &bytes).unwrap();
        }
        assert_same_tree(&kept, &mount.path);
        mount.unmount();
        assert_clean(&image);
    }
}

#[test]
fn a_full_disk_under_the_image_is_an_error_and_the_server_stays_up() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::new(dir.path(), "8m");
    let image = image(&disk.0, "64MiB");
    let mut mount = Mount::on(&image, dir.path().join("mnt").as_path(), &["--create", "64MiB"]);
    fs::write(mount.join("small"), "before").unwrap();
    File::open(mount.join("small")).unwrap().sync_all().unwrap();
    let big = File::create(mount.join("big")).and_then(|mut file| {
        file.write_all(&Dice::new(8).bytes(16 << 20))?;
        file.sync_all()
    });
    assert!(matches!(big.unwrap_err().raw_os_error(), Some(5 | 28)));
    assert!(mount.is_served());
    assert_eq!(fs::read_to_string(mount.join("small")).unwrap(), "before");
    umount(&mount.path);
    mount.wait();
}
