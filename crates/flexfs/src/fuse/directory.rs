//! Directory listings: the core's entries with `.` and `..` before them.
//!
//! The kernel's offset is where to go on: 0 from the start, 1 after `.`, 2 after `..`, then the core's cookie
//! plus 2. Invariant: an offset the kernel was given stays good while entries come and go, since cookies do.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use flexfs_core::{Attr, DirEntry, Error, Ino, kind};

use super::recorded::Recorded;

/// Offsets taken by `.` and `..`.
const DOTS: u64 = 2;

/// Entries fetched at a time: about what a page of names holds.
const BATCH: usize = 64;

/// One entry of a listing, with the offset at which the listing goes on after it.
pub struct Listed {
    pub ino: Ino,
    /// Type bits of the inode's mode.
    pub kind: u32,
    pub name: Vec<u8>,
    pub next: u64,
}

impl Listed {
    pub fn name(&self) -> &OsStr {
        OsStr::from_bytes(&self.name)
    }
}

/// The attributes of the entry `name` of a directory. By a file handle the kernel asks for `.` of any inode, and for `..` of
/// a directory.
pub fn look_up(fs: &mut Recorded, ino: Ino, name: &[u8]) -> Result<Attr, Error> {
    match name {
        b"." => fs.getattr(ino),
        b".." => {
            let parent = fs.parent_of(ino)?;
            fs.getattr(parent)
        }
        name => fs.lookup(ino, name),
    }
}

/// Lists `dir` from `offset` on, until `each` says that it has no more room.
pub fn list(
    fs: &mut Recorded,
    dir: Ino,
    offset: u64,
    mut each: impl FnMut(&mut Recorded, &Listed) -> bool,
) -> Result<(), Error> {
    let mut offset = offset;
    loop {
        let batch = fetch(fs, dir, offset)?;
        let Some(last) = batch.last() else { return Ok(()) };
        offset = last.next;
        for entry in &batch {
            if !each(fs, entry) {
                return Ok(());
            }
        }
    }
}

fn fetch(fs: &mut Recorded, dir: Ino, offset: u64) -> Result<Vec<Listed>, Error> {
    if offset < DOTS {
        // A directory that is open but removed has no parent any more; its ".." is then itself.
        let parent = fs.parent_of(dir).unwrap_or(dir);
        let dots = [(dir, &b"."[..]), (parent, &b".."[..])];
        return Ok((offset..DOTS)
            .zip(dots.into_iter().skip(offset as usize))
            .map(|(at, (ino, name))| Listed { ino, kind: kind::DIR, name: name.to_vec(), next: at + 1 })
            .collect());
    }
    let listed =
        |entry: DirEntry| Listed { ino: entry.ino, kind: entry.kind, name: entry.name, next: entry.cookie + DOTS };
    Ok(fs.entries(dir, offset - DOTS, BATCH)?.into_iter().map(listed).collect())
}
