//! Copying into an image: files, or directories with all in them, from the host's file system.
//!
//! Kept are contents, permissions, owners, times, symbolic links, hard links within one copy, devices and extended
//! attributes; a chunk of zeros becomes a hole. Invariants: what ends up in the image depends on the source and on the
//! options alone, in the order of names, and not on how the host stores it; an existing file is replaced, an existing
//! directory merged with, and nothing else gives way.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use flexfs_core::{Error, Ino, NewNode, RenameMode, SetAttr, kind};
use indicatif::ProgressBar;
use walkdir::WalkDir;

use super::{Tree, is_dir, join};
use crate::clock::now_ns;
use crate::host::At;
use crate::interrupt::Interrupt;
use crate::{attribute_names, host_attributes, output};

/// Bytes read at a time: whole chunks of any chip.
const PIECE_BYTES: usize = 1 << 20;

const PERMISSIONS: u32 = 0o7777;

/// How the name begins under which something is made that will replace another.
const DRAFT: &str = ".flexfs-put";

/// What is not taken from the source as it is.
#[derive(Clone, Copy, Default)]
pub struct Wanted {
    /// Whom everything shall belong to.
    pub owner: Option<(u32, u32)>,
    /// All times become the source's time of modification, so that nothing tells when the copy was made.
    pub timeless: bool,
}

/// A place in the image for what is copied.
pub enum Place {
    /// A name in a directory.
    Name(Ino, Vec<u8>),
    /// A directory that is there, whose contents and attributes become the source's.
    Directory(Ino),
}

/// A copy under way.
pub struct BringIn<'a> {
    wanted: Wanted,
    bar: &'a ProgressBar,
    interrupt: &'a Interrupt,
    /// Device and inode of the image, which must not be copied into itself.
    image: (u64, u64),
    /// What the source's inodes with several names became.
    links: HashMap<(u64, u64), Ino>,
}

/// A directory whose contents are being copied.
struct Open {
    ino: Ino,
    source: PathBuf,
    meta: Metadata,
    path: Vec<u8>,
}

impl<'a> BringIn<'a> {
    /// Prepares a copy into the image file `image`.
    pub fn new(image: &Path, wanted: Wanted, bar: &'a ProgressBar, interrupt: &'a Interrupt) -> Result<Self> {
        let meta = fs::metadata(image).at(image)?;
        Ok(Self { wanted, bar, interrupt, image: (meta.dev(), meta.ino()), links: HashMap::new() })
    }

    /// Copies `source` to `place`, which is at `path` in the image.
    pub fn copy(&mut self, tree: &mut Tree, source: &Path, place: &Place, path: &[u8]) -> Result<()> {
        let mut open: Vec<Open> = Vec::new();
        for entry in WalkDir::new(source).follow_root_links(false).sort_by_file_name() {
            self.interrupt.check()?;
            let entry = entry.at(source)?;
            while open.len() > entry.depth() {
                self.leave(tree, open.pop())?;
            }
            let (parent, name, at) = match (open.last(), place) {
                (Some(dir), _) => {
                    let name = entry.file_name().as_bytes().to_vec();
                    let at = join(&dir.path, &name);
                    (dir.ino, Some(name), at)
                }
                (None, Place::Name(parent, name)) => (*parent, Some(name.clone()), path.to_vec()),
                (None, Place::Directory(ino)) => (*ino, None, path.to_vec()),
            };
            let meta = entry.metadata().at(source)?;
            self.check_times(entry.path(), &meta)?;
            if meta.is_dir() {
                let ino = match &name {
                    Some(name) => self.directory(tree, parent, name, &meta, &at)?,
                    None => parent,
                };
                open.push(Open { ino, source: entry.path().to_path_buf(), meta, path: at });
            } else if let Some(name) = &name {
                self.leaf(tree, parent, name, entry.path(), &meta, &at)?;
            } else {
                bail!("{}: not a directory", source.display());
            }
        }
        while !open.is_empty() {
            self.leave(tree, open.pop())?;
        }
        Ok(())
    }

    fn node(&self, meta: &Metadata) -> NewNode {
        let (uid, gid) = self.wanted.owner.unwrap_or((meta.uid(), meta.gid()));
        // The kernel's device numbers fit 32 bits; `stat` shows them in the low half.
        NewNode { mode: meta.mode(), uid, gid, rdev: meta.rdev() as u32 }
    }

    /// Whether the times that are taken can be kept.
    fn check_times(&self, source: &Path, meta: &Metadata) -> Result<()> {
        check_mtime(source, meta)?;
        if self.wanted.timeless {
            return Ok(());
        }
        check_time(source, "last access", meta.atime(), meta.atime_nsec())
    }

    /// The time at which what `meta` is of is changed in the image.
    fn time_ns(&self, meta: &Metadata) -> i64 {
        if self.wanted.timeless { mtime_ns(meta) } else { now_ns() }
    }

    /// A directory of that name: one that is there, or a new one.
    fn directory(&self, tree: &mut Tree, parent: Ino, name: &[u8], meta: &Metadata, at: &[u8]) -> Result<Ino> {
        match tree.fs.lookup(parent, name) {
            Ok(found) if is_dir(&found) => Ok(found.ino),
            Ok(_) => Err(tree.error(at, "exists and is no directory; remove it first")),
            Err(Error::NotFound) => {
                let made = tree.fs.create(parent, name, self.node(meta), self.time_ns(meta));
                Ok(tree.told(at, made)?.ino)
            }
            Err(error) => Err(tree.error(at, error)),
        }
    }

    /// A directory is complete: nothing touches its times any more.
    fn leave(&mut self, tree: &mut Tree, dir: Option<Open>) -> Result<()> {
        let Some(dir) = dir else { return Ok(()) };
        self.attributes(tree, dir.ino, &dir.source, &dir.meta, &dir.path)?;
        self.dress(tree, dir.ino, &dir.meta, &dir.path)
    }

    fn leaf(
        &mut self,
        tree: &mut Tree,
        parent: Ino,
        name: &[u8],
        source: &Path,
        meta: &Metadata,
        at: &[u8],
    ) -> Result<()> {
        let identity = (meta.dev(), meta.ino());
        if identity == self.image {
            bail!("{}: is the image itself; keep it out of what is copied", source.display());
        }
        let time_ns = self.time_ns(meta);
        let replaces = match tree.fs.lookup(parent, name) {
            Ok(found) if is_dir(&found) => return Err(tree.error(at, "a directory is in the way; remove it first")),
            Ok(_) => true,
            Err(Error::NotFound) => false,
            Err(error) => return Err(tree.error(at, error)),
        };
        // What is replaced stays until the new one is whole.
        let draft = if replaces { free_name(tree, parent, at)? } else { name.to_vec() };
        let draft = draft.as_slice();
        let made = self.make(tree, (parent, draft), source, meta, at).and_then(|()| {
            let renamed = match replaces {
                true => tree.fs.rename(parent, draft, parent, name, RenameMode::Replace, time_ns).map(drop),
                false => Ok(()),
            };
            tree.told(at, renamed)
        });
        if made.is_err() || replaces {
            // After an error it must go; after a rename it is gone, unless both were names of one file.
            match tree.fs.unlink(parent, draft, time_ns) {
                Ok(()) | Err(Error::NotFound) => {}
                Err(error) if made.is_ok() => return Err(tree.error(at, error)),
                Err(_) => {}
            }
        }
        made
    }

    /// Makes what is no directory.
    fn make(
        &mut self,
        tree: &mut Tree,
        (parent, name): (Ino, &[u8]),
        source: &Path,
        meta: &Metadata,
        at: &[u8],
    ) -> Result<()> {
        let (identity, time_ns) = ((meta.dev(), meta.ino()), self.time_ns(meta));
        if let Some(&first) = self.links.get(&identity) {
            let linked = tree.fs.link(first, parent, name, time_ns);
            tree.told(at, linked)?;
            return Ok(());
        }
        let node = self.node(meta);
        let made = if node.mode & kind::MASK == kind::SYMLINK {
            let target = fs::read_link(source).at(source)?;
            tree.fs.symlink(parent, name, target.as_os_str().as_bytes(), node.uid, node.gid, time_ns)
        } else {
            tree.fs.create(parent, name, node, time_ns)
        };
        let ino = tree.told(at, made)?.ino;
        if meta.nlink() > 1 {
            self.links.insert(identity, ino);
        }
        if meta.is_file() {
            self.contents(tree, ino, source, time_ns, at)?;
        }
        self.attributes(tree, ino, source, meta, at)?;
        self.dress(tree, ino, meta, at)
    }

    fn contents(&self, tree: &mut Tree, ino: Ino, source: &Path, time_ns: i64, at: &[u8]) -> Result<()> {
        let mut file = File::open(source).at(source)?;
        let stat = tree.fs.statfs();
        let chunk_bytes = tree.told(at, stat)?.chunk_bytes as usize;
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let (mut offset, mut written) = (0, 0);
        loop {
            piece.clear();
            let count = file.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
            let count = count.at(source)?;
            if count == 0 {
                break;
            }
            for chunk in piece.chunks(chunk_bytes) {
                if chunk.iter().any(|&byte| byte != 0) {
                    let put = tree.fs.write(ino, offset, chunk, time_ns);
                    if tree.told(at, put)? < chunk.len() {
                        return tree.told(at, Err(Error::NoSpace));
                    }
                    written = offset + chunk.len() as u64;
                }
                offset += chunk.len() as u64;
            }
            self.bar.inc(count as u64);
            self.interrupt.check()?;
        }
        if written < offset {
            let sized = tree.fs.setattr(ino, SetAttr { size: Some(offset), ..SetAttr::default() }, time_ns);
            tree.told(at, sized)?;
        }
        Ok(())
    }

    /// Extended attributes; those that FlexFS has no use for are told of.
    fn attributes(&self, tree: &mut Tree, ino: Ino, source: &Path, meta: &Metadata, at: &[u8]) -> Result<()> {
        for (name, value) in attributes_of(source)? {
            if !is_kept(&name) {
                output::complain(&format!("{}: attribute {} is left out", source.display(), name.display()));
                continue;
            }
            let set = tree.fs.setxattr(ino, name.as_bytes(), &value, false, false, self.time_ns(meta));
            tree.told(at, set).with_context(|| format!("attribute {}", name.display()))?;
        }
        Ok(())
    }

    /// Permissions, owner and times, when nothing else changes the inode any more.
    fn dress(&self, tree: &mut Tree, ino: Ino, meta: &Metadata, at: &[u8]) -> Result<()> {
        let node = self.node(meta);
        let changes = SetAttr {
            mode: Some(node.mode & PERMISSIONS),
            uid: Some(node.uid),
            gid: Some(node.gid),
            size: None,
            atime_ns: Some(if self.wanted.timeless { mtime_ns(meta) } else { to_ns(meta.atime(), meta.atime_nsec()) }),
            mtime_ns: Some(mtime_ns(meta)),
            ctime_ns: None,
        };
        let changed = tree.fs.setattr(ino, changes, self.time_ns(meta));
        tree.told(at, changed).map(drop)
    }
}

/// Whether FlexFS keeps an attribute of that name.
pub fn is_kept(name: &OsStr) -> bool {
    attribute_names::check(name.as_bytes()).is_ok()
}

/// The extended attributes of a path, in the order of their names.
pub fn attributes_of(source: &Path) -> Result<Vec<(OsString, Vec<u8>)>> {
    let mut names = match host_attributes::names(source) {
        Ok(names) => names,
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(Vec::new()),
        Err(error) => return Err(error).at(source),
    };
    names.sort_unstable();
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        // One that has gone since it was listed is none.
        if let Some(value) = host_attributes::value(source, &name).at(source)? {
            found.push((name, value));
        }
    }
    Ok(found)
}

/// The name that a copy of `source` gets in a directory; `None` for `.`, `..` and `/`, which name no entry.
pub fn name_of(source: &Path) -> Option<&OsStr> {
    // `file_name` looks through a trailing `/.`, which means the contents.
    let ends_in_dot = source.as_os_str().as_bytes().ends_with(b"/.");
    source.file_name().filter(|_| !ends_in_dot)
}

/// The time of modification, in nanoseconds since 1970, of what [`check_mtime`] finds good.
pub fn mtime_ns(meta: &Metadata) -> i64 {
    to_ns(meta.mtime(), meta.mtime_nsec())
}

/// Whether the time of modification can be kept.
pub fn check_mtime(source: &Path, meta: &Metadata) -> Result<()> {
    check_time(source, "last modification", meta.mtime(), meta.mtime_nsec())
}

fn check_time(source: &Path, of: &str, seconds: i64, nanoseconds: i64) -> Result<()> {
    let ns = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    ensure!(
        i64::try_from(ns).is_ok(),
        "{}: the time of its {of} cannot be kept: times are from 1677 to 2262; give it another with `touch`",
        source.display()
    );
    Ok(())
}

fn to_ns(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// A name for a draft that nothing in the directory has.
fn free_name(tree: &mut Tree, parent: Ino, at: &[u8]) -> Result<Vec<u8>> {
    for number in 0.. {
        let name = format!("{DRAFT}{number}").into_bytes();
        match tree.fs.lookup(parent, &name) {
            Ok(_) => {}
            Err(Error::NotFound) => return Ok(name),
            Err(error) => return Err(tree.error(at, error)),
        }
    }
    Err(tree.error(at, Error::NoSpace))
}
