//! Image files: making one whole or not at all, opening one, and saying in one line why not.
//!
//! Invariants: a new image is built beside its place and takes its name only when it is formatted, so no failure
//! leaves a half-made one or harms what was there; an error names the image and what its owner can do.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use emulator::{Chip, EmulatorError, Profile};
use flexfs_core::{Error, FormatOptions, Fs, MountOptions, Times};
use nand::NandError;
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

use crate::clock::now_ns;
use crate::holder::{Holder, server_of};
use crate::host::{At, told};
use crate::output;
use crate::tree::damage::{self, RootDamage};

/// How long an image may still be in use by something else than a server before that is an error, and how long one waits
/// for a server without saying so.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a new image is to be.
pub struct NewImage<'a> {
    pub profile: &'a Profile,
    /// Decides the chance events in the life of the chip.
    pub chip_seed: u64,
    pub format: FormatOptions,
    /// A regular file that is there and not in use gives way.
    pub replace: bool,
}

impl<'a> NewImage<'a> {
    /// An image like no other, with an empty volume that belongs to the caller.
    pub fn unique(profile: &'a Profile, label: &str) -> Result<Self> {
        let mut seed = [0; 8];
        rustix::rand::getrandom(&mut seed, GetRandomFlags::empty())?;
        Ok(Self { profile, chip_seed: u64::from_le_bytes(seed), format: format_options(label)?, replace: false })
    }
}

/// Makes a chip in a new image file and formats it.
pub fn make(path: &Path, new: &NewImage) -> Result<()> {
    make_filled(path, new, |_, _| Ok(()))
}

/// Makes a chip in a new image file, formats it, and has `fill` fill the volume; what `fill` gets beside it is the
/// file that will become the image.
pub fn make_filled(path: &Path, new: &NewImage, fill: impl FnOnce(&mut Fs<Chip>, &Path) -> Result<()>) -> Result<()> {
    let _replaced = check_free(path, new.replace)?;
    let told = |error: Error| match error {
        Error::Unsuitable(_) => anyhow!("{}: {error}; choose another size or --profile", path.display()),
        error => anyhow!("{}: {}", path.display(), explain(&error, path)),
    };
    let draft = Draft::beside(path);
    let made = Chip::create_image(&draft.path, new.profile, new.chip_seed);
    let mut chip = made.map_err(|error| draft_failed(error, &draft.path, path))?;
    Fs::format(&mut chip, &new.format).map_err(told)?;
    // The time of the format, so that what is mounted and unmounted here does not depend on the clock; the times of files
    // are those of what they are filled from.
    let now_ns = new.format.now_ns;
    let options = MountOptions { times: Times::OfCaller, now_ns, ..MountOptions::default() };
    let mut fs = Fs::mount(chip, options).map_err(|(_, error)| told(error))?;
    fill(&mut fs, &draft.path)?;
    let (mut chip, unmounted) = fs.unmount(now_ns);
    unmounted.map_err(told)?;
    chip.sync_image().map_err(|error| draft_failed(error, &draft.path, path))?;
    drop(chip);
    draft.take_place_of(path, new.replace)
}

/// Whether an image may be made there. One that is to be replaced is in use while what this gives is kept.
fn check_free(path: &Path, replace: bool) -> Result<Option<Chip>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at(path),
        Ok(found) if !found.is_file() => bail!("{}: not a regular file; choose another name", path.display()),
        Ok(_) if !replace => bail!("{}: exists; choose another name, or replace it with --force", path.display()),
        Ok(_) => match wait_for_chip(path, true) {
            Err(error @ EmulatorError::InUse { .. }) => Err(refused(error)),
            // What is no image nobody can mount.
            opened => Ok(opened.ok()),
        },
    }
}

/// A volume of its own on a new chip, whose root belongs to the caller.
pub fn format_options(label: &str) -> Result<FormatOptions> {
    let mut volume_id = [0; 16];
    rustix::rand::getrandom(&mut volume_id, GetRandomFlags::empty())?;
    Ok(FormatOptions {
        volume_id,
        label: label.to_owned(),
        root_mode: 0o755,
        root_uid: rustix::process::getuid().as_raw(),
        root_gid: rustix::process::getgid().as_raw(),
        blank: true,
        goal: None,
        now_ns: now_ns(),
    })
}

/// The image as it is being made, under a name of its own; removed unless it takes its place.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn beside(path: &Path) -> Self {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".making-{}", std::process::id()));
        Self { path: path.with_file_name(name) }
    }

    fn take_place_of(self, path: &Path, replace: bool) -> Result<()> {
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match rustix::fs::renameat_with(CWD, &self.path, CWD, path, flags) {
            // Not every file system knows how not to replace; that nothing is there has been seen before.
            Err(Errno::INVAL | Errno::NOSYS) => fs::rename(&self.path, path),
            result => result.map_err(std::io::Error::from),
        }
        .at(path)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After it took its place, or where it never came to be, there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}

/// An error about the draft, told of the image that was asked for.
fn draft_failed(error: EmulatorError, draft: &Path, path: &Path) -> anyhow::Error {
    match error {
        EmulatorError::Io { what, source, .. } => refused(EmulatorError::Io { path: path.to_path_buf(), what, source }),
        error => anyhow!("{}", error.to_string().replace(&draft.display().to_string(), &path.display().to_string())),
    }
}

/// Why there is no chip, with what can be done.
fn refused(error: EmulatorError) -> anyhow::Error {
    match error {
        EmulatorError::InUse { ref path } => match server_of(path) {
            Some(Holder::Mounted(at)) => {
                let (path, at) = (path.display(), at.display());
                anyhow!("{path}: in use: it is mounted on {at}; `umount {at}` first")
            }
            _ => anyhow!("{error}"),
        },
        EmulatorError::Foreign { ref path } if path.is_dir() => {
            anyhow!("{}: a directory, not a chip image; name the image file", path.display())
        }
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
    wait_for_chip(path, read_only).map_err(refused)
}

fn wait_for_chip(path: &Path, read_only: bool) -> Result<Chip, EmulatorError> {
    let (start, mut told) = (Instant::now(), false);
    // The kernel's table of locks may leave one out while others come and go.
    let mut server_seen = start;
    loop {
        let opened = Chip::open_image(path, read_only);
        let Err(EmulatorError::InUse { .. }) = opened else { return opened };
        match server_of(path) {
            Some(Holder::Mounted(_)) => return opened,
            None if server_seen.elapsed() >= PATIENCE => return opened,
            None => {}
            Some(Holder::Server) => {
                server_seen = Instant::now();
                if start.elapsed() >= PATIENCE && !told {
                    output::complain(&format!("{}: waiting for its server to end", path.display()));
                    told = true;
                }
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Opens an image for reading only, as the commands that look at one do.
pub fn open_to_look(path: &Path) -> Result<Fs<Chip>, Refused> {
    let chip = open_chip(path, true).map_err(Refused::Image)?;
    let options = MountOptions { read_only: true, now_ns: now_ns(), ..MountOptions::default() };
    Fs::mount(chip, options).map_err(|(_, error)| Refused::Volume(error))
}

/// Opens an image and the file system on it.
///
/// What cannot be mounted is found out reading only: an image that is refused stays as it is to the last byte.
pub fn open(path: &Path, options: MountOptions) -> Result<Fs<Chip>> {
    if !options.read_only {
        open_to_look(path).map_err(|refused| refused.into_error(path))?;
    }
    let chip = open_chip(path, options.read_only)?;
    Fs::mount(chip, options).map_err(|(_, error)| anyhow!("{}: {}", path.display(), explain(&error, path)))
}

/// Mounts the file system in an image, changes it, and unmounts it cleanly even if the change fails.
pub fn change<T>(path: &Path, change: impl FnOnce(&mut Fs<Chip>) -> Result<T>) -> Result<T> {
    let mut fs = open(path, MountOptions { now_ns: now_ns(), ..MountOptions::default() })?;
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
}

impl Refused {
    /// The reason in one line.
    pub fn into_error(self, path: &Path) -> anyhow::Error {
        match self {
            Refused::Image(error) => error,
            Refused::Volume(error) => anyhow!("{}: {}", path.display(), explain(&error, path)),
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

    /// Whoever mounted the old one meanwhile lost what they wrote.
    #[test]
    fn an_image_that_is_to_be_replaced_cannot_be_mounted_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flash.img");
        let profile = Profile::default().with_capacity(16 << 20).unwrap();
        let new = NewImage { replace: true, ..NewImage::unique(&profile, "").unwrap() };
        make(&path, &new).unwrap();
        let mut refused = false;
        make_filled(&path, &new, |_, _| {
            refused = matches!(Chip::open_image(&path, false), Err(EmulatorError::InUse { .. }));
            Ok(())
        })
        .unwrap();
        assert!(refused);
        assert!(Chip::open_image(&path, false).is_ok());
    }

    #[test]
    fn who_has_a_volume_of_another_version_is_told_what_to_do() {
        let told = |found| explain(&Error::Version { found, supported: 2 }, Path::new("flash.img"));
        assert_eq!(told(3), "the volume has format version 3; this program reads version 2; use a newer flexfs");
        assert!(
            told(1).contains("format version 1") && told(1).ends_with("`flexfs mkfs flash.img --size SIZE --force`")
        );
    }
}
