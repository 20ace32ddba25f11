//! Copying out of an image: a file, or a directory with all in it, to the host's file system.
//!
//! Kept are contents, holes, permissions, times, symbolic links, hard links within what is copied, extended attributes
//! and, for root, owners and devices. Invariants: an existing file is replaced, never written into or through, an
//! existing directory is merged with, and nothing else gives way, least of all a chip image; what the image cannot give back whole is told and
//! left out, and the rest is copied.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use flexfs_core::{Attr, Ino, kind};
use indicatif::ProgressBar;
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid};

use super::{Step, Tree, Visited, is_dir, join};
use crate::destination::Destinations;
use crate::host::At;
use crate::interrupt::{Interrupt, Interrupted};
use crate::{host_attributes, image, output};

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;

const PERMISSIONS: u32 = 0o7777;

/// A copy under way.
pub struct TakeOut<'a> {
    destinations: Destinations,
    bar: &'a ProgressBar,
    interrupt: &'a Interrupt,
    /// Where the first name of an inode with several was copied to.
    links: HashMap<Ino, PathBuf>,
    is_root: bool,
    /// What could not be read from the image.
    pub lost: u64,
    /// Attributes that the host does not take.
    pub left_out: u64,
}

impl<'a> TakeOut<'a> {
    pub fn new(destinations: Destinations, bar: &'a ProgressBar, interrupt: &'a Interrupt) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        Self { destinations, bar, interrupt, links: HashMap::new(), is_root, lost: 0, left_out: 0 }
    }

    /// Copies what `attr` is, found at `path`, to `dest`.
    pub fn copy(&mut self, tree: &mut Tree, path: &[u8], attr: &Attr, dest: &Path) -> Result<()> {
        if !is_dir(attr) {
            return self.leaf(tree, path, attr, dest);
        }
        make_dir(dest)?;
        let ways = |visited: &Visited| (join(path, &visited.path), dest.join(OsStr::from_bytes(&visited.path)));
        tree.walk(attr.ino, path, &mut |tree, step| match step {
            Step::Enter(visited) => make_dir(&ways(visited).1),
            Step::Leaf(visited) => {
                let (from, to) = ways(visited);
                self.leaf(tree, &from, &visited.attr, &to)
            }
            Step::Leave(visited) => {
                let (from, to) = ways(visited);
                self.dress(tree, &from, &visited.attr, (&to, &to))
            }
            Step::Lost(_, error) => {
                self.lose(&error);
                Ok(())
            }
        })?;
        self.dress(tree, path, attr, (dest, dest))
    }

    fn lose(&mut self, error: &Error) {
        output::complain(&format!("{error:#}"));
        self.lost += 1;
    }

    /// What is no directory: made under another name, so that what it replaces stays until it is whole.
    fn leaf(&mut self, tree: &mut Tree, path: &[u8], attr: &Attr, dest: &Path) -> Result<()> {
        self.interrupt.check()?;
        check_way(dest)?;
        let draft = draft_of(dest);
        [dest, &draft].into_iter().try_for_each(|path| self.destinations.check(path))?;
        remove(&draft)?;
        match self.make(tree, path, attr, (&draft, dest)) {
            Ok(true) => {
                fs::rename(&draft, dest).at(dest)?;
                // Of two names of one file a rename leaves both.
                remove(&draft)?;
                if attr.nlink > 1 {
                    self.links.insert(attr.ino, dest.to_path_buf());
                }
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(error) => {
                // The error that led here is the one to tell.
                let _ = remove(&draft);
                Err(told_of(error, &draft, dest))
            }
        }
    }

    /// Makes what is no directory as a draft of `dest`; false, and nothing, if the image cannot give it back.
    fn make(&mut self, tree: &mut Tree, path: &[u8], attr: &Attr, (draft, dest): (&Path, &Path)) -> Result<bool> {
        if let Some(first) = self.links.get(&attr.ino)
            && fs::hard_link(first, draft).is_ok()
        {
            return Ok(true);
        }
        let made = match attr.mode & kind::MASK {
            kind::FILE => self.file(tree, path, attr, draft)?,
            kind::SYMLINK => match tree.fs.readlink(attr.ino) {
                Ok(target) => {
                    std::os::unix::fs::symlink(OsStr::from_bytes(&target), draft).at(draft)?;
                    true
                }
                Err(error) => {
                    self.lose(&tree.failed(path, &error));
                    false
                }
            },
            special => {
                let kind = FileType::from_raw_mode(special);
                rustix::fs::mknodat(CWD, draft, kind, Mode::from_raw_mode(0o600), attr.rdev.into())
                    .map_err(std::io::Error::from)
                    .with_context(|| format!("{}: cannot make a special file", draft.display()))?;
                true
            }
        };
        if made {
            self.dress(tree, path, attr, (draft, dest))?;
        }
        Ok(made)
    }

    /// A file's contents; false, and no file, if the image cannot give them back.
    fn file(&mut self, tree: &mut Tree, path: &[u8], attr: &Attr, dest: &Path) -> Result<bool> {
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(dest);
        let mut file = opened.at(dest)?;
        match self.contents(tree, attr, &mut file) {
            Ok(()) => Ok(true),
            Err(Stopped::Image(error)) => {
                fs::remove_file(dest).at(dest)?;
                self.lose(&tree.failed(path, &error));
                Ok(false)
            }
            Err(Stopped::Host(error)) => Err(error).at(dest),
            Err(Stopped::Asked(error)) => Err(error),
        }
    }

    /// Writes a file's contents, leaving holes where it has some.
    fn contents(&mut self, tree: &mut Tree, attr: &Attr, to: &mut File) -> Result<(), Stopped> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut offset = 0;
        while let Some((from, until)) = next_data(tree, attr.ino, offset)? {
            self.bar.inc(from - offset);
            to.seek(SeekFrom::Start(from)).map_err(Stopped::Host)?;
            offset = from;
            while offset < until {
                let wanted = usize::try_from(until - offset).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
                let room = piece.get_mut(..wanted).unwrap_or_default();
                let count = tree.fs.read(attr.ino, offset, room).map_err(Stopped::Image)?;
                to.write_all(room.get(..count).unwrap_or_default()).map_err(Stopped::Host)?;
                if count == 0 {
                    break;
                }
                offset += count as u64;
                self.bar.inc(count as u64);
                self.interrupt.check().map_err(Stopped::Asked)?;
            }
        }
        self.bar.inc(attr.size.saturating_sub(offset));
        to.set_len(attr.size).map_err(Stopped::Host)
    }

    /// Gives what was made at `dest`, and will be `named` so, its owner, attributes, permissions and times, in the order in
    /// which none undoes another.
    fn dress(&mut self, tree: &mut Tree, path: &[u8], attr: &Attr, (dest, named): (&Path, &Path)) -> Result<()> {
        if self.is_root {
            let (owner, group) = (Uid::from_raw(attr.uid), Gid::from_raw(attr.gid));
            rustix::fs::chownat(CWD, dest, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(std::io::Error::from)
                .with_context(|| format!("{}: cannot set the owner", dest.display()))?;
        }
        self.attributes(tree, path, attr, (dest, named));
        if attr.mode & kind::MASK != kind::SYMLINK {
            fs::set_permissions(dest, fs::Permissions::from_mode(attr.mode & PERMISSIONS)).at(dest)?;
        }
        let times = Timestamps { last_access: timespec(attr.atime_ns), last_modification: timespec(attr.mtime_ns) };
        rustix::fs::utimensat(CWD, dest, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(std::io::Error::from)
            .with_context(|| format!("{}: cannot set the times", dest.display()))
    }

    /// Extended attributes; those that the host does not take are told of.
    fn attributes(&mut self, tree: &mut Tree, path: &[u8], attr: &Attr, (dest, named): (&Path, &Path)) {
        let names = match tree.fs.listxattr(attr.ino) {
            Ok(names) => names,
            Err(error) => return self.lose(&tree.failed(path, &error)),
        };
        for name in names {
            let shown = String::from_utf8_lossy(&name).into_owned();
            match tree.fs.getxattr(attr.ino, &name) {
                Ok(value) => {
                    if let Err(error) = host_attributes::set(dest, OsStr::from_bytes(&name), &value) {
                        output::complain(&format!("{}: attribute {shown} is left out: {error}", named.display()));
                        self.left_out += 1;
                    }
                }
                Err(error) => {
                    let why = image::explain(&error, tree.image);
                    self.lose(&tree.error(path, format!("attribute {shown}: {why}")));
                }
            }
        }
    }
}

/// Which side ended a copy, or who asked for its end.
enum Stopped {
    Image(flexfs_core::Error),
    Host(std::io::Error),
    Asked(Error),
}

/// Writes a file's contents to `out`.
pub fn print(tree: &mut Tree, path: &[u8], attr: &Attr, out: &mut dyn Write) -> Result<()> {
    if attr.mode & kind::MASK != kind::FILE {
        return Err(tree.error(path, "not a regular file; name a DEST to copy it to"));
    }
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    while offset < attr.size {
        let read = tree.fs.read(attr.ino, offset, &mut piece);
        let count = tree.told(path, read)?;
        match out.write_all(piece.get(..count).unwrap_or(&piece)) {
            // Whoever read has had enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written.context("standard output")?,
        }
        offset += count as u64;
    }
    out.flush().context("standard output")
}

/// Whether what is to be made can stand there.
fn check_way(dest: &Path) -> Result<()> {
    match fs::symlink_metadata(dest) {
        Ok(found) if found.is_dir() => {
            bail!("{}: a directory is in the way; move it, or choose another", dest.display())
        }
        Ok(found) if !found.is_file() && !found.is_symlink() => {
            bail!("{}: a device, pipe or socket; choose another name, or - for standard output", dest.display())
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).at(dest),
    }
}

/// An error about the draft, told of what it was to be.
fn told_of(error: Error, draft: &Path, dest: &Path) -> Error {
    if error.is::<Interrupted>() {
        return error;
    }
    anyhow!("{}", format!("{error:#}").replace(&draft.display().to_string(), &dest.display().to_string()))
}

/// The name under which something is made that will be `dest`.
fn draft_of(dest: &Path) -> PathBuf {
    let number = std::process::id();
    dest.with_file_name(format!(".flexfs-get-{number}"))
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).at(path),
        _ => Ok(()),
    }
}

/// A directory that only its maker may enter until it is dressed, or one that is there.
fn make_dir(dest: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(dest) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(dest).at(dest)?;
            if found.is_dir() { Ok(()) } else { bail!("{}: exists and is no directory; move it", dest.display()) }
        }
        made => made.at(dest),
    }
}

fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) }
}

/// Where from `offset` on a file's next data is, up to where they go.
fn next_data(tree: &mut Tree, ino: Ino, offset: u64) -> Result<Option<(u64, u64)>, Stopped> {
    match tree.fs.seek(ino, offset, false) {
        Err(flexfs_core::Error::PastEnd) => Ok(None),
        Err(error) => Err(Stopped::Image(error)),
        Ok(from) => Ok(Some((from, tree.fs.seek(ino, from, true).map_err(Stopped::Image)?))),
    }
}
