//! An inode of the model, and its digest. Invariant: the digest covers every attribute that must survive a crash
//! (not times, which are compared by themselves, and not open handles), each under its own kind, so that two nodes agree iff their digests do.

use std::collections::BTreeMap;

use flexfs_core::{Ino, kind};

use crate::model::digest::Fields;
use crate::model::sparse::SparseBytes;
use crate::ops::{Call, Name, Seen};

/// What an inode is made of, by type.
#[derive(Clone, Debug)]
pub enum Body {
    File(SparseBytes),
    Dir { entries: BTreeMap<Vec<u8>, Ino>, parent: Ino },
    Symlink(Vec<u8>),
    Special,
}

/// An inode.
#[derive(Clone, Debug)]
pub struct Node {
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Handles held open.
    pub open: u32,
    pub body: Body,
}

impl Node {
    /// An empty inode of the type in `mode`; `parent` matters to directories only.
    pub fn new(mode: u32, parent: Ino, now_ns: i64) -> Self {
        let body = match mode & kind::MASK {
            kind::FILE => Body::File(SparseBytes::default()),
            kind::DIR => Body::Dir { entries: BTreeMap::new(), parent },
            kind::SYMLINK => Body::Symlink(Vec::new()),
            _ => Body::Special,
        };
        let nlink = if matches!(body, Body::Dir { .. }) { 2 } else { 1 };
        let xattrs = BTreeMap::new();
        Self { mode, nlink, uid: 0, gid: 0, rdev: 0, mtime_ns: now_ns, ctime_ns: now_ns, xattrs, open: 0, body }
    }

    /// Its contents change at that time.
    pub fn touch(&mut self, now_ns: i64) {
        (self.mtime_ns, self.ctime_ns) = (now_ns, now_ns);
    }

    pub fn is_dir(&self) -> bool {
        matches!(self.body, Body::Dir { .. })
    }

    pub fn entries(&self) -> Option<&BTreeMap<Vec<u8>, Ino>> {
        match &self.body {
            Body::Dir { entries, .. } => Some(entries),
            _ => None,
        }
    }

    pub fn size(&self) -> u64 {
        match &self.body {
            Body::File(bytes) => bytes.size(),
            Body::Symlink(target) => target.len() as u64,
            Body::Dir { .. } | Body::Special => 0,
        }
    }

    /// What `getattr` answers.
    pub fn seen(&self, ino: Ino) -> Seen {
        let &Node { mode, nlink, uid, gid, rdev, mtime_ns, .. } = self;
        Seen { ino, mode, nlink, uid, gid, rdev, size: self.size(), mtime_ns }
    }

    /// The digest of everything that must survive.
    pub fn digest(&self, ino: Ino) -> u64 {
        let attrs = Fields::of(b"node")
            .number(ino)
            .number(u64::from(self.mode))
            .number(u64::from(self.nlink))
            .number(u64::from(self.uid))
            .number(u64::from(self.gid))
            .number(u64::from(self.rdev))
            .number(self.size());
        let body = match &self.body {
            Body::File(bytes) => Fields::of(b"data").number(bytes.digest()),
            Body::Symlink(target) => Fields::of(b"target").bytes(target),
            Body::Dir { entries, .. } => {
                entries.iter().fold(Fields::of(b"entries"), |fields, (name, &child)| fields.bytes(name).number(child))
            }
            Body::Special => Fields::of(b"special"),
        };
        let xattrs =
            self.xattrs.iter().fold(Fields::of(b"xattrs"), |fields, (name, value)| fields.bytes(name).bytes(value));
        attrs.number(body.digest()).number(xattrs.digest()).digest()
    }

    /// What tells this node from `other`, one line each.
    pub fn differences(&self, other: &Node, ino: Ino) -> Vec<String> {
        let mut lines = Vec::new();
        let (mut a, mut b) = (self.seen(ino), other.seen(ino));
        (a.mtime_ns, b.mtime_ns) = (0, 0);
        if a != b {
            lines.push(format!("inode {ino}: attributes {a:?} against {b:?}"));
        }
        if self.xattrs != other.xattrs {
            lines.push(format!("inode {ino}: xattrs {:?} against {:?}", brief(&self.xattrs), brief(&other.xattrs)));
        }
        match (&self.body, &other.body) {
            (Body::File(x), Body::File(y)) => {
                if let Some(at) = x.first_difference(y) {
                    let (p, q) = (x.read(at, 8), y.read(at, 8));
                    lines.push(format!("inode {ino}: bytes differ from offset {at}: {p:02x?} against {q:02x?}"));
                }
            }
            (Body::Dir { entries: x, .. }, Body::Dir { entries: y, .. }) if x != y => {
                let only = |p: &BTreeMap<Vec<u8>, Ino>, q: &BTreeMap<Vec<u8>, Ino>| -> Vec<String> {
                    let missing = p.iter().filter(|(name, child)| q.get(*name) != Some(child));
                    missing.map(|(name, child)| format!("{:?}→{child}", Name(name.clone()))).collect()
                };
                lines.push(format!("directory {ino}: only here {:?}, only there {:?}", only(x, y), only(y, x)));
            }
            (Body::Symlink(x), Body::Symlink(y)) if x != y => {
                lines.push(format!("symlink {ino}: {:?} against {:?}", Name(x.clone()), Name(y.clone())));
            }
            _ => {}
        }
        lines
    }
}

fn brief(xattrs: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<String> {
    xattrs.iter().map(|(name, value)| format!("{:?}={} bytes", Name(name.clone()), value.len())).collect()
}

impl Call {
    /// The inode a data call works on, if it is one.
    pub(crate) fn target(&self) -> Option<Ino> {
        match *self {
            Call::Getattr { ino }
            | Call::Setattr { ino, .. }
            | Call::Readlink { ino }
            | Call::Open { ino }
            | Call::Release { ino }
            | Call::Read { ino, .. }
            | Call::Write { ino, .. }
            | Call::Punch { ino, .. }
            | Call::Allocate { ino, .. }
            | Call::Getxattr { ino, .. }
            | Call::Setxattr { ino, .. }
            | Call::Listxattr { ino }
            | Call::Removexattr { ino, .. } => Some(ino),
            _ => None,
        }
    }
}
