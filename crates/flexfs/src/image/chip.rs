//! The chip in an image file: opening it, and the reason in one line where there is none.
//!
//! Invariant: an error names the image and an action for its owner.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Result, anyhow};
use emulator::{Chip, EmulatorError};

use crate::foreign;
use crate::holder::{Holder, server_of};
use crate::host::told;
use crate::interrupt::Interrupt;
use crate::waiting::{Unavailable, wait_for_chip};

/// The reason why there is no chip, with an action.
pub fn refused(error: EmulatorError) -> anyhow::Error {
    match error {
        EmulatorError::InUse { ref path } => match server_of(path) {
            Some(Holder::Mounted(at)) => {
                let (path, at) = (path.display(), at.display());
                anyhow!("{path}: in use: it is mounted on {at}; `umount {at}` first")
            }
            Some(Holder::Server(pid)) => anyhow!(
                "{}: in use by process {pid}, a server that neither reads nor writes it; end that process, or try \
                 again later",
                path.display()
            ),
            None => anyhow!("{error}"),
        },
        EmulatorError::Foreign { ref path } if path.is_dir() => {
            anyhow!("{}: a directory, not a chip image; name the image file", path.display())
        }
        EmulatorError::Foreign { path } | EmulatorError::HalfMade { path } => foreign::refused(&path),
        EmulatorError::Missing { ref path }
            if path.parent().is_none_or(|dir| dir.as_os_str().is_empty() || dir.is_dir()) =>
        {
            let path = path.display();
            anyhow!("{path}: no such image; make one with `flexfs mkfs {path} --size 512MiB`")
        }
        EmulatorError::Missing { path } => told(&path, &ErrorKind::NotFound.into()),
        EmulatorError::Io { path, source, .. } if is_about_the_name(&source) => told(&path, &source),
        error => anyhow!("{error}"),
    }
}

/// Whether an error tells of where a file is and whose it is, not of the file.
fn is_about_the_name(error: &std::io::Error) -> bool {
    use ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    [NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem].contains(&error.kind())
}

/// Opens the chip in an image file, waiting for a server that was unmounted, and a little for anybody else.
pub fn open_chip(path: &Path, read_only: bool) -> Result<Chip> {
    open_chip_unless(path, read_only, &Interrupt::by_default())
}

/// The same, unless a signal comes meanwhile.
pub fn open_chip_unless(path: &Path, read_only: bool, interrupt: &Interrupt) -> Result<Chip> {
    wait_for_chip(path, read_only, interrupt).map_err(|error| match error {
        // A file that cannot be written may be no image, which is the better reason.
        Unavailable::Chip(error @ EmulatorError::Io { .. }) => match Chip::open_image(path, true) {
            Err(reason) => refused(reason),
            Ok(_) => refused(error),
        },
        Unavailable::Chip(error) => refused(error),
        Unavailable::Interrupted(signal) => signal.into(),
    })
}
