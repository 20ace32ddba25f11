//! Having the kernel hand over what it holds back of a mount, by a process of its own.
//!
//! Whoever waits for that cannot be killed until the server has answered. A thread of the server would outlive those
//! that answer when the server is killed, and with it the mount and the lock on the image would stay for good.
//! Invariant: nothing that the server's end depends on waits here.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Names the mount in the environment of the process that waits.
const SYNCED: &str = "_FLEXFS_SYNCED";

/// This very program, even where its file is no longer there.
const PROGRAM: &str = "/proc/self/exe";

/// Has the kernel hand over all it holds back of the mount on `path`. Needs other threads to serve.
pub fn sync(path: &Path) -> io::Result<()> {
    let mut command = Command::new(PROGRAM);
    command.env(SYNCED, path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.status()?.success() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
}

/// The mount that this process was started to wait for, if it was.
pub fn asked_for() -> Option<OsString> {
    std::env::var_os(SYNCED)
}

/// What that process does.
pub fn wait(path: &Path) -> ExitCode {
    match File::open(path).and_then(|root| Ok(rustix::fs::syncfs(root)?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
