//! Directories: entries come, go and move; an inode lives while an entry or a handle leads to it.

use nand::Nand;

use super::Fs;
use super::names::Spot;
use super::types::*;
use crate::error::{Error, Result};
use crate::format::inode::{Census, Inode};
use crate::format::key::{COLLISION_SPAN, KeyKind, key, offset_of};
use crate::format::node::Body;
use crate::format::place::Place;
use crate::index::delta::Change;

/// Names an inode can have.
const LINKS_MAX: u32 = 1 << 31;
/// Space an operation on names may take, bytes.
pub(super) const NAMES_BYTES: u64 = 1024;

impl<N: Nand> Fs<N> {
    pub(super) fn dir(&mut self, ino: Ino) -> Result<Inode> {
        let inode = self.inode(ino)?;
        if inode.is_dir() { Ok(inode) } else { Err(Error::NotDirectory) }
    }

    pub(super) fn check_name(name: &[u8]) -> Result<()> {
        match name {
            b"" => Err(Error::NotFound),
            b"." | b".." => Err(Error::Invalid("\".\" and \"..\" are no names to change")),
            _ if name.len() > NAME_MAX_BYTES => Err(Error::NameTooLong),
            _ if name.iter().any(|&byte| byte == 0 || byte == b'/') => {
                Err(Error::Invalid("a name holds no NUL and no slash"))
            }
            _ => Ok(()),
        }
    }

    /// The attributes of the entry `name` of a directory.
    pub fn lookup(&mut self, parent: Ino, name: &[u8]) -> Result<Attr> {
        if name.len() > NAME_MAX_BYTES {
            return Err(Error::NameTooLong);
        }
        self.dir(parent)?;
        let (_, child) = self.find_entry(parent, name)?.ok_or(Error::NotFound)?;
        self.getattr(child)
    }

    pub(crate) fn add_entry(
        &mut self,
        dir: Ino,
        offset: u64,
        child: Ino,
        mode: u32,
        name: &[u8],
        now_ns: i64,
    ) -> Result<()> {
        let entry = Body::Entry { offset, child, mode: mode & kind::MASK, time_ns: now_ns, name };
        let replaced = self.push_node(dir, entry, false)?;
        self.touch_dir(dir, now_ns, |entries| {
            if !replaced {
                entries.add(offset)
            }
        })
    }

    fn remove_entry(&mut self, dir: Ino, offset: u64, now_ns: i64) -> Result<()> {
        let seq = self.flash.next_seq;
        self.index.set(&mut self.flash, key(dir, KeyKind::Entry, offset), Change::Cut(1), seq, false)?;
        self.push(dir, Body::EntryGone { offset, time_ns: now_ns })?;
        self.touch_dir(dir, now_ns, |entries| entries.remove(offset))
    }

    /// Notes a change of a directory's entries.
    pub(super) fn touch_dir(&mut self, dir: Ino, now_ns: i64, change: impl FnOnce(&mut Census)) -> Result<()> {
        let mut inode = self.inode(dir)?;
        change(&mut inode.entries);
        (inode.mtime_ns, inode.ctime_ns) = (now_ns, now_ns);
        self.derive_inode(dir, inode);
        Ok(())
    }

    /// Changes a directory's count of subdirectories.
    pub(crate) fn add_links(&mut self, dir: Ino, change: i32) -> Result<()> {
        let mut inode = self.inode(dir)?;
        inode.nlink = inode.nlink.saturating_add_signed(change);
        self.put_inode(dir, inode)
    }

    /// Gives an inode one more name.
    pub fn link(&mut self, ino: Ino, parent: Ino, name: &[u8], now_ns: i64) -> Result<Attr> {
        Self::check_name(name)?;
        self.begin_change()?;
        let now_ns = self.stamp_ns(now_ns);
        let mut inode = self.inode(ino)?;
        if inode.is_dir() {
            return Err(Error::NotPermitted("directories have one name"));
        }
        let dir = self.dir(parent)?;
        let Spot::Free(offset) = self.find_name(parent, KeyKind::Entry, name)? else { return Err(Error::Exists) };
        if inode.nlink == 0 || dir.nlink == 0 {
            return Err(Error::NotFound);
        }
        if inode.nlink >= LINKS_MAX {
            return Err(Error::TooManyLinks);
        }
        self.need_bytes(NAMES_BYTES)?;
        inode.nlink += 1;
        inode.ctime_ns = now_ns;
        self.put_inode(ino, inode)?;
        self.add_entry(parent, offset, ino, inode.mode, name, now_ns)?;
        self.end_change(now_ns)?;
        self.getattr(ino)
    }

    /// Removes a name that is no directory.
    pub fn unlink(&mut self, parent: Ino, name: &[u8], now_ns: i64) -> Result<()> {
        Self::check_name(name)?;
        self.begin_removal()?;
        let now_ns = self.stamp_ns(now_ns);
        self.dir(parent)?;
        let (offset, child) = self.find_entry(parent, name)?.ok_or(Error::NotFound)?;
        if self.inode(child)?.is_dir() {
            return Err(Error::IsDirectory);
        }
        self.drop_name(child, now_ns)?;
        self.remove_entry(parent, offset, now_ns)?;
        self.end_change(now_ns)
    }

    /// Removes an empty directory.
    pub fn rmdir(&mut self, parent: Ino, name: &[u8], now_ns: i64) -> Result<()> {
        match name {
            b"." => return Err(Error::Invalid("\".\" cannot be removed")),
            b".." => return Err(Error::NotEmpty),
            _ => Self::check_name(name)?,
        }
        self.begin_removal()?;
        let now_ns = self.stamp_ns(now_ns);
        self.dir(parent)?;
        let (offset, child) = self.find_entry(parent, name)?.ok_or(Error::NotFound)?;
        self.dir(child)?;
        if !self.is_empty_dir(child)? {
            return Err(Error::NotEmpty);
        }
        self.drop_name(child, now_ns)?;
        self.remove_entry(parent, offset, now_ns)?;
        self.add_links(parent, -1)?;
        self.end_change(now_ns)
    }

    fn is_empty_dir(&mut self, dir: Ino) -> Result<bool> {
        let (from, to) = (key(dir, KeyKind::Entry, 0), key(dir, KeyKind::Xattr, 0));
        Ok(self.index.next(&mut self.flash, from, to)?.is_none())
    }

    /// Before one name of an inode goes: with the last one it goes too, or waits for its last handle. What may be in the
    /// way is met here, while the name is still there.
    fn drop_name(&mut self, ino: Ino, now_ns: i64) -> Result<()> {
        let mut inode = self.inode(ino)?;
        inode.nlink = if inode.is_dir() { 0 } else { inode.nlink.saturating_sub(1) };
        inode.ctime_ns = now_ns;
        let opens = self.inodes.get(ino).map_or(0, |cached| cached.opens);
        if inode.nlink == 0 && opens == 0 {
            match self.forget(ino) {
                // What is damaged loses its name all the same, and waits with those that are open.
                Err(Error::Corrupt { .. }) => self.log.drop_range(ino, 0, u64::MAX),
                outcome => return outcome,
            }
        }
        self.put_inode(ino, inode)?;
        if inode.nlink == 0 {
            self.mark_orphan(ino)?;
        }
        Ok(())
    }

    /// Lists an inode among those to be removed with their last handle, at the unmount, or at the next mount.
    fn mark_orphan(&mut self, ino: Ino) -> Result<()> {
        let seq = self.flash.next_seq;
        self.index.set(&mut self.flash, key(0, KeyKind::Orphan, ino), Change::Put(Place::Mark), seq, false)?;
        Ok(())
    }

    /// Renames, replacing, refusing or exchanging an existing target.
    pub fn rename(
        &mut self,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        mode: RenameMode,
        now_ns: i64,
    ) -> Result<()> {
        Self::check_name(name)?;
        Self::check_name(new_name)?;
        self.begin_change()?;
        let now_ns = self.stamp_ns(now_ns);
        self.dir(parent)?;
        let new_dir = self.dir(new_parent)?;
        let (offset, child) = self.find_entry(parent, name)?.ok_or(Error::NotFound)?;
        let target = self.find_entry(new_parent, new_name)?;
        let moved = self.inode(child)?;
        if moved.is_dir() && self.is_inside(new_parent, child)? {
            return Err(Error::Invalid("a directory cannot move into itself"));
        }
        if new_dir.nlink == 0 {
            return Err(Error::NotFound);
        }
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) => return Err(Error::Exists),
            (RenameMode::Exchange, None) => return Err(Error::NotFound),
            (_, Some((_, other))) if other == child => return Ok(()),
            (RenameMode::Exchange, Some((_, other))) => {
                let back = self.inode(other)?;
                if back.is_dir() && self.is_inside(parent, other)? {
                    return Err(Error::Invalid("a directory cannot move into itself"));
                }
                self.need_bytes(NAMES_BYTES)?;
                self.exchange((parent, name, child), (new_parent, new_name, other), now_ns)?;
                return self.end_change(now_ns);
            }
            _ => {}
        }
        if let Some((_, other)) = target {
            let replaced = self.inode(other)?;
            match (moved.is_dir(), replaced.is_dir()) {
                (true, false) => return Err(Error::NotDirectory),
                (false, true) => return Err(Error::IsDirectory),
                (true, true) if !self.is_empty_dir(other)? => return Err(Error::NotEmpty),
                _ => {}
            }
        }
        self.need_bytes(NAMES_BYTES)?;
        self.move_entry((parent, offset, child, moved), (new_parent, new_name, target), now_ns)?;
        self.end_change(now_ns)
    }

    fn move_entry(
        &mut self,
        (parent, offset, child, mut moved): (Ino, u64, Ino, Inode),
        (new_parent, new_name, target): (Ino, &[u8], Option<(u64, Ino)>),
        now_ns: i64,
    ) -> Result<()> {
        if let Some((_, other)) = target {
            let was_dir = self.inode(other)?.is_dir();
            self.drop_name(other, now_ns)?;
            if was_dir {
                self.add_links(new_parent, -1)?;
            }
        }
        self.remove_entry(parent, offset, now_ns)?;
        let new_offset = match target {
            Some((offset, _)) => offset,
            None => match self.find_name(new_parent, KeyKind::Entry, new_name)? {
                Spot::Free(offset) | Spot::Taken { offset, .. } => offset,
            },
        };
        self.add_entry(new_parent, new_offset, child, moved.mode, new_name, now_ns)?;
        if moved.is_dir() && parent != new_parent {
            moved.parent = new_parent;
            self.add_links(parent, -1)?;
            self.add_links(new_parent, 1)?;
        }
        moved.ctime_ns = now_ns;
        self.put_inode(child, moved)
    }

    fn exchange(&mut self, one: (Ino, &[u8], Ino), two: (Ino, &[u8], Ino), now_ns: i64) -> Result<()> {
        for ((dir, name, _), (old_dir, _, child)) in [(one, two), (two, one)] {
            let mut inode = self.inode(child)?;
            let Spot::Taken { offset, .. } = self.find_name(dir, KeyKind::Entry, name)? else {
                return Err(Error::NotFound);
            };
            self.add_entry(dir, offset, child, inode.mode, name, now_ns)?;
            if inode.is_dir() && dir != old_dir {
                inode.parent = dir;
                self.add_links(old_dir, -1)?;
                self.add_links(dir, 1)?;
            }
            inode.ctime_ns = now_ns;
            self.put_inode(child, inode)?;
        }
        Ok(())
    }

    /// Whether directory `dir` is `root` or lies below it.
    fn is_inside(&mut self, mut dir: Ino, root: Ino) -> Result<bool> {
        for _ in 0..=self.volume.files {
            if dir == root {
                return Ok(true);
            }
            if dir == ROOT_INO {
                return Ok(false);
            }
            dir = self.inode(dir)?.parent;
        }
        Err(Error::Corrupt { what: "directories in a circle", slot: dir })
    }

    /// The directory that holds this directory (the root's is the root).
    pub fn parent_of(&mut self, dir: Ino) -> Result<Ino> {
        Ok(self.dir(dir)?.parent)
    }

    /// The entries after `cookie` (0: from the start; "." and ".." are not among them), until `each` returns false.
    pub fn readdir(&mut self, dir: Ino, cookie: u64, each: &mut dyn FnMut(DirEntry) -> bool) -> Result<()> {
        self.dir(dir)?;
        let first = if cookie == 0 { COLLISION_SPAN } else { cookie.saturating_add(1) };
        let (mut from, to) = (key(dir, KeyKind::Entry, first), key(dir, KeyKind::Xattr, 0));
        while let Some(entry) = self.index.next(&mut self.flash, from, to)? {
            let cookie = offset_of(entry.key);
            let found = self.with_node(entry.place, |_, node| match node.body {
                Body::Entry { child, mode, name, .. } => {
                    Some(DirEntry { ino: child, kind: mode & kind::MASK, name: name.to_vec(), cookie })
                }
                _ => None,
            })?;
            if !each(found) {
                break;
            }
            from = entry.end();
        }
        Ok(())
    }
}
