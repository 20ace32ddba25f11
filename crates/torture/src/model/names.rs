//! The namespace half of the model: directories, links, renames. Invariants: a directory has one name and
//! `2 + subdirectories` links, its parent pointer follows its moves; every other inode has as many links as names.

use std::collections::BTreeMap;

use flexfs_core::{Ino, NAME_MAX_BYTES, NewNode, ROOT_INO, RenameMode, kind};

use super::node::{Body, Node};
use super::{Answer, ModelFs, Refused, errno, refuse};
use crate::ops::{Name, Reply};

impl ModelFs {
    /// The inode a name stands for.
    pub fn child(&self, parent: Ino, name: &[u8]) -> Answer<Ino> {
        let entries = self.directory(parent);
        if name.len() > NAME_MAX_BYTES {
            // POSIX does not say which of two errors is told.
            let other = entries.err().map_or(Vec::new(), |Refused(errnos)| errnos);
            return Err(Refused([vec![errno::NAMETOOLONG], other].concat()));
        }
        entries?.get(name).copied().ok_or(Refused(vec![errno::NOENT]))
    }

    fn directory(&self, ino: Ino) -> Answer<&BTreeMap<Vec<u8>, Ino>> {
        let Some(node) = self.nodes.get(&ino) else { return refuse(errno::NOENT) };
        node.entries().ok_or(Refused(vec![errno::NOTDIR]))
    }

    /// Whether a new name may be put into `parent`.
    fn vacant(&self, parent: Ino, name: &[u8]) -> Answer<()> {
        match self.child(parent, name) {
            Ok(_) => refuse(errno::EXIST),
            Err(Refused(errnos)) if errnos != [errno::NOENT] => Err(Refused(errnos)),
            Err(_) if self.nodes.get(&parent).is_some_and(|dir| dir.nlink > 0) => Ok(()),
            Err(_) => refuse(errno::NOENT),
        }
    }

    pub(super) fn create(
        &mut self,
        parent: Ino,
        name: &[u8],
        (new, attributes): (NewNode, &[(Name, Name)]),
        made: Ino,
        now_ns: i64,
    ) -> Answer<Reply> {
        self.vacant(parent, name)?;
        let mut node = Node::new(new.mode, parent, now_ns);
        (node.uid, node.gid, node.rdev) = (new.uid, new.gid, new.rdev);
        node.xattrs = attributes.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        self.add(parent, name, made, node, now_ns)
    }

    pub(super) fn symlink(
        &mut self,
        parent: Ino,
        name: &[u8],
        target: &[u8],
        owner: (u32, u32),
        made: Ino,
        now_ns: i64,
    ) -> Answer<Reply> {
        self.vacant(parent, name)?;
        let mut node = Node::new(kind::SYMLINK | 0o777, parent, now_ns);
        (node.uid, node.gid) = owner;
        node.body = Body::Symlink(target.to_vec());
        self.add(parent, name, made, node, now_ns)
    }

    fn add(&mut self, parent: Ino, name: &[u8], made: Ino, node: Node, now_ns: i64) -> Answer<Reply> {
        let is_dir = node.is_dir();
        self.insert(made, node);
        self.bind(parent, name, made, now_ns);
        if is_dir {
            self.edit(parent, |dir| dir.nlink += 1);
        }
        self.seen(made)
    }

    pub(super) fn link(&mut self, ino: Ino, parent: Ino, name: &[u8], now_ns: i64) -> Answer<Reply> {
        let mut reasons = Vec::new();
        let Some(node) = self.nodes.get(&ino) else {
            reasons.push(errno::NOENT);
            reasons.extend(self.vacant(parent, name).err().into_iter().flat_map(|Refused(errnos)| errnos));
            return Err(Refused(reasons));
        };
        if node.is_dir() {
            reasons.push(errno::PERM);
        }
        if node.nlink == 0 {
            reasons.push(errno::NOENT);
        }
        if let Err(Refused(errnos)) = self.vacant(parent, name) {
            reasons.extend(errnos);
        }
        if !reasons.is_empty() {
            return Err(Refused(reasons));
        }
        self.edit(ino, |node| (node.nlink, node.ctime_ns) = (node.nlink + 1, now_ns));
        self.bind(parent, name, ino, now_ns);
        self.seen(ino)
    }

    pub(super) fn unlink(&mut self, parent: Ino, name: &[u8], now_ns: i64) -> Answer<Reply> {
        let ino = self.child(parent, name)?;
        if self.is_dir(ino) {
            return Err(Refused(vec![errno::ISDIR, errno::PERM]));
        }
        self.unbind(parent, name, now_ns);
        self.edit(ino, |node| (node.nlink, node.ctime_ns) = (node.nlink - 1, now_ns));
        Ok(Reply::Done)
    }

    pub(super) fn rmdir(&mut self, parent: Ino, name: &[u8], now_ns: i64) -> Answer<Reply> {
        let ino = self.child(parent, name)?;
        if !self.directory(ino)?.is_empty() {
            return refuse(errno::NOTEMPTY);
        }
        self.unbind(parent, name, now_ns);
        self.bury_directory(ino, parent);
        Ok(Reply::Done)
    }

    pub(super) fn rename(
        &mut self,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        mode: RenameMode,
        (made, now_ns): (Ino, i64),
    ) -> Answer<Reply> {
        let source = self.child(from.0, from.1);
        let target = match self.child(to.0, to.1) {
            Ok(ino) => Ok(Some(ino)),
            Err(Refused(errnos)) if errnos == [errno::NOENT] && self.directory(to.0).is_ok() => Ok(None),
            Err(refused) => Err(refused),
        };
        let (source, target) = match (source, target) {
            (Ok(source), Ok(target)) => (source, target),
            (a, b) => {
                let errnos = [a.err(), b.err()].into_iter().flatten().flat_map(|Refused(errnos)| errnos);
                return Err(Refused(errnos.collect()));
            }
        };
        let reasons = self.rename_obstacles((source, from.0), (target, to.0), mode);
        if !reasons.is_empty() {
            return Err(Refused(reasons));
        }
        if target == Some(source) {
            return Ok(Reply::Done);
        }
        match (mode, target) {
            (RenameMode::Exchange, Some(target)) => {
                self.move_entry(source, from.0, to, now_ns);
                self.move_entry(target, to.0, from, now_ns);
            }
            (_, target) => {
                self.unbind(from.0, from.1, now_ns);
                if let Some(target) = target {
                    self.unbind(to.0, to.1, now_ns);
                    if self.is_dir(target) {
                        self.bury_directory(target, to.0);
                    } else {
                        self.edit(target, |node| (node.nlink, node.ctime_ns) = (node.nlink - 1, now_ns));
                    }
                }
                self.move_entry(source, from.0, to, now_ns);
            }
        }
        match mode {
            RenameMode::Whiteout { uid, gid, .. } => {
                let mut whiteout = Node::new(kind::CHAR, from.0, now_ns);
                (whiteout.uid, whiteout.gid) = (uid, gid);
                self.add(from.0, from.1, made, whiteout, now_ns)
            }
            _ => Ok(Reply::Done),
        }
    }

    /// Every reason why `source` in one directory cannot take the place of `target` in another.
    fn rename_obstacles(
        &self,
        (source, old_parent): (Ino, Ino),
        (target, new_parent): (Option<Ino>, Ino),
        mode: RenameMode,
    ) -> Vec<i32> {
        let mut reasons = Vec::new();
        if self.nodes.get(&new_parent).is_none_or(|dir| dir.nlink == 0) {
            reasons.push(errno::NOENT);
        }
        if self.is_dir(source) && self.is_within(new_parent, source) {
            reasons.push(errno::INVAL);
        }
        let Some(target) = target else {
            if mode == RenameMode::Exchange {
                reasons.push(errno::NOENT);
            }
            return reasons;
        };
        match mode {
            RenameMode::NoReplace | RenameMode::Whiteout { replaces: false, .. } => reasons.push(errno::EXIST),
            _ if target == source => {}
            RenameMode::Exchange => {
                if self.is_dir(target) && self.is_within(old_parent, target) {
                    reasons.push(errno::INVAL);
                }
            }
            RenameMode::Replace | RenameMode::Whiteout { .. } => {
                match (self.is_dir(source), self.is_dir(target)) {
                    (true, false) => reasons.push(errno::NOTDIR),
                    (false, true) => reasons.push(errno::ISDIR),
                    _ => {}
                }
                if self.directory(target).is_ok_and(|entries| !entries.is_empty()) {
                    reasons.push(errno::NOTEMPTY);
                }
            }
        }
        reasons
    }

    pub(super) fn readdir(&self, dir: Ino) -> Answer<Reply> {
        let entries = self.directory(dir)?.iter();
        let typed = entries.map(|(name, &ino)| {
            let kind = self.nodes.get(&ino).map_or(0, |node| node.mode & kind::MASK);
            (name.clone(), ino, kind)
        });
        Ok(Reply::Entries(typed.collect()))
    }

    pub(super) fn parent_of(&self, dir: Ino) -> Answer<Reply> {
        match self.nodes.get(&dir).map(|node| &node.body) {
            Some(Body::Dir { parent, .. }) => Ok(Reply::Ino(*parent)),
            Some(_) => refuse(errno::NOTDIR),
            None => refuse(errno::NOENT),
        }
    }

    /// Whether directory `dir` is `ancestor` or lies below it.
    fn is_within(&self, dir: Ino, ancestor: Ino) -> bool {
        let mut at = dir;
        while at != ancestor && at != ROOT_INO {
            at = match self.nodes.get(&at).map(|node| &node.body) {
                Some(Body::Dir { parent, .. }) => *parent,
                _ => return false,
            };
        }
        at == ancestor
    }

    pub(super) fn is_dir(&self, ino: Ino) -> bool {
        self.nodes.get(&ino).is_some_and(|node| node.is_dir())
    }

    /// Gives `ino`, until now in directory `old_parent`, the name `to`.
    fn move_entry(&mut self, ino: Ino, old_parent: Ino, to: (Ino, &[u8]), now_ns: i64) {
        self.bind(to.0, to.1, ino, now_ns);
        self.edit(ino, |node| node.ctime_ns = now_ns);
        if self.is_dir(ino) {
            self.edit(old_parent, |dir| dir.nlink -= 1);
            self.edit(to.0, |dir| dir.nlink += 1);
            self.edit(ino, |node| {
                if let Body::Dir { parent, .. } = &mut node.body {
                    *parent = to.0;
                }
            });
        }
    }

    /// Takes an emptied, nameless directory out of its parent's link count.
    fn bury_directory(&mut self, ino: Ino, parent: Ino) {
        self.edit(parent, |dir| dir.nlink -= 1);
        self.edit(ino, |node| node.nlink = 0);
    }

    fn bind(&mut self, dir: Ino, name: &[u8], ino: Ino, now_ns: i64) {
        self.edit(dir, |node| {
            node.touch(now_ns);
            if let Body::Dir { entries, .. } = &mut node.body {
                entries.insert(name.to_vec(), ino);
            }
        });
    }

    fn unbind(&mut self, dir: Ino, name: &[u8], now_ns: i64) {
        self.edit(dir, |node| {
            node.touch(now_ns);
            if let Body::Dir { entries, .. } = &mut node.body {
                entries.remove(name);
            }
        });
    }
}
