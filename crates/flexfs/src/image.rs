//! Image files: opening one, and saying in one line why not.
//!
//! Invariant: an error names the image and what its owner can do.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Result, anyhow};
use emulator::{Chip, EmulatorError};
use flexfs_core::{Error, Fs, MountOptions};
use nand::NandError;
use rustix::io::Errno;

use crate::clock::now_ns;
use crate::foreign;
use crate::holder::{Holder, server_of};
use crate::host::told;
use crate::interrupt::Interrupt;
use crate::translation::Held;
use crate::tree::damage::{self, RootDamage};
use crate::waiting::{Unavailable, wait_for_chip};

/// Why there is no chip, with what can be done.
pub fn refused(error: EmulatorError) -> anyhow::Error {
    match error {
        EmulatorError::InUse { ref path } => match server_of(path) {
            Some(Holder::Mounted(at)) => {
                let (path, at) = (path.display(), at.display());
                anyhow!("{path}: in use: it is mounted on {at}; `umount {at}` first")
            }
            Some(Holder::Server(pid)) => anyhow!(
                "{}: in use by process {pid}, a server that neither reads nor writes it; end that process, or try again later",
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

/// The same, unless one is interrupted.
pub fn open_chip_unless(path: &Path, read_only: bool, interrupt: &Interrupt) -> Result<Chip> {
    wait_for_chip(path, read_only, interrupt).map_err(|error| match error {
        Unavailable::Chip(error) => refused(error),
        Unavailable::Interrupted(signal) => signal.into(),
    })
}

/// Opens an image for reading only, as the commands that look at one do.
pub fn open_to_look(path: &Path) -> Result<Fs<Chip>, Refused> {
    look(path, &Interrupt::by_default())
}

fn look(path: &Path, interrupt: &Interrupt) -> Result<Fs<Chip>, Refused> {
    let chip = open_chip_unless(path, true, interrupt).map_err(Refused::Image)?;
    let options = MountOptions { read_only: true, now_ns: now_ns(), ..MountOptions::default() };
    Fs::mount(chip, options).map_err(|(chip, error)| Refused::by(chip, error))
}

/// Opens an image and the file system on it, unless one is interrupted while the image is in use.
///
/// What cannot be mounted is found out reading only: an image that is refused stays as it is to the last byte.
pub fn open(path: &Path, options: MountOptions, interrupt: &Interrupt) -> Result<Fs<Chip>> {
    if !options.read_only {
        look(path, interrupt).map_err(|refused| refused.into_error(path))?;
    }
    let chip = open_chip_unless(path, options.read_only, interrupt)?;
    Fs::mount(chip, options).map_err(|(chip, error)| Refused::by(chip, error).into_error(path))
}

/// Mounts the file system in an image, changes it, and unmounts it cleanly even if the change fails.
pub fn change<T>(path: &Path, interrupt: &Interrupt, change: impl FnOnce(&mut Fs<Chip>) -> Result<T>) -> Result<T> {
    let mut fs = open(path, MountOptions { now_ns: now_ns(), ..MountOptions::default() }, interrupt)?;
    let changed = match damage::root(&mut fs) {
        Some(RootDamage { why, read_only: true }) => {
            let path = path.display();
            Err(anyhow!(
                "{path}: the root directory is damaged, nothing can be written: {why}; `flexfs fsck {path}` tells more"
            ))
        }
        _ => change(&mut fs),
    };
    let left = leave(fs, path, now_ns());
    // What went wrong first is what to report.
    changed.and_then(|value| left.map(|()| value))
}

/// Unmounts, and makes the image last.
pub fn leave(fs: Fs<Chip>, path: &Path, now_ns: i64) -> Result<()> {
    let (mut chip, unmounted) = fs.unmount(now_ns);
    let image = path.display();
    unmounted.map_err(|error| {
        let why = explain(&error, path);
        anyhow!("{image}: cannot unmount: {why}; the next mount recovers what was synced")
    })?;
    chip.sync_image().map_err(|error| anyhow!("{error}"))
}

/// Why an image could not be looked at.
pub enum Refused {
    /// There is no chip in the file, or it cannot be had.
    Image(anyhow::Error),
    /// The chip is there, the file system on it does not mount.
    Volume(Error),
    /// The chip holds a translation layer, and no file system.
    Translation(Box<Held>),
}

impl Refused {
    /// What it means that the file system on this chip does not mount.
    fn by(chip: Chip, error: Error) -> Self {
        match error {
            // A translation layer may stand on chips that carry no file system.
            Error::NotFlexfs(_) | Error::Unsuitable(_) => {
                Held::on(chip).map_or(Refused::Volume(error), |held| Refused::Translation(Box::new(held)))
            }
            error => Refused::Volume(error),
        }
    }

    /// The reason in one line.
    pub fn into_error(self, path: &Path) -> anyhow::Error {
        match self {
            Refused::Image(error) => error,
            Refused::Volume(error) => anyhow!("{}: {}", path.display(), explain(&error, path)),
            Refused::Translation(held) => held.refusal(path),
        }
    }
}

/// Whether the disk under the image is full, as opposed to the volume.
pub fn is_full_disk(error: &Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT].map(Errno::raw_os_error);
    matches!(error, Error::Nand(NandError::Medium { errno, .. }) if full.contains(errno))
}

/// What the core says, and what can be done about it.
pub fn explain(error: &Error, path: &Path) -> String {
    let path = path.display();
    match error {
        Error::NotFlexfs(_) => {
            format!("{error}; `flexfs mkfs {path} --size SIZE --force` makes it anew (all on it is lost)")
        }
        Error::Version { found, supported } if found > supported => format!("{error}; use a newer flexfs"),
        Error::Version { .. } => format!(
            "{error}; copy its files with the flexfs that made it, then make it anew with `flexfs mkfs {path} --size SIZE --force`"
        ),
        Error::Unsuitable(_) => format!("{error}; make one for another chip with `flexfs mkfs`"),
        Error::Corrupt { .. } => format!("{error}; `flexfs fsck {path}` tells more"),
        error if is_full_disk(error) => {
            "no space is left on the file system that holds the image; free some".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_volume_of_another_version_is_told_what_to_do() {
        let told = |found| explain(&Error::Version { found, supported: 2 }, Path::new("flash.img"));
        assert_eq!(told(3), "the volume has format version 3; this program reads version 2; use a newer flexfs");
        assert!(
            told(1).contains("format version 1") && told(1).ends_with("`flexfs mkfs flash.img --size SIZE --force`")
        );
    }
}
