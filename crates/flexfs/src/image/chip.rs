//! The chip in an image file or behind a device: opening it, and the reason in one line where there is none.
//!
//! Invariant: an error names the image and an action for its owner.

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use emulator::{Chip, EmulatorError};
use mtd::MtdError;

use crate::any_chip::{AnyChip, OpenFailure, is_below_devices};
use crate::foreign;
use crate::holder::{Holder, server_of};
use crate::host::told;
use crate::interrupt::Interrupt;
use crate::waiting::{Unavailable, wait_for_chip};

/// The reason why there is no chip, with an action.
pub fn refused(error: OpenFailure) -> anyhow::Error {
    match error {
        OpenFailure::Image(error) => refused_image(error),
        OpenFailure::Device(error) => match &error {
            MtdError::InUse { path } => in_use(path, &error),
            _ => anyhow!("{error}"),
        },
    }
}

fn refused_image(error: EmulatorError) -> anyhow::Error {
    match error {
        EmulatorError::InUse { ref path } => in_use(path, &error),
        EmulatorError::Foreign { ref path } if path.is_dir() => {
            anyhow!("{}: a directory, not a chip image; name the image file", path.display())
        }
        EmulatorError::Foreign { path } | EmulatorError::HalfMade { path } => foreign::refused(&path),
        EmulatorError::Missing { ref path }
            if path.parent().is_none_or(|dir| dir.as_os_str().is_empty() || dir.is_dir()) =>
        {
            if is_below_devices(path) {
                return anyhow!("{}: no such device", path.display());
            }
            let path = path.display();
            anyhow!("{path}: no such image; make one with `flexfs mkfs {path} --size 512MiB`")
        }
        EmulatorError::Missing { path } => told(&path, &ErrorKind::NotFound.into()),
        EmulatorError::Io { path, source, .. } if is_about_the_name(&source) => told(&path, &source),
        error => anyhow!("{error}"),
    }
}

/// Who has it in use, as far as that is known.
fn in_use(path: &Path, error: &dyn Error) -> anyhow::Error {
    let shown = path.display();
    match server_of(path) {
        Some(Holder::Mounted(at)) => {
            let at = at.display();
            anyhow!("{shown}: in use: it is mounted on {at}; `umount {at}` first")
        }
        Some(Holder::Disk { uri, pid }) => {
            let pid = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            anyhow!("{shown}: in use: it is served at {uri}; end its `flexfs serve`{pid} first")
        }
        Some(Holder::Server(pid)) => anyhow!(
            "{shown}: in use by process {pid}, a server that neither reads nor writes it; end that process, or try \
             again later"
        ),
        None => anyhow!("{error}"),
    }
}

/// Whether an error tells of where a file is and whose it is, not of the file.
fn is_about_the_name(error: &std::io::Error) -> bool {
    use ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    [NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem].contains(&error.kind())
}

/// Opens the chip in an image file, or behind a device, waiting for a server that was unmounted, and a little for anybody else.
pub fn open_chip(path: &Path, read_only: bool) -> Result<AnyChip> {
    open_chip_unless(path, read_only, &Interrupt::by_default())
}

/// The same, of a chip that is to be formatted: no volume need tell of its cells.
pub fn open_chip_to_format(path: &Path) -> Result<AnyChip> {
    wait(path, false, &Interrupt::by_default())
}

/// The chip in an image file, for what only an emulated one can do.
pub fn open_emulated(path: &Path, read_only: bool) -> Result<Chip> {
    let chip = open_chip(path, read_only)?;
    chip.into_emulated().map_err(|device| anyhow!("{}: a device; this needs an image file", device.display()))
}

/// Opens a chip as [`open_chip`] does, unless a signal comes meanwhile.
pub fn open_chip_unless(path: &Path, read_only: bool, interrupt: &Interrupt) -> Result<AnyChip> {
    let chip = wait(path, read_only, interrupt)?;
    if chip.lacks_cells() {
        bail!(
            "{0}: its cells hold more than one bit, and no FlexFS on it tells how they are programmed; make one with \
             `flexfs mkfs {0} --profile PROFILE`",
            path.display()
        );
    }
    Ok(chip)
}

fn wait(path: &Path, read_only: bool, interrupt: &Interrupt) -> Result<AnyChip> {
    wait_for_chip(path, read_only, interrupt).map_err(|error| match error {
        // A file that cannot be written may be no image, which is the better reason.
        Unavailable::Chip(error @ OpenFailure::Image(EmulatorError::Io { .. })) => match Chip::open_image(path, true) {
            Err(reason) => refused_image(reason),
            Ok(_) => refused(error),
        },
        Unavailable::Chip(error) => refused(error),
        Unavailable::Interrupted(signal) => signal.into(),
    })
}
