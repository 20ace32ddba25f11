//! The file system in an image: opened to be served, or changed in one go.
//!
//! Invariants: an image that is refused stays as it is to the last byte; a volume that was changed is unmounted
//! cleanly, even after an error.

use std::path::Path;

use anyhow::{Result, anyhow};
use flexfs_core::{Fs, MountOptions};

use super::chip::open_chip_unless;
use super::content::Content;
use super::explain;
use crate::any_chip::AnyChip;
use crate::clock::now_ns;
use crate::interrupt::Interrupt;
use crate::root_damage;

/// Opens an image and the file system on it, unless a signal comes while the image is in use.
pub fn open(path: &Path, options: MountOptions, interrupt: &Interrupt) -> Result<Fs<AnyChip>> {
    let chip = open_chip_unless(path, options.read_only, interrupt)?;
    Content::on(chip, options).into_files(path)
}

/// Mounts the file system in an image, changes it, and unmounts it cleanly even if the change fails.
pub fn change<T>(path: &Path, interrupt: &Interrupt, change: impl FnOnce(&mut Fs<AnyChip>) -> Result<T>) -> Result<T> {
    let mut fs = open(path, MountOptions { now_ns: now_ns(), ..MountOptions::default() }, interrupt)?;
    let changed = match root_damage::of_inode(&mut fs) {
        Some(why) => {
            let path = path.display();
            Err(anyhow!(
                "{path}: the root directory is damaged, nothing can be written: {why}; `flexfs fsck {path}` tells more"
            ))
        }
        None => change(&mut fs),
    };
    let left = leave(fs, path, now_ns());
    // The first error is the error to report.
    changed.and_then(|value| left.map(|()| value))
}

/// Unmounts, and makes the image last.
pub fn leave(fs: Fs<AnyChip>, path: &Path, now_ns: i64) -> Result<()> {
    let (mut chip, unmounted) = fs.unmount(now_ns);
    let image = path.display();
    unmounted.map_err(|error| {
        let why = explain(&error, path);
        anyhow!("{image}: cannot unmount: {why}; the next mount recovers what was synced")
    })?;
    chip.sync().map_err(|error| anyhow!("{error}"))
}
