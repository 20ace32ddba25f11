//! Directories: entries come, go and move; an inode lives while an entry or a handle leads to it.

use nand::Nand;

use super::Fs;
use super::types::*;
use crate::error::{Error, Result};
use crate::format::inode::{Ino, kind};
use crate::format::key::{COLLISION_SPAN, KeyKind, key, offset_of};
use crate::format::node::Body;
use crate::policy::budget::Call;
use crate::store::names::Spot;

/// Names an inode can have.
const LINKS_MAX: u32 = 1 << 31;
/// Space an operation on names may take, bytes.
pub(super) const NAMES_BYTES: u64 = 1024;

/// Whether something can have this name.
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

impl<N: Nand> Fs<N> {
    /// The attributes of the entry `name` of a directory.
    pub fn lookup(&mut self, parent: Ino, name: &[u8]) -> Result<Attr> {
        if name.len() > NAME_MAX_BYTES {
            return Err(Error::NameTooLong);
        }
        self.records().directory(parent).inode()?;
        let (_, child) = self.records().directory(parent).entry(name)?.ok_or(Error::NotFound)?;
        self.getattr(child)
    }

    /// Gives an inode one more name.
    pub fn link(&mut self, ino: Ino, parent: Ino, name: &[u8], now_ns: i64) -> Result<Attr> {
        check_name(name)?;
        self.store.begin(Call::CHANGE)?;
        let now_ns = self.stamp_ns(now_ns);
        let mut inode = self.records().inode(ino)?;
        if inode.is_dir() {
            return Err(Error::NotPermitted("directories have one name"));
        }
        let dir = self.records().directory(parent).inode()?;
        let Spot::Free(offset) = self.records().directory(parent).find(name)? else {
            return Err(Error::Exists);
        };
        if inode.nlink == 0 || dir.nlink == 0 {
            return Err(Error::NotFound);
        }
        if inode.nlink >= LINKS_MAX {
            return Err(Error::TooManyLinks);
        }
        self.records().need_bytes(NAMES_BYTES)?;
        inode.nlink += 1;
        inode.ctime_ns = now_ns;
        self.records().put_inode(ino, inode)?;
        self.records().directory(parent).add(offset, (ino, inode.mode), name, now_ns)?;
        self.store.end()?;
        self.getattr(ino)
    }

    /// Removes a name that is no directory.
    pub fn unlink(&mut self, parent: Ino, name: &[u8], now_ns: i64) -> Result<()> {
        check_name(name)?;
        self.store.begin(Call::REMOVAL)?;
        let now_ns = self.stamp_ns(now_ns);
        self.records().directory(parent).inode()?;
        let (offset, child) = self.records().directory(parent).entry(name)?.ok_or(Error::NotFound)?;
        if self.records().inode(child)?.is_dir() {
            return Err(Error::IsDirectory);
        }
        self.drop_name(child, now_ns)?;
        self.records().directory(parent).remove(offset, now_ns)?;
        self.store.end()
    }

    /// Removes an empty directory.
    pub fn rmdir(&mut self, parent: Ino, name: &[u8], now_ns: i64) -> Result<()> {
        match name {
            b"." => return Err(Error::Invalid("\".\" cannot be removed")),
            b".." => return Err(Error::NotEmpty),
            _ => check_name(name)?,
        }
        self.store.begin(Call::REMOVAL)?;
        let now_ns = self.stamp_ns(now_ns);
        self.records().directory(parent).inode()?;
        let (offset, child) = self.records().directory(parent).entry(name)?.ok_or(Error::NotFound)?;
        self.records().directory(child).inode()?;
        if !self.records().directory(child).is_empty()? {
            return Err(Error::NotEmpty);
        }
        self.drop_name(child, now_ns)?;
        self.records().directory(parent).remove(offset, now_ns)?;
        self.records().directory(parent).add_links(-1)?;
        self.store.end()
    }

    /// Before one name of an inode goes: with the last one it goes too, or waits for its last handle. What may be in the
    /// way is met here, while the name is still there.
    pub(super) fn drop_name(&mut self, ino: Ino, now_ns: i64) -> Result<()> {
        let mut inode = self.records().inode(ino)?;
        inode.nlink = if inode.is_dir() { 0 } else { inode.nlink.saturating_sub(1) };
        inode.ctime_ns = now_ns;
        let opens = self.records().handles(ino);
        if inode.nlink == 0 && opens == 0 {
            match self.records().forget(ino) {
                // What is damaged loses its name all the same, and waits with those that are open.
                Err(Error::Corrupt { .. }) => self.records().chunks(ino).drop_buffered(),
                outcome => return outcome,
            }
        }
        self.records().put_inode(ino, inode)?;
        if inode.nlink == 0 {
            self.records().mark_orphan(ino)?;
        }
        Ok(())
    }

    /// The directory that holds this directory (the root's is the root).
    pub fn parent_of(&mut self, dir: Ino) -> Result<Ino> {
        Ok(self.records().directory(dir).inode()?.parent)
    }

    /// The entries after `cookie` (0: from the start; "." and ".." are not among them), until `each` returns false.
    pub fn readdir(&mut self, dir: Ino, cookie: u64, each: &mut dyn FnMut(DirEntry) -> bool) -> Result<()> {
        self.records().directory(dir).inode()?;
        let first = if cookie == 0 { COLLISION_SPAN } else { cookie.saturating_add(1) };
        let (mut from, to) = (key(dir, KeyKind::Entry, first), key(dir, KeyKind::Xattr, 0));
        while let Some(entry) = self.records().next(from, to)? {
            let cookie = offset_of(entry.key);
            let found = self.records().with_node(entry.place, |_, node| match node.body {
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
