//! `flexfs mount`: an image on a directory, in the foreground or in the background.
//!
//! mount(8) may ask for it too, when the program is named as its helper; that is always in the background.
//!
//! Invariant: an order that cannot be carried out is refused before anything is made.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use flexfs_core::MountOptions;
use nand::Nand;
use rustix::io::Errno;
use rustix::mount::MountFlags;
use torture::record::Header;

use super::background::{detach, end_with_parent, is_detached, start_in_background};
use super::{recordings, remount};
use crate::any_chip::is_device;
use crate::cli::Settings;
use crate::clock::now_ns;
use crate::fuse::mountpoint::DEVICE;
use crate::fuse::pacing::Timing;
use crate::fuse::{Attach, Serving, take_signals};
use crate::host::At;
use crate::interrupt::Interrupt;
use crate::mount_table::{MOUNT_TYPE, mounts};
use crate::new_image::{self, NewImage};
use crate::{chips, cli, image, output, root_damage, size};

/// How old a change may get before it is made durable, unless `commit=` says otherwise.
const COMMIT: Duration = Duration::from_millis(500);

/// What mount(8) expects of a helper that could not mount.
const NOT_MOUNTED: u8 = 32;

/// An order to mount.
struct Order<'a> {
    image: &'a Path,
    mountpoint: &'a Path,
    settings: Settings,
}

pub fn run(args: &cli::Mount) -> Result<ExitCode> {
    let order = Order { image: &args.image, mountpoint: &args.mountpoint, settings: args.settings()? };
    if order.settings.remount {
        return remount(&order);
    }
    if args.background { in_background(&order) } else { serve(&order) }
}

/// As the helper of mount(8): always in the background.
pub fn help_mount(args: &cli::Helper) -> ExitCode {
    let mounted = args.settings().and_then(|settings| {
        let order = Order { image: &args.image, mountpoint: &args.mountpoint, settings };
        if args.fake {
            check(&order)?;
            return Ok(ExitCode::SUCCESS);
        }
        if order.settings.remount {
            return remount(&order);
        }
        let ended = in_background(&order)?;
        if args.verbose && !is_detached() && ended == ExitCode::SUCCESS {
            output::say(&format!("{} is mounted on {}", args.image.display(), args.mountpoint.display()))?;
        }
        Ok(ended)
    });
    match mounted {
        Ok(ended) if ended == ExitCode::SUCCESS => ended,
        Ok(_) => ExitCode::from(NOT_MOUNTED),
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::from(NOT_MOUNTED)
        }
    }
}

fn remount(order: &Order) -> Result<ExitCode> {
    check_flags(order.settings.manner.flags)?;
    remount::run(order.image, order.mountpoint, &order.settings)?;
    Ok(ExitCode::SUCCESS)
}

fn in_background(order: &Order) -> Result<ExitCode> {
    if is_detached() { serve(order) } else { start_in_background() }
}

fn check(order: &Order) -> Result<()> {
    if is_device(order.image) && order.settings.manner.timing == Timing::Chip {
        bail!("{}: a device takes the time that it takes; leave out timing=chip", order.image.display());
    }
    check_device()?;
    check_flags(order.settings.manner.flags)?;
    check_mountpoint(order.mountpoint, order.settings.create.is_some())?;
    recordings::check(&order.settings, order.image)
}

fn serve(order: &Order) -> Result<ExitCode> {
    let (signals, interrupt) = (take_signals()?, Interrupt::watch()?);
    end_with_parent()?;
    check(order)?;
    check_image(order, &interrupt)?;
    let Settings { policy, life, compress, cache_bytes, atime, commit, sync_image, mut manner, .. } = order.settings;
    let read_only = manner.read_only();
    let options = MountOptions {
        read_only,
        policy,
        life,
        compression: compress.into(),
        cache_bytes,
        lanes: None,
        atime,
        times: manner.times(),
        commit_ns: i64::try_from(commit.unwrap_or(COMMIT).as_nanos()).unwrap_or(i64::MAX),
        now_ns: now_ns(),
    };
    manner.power = policy.spare_percent().map(|_| order.settings.power);
    let made = Made::what_is_missing(order)?;
    let files = recordings::Files::make(&order.settings, Header::of(&options), order.image)?;
    let mut fs = image::open(order.image, options, &interrupt)?;
    if let Some(why) = root_damage::of_inode(&mut fs) {
        let image = order.image.display();
        output::complain(&format!(
            "{image}: the root directory is damaged, mounted read-only: {why}; `flexfs fsck {image}` tells more"
        ));
    }
    if fs.info().is_ok_and(|info| info.ended.is_some()) {
        manner.flags.set(MountFlags::RDONLY, true);
    }
    let recordings = files.begin(&mut fs)?;
    let (name, mountpoint) = (absolute(order.image)?, absolute(order.mountpoint)?);
    let to_sync = if read_only || !sync_image || is_device(&name) { None } else { Some(File::open(&name)?) };
    let serving =
        Serving::start(fs, Attach { name: &name, image: to_sync, mountpoint: &mountpoint, recordings, manner })?;
    made.keep();
    files.keep();
    let told = if is_detached() { detach() } else { announce(order) };
    if let Err(error) = told {
        // The mount is there and serves; that nobody could be told is no reason to end it.
        output::complain(&format!("{error:#}"));
    }
    serving.run(signals)?;
    Ok(ExitCode::SUCCESS)
}

fn announce(order: &Order) -> Result<()> {
    let (image, mountpoint) = (order.image.display(), order.mountpoint.display());
    output::say(&format!("{image} is mounted on {mountpoint}; Ctrl-C or `umount {mountpoint}` ends it"))
}

/// For others than root the kernel's helper leaves these out.
fn check_flags(flags: MountFlags) -> Result<()> {
    if !rustix::process::geteuid().is_root() && !flags.contains(MountFlags::NOSUID | MountFlags::NODEV) {
        bail!("-o dev and -o suid are for root alone; leave them out");
    }
    Ok(())
}

/// What is asked of a chip to be made has to hold of one that is there.
fn check_image(order: &Order, interrupt: &Interrupt) -> Result<()> {
    let Settings { create, profile, .. } = &order.settings;
    if (create.is_none() && profile.is_none()) || !order.image.exists() {
        return Ok(());
    }
    let (path, chip) = (order.image.display(), image::open_chip_unless(order.image, true, interrupt)?);
    let (name, bytes) = (chip.name(), chip.geometry().native_bytes());
    if let Some(asked) = profile.as_ref().filter(|asked| asked.name != name) {
        bail!("{path}: its chip is {name}, not {}; leave out --profile, or choose another image", asked.name);
    }
    if let Some(asked) = create.filter(|&asked| asked != bytes) {
        let (asked, there) = (size::typed(asked), size::typed(bytes));
        output::complain(&format!("{path}: exists, with a chip of {there}; --create {asked} is not followed"));
    }
    Ok(())
}

fn check_device() -> Result<()> {
    let found = fs::metadata(DEVICE).is_ok_and(|found| found.file_type().is_char_device());
    if found { Ok(()) } else { bail!("{DEVICE}: not there; load the kernel's FUSE module with `modprobe fuse`") }
}

fn check_mountpoint(path: &Path, may_be_made: bool) -> Result<()> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(_) if fs::canonicalize(path).is_ok_and(|whole| whole == Path::new("/")) => {
            bail!("{shown}: nobody would see what is mounted on the root of all; name a directory below it")
        }
        Ok(found) if found.is_dir() => check_not_taken(path),
        Ok(_) => bail!("{shown}: not a directory; name the directory to mount on"),
        Err(error) if error.kind() == ErrorKind::NotFound && may_be_made => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("{shown}: no such directory; make it, or let --create SIZE make it")
        }
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOTCONN) => {
            bail!("{shown}: the server of an earlier mount has died; `umount {shown}` first")
        }
        Err(error) => Err(error).at(path),
    }
}

/// Another FlexFS on the same directory would only be hidden.
fn check_not_taken(path: &Path) -> Result<()> {
    let full = absolute(path)?;
    let shown = path.display();
    match mounts().iter().find(|mount| mount.path == full && mount.kind == MOUNT_TYPE) {
        Some(_) => bail!("{shown}: a FlexFS is mounted here already; `umount {shown}` first, or choose another"),
        None => Ok(()),
    }
}

/// With `--create`: the image and the mount point, where they did not exist. Removed again if nothing comes of it.
#[derive(Default)]
struct Made {
    image: Option<PathBuf>,
    mountpoint: Option<PathBuf>,
}

impl Made {
    fn what_is_missing(order: &Order) -> Result<Self> {
        let mut made = Self::default();
        let Some(bytes) = order.settings.create else { return Ok(made) };
        let path = order.image.display();
        if !order.mountpoint.exists() {
            fs::create_dir_all(order.mountpoint).at(order.mountpoint)?;
            made.mountpoint = Some(order.mountpoint.to_path_buf());
        }
        if !order.image.exists() {
            let profile = chips::sized(&order.settings.profile.clone().unwrap_or_default(), bytes, "--create");
            let profile = profile.map_err(|why| anyhow!("{path}: {why}"))?;
            new_image::make(order.image, &NewImage::unique(&profile, "")?)?;
            made.image = Some(order.image.to_path_buf());
        }
        Ok(made)
    }

    /// The mount works: what was made stays.
    fn keep(mut self) {
        self.mountpoint = None;
        if let Some(image) = self.image.take() {
            eprintln!("{}: made", image.display());
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // The error that led here is the one to report.
        if let Some(image) = &self.image {
            let _ = fs::remove_file(image);
        }
        if let Some(mountpoint) = &self.mountpoint {
            let _ = fs::remove_dir(mountpoint);
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).at(path)
}
