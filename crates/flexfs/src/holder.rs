//! Who holds an image that is in use, as far as the kernel's tables and the server itself tell.
//!
//! A server that was unmounted from outside goes on for a while: it writes its last checkpoint, or files of it are still
//! open. Invariant: only a process that holds the lock on that very file counts, by whatever name the file is reached.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::mount_table::{MOUNT_TYPE, Mount, mounts_of};
use crate::{monitor, program};

/// Who holds an image.
pub enum Holder {
    /// A server, which has it mounted there.
    Mounted(PathBuf),
    /// A server of its sectors as a disk: where clients find it, and its process, where that is known.
    Disk { uri: String, pid: Option<String> },
    /// A server that has not mounted it yet, or has it mounted no more: its process.
    Server(String),
}

/// The server that holds an image, if one does.
pub fn server_of(image: &Path) -> Option<Holder> {
    // Only the server knows where it is mounted once its image has another name than in the kernel's table. It does not
    // answer everybody.
    if let Some(path) = monitor::mountpoint(image) {
        return Some(Holder::Mounted(path));
    }
    if let Some(uri) = monitor::disk_address(image) {
        return Some(Holder::Disk { uri, pid: lock_holders(image).pop() });
    }
    let servers = servers_of(image);
    let server = servers.last()?.clone();
    let mut mounts = servers.iter().flat_map(|pid| mounts_of(pid));
    let mounted = mounts.find(|mount| mount.kind == MOUNT_TYPE && is_of(mount, image));
    Some(mounted.map_or(Holder::Server(server), |mount| Holder::Mounted(mount.path)))
}

/// Whether a mount is one of this image.
pub fn has_mounted(image: &Path, mount: &Mount) -> bool {
    let is_named = || is_of(mount, image) && !servers_of(image).is_empty();
    mount.kind == MOUNT_TYPE && (monitor::mountpoint(image).as_ref() == Some(&mount.path) || is_named())
}

/// The processes that serve an image.
fn servers_of(image: &Path) -> Vec<String> {
    lock_holders(image).into_iter().filter(|pid| is_server(pid)).collect()
}

/// Whether the name of a mount's source leads to this image.
fn is_of(mount: &Mount, image: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    match (identity(&mount.source), identity(image)) {
        (Ok(source), Ok(image)) => source == image,
        _ => false,
    }
}

/// The processes that hold a lock on a file, from lines such as `1: FLOCK  ADVISORY  WRITE 1298 fe:00:9994266 0 EOF`.
fn lock_holders(path: &Path) -> Vec<String> {
    let Ok(stat) = rustix::fs::stat(path) else { return Vec::new() };
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let file = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    let table = fs::read_to_string("/proc/locks").unwrap_or_default();
    let holder = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let at = fields.iter().position(|field| *field == file)?;
        // `->` marks one that waits for the lock.
        (!fields.contains(&"->")).then(|| fields.get(at.checked_sub(1)?).copied().map(str::to_owned))?
    };
    table.lines().filter_map(holder).collect()
}

/// Whether a process is a server, by its command line.
fn is_server(pid: &str) -> bool {
    let line = fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
    program::is_server(line.split(|&byte| byte == 0).map(OsStr::from_bytes))
}
