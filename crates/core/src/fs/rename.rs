//! Renames: an entry moves, takes the place of another, changes places with it, or leaves a whiteout behind.
//!
//! Invariant: a rename is one change of the log. A directory never comes to lie below itself.

use nand::Nand;

use super::Fs;
use super::dir::{NAMES_BYTES, check_name, directory, is_empty_dir};
use super::make::need_number;
use super::types::*;
use crate::error::{Error, Result};
use crate::format::inode::{Ino, Inode, ROOT_INO, kind};
use crate::format::key::KeyKind;
use crate::store::budget::Call;
use crate::store::names::{self, Spot};
use crate::store::records::Records;
use crate::store::space;

impl<N: Nand> Fs<N> {
    /// Renames, replacing, refusing or exchanging an existing target. Returns the whiteout that it leaves. Two names
    /// of one inode stay as they are, and no whiteout is left.
    pub fn rename(
        &mut self,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        mode: RenameMode,
        now_ns: i64,
    ) -> Result<Option<Attr>> {
        check_name(name)?;
        check_name(new_name)?;
        self.store.begin(Call::CHANGE)?;
        let now_ns = self.stamp_ns(now_ns);
        directory(self.records(), parent)?;
        let new_dir = directory(self.records(), new_parent)?;
        let (offset, child) = names::entry(self.records(), parent, name)?.ok_or(Error::NotFound)?;
        let target = names::entry(self.records(), new_parent, new_name)?;
        let moved = self.records().inode(child)?;
        if moved.is_dir() && is_inside(self.records(), new_parent, child)? {
            return Err(Error::Invalid("a directory cannot move into itself"));
        }
        if new_dir.nlink == 0 {
            return Err(Error::NotFound);
        }
        match (mode, target) {
            (RenameMode::NoReplace | RenameMode::Whiteout { replaces: false, .. }, Some(_)) => {
                return Err(Error::Exists);
            }
            (RenameMode::Exchange, None) => return Err(Error::NotFound),
            (_, Some((_, other))) if other == child => return Ok(None),
            (RenameMode::Exchange, Some((_, other))) => {
                let back = self.records().inode(other)?;
                if back.is_dir() && is_inside(self.records(), parent, other)? {
                    return Err(Error::Invalid("a directory cannot move into itself"));
                }
                space::need_bytes(self.records(), NAMES_BYTES)?;
                exchange(self.records(), (parent, name, child), (new_parent, new_name, other), now_ns)?;
                self.store.end()?;
                return Ok(None);
            }
            _ => {}
        }
        if let Some((_, other)) = target {
            check_replaceable(self.records(), &moved, other)?;
        }
        let whiteout = match mode {
            RenameMode::Whiteout { uid, gid, .. } => Some(whiteout(self.records(), uid, gid, now_ns)?),
            _ => None,
        };
        space::need_bytes(self.records(), NAMES_BYTES)?;
        if let Some((_, other)) = target {
            self.replace_entry(new_parent, other, now_ns)?;
        }
        let left = match whiteout {
            Some(inode) => Some(hide(self.records(), (parent, offset, name), inode, now_ns)?),
            None => {
                names::remove_entry(self.records(), parent, offset, now_ns)?;
                None
            }
        };
        move_entry(self.records(), (parent, child, moved), (new_parent, new_name, target), now_ns)?;
        self.store.end()?;
        left.map(|ino| self.getattr(ino)).transpose()
    }

    /// Drops what stands at a name that another inode is about to take.
    fn replace_entry(&mut self, dir: Ino, other: Ino, now_ns: i64) -> Result<()> {
        let was_dir = self.records().inode(other)?.is_dir();
        self.drop_name(other, now_ns)?;
        if was_dir { names::add_links(self.records(), dir, -1) } else { Ok(()) }
    }
}

/// A whiteout that is to be left, if there is room for one.
fn whiteout<N: Nand>(records: &Records<N>, uid: u32, gid: u32, now_ns: i64) -> Result<Inode> {
    space::need_bytes(records, 2 * NAMES_BYTES)?;
    need_number(records)?;
    Ok(Inode::new(kind::CHAR, uid, gid, now_ns))
}

/// Lets an entry of a directory lead to a whiteout; its number.
fn hide<N: Nand>(
    records: &mut Records<N>,
    (dir, offset, name): (Ino, u64, &[u8]),
    whiteout: Inode,
    now_ns: i64,
) -> Result<Ino> {
    let ino = records.new_inode(whiteout)?;
    names::add_entry(records, dir, offset, (ino, whiteout.mode), name, now_ns)?;
    Ok(ino)
}

/// Gives an inode its new name; its old one is gone.
fn move_entry<N: Nand>(
    records: &mut Records<N>,
    (parent, child, mut moved): (Ino, Ino, Inode),
    (new_parent, new_name, target): (Ino, &[u8], Option<(u64, Ino)>),
    now_ns: i64,
) -> Result<()> {
    let new_offset = match target {
        Some((offset, _)) => offset,
        None => match names::find(records, new_parent, KeyKind::Entry, new_name)? {
            Spot::Free(offset) | Spot::Taken { offset, .. } => offset,
        },
    };
    names::add_entry(records, new_parent, new_offset, (child, moved.mode), new_name, now_ns)?;
    if moved.is_dir() && parent != new_parent {
        moved.parent = new_parent;
        names::add_links(records, parent, -1)?;
        names::add_links(records, new_parent, 1)?;
    }
    moved.ctime_ns = now_ns;
    records.put_inode(child, moved)
}

/// Whether an inode may give its name up to another.
fn check_replaceable<N: Nand>(records: &mut Records<N>, moved: &Inode, other: Ino) -> Result<()> {
    let replaced = records.inode(other)?;
    match (moved.is_dir(), replaced.is_dir()) {
        (true, false) => Err(Error::NotDirectory),
        (false, true) => Err(Error::IsDirectory),
        (true, true) if !is_empty_dir(records, other)? => Err(Error::NotEmpty),
        _ => Ok(()),
    }
}

/// Lets two names change places, each a directory, a name and what it stands for.
fn exchange<N: Nand>(
    records: &mut Records<N>,
    one: (Ino, &[u8], Ino),
    two: (Ino, &[u8], Ino),
    now_ns: i64,
) -> Result<()> {
    for ((dir, name, _), (old_dir, _, child)) in [(one, two), (two, one)] {
        let mut inode = records.inode(child)?;
        let Spot::Taken { offset, .. } = names::find(records, dir, KeyKind::Entry, name)? else {
            return Err(Error::NotFound);
        };
        names::add_entry(records, dir, offset, (child, inode.mode), name, now_ns)?;
        if inode.is_dir() && dir != old_dir {
            inode.parent = dir;
            names::add_links(records, old_dir, -1)?;
            names::add_links(records, dir, 1)?;
        }
        inode.ctime_ns = now_ns;
        records.put_inode(child, inode)?;
    }
    Ok(())
}

/// Whether directory `dir` is `root` or lies below it.
fn is_inside<N: Nand>(records: &mut Records<N>, mut dir: Ino, root: Ino) -> Result<bool> {
    for _ in 0..=records.volume().files {
        if dir == root {
            return Ok(true);
        }
        if dir == ROOT_INO {
            return Ok(false);
        }
        dir = records.inode(dir)?.parent;
    }
    Err(Error::Corrupt { what: "directories in a circle", slot: dir })
}
