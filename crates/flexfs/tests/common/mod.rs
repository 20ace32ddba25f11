//! What the tests of the program share: running it, mounting with it, and proof that a path is a mount of it.
//!
//! Invariant: nothing here lets a test pass on the host's own file system: [`Mount::new`] returns only when the
//! kernel's mount table names the path with the type `fuse.flexfs`.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod attributes;
pub mod forge;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal};

/// What takes longer has come to a halt: no machine is so slow.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The program under test, with its arguments.
pub fn flexfs<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flexfs"));
    command.args(args);
    command
}

/// Runs a command that must succeed, and gives what it wrote on standard output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The output of a command, whatever its exit status.
pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"))
}

/// Fails unless the tool, which the test cannot do without, is there.
pub fn need(tool: &str) {
    let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(found.is_ok_and(|status| status.success()), "this test needs `{tool}`: install it");
}

/// A new image with an empty file system.
pub fn image(dir: &Path, size: &str) -> PathBuf {
    let path = dir.join("flash.img");
    run(flexfs(["mkfs", "--size", size]).arg(&path));
    path
}

/// Fails unless `fsck` finds the image clean.
pub fn assert_clean(image: &Path) {
    let output = output(flexfs(["fsck"]).arg(image));
    assert_eq!(output.status.code(), Some(0), "fsck: {}", String::from_utf8_lossy(&output.stdout));
}

/// Fails unless every command that would write to this image, and a mount that would not, refuses it in one line with
/// `why` in it, and leaves it as it is to the last byte.
pub fn assert_refused_and_unchanged(image: &Path, why: &str) {
    let state = || (fs::read(image).ok(), fs::metadata(image).and_then(|found| found.modified()).ok());
    let (before, mountpoint) = (state(), image.with_file_name("mnt"));
    fs::create_dir_all(&mountpoint).unwrap();
    let target = mountpoint.to_str().unwrap();
    let commands: [(&[&str], &[&str]); 5] = [
        (&["mount"], &[target]),
        (&["mount", "-o", "ro"], &[target]),
        (&["put"], &[target, "/"]),
        (&["mkdir"], &["/x"]),
        (&["rm"], &["/x"]),
    ];
    for (command, rest) in commands {
        // A mount that is not refused would serve for ever.
        let mut limited = Command::new("timeout");
        limited.args(["60", env!("CARGO_BIN_EXE_flexfs")]).args(command).arg(image).args(rest);
        let output = output(&mut limited);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{command:?}: {said}");
        assert!(is_one_line(&output.stderr), "{command:?}: {said}");
        assert!(said.contains(why) && said.contains(image.to_str().unwrap()), "{command:?}: {said}");
        assert!(state() == before, "{command:?} changed the image");
    }
    assert_eq!(mount_type(&mountpoint), None);
}

/// What `info` says of an image.
pub fn info(image: &Path) -> serde_json::Value {
    serde_json::from_str(&run(flexfs(["info", "--json"]).arg(image))).unwrap()
}

/// The type of the newest mount on exactly `path`, from the kernel's table.
pub fn mount_type(path: &Path) -> Option<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("/proc is mounted");
    let mut found = None;
    for line in table.lines() {
        let mut fields = line.split(' ');
        if fields.nth(4) == path.to_str() {
            found = fields.skip_while(|field| *field != "-").nth(1).map(str::to_owned);
        }
    }
    found
}

/// Waits until `done`, or fails naming `what` was waited for.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "still waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Takes a mount down as `umount(8)` does.
///
/// A process that another test of this program is just starting holds copies of all files that are open here until
/// it runs its own program, so the mount may be busy for a moment longer than its files are open.
pub fn umount(path: &Path) {
    wait_for("a mount to be let go of", || match rustix::mount::unmount(path, UnmountFlags::NOFOLLOW) {
        Ok(()) => true,
        Err(rustix::io::Errno::BUSY) => false,
        Err(rustix::io::Errno::PERM) => {
            run(Command::new("fusermount3").arg("-u").arg(path));
            true
        }
        Err(error) => panic!("umount {}: {error}", path.display()),
    });
}

/// Takes a mount of a dead server off the tree, if there is one.
pub fn detach(path: &Path) {
    if mount_type(path).as_deref() == Some("fuse.flexfs") {
        rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).unwrap();
    }
}

/// A mount with its server in the foreground, as a child of the test.
pub struct Mount {
    server: Child,
    pub path: PathBuf,
    pub image: PathBuf,
}

impl Mount {
    /// Mounts `image` on `mnt` beside it.
    pub fn new(image: &Path) -> Self {
        Self::with(image, &[])
    }

    /// The same with more arguments.
    pub fn with(image: &Path, arguments: &[&str]) -> Self {
        let path = image.with_file_name("mnt");
        fs::create_dir_all(&path).unwrap();
        Self::on(image, &path, arguments)
    }

    /// Mounts `image` on `path`.
    pub fn on(image: &Path, path: &Path, arguments: &[&str]) -> Self {
        assert!(Path::new("/dev/fuse").exists(), "/dev/fuse is not there: mounted tests need the kernel's FUSE module");
        let mut command = flexfs(["mount"]);
        command.args(arguments).arg(image).arg(path);
        let mut server = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let path = path.to_path_buf();
        if !line.contains("is mounted on") {
            let mut said = String::new();
            server.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
            panic!("{command:?} did not mount: {said}");
        }
        let mount = Self { server, path: path.canonicalize().unwrap(), image: image.to_path_buf() };
        assert_eq!(mount_type(&mount.path).as_deref(), Some("fuse.flexfs"), "{} is no FlexFS", path.display());
        mount
    }

    /// A path below the mount.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Takes it down from outside; the server must end well by itself.
    pub fn unmount(mut self) {
        umount(&self.path);
        let status = self.wait();
        assert!(status.success(), "the server ended with {status}: {}", self.complaints());
    }

    /// How often the server has read anything, which is how it gets each request.
    pub fn server_reads(&self) -> u64 {
        let counts = fs::read_to_string(format!("/proc/{}/io", self.server.id())).unwrap();
        let reads = counts.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap();
        reads.parse().unwrap()
    }

    /// Sends the server a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.server), signal).unwrap();
    }

    /// Kills the server as `kill -9` does, and clears away the dead mount.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.wait();
        self.detach();
    }

    /// Takes what a dead server left off the tree, if it still is there. Files of the test may be open on it.
    pub fn detach(&self) {
        detach(&self.path);
    }

    /// The next line the server says on standard error.
    pub fn next_complaint(&mut self) -> String {
        let (stderr, mut line) = (self.server.stderr.as_mut().unwrap(), Vec::new());
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            stderr.read_exact(&mut byte).expect("the server says something");
            line.push(byte[0]);
        }
        String::from_utf8_lossy(&line).into_owned()
    }

    /// Waits until the server has ended.
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("the server's end", || {
            status = self.server.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Whether the server still runs.
    pub fn is_served(&mut self) -> bool {
        self.server.try_wait().unwrap().is_none()
    }

    /// What the server, which has ended, said on standard error.
    pub fn complaints(&mut self) -> String {
        let mut said = String::new();
        self.server.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Mount {
    /// After a failed test: no mount and no server may stay behind.
    fn drop(&mut self) {
        if std::thread::panicking() && mount_type(&self.path).as_deref() == Some("fuse.flexfs") {
            // Whoever waits for an answer that does not come is let go of, so that it can be killed.
            let _ = rustix::mount::unmount(&self.path, UnmountFlags::FORCE);
        }
        if self.server.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = self.server.kill();
            let _ = self.server.wait();
        }
        if std::thread::panicking() && mount_type(&self.path).as_deref() == Some("fuse.flexfs") {
            let _ = rustix::mount::unmount(&self.path, UnmountFlags::DETACH);
        }
    }
}

/// Small seeded numbers: the same seed gives the same tree on every machine.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(count + 8);
        while out.len() < count {
            out.extend_from_slice(&self.next().to_le_bytes());
        }
        out.truncate(count);
        out
    }
}

/// Every file, directory and link below `root`: its path, type, permissions, and bytes or target.
pub fn listing(root: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    collect(root, root, &mut found);
    found.sort();
    found
}

fn collect(root: &Path, dir: &Path, found: &mut Vec<(PathBuf, String)>) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        let what = if meta.is_dir() {
            collect(root, &path, found);
            "directory".to_owned()
        } else if meta.is_symlink() {
            format!("link to {}", fs::read_link(&path).unwrap().display())
        } else {
            format!("{} bytes", meta.len())
        };
        let line = format!("{:o} {what}", meta.permissions().mode());
        found.push((path.strip_prefix(root).unwrap().to_path_buf(), line));
    }
}

/// Fails unless the two trees are the same to the last byte.
pub fn assert_same_tree(kept: &Path, mounted: &Path) {
    let (left, right) = (listing(kept), listing(mounted));
    for pair in left.iter().zip(&right) {
        assert_eq!(pair.0, pair.1);
    }
    assert_eq!(left.len(), right.len(), "the trees do not have the same number of entries");
    for (path, _) in &left {
        let (kept, mounted) = (kept.join(path), mounted.join(path));
        if fs::symlink_metadata(&kept).unwrap().is_file() {
            assert!(fs::read(&kept).unwrap() == fs::read(&mounted).unwrap(), "{} differs", mounted.display());
        }
    }
}

/// Whether `bytes` is one line.
pub fn is_one_line(bytes: &[u8]) -> bool {
    let text = std::ffi::OsStr::from_bytes(bytes).to_string_lossy();
    text.ends_with('\n') && text.trim_end().lines().count() == 1
}

/// Tests that need root fail without: a skip would pass unseen. `does` says what for.
pub fn need_root(does: &str) {
    assert!(rustix::process::geteuid().is_root(), "this test {does}: run it as root");
}

/// A small file system of its own, which can be full without harm.
pub struct Disk(pub PathBuf);

impl Disk {
    pub fn new(dir: &Path, size: &str) -> Self {
        need_root("mounts a small tmpfs");
        let path = dir.join("disk");
        std::fs::create_dir(&path).unwrap();
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&path));
        Self(path)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// What `stat` says of everything below `root`, and of itself: a path and a line each.
pub fn stats(root: &Path) -> Vec<(PathBuf, String)> {
    use std::os::unix::fs::MetadataExt;
    let mut found = vec![PathBuf::new()];
    found.extend(listing(root).into_iter().map(|(path, _)| path));
    let line = |path: PathBuf| {
        let meta = fs::symlink_metadata(root.join(&path)).unwrap();
        let (mtime, ctime) = ((meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()));
        let who = (meta.mode(), meta.nlink(), meta.uid(), meta.gid());
        let size = (meta.size(), meta.blocks());
        (path, format!("inode {}, {who:?}, {size:?}, mtime {mtime:?}, ctime {ctime:?}", meta.ino()))
    };
    found.into_iter().map(line).collect()
}

/// Fails at the first file of which `stat` says something else than it said.
pub fn assert_same_stats(said: &[(PathBuf, String)], found: &[(PathBuf, String)], when: &str) {
    let differ: Vec<_> = said.iter().zip(found).filter(|(said, found)| said != found).collect();
    assert!(differ.is_empty(), "{when}: {} differ, such as {:#?}", differ.len(), differ[0]);
    assert_eq!(said.len(), found.len(), "{when}");
}

/// Has the kernel forget what it knows of files that nobody has open.
pub fn drop_caches() {
    fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
}
