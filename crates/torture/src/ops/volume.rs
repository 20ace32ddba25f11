//! The real end of a history: makes a call on a mounted volume, and reads a whole volume into a model.
//!
//! Invariant: `observe` and `glimpse` return everything reachable from the root, or says what stopped it; it trusts no two
//! sources to agree (a directory's parent pointer, entry types and attributes are all compared).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use flexfs_core::{Attribute, Error, Fs, Ino, ROOT_INO, kind};
use nand::Nand;

use super::call::{Call, Reply};
use crate::model::sparse::{PIECE_BYTES, SparseBytes};
use crate::model::{Body, ModelFs, Node};

/// Entries fetched with one `readdir`; small, so that cookies are used.
const READDIR_BATCH: usize = 5;

/// Bytes fetched with one `read` when a volume is observed.
const READ_BATCH: usize = 128 << 10;

/// A directory with more entries than this is taken for an endless one.
const ENTRIES_LIMIT: usize = 1 << 20;

/// Makes `call` on a volume.
pub fn call_fs<N: Nand>(fs: &mut Fs<N>, call: &Call, now_ns: i64) -> Result<Reply, Error> {
    match call {
        Call::Lookup { parent, name } => fs.lookup(*parent, name).map(|attr| Reply::Attr(attr.into())),
        Call::Getattr { ino } => fs.getattr(*ino).map(|attr| Reply::Attr(attr.into())),
        Call::Setattr { ino, changes } => fs.setattr(*ino, *changes, now_ns).map(|attr| Reply::Attr(attr.into())),
        Call::Create { parent, name, node, attributes } => {
            let attributes: Vec<Attribute<'_>> = attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
            fs.create_with(*parent, name, *node, &attributes, now_ns).map(|attr| Reply::Attr(attr.into()))
        }
        Call::Symlink { parent, name, target, uid, gid } => {
            fs.symlink(*parent, name, target, *uid, *gid, now_ns).map(|attr| Reply::Attr(attr.into()))
        }
        Call::Readlink { ino } => fs.readlink(*ino).map(Reply::Bytes),
        Call::Link { ino, parent, name } => fs.link(*ino, *parent, name, now_ns).map(|attr| Reply::Attr(attr.into())),
        Call::Unlink { parent, name } => fs.unlink(*parent, name, now_ns).map(|()| Reply::Done),
        Call::Rmdir { parent, name } => fs.rmdir(*parent, name, now_ns).map(|()| Reply::Done),
        Call::Rename { parent, name, new_parent, new_name, mode } => {
            fs.rename(*parent, name, *new_parent, new_name, *mode, now_ns).map(|left| match left {
                Some(whiteout) => Reply::Attr(whiteout.into()),
                None => Reply::Done,
            })
        }
        Call::Open { ino } => fs.open(*ino).map(|()| Reply::Done),
        Call::Release { ino } => fs.release(*ino).map(|()| Reply::Done),
        Call::Read { ino, offset, len } => {
            let mut buf = vec![0x5a; *len];
            let (mut count, unchecked) = fs.read_unchecked(*ino, *offset, &mut buf)?;
            if !unchecked.check(&mut buf) {
                count = fs.read(*ino, *offset, &mut buf)?;
            }
            buf.truncate(count);
            Ok(Reply::Bytes(buf))
        }
        Call::Write { ino, offset, len, fill } => fs.write(*ino, *offset, &fill.bytes(*len), now_ns).map(Reply::Count),
        Call::Punch { ino, offset, len } => fs.punch(*ino, *offset, *len, now_ns).map(|()| Reply::Done),
        Call::Allocate { ino, offset, len, keep_size, zero: false } => {
            fs.allocate(*ino, *offset, *len, *keep_size, now_ns).map(|()| Reply::Done)
        }
        Call::Allocate { ino, offset, len, keep_size, zero: true } => {
            fs.zero_range(*ino, *offset, *len, *keep_size, now_ns).map(|()| Reply::Done)
        }
        Call::Copy { from, to, len } => {
            fs.copy_range(*from, *to, *len, now_ns).map(|count| Reply::Count(count as usize))
        }
        Call::Readdir { dir } => entries(fs, *dir).map(Reply::Entries),
        Call::ParentOf { dir } => fs.parent_of(*dir).map(Reply::Ino),
        Call::Getxattr { ino, name } => fs.getxattr(*ino, name).map(Reply::Bytes),
        Call::Setxattr { ino, name, value, create, replace } => {
            fs.setxattr(*ino, name, value, *create, *replace, now_ns).map(|()| Reply::Done)
        }
        Call::Listxattr { ino } => fs.listxattr(*ino).map(|mut names| {
            names.sort();
            Reply::Names(names)
        }),
        Call::Removexattr { ino, name } => fs.removexattr(*ino, name, now_ns).map(|()| Reply::Done),
        Call::Sync => fs.sync().map(|()| Reply::Done),
    }
}

/// The entries of a directory, sorted, fetched a few at a time.
fn entries<N: Nand>(fs: &mut Fs<N>, dir: Ino) -> Result<Vec<(Vec<u8>, Ino, u32)>, Error> {
    let mut found = Vec::new();
    let mut cookie = 0;
    loop {
        let before = found.len();
        fs.readdir(dir, cookie, &mut |entry| {
            cookie = entry.cookie;
            found.push((entry.name, entry.ino, entry.kind));
            found.len() - before < READDIR_BATCH
        })?;
        if found.len() == before || found.len() > ENTRIES_LIMIT {
            found.sort();
            return Ok(found);
        }
    }
}

/// Everything reachable from the root.
pub fn observe<N: Nand>(fs: &mut Fs<N>) -> Result<ModelFs, String> {
    Walk { fs, keep: true, buf: vec![0; READ_BATCH] }.tree()
}

/// Everything reachable from the root, every byte read; of file contents only the digest is kept.
pub fn glimpse<N: Nand>(fs: &mut Fs<N>) -> Result<ModelFs, String> {
    Walk { fs, keep: false, buf: vec![0; READ_BATCH] }.tree()
}

/// A walk through a volume.
struct Walk<'a, N: Nand> {
    fs: &'a mut Fs<N>,
    /// Whether the bytes of files are kept, or a glimpse of them.
    keep: bool,
    buf: Vec<u8>,
}

impl<N: Nand> Walk<'_, N> {
    fn tree(&mut self) -> Result<ModelFs, String> {
        let mut nodes = BTreeMap::new();
        let mut queue = vec![(ROOT_INO, ROOT_INO)];
        while let Some((dir, parent)) = queue.pop() {
            let mut node = self.node(dir, parent)?;
            let found = entries(self.fs, dir).map_err(|e| format!("readdir of {dir}: {e}"))?;
            let told = self.fs.parent_of(dir).map_err(|e| format!("parent of {dir}: {e}"))?;
            if told != parent {
                return Err(format!("directory {dir} stands in {parent} but says its parent is {told}"));
            }
            let mut names = BTreeMap::new();
            for (name, ino, entry_kind) in found {
                if let Entry::Vacant(slot) = nodes.entry(ino) {
                    let child = self.node(ino, dir)?;
                    if child.mode & kind::MASK != entry_kind {
                        return Err(format!("entry of {ino} says type {entry_kind:o}, its inode {:o}", child.mode));
                    }
                    if child.is_dir() {
                        queue.push((ino, dir));
                    }
                    slot.insert(child);
                }
                if names.insert(name, ino).is_some() {
                    return Err(format!("directory {dir} lists a name twice"));
                }
            }
            if let Body::Dir { entries, .. } = &mut node.body {
                *entries = names;
            }
            nodes.insert(dir, node);
        }
        Ok(ModelFs::from_nodes(nodes))
    }

    fn node(&mut self, ino: Ino, parent: Ino) -> Result<Node, String> {
        let attr = self.fs.getattr(ino).map_err(|e| format!("getattr of {ino}: {e}"))?;
        let mut node = Node::new(attr.mode, parent, attr.mtime_ns);
        (node.nlink, node.uid, node.gid, node.rdev) = (attr.nlink, attr.uid, attr.gid, attr.rdev);
        node.ctime_ns = attr.ctime_ns;
        for name in self.fs.listxattr(ino).map_err(|e| format!("listxattr of {ino}: {e}"))? {
            let value = self.fs.getxattr(ino, &name).map_err(|e| format!("getxattr of {ino}: {e}"))?;
            node.xattrs.insert(name, value);
        }
        match &mut node.body {
            Body::File(bytes) => *bytes = self.contents(ino, attr.size)?,
            Body::Symlink(target) => {
                *target = self.fs.readlink(ino).map_err(|e| format!("readlink of {ino}: {e}"))?;
            }
            Body::Dir { .. } | Body::Special => {}
        }
        Ok(node)
    }

    /// The bytes of a file, or a glimpse of them.
    fn contents(&mut self, ino: Ino, size: u64) -> Result<SparseBytes, String> {
        let mut bytes = SparseBytes::default();
        let (mut digest, mut at) = (0u64, 0);
        while at < size {
            let wanted = (READ_BATCH as u64).min(size - at) as usize;
            let part = &mut self.buf[..wanted];
            let count = self.fs.read(ino, at, part).map_err(|e| format!("read of {ino} at {at}: {e}"))?;
            if count != wanted {
                return Err(format!("inode {ino}: size {size} but only {count} bytes to read at {at}"));
            }
            if self.keep {
                bytes.write(at, part);
            } else {
                let pieces = part.chunks(PIECE_BYTES).zip(at / PIECE_BYTES as u64..);
                let digests = pieces.map(|(piece, index)| SparseBytes::piece_digest(index, piece));
                digest = digests.fold(digest, u64::wrapping_add);
            }
            at += count as u64;
        }
        bytes.resize(size);
        Ok(if self.keep { bytes } else { SparseBytes::glimpse(size, digest) })
    }
}
