//! Making an image file: whole, or not at all.
//!
//! Invariant: a new image is built beside its place and takes its name only when it holds what it is to hold, so no failure
//! leaves a half-made one or harms what was there.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use emulator::{Chip, EmulatorError, Profile};
use flexfs_core::{Error, FormatOptions, Fs, MountOptions, Times};
use ftl::{BlockMapDrive, DriveFormat};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;
use torture::crash::VolumeOver;

use crate::any_chip::{AnyChip, OpenFailure, is_below_devices};
use crate::clock::now_ns;
use crate::host::At;
use crate::image::{explain, refused};
use crate::interrupt::Interrupt;
use crate::waiting::{Unavailable, wait_for_chip};

/// The chip of a new image.
pub struct NewChip<'a> {
    pub profile: &'a Profile,
    /// Decides the chance events in the life of the chip.
    pub seed: u64,
    /// A regular file that is there and not in use gives way.
    pub replace: bool,
}

impl<'a> NewChip<'a> {
    /// A chip like no other.
    pub fn unique(profile: &'a Profile) -> Result<Self> {
        Ok(Self { profile, seed: u64::from_le_bytes(by_chance()?), replace: false })
    }
}

/// What a new image with a file system is to be.
pub struct NewImage<'a> {
    pub chip: NewChip<'a>,
    /// What stands between the file system and the chip.
    pub over: VolumeOver,
    pub format: FormatOptions,
}

impl<'a> NewImage<'a> {
    /// An image like no other, with an empty volume that belongs to the caller.
    pub fn unique(profile: &'a Profile, label: &str) -> Result<Self> {
        Ok(Self { chip: NewChip::unique(profile)?, over: VolumeOver::Chip, format: format_options(label)? })
    }
}

/// Bytes that nobody foresees.
pub fn by_chance<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

/// Makes a chip in a new image file and formats it.
pub fn make(path: &Path, new: &NewImage) -> Result<()> {
    make_filled(path, new, |_, _| Ok(()))
}

/// Makes a chip in a new image file, formats it, and has `fill` fill the volume; what `fill` gets beside it is the
/// file that will become the image.
pub fn make_filled(
    path: &Path,
    new: &NewImage,
    fill: impl FnOnce(&mut Fs<AnyChip>, &Path) -> Result<()>,
) -> Result<()> {
    let told = |error: Error| match error {
        Error::Unsuitable(_) => anyhow!("{}: {error}; choose another size or --profile", path.display()),
        error => anyhow!("{}: {}", path.display(), explain(&error, path)),
    };
    make_with(path, &new.chip, |chip, draft| {
        let mut chip = match new.over {
            VolumeOver::Chip => AnyChip::from(chip),
            VolumeOver::Codesign => made_drive(chip, &new.format, path)?,
        };
        Fs::format(&mut chip, &new.format).map_err(told)?;
        // The time of the format, so that what is mounted and unmounted here does not depend on the clock; the times of
        // files are those of what they are filled from.
        let now_ns = new.format.now_ns;
        let options = MountOptions { times: Times::OfCaller, now_ns, ..MountOptions::default() };
        let mut fs = Fs::mount(chip, options).map_err(|(_, error)| told(error))?;
        fill(&mut fs, draft)?;
        let (chip, unmounted) = fs.unmount(now_ns);
        unmounted.map_err(told)?;
        let chip = chip.into_emulated().map_err(|device| anyhow!("{}: not an image", device.display()))?;
        Ok((chip, ()))
    })
}

/// Makes a drive of a new chip; its number is part of the volume's identity.
fn made_drive(chip: Chip, format: &FormatOptions, path: &Path) -> Result<AnyChip> {
    let [first, second, third, fourth, ..] = format.volume_id;
    let drive = DriveFormat { number: u32::from_le_bytes([first, second, third, fourth]), blank: true };
    let made = BlockMapDrive::create(chip, &drive);
    made.map(AnyChip::from)
        .map_err(|(_, error)| anyhow!("{}: {error}; choose another size or --profile", path.display()))
}

/// Makes a chip in a new image file and has `format` make of it what the image is to hold; what `format` gets beside it is
/// the file that will become the image.
pub fn make_with<T>(path: &Path, new: &NewChip, format: impl FnOnce(Chip, &Path) -> Result<(Chip, T)>) -> Result<T> {
    let _replaced = check_free(path, new.replace)?;
    let name = Draft::name_beside(path);
    let made = Chip::create_image(&name, new.profile, new.seed);
    let chip = made.map_err(|error| draft_failed(error, &name, path))?;
    // From here on the file of that name is ours to remove.
    let draft = Draft { path: name };
    let (mut chip, formatted) = format(chip, &draft.path)?;
    chip.sync_image().map_err(|error| draft_failed(error, &draft.path, path))?;
    drop(chip);
    draft.take_place_of(path, new.replace)?;
    Ok(formatted)
}

/// Whether an image may be made there. One that is to be replaced is in use while what this gives is kept.
fn check_free(path: &Path, replace: bool) -> Result<Option<AnyChip>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && is_below_devices(path) => {
            bail!("{}: no such device; an image is made elsewhere", path.display())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at(path),
        Ok(found) if !found.is_file() => bail!("{}: not a regular file; choose another name", path.display()),
        Ok(_) if !replace => bail!("{}: exists; choose another name, or replace it with --force", path.display()),
        // Nothing is made yet that a signal could leave behind.
        Ok(_) => match wait_for_chip(path, true, &Interrupt::by_default()) {
            Err(Unavailable::Chip(error)) if error.is_in_use() => Err(refused(error)),
            // What is no image nobody can mount.
            opened => Ok(opened.ok()),
        },
    }
}

/// A volume of its own on a new chip, whose root belongs to the caller.
pub fn format_options(label: &str) -> Result<FormatOptions> {
    Ok(FormatOptions {
        volume_id: by_chance()?,
        label: label.to_owned(),
        root_mode: 0o755,
        root_uid: rustix::process::getuid().as_raw(),
        root_gid: rustix::process::getgid().as_raw(),
        blank: true,
        now_ns: now_ns(),
        ..FormatOptions::default()
    })
}

/// The image as it is being made, under a name of its own; removed unless it takes its place.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn name_beside(path: &Path) -> PathBuf {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".making-{}", std::process::id()));
        path.with_file_name(name)
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
        EmulatorError::Io { what, source, .. } => {
            refused(OpenFailure::Image(EmulatorError::Io { path: path.to_path_buf(), what, source }))
        }
        error => anyhow!("{}", error.to_string().replace(&draft.display().to_string(), &path.display().to_string())),
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
        let mut new = NewImage::unique(&profile, "").unwrap();
        new.chip.replace = true;
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
}
