//! What `flexfs mount` takes, and what mount(8) hands to a helper; both end in the same [`Settings`].

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Parser};
use emulator::Profile;
use flexfs_core::{HOST_CACHE_BYTES, Policy};
use rustix::mount::MountFlags;
use rustix::process::geteuid;

use super::settings::{Settings, option};
use super::values::{Compress, cache, cache_help, policy, profile, profile_help};
use crate::fuse::pacing::Timing;
use crate::{program, size};

/// Mount an image on a directory.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flexfs mount --create 512MiB flash.img mnt   make both if they are missing; Ctrl-C unmounts
  flexfs mount -b flash.img mnt                in the background; `umount mnt` ends it
  flexfs mount --ro flash.img mnt              look, change nothing
  flexfs mount --policy mlc-only flash.img mnt  never use the fast SLC mode for large writes
  flexfs mount -o relatime,commit=5,compress=lz4 flash.img mnt

Policies: baseline writes to SLC blocks, and moves data to native ones when free blocks run out; bm moves it while
nobody calls as well; da is bm that writes a part of the data natively at once, where there is too little idle time
to move it all; la is da that keeps what is overwritten again and again in SLC; default is la that writes to SLC
without idle time, too, while no more than a fifth of the blocks are SLC blocks, and after a pause of a minute for
a twentieth of the capacity more, in idle time collects blocks of both kinds, not of native cells alone as in the
FlexFS paper, and moves only as much as the next burst needs blocks; charge is default that moves data while there
is a charger, and on a battery only what leaves N % of the blocks to spare; slc-only never uses native blocks: the
same speed to the end, and a part of the capacity; mlc-only writes natively, but for small synced writes;
slc-buffer=N% writes to SLC until N % of the blocks are SLC blocks, as SSDs do.
On a chip with one bit a cell, which has one kind of block, all of them write to that and move nothing.
Parameters follow, each after a colon, as in da:t_wait=2s:n_p=512. They are the paper's: t_wait, from the last
call to the first move (1s); t_trig, from the start of one page's move to the next (15ms); n_p, pages in a window
of which idle time is measured (1024); of charge spare=N% (12%); and on a chip of several channels channel=RULE,
which chooses the channel of a page: round-robin (unless said); fairness, fair+ or window+, by its file; read-busy+
or read-busy-by-time, by how long channels are busy; fairness-by-time or hybrid-by-time, by both.

Options after -o, of which the later wins:
  ro, rw, create=, profile=, policy=, compress=, cache=   as the flags above
  noatime, relatime     whether reading leaves a time (noatime unless said); nodiratime: not on directories
  timing=chip           every operation takes the time that the emulated chip takes for it (none)
  lifetime=TIME         no block is to be worn out before then: 3y, or with a wear window 3y:1d; none ends that
  wear=whole-life       who decides how much goes to SLC for that: our controller, or the paper's: wear=paper
  power=auto            of policy charge: who says where the power comes from; charger or battery instead of the system
  commit=SECONDS        how old a change may get before it reaches flash (0.5)
  writethrough          writes reach the file system at once, not by way of the kernel's cache: slower, but
                        each write on a full volume fails; otherwise one up to 32 MiB later does
  sync, dirsync         every change is durable when its call returns
  nosync_image          an fsync reaches the chip, but does not wait for the disk under its image
  allow_other           others than who mounted it may use it; they may in any case where root did
  suid, dev, noexec     as of any mount (nosuid and nodev unless said, or unless root mounts with mount(8))
  remount               gives the flags that are said to a mount that is there: -o remount,ro

To mount from /etc/fstab, or with `mount -t fuse.flexfs flash.img mnt`, let /sbin/mount.fuse.flexfs be a link to
this program.

What goes wrong while it serves is told on standard error; in the background, in the system log, unless
standard error is a file: flexfs mount -b flash.img mnt 2>> flash.log

SIGINT, SIGTERM and `umount` all end it cleanly. Whatever an fsync returned for survives even kill -9.
`sync FILE`, of any file or directory of the mount, calls fsync. `sync -f` and `sync` without a file do not: they make
the kernel hand over what it holds back, but it does not tell a FUSE server to make that last, which then happens within
`commit` seconds.
Exit status 0: mounted (-b) or unmounted cleanly; 1: neither; 2: wrong usage.")]
pub struct Mount {
    /// The image file
    pub image: PathBuf,
    /// The directory to mount it on
    pub mountpoint: PathBuf,
    /// Make a chip of this size and the mount point, where they do not exist
    #[arg(long, value_name = "SIZE", value_parser = size::parse, conflicts_with = "ro")]
    create: Option<u64>,
    /// With --create, the kind of chip: a built-in profile, or a file that describes one
    #[arg(long, value_parser = profile(), hide_possible_values = true, help = chip_help())]
    profile: Option<Profile>,
    /// Which cells data is written to, and what is moved when
    #[arg(long, visible_alias = "mode", value_name = "POLICY", default_value = Policy::DEFAULT.name(), value_parser = policy())]
    policy: Policy,
    /// Mount read-only: the image's bytes stay as they are (-o rw takes that back)
    #[arg(long)]
    ro: bool,
    /// Return once it is mounted, and serve in the background
    #[arg(short, long)]
    pub background: bool,
    /// Whether operations take the time of the emulated chip
    #[arg(long, value_enum, default_value_t = Timing::None)]
    timing: Timing,
    /// Compress data on its way to flash
    #[arg(long, value_enum, default_value_t = Compress::None)]
    compress: Compress,
    #[arg(long, value_name = "SIZE", value_parser = cache, help = cache_help())]
    cache: Option<usize>,
    /// Write down in this new file every read, write, sync and change of a name, length or attribute, with its time, as a
    /// trace for flexfs replay; the kernel's cache makes larger writes of several, unless -o writethrough
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write down in this new file what the volume is asked and what it decides, for flexfs replay
    #[arg(long, value_name = "FILE")]
    record_decisions: Option<PathBuf>,
    /// Options as of mount(8), see below
    #[arg(short, value_name = "OPTION,...", value_delimiter = ',', value_parser = option(), hide_possible_values = true)]
    options: Vec<String>,
}

fn chip_help() -> String {
    format!("{} [default: {}]", profile_help(), Profile::DEFAULT)
}

impl Mount {
    /// Flags and options together; an option is later than any flag.
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = Settings {
            create: self.create,
            profile: self.profile.clone(),
            policy: self.policy,
            compress: self.compress,
            cache_bytes: self.cache.unwrap_or(HOST_CACHE_BYTES),
            record: self.record.clone(),
            record_decisions: self.record_decisions.clone(),
            ..Settings::default()
        };
        settings.manner.flags.set(MountFlags::RDONLY, self.ro);
        settings.manner.timing = self.timing;
        apply(&mut settings, &self.options, false)?;
        Ok(settings)
    }
}

/// Mount an image in the background, as mount(8) asks a helper to.
#[derive(Parser)]
#[command(name = program::HELPER, version)]
#[command(after_help = "\
Examples:
  mount -t fuse.flexfs -o relatime /srv/flash.img /mnt
  /etc/fstab:  /srv/flash.img  /mnt  fuse.flexfs  noauto,user,commit=5  0 0

`flexfs mount --help` tells of the options. Exit status 0: mounted; 1: wrong usage; 32: not mounted.")]
pub struct Helper {
    /// The image file
    pub image: PathBuf,
    /// The directory to mount it on
    pub mountpoint: PathBuf,
    /// Pass over options that are not known
    #[arg(short)]
    sloppy: bool,
    /// Do everything but mount
    #[arg(short)]
    pub fake: bool,
    /// Accepted: there is no table to keep
    #[arg(short)]
    no_table: bool,
    /// Say what is mounted
    #[arg(short)]
    pub verbose: bool,
    /// Options, see `flexfs mount --help`
    #[arg(short, value_name = "OPTION,...", value_delimiter = ',')]
    options: Vec<String>,
    /// The type asked for
    #[arg(short = 't', value_name = "TYPE")]
    kind: Option<String>,
}

impl Helper {
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::default();
        // mount(8) does not pass on what it takes for granted, suid and dev, but always what limits other users.
        settings.manner.flags.set(MountFlags::NOSUID | MountFlags::NODEV, !geteuid().is_root());
        apply(&mut settings, &self.options, self.sloppy)?;
        Ok(settings)
    }
}

fn apply(settings: &mut Settings, options: &[String], sloppy: bool) -> Result<()> {
    for option in options {
        if sloppy && !Settings::is_known(option) {
            continue;
        }
        if let Err(why) = settings.apply(option) {
            bail!("-o {option}: {why}");
        }
    }
    if settings.create.is_some() && settings.manner.read_only() {
        bail!("what is made has to be written to; leave out ro, or create");
    }
    Ok(())
}
