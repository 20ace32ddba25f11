//! Renames: an entry moves, takes the place of another, changes places with it, or leaves a whiteout behind.
//!
//! Invariant: a rename is one change of the log. A directory never comes to lie below itself.

use nand::Nand;

use super::Fs;
use super::dir::{NAMES_BYTES, check_name};
use super::make::need_number;
use super::types::*;
use crate::error::{Error, Result};
use crate::format::inode::{Ino, Inode, ROOT_INO, kind};
use crate::policy::budget::Call;
use crate::store::names::Spot;
use crate::store::records::Records;

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
        self.records().directory(parent).inode()?;
        let new_dir = self.records().directory(new_parent).inode()?;
        let (offset, child) = self.records().directory(parent).entry(name)?.ok_or(Error::NotFound)?;
        let target = self.records().directory(new_parent).entry(new_name)?;
        let moved = self.records().inode(child)?;
        if moved.is_dir() && NameMove::at(now_ns, self.records()).is_inside(new_parent, child)? {
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
                if back.is_dir() && NameMove::at(now_ns, self.records()).is_inside(parent, other)? {
                    return Err(Error::Invalid("a directory cannot move into itself"));
                }
                self.records().need_bytes(NAMES_BYTES)?;
                NameMove::at(now_ns, self.records()).exchange((parent, name, child), (new_parent, new_name, other))?;
                self.store.end()?;
                return Ok(None);
            }
            _ => {}
        }
        if let Some((_, other)) = target {
            NameMove::at(now_ns, self.records()).check_replaceable(&moved, other)?;
        }
        let whiteout = match mode {
            RenameMode::Whiteout { uid, gid, .. } => Some(NameMove::at(now_ns, self.records()).whiteout(uid, gid)?),
            _ => None,
        };
        self.records().need_bytes(NAMES_BYTES)?;
        if let Some((_, other)) = target {
            self.replace_entry(new_parent, other, now_ns)?;
        }
        let left = match whiteout {
            Some(inode) => Some(NameMove::at(now_ns, self.records()).hide((parent, offset, name), inode)?),
            None => {
                self.records().directory(parent).remove(offset, now_ns)?;
                None
            }
        };
        NameMove::at(now_ns, self.records()).move_entry((parent, child, moved), (new_parent, new_name, target))?;
        self.store.end()?;
        left.map(|ino| self.getattr(ino)).transpose()
    }

    /// Drops what stands at a name that another inode is about to take.
    fn replace_entry(&mut self, dir: Ino, other: Ino, now_ns: i64) -> Result<()> {
        let was_dir = self.records().inode(other)?.is_dir();
        self.drop_name(other, now_ns)?;
        if was_dir { self.records().directory(dir).add_links(-1) } else { Ok(()) }
    }
}

/// What a rename does to the names of a volume, at a time.
struct NameMove<'a, N: Nand> {
    records: &'a mut Records<N>,
    now_ns: i64,
}

impl<'a, N: Nand> NameMove<'a, N> {
    fn at(now_ns: i64, records: &'a mut Records<N>) -> Self {
        Self { records, now_ns }
    }

    /// A whiteout that is to be left, if there is room for one.
    fn whiteout(&mut self, uid: u32, gid: u32) -> Result<Inode> {
        self.records.need_bytes(2 * NAMES_BYTES)?;
        need_number(self.records)?;
        Ok(Inode::new(kind::CHAR, uid, gid, self.now_ns))
    }

    /// Lets an entry of a directory lead to a whiteout; its number.
    fn hide(&mut self, (dir, offset, name): (Ino, u64, &[u8]), whiteout: Inode) -> Result<Ino> {
        let ino = self.records.new_inode(whiteout)?;
        self.records.directory(dir).add(offset, (ino, whiteout.mode), name, self.now_ns)?;
        Ok(ino)
    }

    /// Gives an inode its new name; its old one is gone.
    fn move_entry(
        &mut self,
        (parent, child, mut moved): (Ino, Ino, Inode),
        (new_parent, new_name, target): (Ino, &[u8], Option<(u64, Ino)>),
    ) -> Result<()> {
        let new_offset = match target {
            Some((offset, _)) => offset,
            None => match self.records.directory(new_parent).find(new_name)? {
                Spot::Free(offset) | Spot::Taken { offset, .. } => offset,
            },
        };
        self.records.directory(new_parent).add(new_offset, (child, moved.mode), new_name, self.now_ns)?;
        if moved.is_dir() && parent != new_parent {
            moved.parent = new_parent;
            self.records.directory(parent).add_links(-1)?;
            self.records.directory(new_parent).add_links(1)?;
        }
        moved.ctime_ns = self.now_ns;
        self.records.put_inode(child, moved)
    }

    /// Whether an inode may give its name up to another.
    fn check_replaceable(&mut self, moved: &Inode, other: Ino) -> Result<()> {
        let replaced = self.records.inode(other)?;
        match (moved.is_dir(), replaced.is_dir()) {
            (true, false) => Err(Error::NotDirectory),
            (false, true) => Err(Error::IsDirectory),
            (true, true) if !self.records.directory(other).is_empty()? => Err(Error::NotEmpty),
            _ => Ok(()),
        }
    }

    /// Lets two names change places, each a directory, a name and what it stands for.
    fn exchange(&mut self, one: (Ino, &[u8], Ino), two: (Ino, &[u8], Ino)) -> Result<()> {
        for ((dir, name, _), (old_dir, _, child)) in [(one, two), (two, one)] {
            let mut inode = self.records.inode(child)?;
            let Spot::Taken { offset, .. } = self.records.directory(dir).find(name)? else {
                return Err(Error::NotFound);
            };
            self.records.directory(dir).add(offset, (child, inode.mode), name, self.now_ns)?;
            if inode.is_dir() && dir != old_dir {
                inode.parent = dir;
                self.records.directory(old_dir).add_links(-1)?;
                self.records.directory(dir).add_links(1)?;
            }
            inode.ctime_ns = self.now_ns;
            self.records.put_inode(child, inode)?;
        }
        Ok(())
    }

    /// Whether directory `dir` is `root` or lies below it.
    fn is_inside(&mut self, mut dir: Ino, root: Ino) -> Result<bool> {
        for _ in 0..=self.records.volume().files {
            if dir == root {
                return Ok(true);
            }
            if dir == ROOT_INO {
                return Ok(false);
            }
            dir = self.records.inode(dir)?.parent;
        }
        Err(Error::Corrupt { what: "directories in a circle", slot: dir })
    }
}
