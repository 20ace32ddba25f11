//! Images that are in use: who has one is found by whatever name it is reached, and no wait goes on for ever.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Mount, PATIENCE, flexfs, image, is_one_line, output, run};

/// A command that is ended, so that the test fails, should it never end by itself.
fn ending(command: &Command) -> Command {
    let mut ending = Command::new("timeout");
    ending.arg(PATIENCE.as_secs().to_string()).arg(command.get_program()).args(command.get_args());
    ending
}

/// Every command that opens an image, told to use that one.
fn commands(image: &Path, dir: &Path) -> Vec<Command> {
    let (file, second, x) = (dir.join("file"), dir.join("second"), Path::new("/x"));
    let of = |args: &[&str], rest: &[&Path]| {
        let mut command = flexfs(args);
        command.arg(image).args(rest);
        command
    };
    vec![
        of(&["ls"], &[]),
        of(&["dump"], &[]),
        of(&["fsck"], &[]),
        of(&["fsck", "-p"], &[]),
        of(&["get"], &[x, Path::new("-")]),
        of(&["put"], &[&file, Path::new("/")]),
        of(&["mkdir"], &[x]),
        of(&["rm"], &[x]),
        of(&["mount"], &[&second]),
        of(&["mount", "-b"], &[&second]),
        of(&["mount", "--create", "8MiB"], &[&second]),
        of(&["mkfs", "--size", "8MiB", "--force"], &[]),
    ]
}

/// Only the name under which it had been mounted was known: by another, commands waited for ever.
#[test]
fn a_mounted_image_is_in_use_by_whatever_name_it_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "8MiB");
    let [link, symbolic, moved] = ["link.img", "symbolic.img", "moved.img"].map(|name| dir.path().join(name));
    fs::write(dir.path().join("file"), "x").unwrap();
    fs::create_dir(dir.path().join("second")).unwrap();
    fs::hard_link(&image, &link).unwrap();
    let mount = Mount::new(&image);
    fs::rename(&image, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &symbolic).unwrap();
    // What stands under the old name now is another one.
    fs::copy(&link, &image).unwrap();
    for name in [&link, &moved, &symbolic] {
        for command in commands(name, dir.path()) {
            let ended = output(&mut ending(&command));
            let said = String::from_utf8_lossy(&ended.stderr);
            assert!(!ended.status.success() && is_one_line(&ended.stderr), "{command:?}: {said}");
            let why =
                format!("{}: in use: it is mounted on {1}; `umount {1}` first", name.display(), mount.path.display());
            assert!(said.contains(&why), "{command:?}: {said}");
        }
        run(flexfs(["mount", "-o", "remount,ro"]).arg(name).arg(&mount.path));
        run(flexfs(["mount", "-o", "remount,rw"]).arg(name).arg(&mount.path));
    }
    run(flexfs(["ls"]).arg(&image));
    assert!(!output(flexfs(["mount", "-o", "remount,ro"]).arg(&image).arg(&mount.path)).status.success());
    mount.unmount();
    run(flexfs(["ls"]).arg(&moved));
}

/// A server off the tree, which goes on as long as a file of it is open.
struct OffTheTree {
    mount: Mount,
    open: File,
}

impl OffTheTree {
    fn new(image: &Path) -> Self {
        let mount = Mount::new(image);
        let open = File::create(mount.join("open")).unwrap();
        rustix::mount::unmount(&mount.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).unwrap();
        Self { mount, open }
    }

    fn end(mut self) {
        drop(self.open);
        assert!(self.mount.wait().success());
    }
}

/// A command that was started.
struct Started {
    shown: String,
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Started {
    fn new(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { shown: format!("{command:?}"), child, said }
    }

    /// Sends it a signal once it says that it waits; gives how it ends, when no process of it is left.
    fn signalled(mut self, signal: Signal) -> ExitStatus {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert!(line.contains("waiting for its server to end"), "{}: {line}", self.shown);
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let ended = self.child.wait().unwrap();
        // Whoever stayed behind would hold this open.
        self.said.read_to_end(&mut Vec::new()).unwrap();
        ended
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_server_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "8MiB");
    fs::write(dir.path().join("file"), "x").unwrap();
    fs::create_dir(dir.path().join("second")).unwrap();
    let server = OffTheTree::new(&image);
    let recording: PathBuf = dir.path().join("a.trace");
    let mut record = flexfs(["mount", "--record"]);
    record.arg(&recording).arg(&image).arg(dir.path().join("second"));
    let all = commands(&image, dir.path()).into_iter().chain([record]);
    for started in all.map(Started::new).collect::<Vec<_>>() {
        let shown = started.shown.clone();
        let (ended, term) = (started.signalled(Signal::TERM), Signal::TERM.as_raw());
        assert!(ended.signal() == Some(term) || ended.code() == Some(128 + term), "{shown}: {ended}");
    }
    assert!(!recording.exists() && fs::read_dir(dir.path().join("second")).unwrap().next().is_none());
    server.end();
    run(flexfs(["ls"]).arg(&image));
}

/// Its background process waited on, and mounted the image when nobody expected that any more.
#[test]
fn a_mount_in_the_background_that_is_killed_while_it_waits_leaves_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let image = image(dir.path(), "8MiB");
    let second = dir.path().join("second");
    fs::create_dir(&second).unwrap();
    let server = OffTheTree::new(&image);
    let mut command = flexfs(["mount", "-b"]);
    command.arg(&image).arg(&second);
    Started::new(command).signalled(Signal::KILL);
    server.end();
    run(flexfs(["ls"]).arg(&image));
    assert_eq!(crate::common::mount_type(&second), None);
}
