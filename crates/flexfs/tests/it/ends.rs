//! Every end of a mount while others are at work in it: asked for, forced, or for want of room under the image.
//!
//! Whatever a call had answered for before an orderly end is there afterwards, synced or not; whatever was synced is
//! there after any other; and the image is clean, or is recovered by the next mount.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{
    Dice, Disk, Mount, assert_clean, flexfs, image, info, is_one_line, mount_type, run, umount, wait_for,
};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal};

const WRITERS: u64 = 4;

/// Of half of the writers a record is a page and more, of the others so small that the server keeps it until a sync.
fn record_bytes(writer: u64) -> usize {
    if writer.is_multiple_of(2) { 5_000 } else { 600 }
}

fn record(writer: u64, number: u64) -> Vec<u8> {
    Dice::new(writer << 32 | number).bytes(record_bytes(writer))
}

/// How far a writer has come.
#[derive(Default)]
struct Written {
    /// Records in its open file, and how many of these were synced.
    records: AtomicU64,
    synced: AtomicU64,
    /// Whole files of a record each.
    files: AtomicU64,
}

/// Directories of the writers.
fn dir_of(root: &Path, writer: u64) -> PathBuf {
    root.join(format!("writer{writer}"))
}

/// Appends records to one file, syncing some, and makes files of one record each, until something fails or `stop`.
fn write(root: &Path, writer: u64, written: &Written, stop: &AtomicBool, sync_every: u64) -> std::io::Result<()> {
    let dir = dir_of(root, writer);
    let log = File::create(dir.join("log"))?;
    let mut may_make_files = true;
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        log.write_all_at(&record(writer, number), number * record_bytes(writer) as u64)?;
        written.records.store(number + 1, Ordering::SeqCst);
        if number % sync_every == 0 {
            log.sync_all()?;
            written.synced.store(number + 1, Ordering::SeqCst);
        }
        // Off the tree there are no more new files, but those that are open can be written.
        let made =
            may_make_files.then(|| File::create(dir.join(number.to_string()))?.write_all(&record(writer, number)));
        match made {
            Some(Ok(())) => written.files.store(number + 1, Ordering::SeqCst),
            Some(Err(error)) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => may_make_files = false,
            Some(Err(error)) => return Err(error),
            None => {}
        }
    }
    Ok(())
}

/// Fails unless the first `records` of a writer's log are there, and its first `files`.
fn assert_written(root: &Path, writer: u64, records: u64, files: u64) {
    let log = fs::read(dir_of(root, writer).join("log")).unwrap();
    for (number, found) in (0..records).zip(log.chunks(record_bytes(writer))) {
        assert!(found == record(writer, number), "record {number} of {records} of writer {writer}");
    }
    assert!(log.len() as u64 >= records * record_bytes(writer) as u64, "{} bytes of {records} records", log.len());
    for number in 0..files {
        let found = fs::read(dir_of(root, writer).join(number.to_string())).unwrap();
        assert!(found == record(writer, number), "file {number} of {files} of writer {writer}");
    }
}

/// Runs writers while `meanwhile` runs, which may stop them; gives how each ended and how far it came.
fn with_writers(
    root: &Path,
    sync_every: u64,
    meanwhile: impl FnOnce(&[Written], &AtomicBool),
) -> Vec<(std::io::Result<()>, Written)> {
    let written: Vec<Written> = (0..WRITERS).map(|_| Written::default()).collect();
    let stop = AtomicBool::new(false);
    (0..WRITERS).for_each(|writer| fs::create_dir_all(dir_of(root, writer)).unwrap());
    let ended: Vec<_> = std::thread::scope(|scope| {
        let stop = &stop;
        let start = |(writer, written)| scope.spawn(move || write(root, writer, written, stop, sync_every));
        let running: Vec<_> = (0..).zip(&written).map(start).collect();
        meanwhile(&written, stop);
        running.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    ended.into_iter().zip(written).collect()
}

fn wait_for_records(written: &[Written], least: u64) {
    wait_for("the writers", || written.iter().all(|written| written.records.load(Ordering::SeqCst) >= least));
}

/// After an orderly end: everything that was answered for is there.
fn assert_all_kept(image: &Path, ended: Vec<(std::io::Result<()>, Written)>) {
    assert_eq!(info(image)["clean"], true);
    assert_clean(image);
    let mount = Mount::new(image);
    for (writer, (outcome, written)) in (0..).zip(ended) {
        outcome.unwrap();
        assert_written(&mount.path, writer, written.records.into_inner(), written.files.into_inner());
    }
    mount.unmount();
}

#[test]
fn sigterm_under_writers_keeps_everything_they_had_written() {
    for arguments in [&[][..], &["-o", "writethrough"]] {
        let dir = tempfile::tempdir().unwrap();
        let image = image(dir.path(), "128MiB");
        let mut mount = Mount::with(&image, arguments);
        let root = mount.path.clone();
        let ended = with_writers(&root, 50, |written, stop| {
            wait_for_records(written, 20);
            mount.signal(Signal::TERM);
            wait_for("the mount to leave the tree", || mount_type(&root).is_none());
            stop.store(true, Ordering::SeqCst);
        });
        let status = mount.wait();
        assert!(status.success(), "{status}: {}", mount.complaints());
        assert_all_kept(&image, ended);
    }
}

#[test]
fn a_mount_in_use_stays_and_one_taken_off_lazily_keeps_what_is_written_until_the_last_close() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "128MiB");
    let mut mount = Mount::new(&image);
    let root = mount.path.clone();
    let ended = with_writers(&root, 50, |written, stop| {
        wait_for_records(written, 5);
        assert_eq!(rustix::mount::unmount(&root, UnmountFlags::NOFOLLOW), Err(Errno::BUSY));
        assert_eq!(mount_type(&root).as_deref(), Some("fuse.flexfs"));
        rustix::mount::unmount(&root, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).unwrap();
        assert_eq!(mount_type(&root), None);
        let far = written.iter().map(|written| written.records.load(Ordering::SeqCst)).max().unwrap();
        wait_for_records(written, far + 20);
        assert!(mount.is_served());
        stop.store(true, Ordering::SeqCst);
    });
    let status = mount.wait();
    assert!(status.success(), "{status}: {}", mount.complaints());
    assert_all_kept(&image, ended);
}

#[test]
fn writers_on_a_full_host_disk_lose_nothing_that_was_synced_however_the_mount_ends() {
    for killed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new(dir.path(), "12m");
        let image = image(&disk.0, "64MiB");
        let mut mount = Mount::on(&image, dir.path(), &[]);
        let root = mount.path.clone();
        let ended = with_writers(&root, 3, |_, _| {});
        for (writer, (outcome, written)) in (0..).zip(&ended) {
            let error = outcome.as_ref().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error()), "{error}");
            let synced = written.synced.load(Ordering::SeqCst);
            assert_written(&root, writer, synced, synced.saturating_sub(1));
        }
        assert!(mount.is_served() && fs::create_dir(root.join("more")).is_err());
        if killed {
            mount.kill();
        } else {
            umount(&root);
            assert_eq!(mount.wait().code(), Some(1));
        }

        run(Command::new("mount").args(["-o", "remount,size=64m"]).arg(&disk.0));
        let mount = Mount::on(&image, dir.path(), &[]);
        for (writer, (_, written)) in (0..).zip(&ended) {
            let synced = written.synced.load(Ordering::SeqCst);
            assert_written(&root, writer, synced, synced.saturating_sub(1));
        }
        fs::write(root.join("more"), record(0, 0)).unwrap();
        mount.unmount();
        assert_clean(&image);
    }
}

/// An image that has to be recovered, with a file in it that was synced.
fn recoverable(dir: &Path) -> PathBuf {
    let image = image(dir, "64MiB");
    let mount = Mount::new(&image);
    for number in 0..40 {
        fs::write(mount.join(format!("file{number}")), record(0, number)).unwrap();
        File::open(mount.join(format!("file{number}"))).unwrap().sync_all().unwrap();
    }
    mount.kill();
    image
}

fn assert_recovered(root: &Path) {
    for number in 0..40 {
        assert!(fs::read(root.join(format!("file{number}"))).unwrap() == record(0, number), "file {number}");
    }
}

fn start(image: &Path, path: &Path) -> Child {
    fs::create_dir_all(path).unwrap();
    let mut command = flexfs(["mount"]);
    command.arg(image).arg(path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn of_servers_that_start_at_once_on_one_image_one_serves() {
    let dir = tempfile::tempdir().unwrap();
    let image = recoverable(dir.path());
    let place = |number: u64| dir.path().join(format!("mnt{number}"));
    let mut servers: Vec<Child> = (0..WRITERS).map(|number| start(&image, &place(number))).collect();
    let mut serving = Vec::new();
    for (number, server) in (0..).zip(&mut servers) {
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.contains("is mounted on") {
            serving.push(number)
        }
    }
    let [winner] = serving[..] else { panic!("{serving:?} serve") };
    assert_recovered(&place(winner));
    fs::write(place(winner).join("more"), record(1, 1)).unwrap();
    umount(&place(winner));
    for (number, server) in (0..).zip(servers) {
        let output = server.wait_with_output().unwrap();
        if number == winner {
            assert!(output.status.success());
        } else {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                output.status.code() == Some(1) && is_one_line(&output.stderr) && said.contains("in use"),
                "{said}"
            );
        }
    }
    assert_clean(&image);
}

/// Whether a process takes SIGTERM rather than dying of it.
fn takes_sigterm(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
    u64::from_str_radix(caught, 16).is_ok_and(|caught| caught >> (Signal::TERM.as_raw() - 1) & 1 == 1)
}

#[test]
fn sigterm_while_a_mount_recovers_ends_it_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let image = recoverable(dir.path());
    let path = dir.path().join("mnt");
    for round in 0..6 {
        let server = start(&image, &path);
        wait_for("the signal to be taken", || takes_sigterm(server.id()));
        std::thread::sleep(Duration::from_micros(500 * round));
        rustix::process::kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
        let output = server.wait_with_output().unwrap();
        assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        assert_eq!(mount_type(&path.canonicalize().unwrap()), None);
        assert_clean(&image);
        let mount = Mount::new(&image);
        assert_recovered(&mount.path);
        File::create(mount.join("again")).unwrap().sync_all().unwrap();
        mount.kill();
    }
}

/// The server took part in what it waited for: on SIGTERM with files open, a thread of it waited for the kernel to hand
/// over what they had in its cache. Killed meanwhile, that thread waited for threads that were gone, and nothing could
/// end it: the mount hung, and the image stayed locked.
#[test]
fn a_server_killed_while_it_ends_under_open_files_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "128MiB");
    for round in 0..4 {
        // Closed after the mount is gone, however the round ends: a close waits, too.
        let mut files = Vec::new();
        let mut mount = Mount::new(&image);
        for number in 0..8 {
            let file = File::create(mount.join(number.to_string())).unwrap();
            file.write_all_at(&Dice::new(round).bytes(4 << 20), 0).unwrap();
            files.push(file);
        }
        mount.signal(Signal::TERM);
        // It says so just before.
        assert!(mount.next_complaint().contains("files are still open"));
        std::thread::sleep(Duration::from_millis(2 + 3 * round));
        mount.signal(Signal::KILL);
        mount.wait();
        mount.detach();
    }
    assert_clean(&image);
}

/// A file that is replaced by a rename was not there for a moment: whoever opened it had the kernel ask for the one it
/// had just found, which was gone, and was told that there was none. Now the kernel is told that what it found is
/// stale, and looks again, once; where that, too, is gone by then, it says so.
#[test]
fn a_name_that_is_replaced_over_and_over_is_always_there() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&image(dir.path(), "64MiB"));
    let (name, stop) = (mount.join("name"), AtomicBool::new(false));
    fs::write(&name, "0").unwrap();
    let missing: Vec<String> = std::thread::scope(|scope| {
        let (name, stop, mount) = (&name, &stop, &mount);
        let look = |what: fn(&Path) -> std::io::Result<()>| {
            scope.spawn(move || {
                let mut missing = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    match what(name) {
                        Err(error) if error.raw_os_error() != Some(Errno::STALE.raw_os_error()) => {
                            missing.push(error.to_string());
                        }
                        _ => {}
                    }
                }
                missing
            })
        };
        let looking = [
            look(|name| File::open(name).map(drop)),
            look(|name| OpenOptions::new().write(true).create(true).truncate(true).open(name).map(drop)),
            look(|name| fs::metadata(name).map(drop)),
            look(|name| fs::set_permissions(name, std::os::unix::fs::PermissionsExt::from_mode(0o600))),
            look(|name| Ok(rustix::fs::setxattr(name, "user.x", b"x", rustix::fs::XattrFlags::empty())?)),
        ];
        for number in 0..3_000 {
            fs::write(mount.join("next"), number.to_string()).unwrap();
            fs::rename(mount.join("next"), name).unwrap();
        }
        stop.store(true, Ordering::SeqCst);
        looking.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(missing.is_empty(), "{} times: {}", missing.len(), missing[0]);
    mount.unmount();
}
