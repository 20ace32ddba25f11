//! The inode half of the model: bytes, attributes, extended attributes. Invariant: only regular files have bytes
//! and a size that can be set; a size past what any file system carries is refused.

use flexfs_core::{Ino, SetAttr, Times, kind};

use super::node::Body;
use super::{Answer, ModelFs, Refused, errno, refuse};
use crate::ops::{Call, Reply};

/// No file system carries a file this large; the generator stays far below or far above.
const TOO_LARGE: u64 = 1 << 62;

impl ModelFs {
    /// Calls on one inode that is known to exist.
    pub(super) fn apply_to_inode(&mut self, call: &Call, now_ns: i64) -> Answer<Reply> {
        match call {
            Call::Getattr { ino } => self.seen(*ino),
            Call::Setattr { ino, changes } => self.setattr(*ino, *changes, now_ns),
            Call::Readlink { ino } => match self.nodes.get(ino).map(|node| &node.body) {
                Some(Body::Symlink(target)) => Ok(Reply::Bytes(target.clone())),
                _ => refuse(errno::INVAL),
            },
            Call::Read { ino, offset, len } => {
                self.expect_file(*ino)?;
                let Some(Body::File(bytes)) = self.nodes.get(ino).map(|node| &node.body) else {
                    return refuse(errno::INVAL);
                };
                Ok(Reply::Bytes(bytes.read(*offset, *len)))
            }
            Call::Write { ino, offset, len, fill } => {
                self.expect_file(*ino)?;
                if offset.checked_add(*len as u64).is_none_or(|end| end > TOO_LARGE) {
                    return Err(Refused(vec![errno::FBIG, errno::INVAL]));
                }
                self.written = Some(*ino);
                self.edit_file(*ino, now_ns, *len > 0, |bytes| bytes.write(*offset, &fill.bytes(*len)));
                Ok(Reply::Count(*len))
            }
            Call::Punch { ino, offset, len } => {
                self.expect_file(*ino)?;
                self.edit_file(*ino, now_ns, true, |bytes| bytes.punch(*offset, *len));
                Ok(Reply::Done)
            }
            Call::Allocate { ino, offset, len, keep_size, zero } => {
                self.expect_file(*ino)?;
                self.edit_file(*ino, now_ns, true, |bytes| {
                    if *zero {
                        bytes.punch(*offset, *len);
                    }
                    if !*keep_size {
                        bytes.resize(bytes.size().max(offset + len));
                    }
                });
                Ok(Reply::Done)
            }
            &Call::Copy { from, to, len } => self.copy(from, to, len, now_ns),
            _ => self.apply_to_xattrs(call, now_ns),
        }
    }

    fn copy(&mut self, from: (Ino, u64), to: (Ino, u64), len: u64, now_ns: i64) -> Answer<Reply> {
        let refusals = [from.0, to.0].into_iter().filter_map(|ino| self.expect_file(ino).err());
        let refusals: Vec<i32> = refusals.flat_map(|Refused(errnos)| errnos).collect();
        if !refusals.is_empty() {
            return Err(Refused(refusals));
        }
        if from.0 == to.0 && from.1.abs_diff(to.1) < len {
            return refuse(errno::INVAL);
        }
        let Some(Body::File(source)) = self.nodes.get(&from.0).map(|node| &node.body) else {
            return refuse(errno::INVAL);
        };
        let data = source.read(from.1, len as usize);
        self.edit_file(to.0, now_ns, !data.is_empty(), |bytes| bytes.write(to.1, &data));
        Ok(Reply::Count(data.len()))
    }

    pub(super) fn release(&mut self, ino: Ino) -> Answer<Reply> {
        self.edit(ino, |node| node.open = node.open.saturating_sub(1));
        Ok(Reply::Done)
    }

    fn expect_file(&self, ino: Ino) -> Answer<()> {
        match self.nodes.get(&ino).map(|node| &node.body) {
            Some(Body::File(_)) => Ok(()),
            Some(Body::Dir { .. }) => refuse(errno::ISDIR),
            Some(_) => refuse(errno::INVAL),
            None => refuse(errno::NOENT),
        }
    }

    fn edit_file(
        &mut self,
        ino: Ino,
        now_ns: i64,
        touches: bool,
        change: impl FnOnce(&mut super::sparse::SparseBytes),
    ) {
        let touches = touches && self.times == Times::OfVolume;
        self.edit(ino, |node| {
            if let Body::File(bytes) = &mut node.body {
                change(bytes);
            }
            if touches {
                node.touch(now_ns);
            }
        });
    }

    fn setattr(&mut self, ino: Ino, changes: SetAttr, now_ns: i64) -> Answer<Reply> {
        if let Some(size) = changes.size {
            self.expect_file(ino)?;
            if size > TOO_LARGE {
                return Err(Refused(vec![errno::FBIG, errno::INVAL]));
            }
            self.edit_file(ino, now_ns, true, |bytes| bytes.resize(size));
        }
        let by_caller = self.times == Times::OfCaller;
        self.edit(ino, |node| {
            if let Some(mode) = changes.mode {
                node.mode = node.mode & kind::MASK | mode & !kind::MASK;
            }
            node.uid = changes.uid.unwrap_or(node.uid);
            node.gid = changes.gid.unwrap_or(node.gid);
            node.mtime_ns = changes.mtime_ns.unwrap_or(node.mtime_ns);
            let left_ns = if by_caller && matches!(node.body, Body::File(_)) { node.ctime_ns } else { now_ns };
            node.ctime_ns = changes.ctime_ns.unwrap_or(left_ns);
        });
        self.seen(ino)
    }

    fn apply_to_xattrs(&mut self, call: &Call, now_ns: i64) -> Answer<Reply> {
        match call {
            Call::Getxattr { ino, name } => {
                let value = self.nodes.get(ino).and_then(|node| node.xattrs.get(&**name));
                value.map(|value| Reply::Bytes(value.clone())).ok_or(Refused(vec![errno::NODATA]))
            }
            Call::Listxattr { ino } => {
                let names = self.nodes.get(ino).map(|node| node.xattrs.keys().cloned().collect());
                Ok(Reply::Names(names.unwrap_or_default()))
            }
            Call::Setxattr { ino, name, value, create, replace } => {
                let exists = self.nodes.get(ino).is_some_and(|node| node.xattrs.contains_key(&**name));
                if *create && exists {
                    return refuse(errno::EXIST);
                }
                if *replace && !exists {
                    return refuse(errno::NODATA);
                }
                self.edit(*ino, |node| {
                    node.ctime_ns = now_ns;
                    node.xattrs.insert(name.to_vec(), value.to_vec());
                });
                Ok(Reply::Done)
            }
            Call::Removexattr { ino, name } => {
                if !self.nodes.get(ino).is_some_and(|node| node.xattrs.contains_key(&**name)) {
                    return refuse(errno::NODATA);
                }
                self.edit(*ino, |node| {
                    node.ctime_ns = now_ns;
                    node.xattrs.remove(&**name);
                });
                Ok(Reply::Done)
            }
            other => unreachable!("{other:?} is no call on an inode"),
        }
    }
}
