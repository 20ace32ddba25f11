//! A trace asked of a directory, in real time. Invariants: nothing outside of the directory is reached, whatever symbolic links
//! the trace makes; chip images in it that the trace has names for are not written over.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab::play::{Answered, Answers};
use lab::trace::{Op, ROOT, Request, Trace};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, RenameFlags, ResolveFlags, Timestamps};
use rustix::io::Errno;
use torture::content::{Fill, Texture};

use crate::destination;
use crate::host::At;

/// When the requests come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At their times, or when the one before is answered.
    AsRecorded,
    /// When the one before is answered.
    AtOnce,
}

/// What of a file that is there before is written at once.
const PIECE_BYTES: u64 = 1 << 20;
/// Files kept open.
const OPEN_MAX: usize = 128;

/// Plays a trace in a directory; tells how long the calls took.
pub fn play(trace: &Trace, dir: &Path, pace: Pace, progress: &dyn Fn(u64)) -> Result<Answered> {
    let mut player = Player { root: File::open(dir).at(dir)?.into(), open: HashMap::new(), writes: 0 };
    check_names(&player, trace, dir)?;
    for (file, bytes) in &trace.before {
        let failed = || format!("{}/{file}", dir.display());
        for offset in (0..*bytes).step_by(PIECE_BYTES as usize) {
            let op = Op::Write { offset, bytes: PIECE_BYTES.min(bytes - offset) };
            player.ask(file, &op).with_context(failed)?;
        }
        player.ask(file, if *bytes > 0 { &Op::Sync } else { &Op::Make }).with_context(failed)?;
    }
    let (mut answers, begun) = (Answers::default(), Instant::now());
    for (done, Request { at_ns, file, op }) in (0..).zip(&trace.requests) {
        if pace == Pace::AsRecorded {
            thread::sleep(Duration::from_nanos(*at_ns).saturating_sub(begun.elapsed()));
        }
        let failed = || format!("{}/{file}, request {}", dir.display(), done + 1);
        let took = player.ask(file, op).with_context(failed)?;
        answers.add(op, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        progress(done + 1);
    }
    Ok(answers.told())
}

/// Whether nothing that the trace changes is a chip image.
fn check_names(player: &Player, trace: &Trace, dir: &Path) -> Result<()> {
    let changed = trace.requests.iter().filter(|asked| !matches!(asked.op, Op::Read { .. } | Op::Sync));
    let names = changed.flat_map(|asked| match &asked.op {
        Op::Rename { to } | Op::Exchange { to } | Op::Link { to } => [Some(&asked.file), Some(to)],
        _ => [Some(&asked.file), None],
    });
    let before = trace.before.iter().map(|(file, _)| file);
    let names: BTreeSet<&String> = names.flatten().chain(before).collect();
    for name in names {
        // What is not there, or cannot be read, holds no image that one could lose unawares.
        let Ok(found) = player.opened(name, OFlags::RDONLY | OFlags::NONBLOCK) else { continue };
        if destination::is_chip_image(&File::from(found)).unwrap_or(false) {
            return Err(destination::refused(&dir.join(name)));
        }
    }
    Ok(())
}

/// A directory that is played in.
struct Player {
    root: OwnedFd,
    open: HashMap<String, File>,
    /// Writes so far: each has content of its own.
    writes: u64,
}

/// The directory of a path, and the name in it.
fn parted(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Passes over that a name is there already, or that it is not.
fn unless(error: Errno, result: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match result {
        Err(found) if found == error => Ok(()),
        other => other,
    }
}

impl Player {
    /// Asks; how long the calls took that the request stands for.
    fn ask(&mut self, path: &str, op: &Op) -> io::Result<Duration> {
        let data = match op {
            Op::Write { bytes, .. } => {
                self.writes += 1;
                Fill { seed: self.writes, start: 0, texture: Texture::Noise }.bytes(*bytes as usize)
            }
            Op::Read { bytes, .. } => vec![0; *bytes as usize],
            _ => Vec::new(),
        };
        let begun = Instant::now();
        match op {
            Op::Read { .. } | Op::Write { .. } | Op::Truncate { .. } | Op::Punch { .. } | Op::Allocate { .. } => {
                self.contents(path, op, data)?;
            }
            Op::Sync if path == ROOT => rustix::fs::fsync(&self.root)?,
            Op::Sync => self.sync(path)?,
            Op::Make => self.file(path).map(|_| ())?,
            Op::Attributes => self.touch(path)?,
            Op::MakeDir
            | Op::Symlink { .. }
            | Op::Link { .. }
            | Op::Rename { .. }
            | Op::Exchange { .. }
            | Op::Remove => {
                // What is open under a name may have another one then.
                self.open.clear();
                self.names(path, op)?;
            }
        }
        Ok(begun.elapsed())
    }

    fn contents(&mut self, path: &str, op: &Op, mut data: Vec<u8>) -> io::Result<()> {
        if matches!(op, Op::Read { .. }) && self.is_missing(path) {
            return Ok(());
        }
        let file = self.file(path)?;
        match *op {
            Op::Read { offset, .. } => {
                // Less is there where the trace read past the end.
                while file.read_at(&mut data, offset).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
                Ok(())
            }
            Op::Write { offset, .. } => file.write_all_at(&data, offset),
            Op::Truncate { bytes } => file.set_len(bytes),
            Op::Punch { bytes: 0, .. } | Op::Allocate { bytes: 0, .. } => Ok(()),
            Op::Punch { offset, bytes } => {
                let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                Ok(rustix::fs::fallocate(file, punch, offset, bytes)?)
            }
            Op::Allocate { offset, bytes } => Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), offset, bytes)?),
            _ => Ok(()),
        }
    }

    fn names(&mut self, path: &str, op: &Op) -> io::Result<()> {
        let (above, name) = parted(path);
        let dir = self.dir(above)?;
        match op {
            Op::MakeDir => unless(Errno::EXIST, rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o755)))?,
            Op::Symlink { target } => rustix::fs::symlinkat(target, &dir, name)?,
            Op::Remove => match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
                Err(Errno::ISDIR) => rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR)?,
                removed => unless(Errno::NOENT, removed)?,
            },
            Op::Link { to } => {
                let (to_above, to_name) = parted(to);
                let into = self.dir(to_above)?;
                rustix::fs::linkat(&dir, name, &into, to_name, AtFlags::empty())?;
            }
            Op::Rename { to } => {
                let (to_above, to_name) = parted(to);
                let into = self.dir(to_above)?;
                // A file that the trace never made or read is not there.
                unless(Errno::NOENT, rustix::fs::renameat(&dir, name, &into, to_name))?;
            }
            Op::Exchange { to } => {
                let (to_above, to_name) = parted(to);
                let into = self.dir(to_above)?;
                rustix::fs::renameat_with(&dir, name, &into, to_name, RenameFlags::EXCHANGE)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn sync(&mut self, path: &str) -> io::Result<()> {
        if let Some(file) = self.open.get(path) {
            return file.sync_all();
        }
        match self.opened(path, OFlags::RDONLY) {
            Err(Errno::NOENT) => Ok(()),
            opened => Ok(rustix::fs::fsync(opened?)?),
        }
    }

    fn touch(&self, path: &str) -> io::Result<()> {
        let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let (above, name) = parted(path);
        let dir = self.dir(above)?;
        Ok(unless(Errno::NOENT, rustix::fs::utimensat(&dir, name, &times, AtFlags::SYMLINK_NOFOLLOW))?)
    }

    fn is_missing(&self, path: &str) -> bool {
        !self.open.contains_key(path) && matches!(self.opened(path, OFlags::PATH), Err(Errno::NOENT))
    }

    /// Opens what is there.
    fn opened(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mode = if flags.contains(OFlags::CREATE) { 0o644 } else { 0 };
        let flags = flags | OFlags::CLOEXEC;
        rustix::fs::openat2(&self.root, path, flags, Mode::from_raw_mode(mode), ResolveFlags::BENEATH)
    }

    /// The directory of that path, made with those above it where there is none.
    fn dir(&self, path: &str) -> rustix::io::Result<OwnedFd> {
        let path = if path.is_empty() { ROOT } else { path };
        match self.opened(path, OFlags::PATH | OFlags::DIRECTORY) {
            Err(Errno::NOENT) => {
                let (above, name) = parted(path);
                let above = self.dir(above)?;
                rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o755))?;
                self.opened(path, OFlags::PATH | OFlags::DIRECTORY)
            }
            opened => opened,
        }
    }

    /// The file of that path, made where there is none.
    fn file(&mut self, path: &str) -> io::Result<&File> {
        if !self.open.contains_key(path) {
            if self.open.len() >= OPEN_MAX {
                self.open.clear();
            }
            let flags = OFlags::RDWR | OFlags::CREATE;
            let opened = match self.opened(path, flags) {
                Err(Errno::NOENT) => {
                    self.dir(parted(path).0)?;
                    self.opened(path, flags)
                }
                opened => opened,
            };
            self.open.insert(path.to_owned(), File::from(opened?));
        }
        self.open.get(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
