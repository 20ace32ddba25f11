//! `mount -o` and the helper of mount(8): each option is known by what it does to a mounted volume.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    Dice, Mount, assert_clean, flexfs, image, info, is_one_line, mount_type, need_root, output, run, umount, wait_for,
};

/// What the kernel's table says of a mount: its own options, and the device.
fn shown(path: &Path) -> (Vec<String>, String) {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table.lines().rev().find(|line| line.split(' ').nth(4) == path.to_str()).expect("mounted");
    let fields: Vec<&str> = line.split(' ').collect();
    let kind = fields.iter().position(|field| *field == "-").unwrap();
    let mut options: Vec<String> = fields[5].split(',').map(str::to_owned).collect();
    options.extend(fields[kind + 3].split(',').map(str::to_owned));
    (options, fields[kind + 2].to_owned())
}

fn has(path: &Path, option: &str) -> bool {
    shown(path).0.iter().any(|shown| shown == option)
}

/// What a mount with these options holds after it was killed: the names in its root, with their sizes.
fn left_by<T>(options: &str, change: impl FnOnce(&Path) -> T) -> Vec<(String, u64)> {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::with(&image, &["-o", options]);
    let held = change(&mount.path);
    mount.kill();
    drop(held);
    let mount = Mount::new(&image);
    let mut found: Vec<(String, u64)> = fs::read_dir(&mount.path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().size()))
        .collect();
    found.sort();
    mount.unmount();
    found
}

/// A new file that is still open: at its close the kernel hands over what it holds back.
fn write(path: &Path) -> fs::File {
    let mut file = fs::File::create(path).unwrap();
    file.write_all(&[7; 100]).unwrap();
    file
}

fn names(left: &[(String, u64)]) -> Vec<&str> {
    left.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn ro_and_the_flags_of_any_mount_are_the_kernels() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::with(&image, &["-o", "ro,noexec,dev,suid"]);
    assert!(has(&mount.path, "ro") && has(&mount.path, "noexec"));
    assert!(!has(&mount.path, "nodev") && !has(&mount.path, "nosuid"));
    assert!(fs::create_dir(mount.join("x")).is_err());
    mount.unmount();
    let mount = Mount::with(&image, &["--ro", "-o", "defaults,nofail,_netdev,x-a.b=c,comment=d", "-o", "rw"]);
    for option in ["rw", "nodev", "nosuid", "noatime"] {
        assert!(has(&mount.path, option), "{option}: {:?}", shown(&mount.path));
    }
    fs::create_dir(mount.join("x")).unwrap();
    mount.unmount();
}

#[test]
fn a_read_leaves_a_time_with_relatime_only() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::new(&image);
    fs::create_dir(mount.join("dir")).unwrap();
    fs::write(mount.join("dir/file"), "x").unwrap();
    let old = ["-d", "2001-02-03T04:05:06Z"];
    run(Command::new("touch").args(old).args([mount.join("dir/file"), mount.join("dir")]));
    let then = fs::metadata(mount.join("dir")).unwrap().atime();
    mount.unmount();
    let after = |options: &str| {
        let mount = Mount::with(&image, &["-o", options]);
        fs::read(mount.join("dir/file")).unwrap();
        assert_eq!(fs::read_dir(mount.join("dir")).unwrap().count(), 1);
        let times = ["dir/file", "dir"].map(|path| fs::metadata(mount.join(path)).unwrap().atime() > then);
        mount.unmount();
        times
    };
    assert_eq!(after("rw"), [false, false]);
    assert_eq!(after("noatime"), [false, false]);
    assert_eq!(after("relatime,nodiratime"), [true, false]);
    assert_eq!(after("relatime"), [true, true]);
}

#[test]
fn commit_says_how_old_a_change_may_get() {
    let left_after = |options: &str, wait_ms: u64| {
        let left = left_by(options, |path| {
            fs::create_dir(path.join("made")).unwrap();
            thread::sleep(Duration::from_millis(wait_ms));
        });
        names(&left).join(" ")
    };
    // By itself a change gets no older than this.
    assert_eq!(left_after("commit=3600", 1200), "");
    // A busy machine may take its time.
    assert!([600, 5_000, 30_000, 300_000].into_iter().any(|wait_ms| left_after("commit=0.2", wait_ms) == "made"));
}

#[test]
fn sync_makes_each_change_durable() {
    let change = |path: &Path| {
        let file = write(&path.join("file"));
        fs::create_dir(path.join("made")).unwrap();
        file
    };
    assert_eq!(left_by("sync,commit=3600", change)[0], ("file".to_owned(), 100));
    assert_eq!(names(&left_by("dirsync,commit=3600", change)), ["file", "made"]);
    assert_eq!(names(&left_by("commit=3600", change)), [""; 0]);
}

#[test]
fn with_writethrough_each_write_reaches_the_file_system() {
    const WRITES: u64 = 2000;
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let requests_of_writes = |options: &str| {
        let mount = Mount::with(&image, &["-o", options]);
        let mut file = fs::File::create(mount.join("file")).unwrap();
        let before = mount.server_reads();
        (0..WRITES).for_each(|_| file.write_all(b"x").unwrap());
        let requests = mount.server_reads() - before;
        drop(file);
        assert_eq!(fs::read(mount.join("file")).unwrap(), [b'x'; WRITES as usize]);
        mount.unmount();
        requests
    };
    assert!(requests_of_writes("writethrough") >= WRITES);
    assert!(requests_of_writes("writethrough,nowritethrough") < WRITES / 2);
}

#[test]
fn flags_can_be_given_as_options() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("flash.img");
    let words = "create=32MiB,profile=flexfs-mlc,compress=lz4,cache=1MiB,mode=slc-only,nosync_image,allow_other";
    let path = dir.path().join("mnt");
    let mount = Mount::on(&image, &path, &["-o", words]);
    let text = "the same again and again\n".repeat(100_000);
    fs::write(mount.join("text"), &text).unwrap();
    fs::File::open(mount.join("text")).unwrap().sync_all().unwrap();
    assert!(fs::read_to_string(mount.join("text")).unwrap() == text);
    mount.unmount();
    assert_clean(&image);
    let info = info(&image);
    assert_eq!(info["chip"]["bytes"], 32 << 20);
    assert!(info["used_bytes"].as_u64().unwrap() < 1 << 20, "{info}");
    assert_eq!(info["blocks"]["native"], 0);
}

#[test]
fn an_unknown_option_is_named_with_those_there_are_and_nothing_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let (image, path) = (dir.path().join("flash.img"), dir.path().join("mnt"));
    for (options, status, why) in [
        ("create=16MiB,speed=9", 2, ["speed=9", "relatime"]),
        ("commit=soon", 2, ["soon", "seconds"]),
        ("mode=fast", 2, ["fast", "mlc-only"]),
        ("ro,create=16MiB", 1, ["ro", "create"]),
    ] {
        let output = output(flexfs(["mount", "-o", options]).args([&image, &path]));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(is_one_line(&output.stderr) && why.iter().all(|why| said.contains(why)), "{said}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_meant_is_refused_and_what_is_not_followed_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let path = dir.path().join("mnt");
    fs::create_dir(&path).unwrap();
    let refused = |command: &mut Command, status: i32, why: &str| {
        let output = output(command.args([&image, &path]));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(is_one_line(&output.stderr) && said.contains(why), "{said}");
    };
    for order in [["mount", "-b", "--profile", "tlc-3d"], ["mount", "-b", "-o", "create=144MiB,profile=tlc-3d"]] {
        refused(&mut flexfs(order), 1, "flash.img: its chip is flexfs-mlc, not tlc-3d; leave out --profile");
    }
    refused(&mut flexfs(["mount", "-b", "--cache", "1000TiB"]), 2, "more than the memory of this machine");
    need_root("becomes another user");
    for unsafe_option in ["dev", "suid"] {
        let mut command = flexfs(["mount", "-b", "-o", unsafe_option]);
        refused(command.uid(65534).gid(65534), 1, "for root alone");
    }
    assert_eq!(mount_type(&path), None);

    let mut mount = Mount::with(&image, &["--create", "32MiB", "--profile", "flexfs-mlc"]);
    umount(&mount.path);
    assert!(mount.wait().success());
    let said = mount.complaints();
    assert!(said.contains("flash.img: exists, with a chip of 16MiB; --create 32MiB is not followed"), "{said}");
    let mut mount = Mount::with(&image, &["--create", "16MiB"]);
    umount(&mount.path);
    assert!(mount.wait().success());
    assert_eq!(mount.complaints(), "");
}

/// The program under the name by which mount(8) calls it.
fn helper(dir: &Path) -> PathBuf {
    let path = dir.join("mount.fuse.flexfs");
    symlink(env!("CARGO_BIN_EXE_flexfs"), &path).unwrap();
    path
}

#[test]
fn as_a_helper_of_mount_it_mounts_in_the_background_and_returns() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let (helper, path) = (helper(dir.path()), dir.path().join("m n t"));
    fs::create_dir(&path).unwrap();
    // As mount(8) puts it for a line of fstab, from another directory.
    let mut command = Command::new(&helper);
    command.arg(&image).arg(&path).args(["-n", "-o", "rw,noexec,relatime,user=ann,x-mount.mkdir,commit=0.1"]);
    assert_eq!(run(command.current_dir("/")), "");
    let path = path.canonicalize().unwrap();
    let escaped = PathBuf::from(path.to_str().unwrap().replace(' ', "\\040"));
    assert_eq!(mount_type(&escaped).as_deref(), Some("fuse.flexfs"));
    assert!(has(&escaped, "noexec") && has(&escaped, "relatime"));
    assert_eq!(shown(&escaped).1, image.canonicalize().unwrap().to_str().unwrap());
    let bytes = Dice::new(4).bytes(100_000);
    fs::write(path.join("file"), &bytes).unwrap();
    umount(&path);
    wait_for("the image to be let go of", || output(flexfs(["fsck"]).arg(&image)).status.success());
    let got = output(flexfs(["get"]).arg(&image).args(["file", "-"]));
    assert!(got.stdout == bytes);
}

#[test]
fn a_helper_that_cannot_mount_tells_mount_so() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let (helper, path) = (helper(dir.path()), dir.path().join("mnt"));
    let refused = |arguments: &[&str], status: i32, why: &str| {
        let mut command = Command::new(&helper);
        let output = output(command.arg(&image).arg(&path).args(arguments).stdin(Stdio::null()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(is_one_line(&output.stderr) && said.contains(why), "{said}");
    };
    refused(&["-o", "rw"], 32, "no such directory");
    fs::create_dir(&path).unwrap();
    refused(&["-o", "rw,speed=9"], 32, "speed=9");
    refused(&["--quickly"], 1, "mount.fuse.flexfs --help");
    let fake = run(Command::new(&helper).arg(&image).arg(&path).args(["-f", "-v", "-s", "-o", "rw,speed=9"]));
    assert_eq!((fake.as_str(), mount_type(&path)), ("", None));
    let sloppy = run(Command::new(&helper).arg(&image).arg(&path).args(["-sv", "-o", "rw,speed=9"]));
    assert!(sloppy.contains("is mounted on"), "{sloppy}");
    assert_eq!(mount_type(&path.canonicalize().unwrap()).as_deref(), Some("fuse.flexfs"));
    umount(&path);
}

/// A mounted chip that takes no time would have written these pages in a few milliseconds. It takes 431 µs for each.
#[test]
fn a_mount_with_the_chip_s_timing_takes_the_time_that_the_chip_does() {
    const PAGES: u32 = 256;
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "16MiB");
    let mount = Mount::with(&image, &["--timing", "chip"]);
    let begun = Instant::now();
    let mut file = fs::File::create(mount.path.join("file")).unwrap();
    file.write_all(&vec![7; PAGES as usize * 4096]).unwrap();
    file.sync_all().unwrap();
    drop(file);
    assert!(begun.elapsed() >= PAGES * Duration::from_micros(431), "{:?}", begun.elapsed());
    assert_eq!(fs::read(mount.path.join("file")).unwrap(), vec![7; PAGES as usize * 4096]);
    mount.unmount();
}
