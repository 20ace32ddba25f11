//! `-o remount`: other flags for a mount that is there. They are the kernel's alone; the server goes on as it is.
//!
//! Invariant: writing is allowed only where the server can write.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rustix::mount::mount_remount;

use crate::any_chip::AnyChip;
use crate::cli::Settings;
use crate::holder;
use crate::host::At;
use crate::mount_table::{MOUNT_TYPE, mounts};

/// Gives the mount of `image` on `mountpoint` the flags that `settings` has.
pub fn run(image: &Path, mountpoint: &Path, settings: &Settings) -> Result<()> {
    let shown = mountpoint.display();
    let (source, target) = (fs::canonicalize(image).at(image)?, fs::canonicalize(mountpoint).at(mountpoint)?);
    match mounts().into_iter().rev().find(|mount| mount.path == target) {
        Some(mount) if holder::has_mounted(image, &mount) => {}
        Some(mount) if mount.kind == MOUNT_TYPE => {
            let there = mount.source.display();
            bail!("{shown}: {there} is mounted here, not {}; name the one that is", image.display());
        }
        _ => bail!("{shown}: no FlexFS is mounted here; leave out remount"),
    }
    let read_only = settings.manner.read_only();
    // A server that writes keeps others from opening its image at all.
    if !read_only && AnyChip::open(&source, true).is_ok() {
        bail!("{shown}: it was mounted read-only, and its server only reads; unmount it and mount it anew");
    }
    mount_remount(&target, settings.manner.flags, c"")
        .map_err(|errno| anyhow!("{shown}: cannot remount: {}", std::io::Error::from(errno)))?;
    if read_only {
        // The kernel has handed over what it held back, which is to reach flash as well.
        File::open(&target).and_then(|root| root.sync_all()).at(mountpoint)?;
    }
    Ok(())
}
