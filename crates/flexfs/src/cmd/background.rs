//! A command in the background: the program runs itself again, in a session of its own.
//!
//! The standard output of the background process is a pipe back: a line on it says that the mount works, its end
//! without a line that it does not. Invariant: the exit status of the foreground tells whether the mount works.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::fs::FileType;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::output;

/// The line of the background process that says that the mount works.
const READY: &str = "mounted";

/// In the environment of the background process: the number of the process that waits for it.
const DETACHED: &str = "_FLEXFS_DETACHED";

/// Whether this is the background process.
pub fn is_detached() -> bool {
    std::env::var_os(DETACHED).is_some()
}

/// Runs this very command line again, detached, and waits until it serves or fails.
pub fn start_in_background() -> Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program to run it in the background")?;
    let mut arguments = std::env::args_os();
    let mut child = Command::new(program)
        // Under the same name it reads the same arguments in the same way.
        .arg0(arguments.next().unwrap_or_default())
        .args(arguments)
        .env(DETACHED, std::process::id().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the background process")?;
    let mut line = String::new();
    if let Some(pipe) = child.stdout.take() {
        BufReader::new(pipe).read_line(&mut line).context("cannot hear the background process")?;
    }
    if line.trim_end() == READY {
        return Ok(ExitCode::SUCCESS);
    }
    // It has said on standard error, which it shares, why not.
    let status = child.wait().context("cannot wait for the background process")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).filter(|&code| code != 0).unwrap_or(1)))
}

/// In the background process: a signal comes when the process that waits for it ends, until the mount works.
pub fn end_with_parent() -> Result<()> {
    let Some(parent) = std::env::var_os(DETACHED) else { return Ok(()) };
    set_parent_process_death_signal(Some(Signal::TERM)).context("cannot hear of the end of who waits")?;
    let number = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    ensure!(number.is_some_and(|number| *number == *parent), "nobody waits for the mount any more");
    Ok(())
}

/// In the background process: tells that the mount works, and lets go of terminal and directory.
pub fn detach() -> Result<()> {
    set_parent_process_death_signal(None).context("cannot outlive who waits")?;
    rustix::process::setsid().context("cannot leave the terminal")?;
    std::env::set_current_dir("/").context("/")?;
    // Without a reader the process that waited is gone, which changes nothing for the mount.
    let _ = writeln!(std::io::stdout(), "{READY}").and_then(|()| std::io::stdout().flush());
    let null: File = OpenOptions::new().read(true).write(true).open("/dev/null").context("/dev/null")?;
    rustix::stdio::dup2_stdout(&null).context("/dev/null")?;
    // A reader of a terminal or a pipe waits for its end; a file may stay open.
    let stderr = rustix::fs::fstat(rustix::stdio::stderr()).context("standard error")?;
    if FileType::from_raw_mode(stderr.st_mode) == FileType::RegularFile {
        return Ok(());
    }
    output::complain_to_log();
    rustix::stdio::dup2_stderr(&null).context("/dev/null")
}
