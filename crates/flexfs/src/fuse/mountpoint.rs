//! Attaching to the tree and letting go: `mount(2)` and `umount2(2)` for root, `fusermount3` for everybody else.
//!
//! The mount is remembered by its number in the kernel's table. Invariant: only that very mount is ever taken
//! down, so an `umount` from outside, or another mount that has since come over the same path, is left alone.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow, bail};
use rustix::io::{Errno, FdFlags};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType};

use super::MountManner;
use crate::mount_table::{MOUNT_TYPE, mounts};

/// The device every FUSE server talks through.
pub const DEVICE: &str = "/dev/fuse";

const HELPER: &str = "fusermount3";

/// Bytes of writes that the kernel may hold back of a mount. A share of its memory unless it is told, which may be far more
/// than a volume has space for.
const HELD_BYTES_MAX: u64 = 32 << 20;

/// A mount of ours.
pub struct Mounted {
    path: PathBuf,
    /// Its number in `/proc/self/mountinfo`.
    id: Option<u64>,
    by_helper: bool,
    for_all: bool,
}

/// Flags of a mount, and the words by which `fusermount3` knows them, unset and set. What others do is up to the server.
const FLAG_WORDS: [(MountFlags, &str, &str); 7] = [
    (MountFlags::RDONLY, "rw", "ro"),
    (MountFlags::NOSUID, "suid", "nosuid"),
    (MountFlags::NODEV, "dev", "nodev"),
    (MountFlags::NOEXEC, "exec", "noexec"),
    (MountFlags::NOATIME, "atime", "noatime"),
    (MountFlags::SYNCHRONOUS, "async", "sync"),
    (MountFlags::DIRSYNC, "", "dirsync"),
];

impl Mounted {
    /// Mounts on `path` (absolute) what the returned descriptor will serve; `source` is shown as the device.
    pub fn new(path: &Path, source: &Path, manner: &MountManner) -> Result<(Self, OwnedFd)> {
        let (fd, by_helper) = match mount_directly(path, source, manner.flags) {
            Ok(fd) => (fd, false),
            Err(Errno::PERM | Errno::ACCESS) => (mount_by_helper(path, source, manner)?, true),
            Err(errno) => return Err(anyhow!("cannot mount here: {}", std::io::Error::from(errno))),
        };
        let mount = mounts().into_iter().rev().find(|mount| mount.path == path);
        if let Some(mount) = &mount {
            bound_held_bytes(&mount.device);
        }
        let id = mount.map(|mount| mount.id);
        let for_all = !by_helper || manner.allow_other;
        Ok((Self { path: path.to_path_buf(), id, by_helper, for_all }, fd))
    }

    /// Whether others than who mounted it may use it.
    pub fn for_all(&self) -> bool {
        self.for_all
    }

    /// Whether `fusermount3` had to mount it, since the caller is not root.
    pub fn by_helper(&self) -> bool {
        self.by_helper
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is on the tree.
    pub fn is_there(&self) -> bool {
        mounts().iter().any(|mount| Some(mount.id) == self.id)
    }

    /// Takes the mount down; when `lazily`, off the tree at once and down when its last file is closed.
    ///
    /// Done already from outside counts as done.
    pub fn unmount(&self, lazily: bool) -> Result<(), Errno> {
        if !self.is_there() {
            return Ok(());
        }
        if self.by_helper {
            let mode = if lazily { "-uz" } else { "-u" };
            let status = Command::new(HELPER).args([mode, "--"]).arg(&self.path).status();
            return if status.is_ok_and(|status| status.success()) { Ok(()) } else { Err(Errno::BUSY) };
        }
        let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
        rustix::mount::unmount(&self.path, flags | UnmountFlags::NOFOLLOW)
    }
}

/// Has the kernel hold back no more than [`HELD_BYTES_MAX`], if it lets us say so: it does root, from Linux 6.2 on.
fn bound_held_bytes(device: &str) {
    let path = format!("/sys/class/bdi/{device}/max_bytes");
    let held = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    if held.is_some_and(|bytes| bytes > HELD_BYTES_MAX) {
        // Where that fails its own bound holds.
        let _ = std::fs::write(&path, HELD_BYTES_MAX.to_string());
    }
}

fn mount_directly(path: &Path, source: &Path, flags: MountFlags) -> Result<OwnedFd, Errno> {
    let device = open_device()?;
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions,allow_other",
        device.as_raw_fd(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    rustix::mount::mount(source, path, MOUNT_TYPE, flags, options.as_c_str())?;
    Ok(device.into())
}

fn open_device() -> Result<File, Errno> {
    let opened = OpenOptions::new().read(true).write(true).open(DEVICE);
    opened.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Has `fusermount3` mount, and takes the descriptor it sends back over a socket.
fn mount_by_helper(path: &Path, source: &Path, manner: &MountManner) -> Result<OwnedFd> {
    // The helper's end is inherited, so it is made without close-on-exec.
    let (ours, theirs) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)?;
    rustix::io::fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
    let name = String::from_utf8_lossy(source.as_os_str().as_bytes()).replace('\\', "\\\\").replace(',', "\\,");
    let words = FLAG_WORDS.map(|(flag, unset, set)| if manner.flags.contains(flag) { set } else { unset });
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let (words, shared) = (words.join(","), if manner.allow_other { "allow_other," } else { "" });
    let output = Command::new(HELPER)
        .arg("-o")
        .arg(format!("{words},{shared}default_permissions,subtype=flexfs,fsname={name}"))
        .arg("--")
        .arg(path)
        .env("_FUSE_COMMFD", theirs.as_raw_fd().to_string())
        .output()
        .map_err(|_| anyhow!("only root may mount without {HELPER}; become root, or install fuse3"))?;
    drop(theirs);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}", said.lines().next().unwrap_or("fusermount3 failed"));
    }
    receive_descriptor(&ours)
}

fn receive_descriptor(socket: &OwnedFd) -> Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let received = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    received.ok_or_else(|| anyhow!("{HELPER} sent no descriptor"))
}
