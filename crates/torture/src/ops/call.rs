//! One call of the file system as a value, and what it answers, so that the same call can be made on a real
//! volume and on the model, kept in a history, and printed. Invariant: a call names everything it needs by value.

use std::fmt;
use std::ops::Deref;

use flexfs_core::{Attr, Ino, NewNode, RenameMode, SetAttr, kind};
use serde::{Deserialize, Serialize};

use super::serial;
use crate::content::Fill;

/// A name or a link's target, printed short.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name(pub Vec<u8>);

impl Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(&self.0[..self.0.len().min(12)]);
        if self.0.len() > 12 { write!(f, "{text:?}…({} bytes)", self.0.len()) } else { write!(f, "{text:?}") }
    }
}

/// A call with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    Lookup {
        parent: Ino,
        name: Name,
    },
    Getattr {
        ino: Ino,
    },
    Setattr {
        ino: Ino,
        #[serde(with = "serial::SetAttrFields")]
        changes: SetAttr,
    },
    Create {
        parent: Ino,
        name: Name,
        #[serde(with = "serial::NewNodeFields")]
        node: NewNode,
        /// Extended attributes it has from the first on: names and values.
        attributes: Vec<(Name, Name)>,
    },
    Symlink {
        parent: Ino,
        name: Name,
        target: Name,
        uid: u32,
        gid: u32,
    },
    Readlink {
        ino: Ino,
    },
    Link {
        ino: Ino,
        parent: Ino,
        name: Name,
    },
    Unlink {
        parent: Ino,
        name: Name,
    },
    Rmdir {
        parent: Ino,
        name: Name,
    },
    Rename {
        parent: Ino,
        name: Name,
        new_parent: Ino,
        new_name: Name,
        #[serde(with = "serial::RenameModes")]
        mode: RenameMode,
    },
    Open {
        ino: Ino,
    },
    Release {
        ino: Ino,
    },
    Read {
        ino: Ino,
        offset: u64,
        len: usize,
    },
    Write {
        ino: Ino,
        offset: u64,
        len: usize,
        fill: Fill,
    },
    Punch {
        ino: Ino,
        offset: u64,
        len: u64,
    },
    /// `fallocate`; with `zero`, what stands there gives way to zeros.
    Allocate {
        ino: Ino,
        offset: u64,
        len: u64,
        keep_size: bool,
        zero: bool,
    },
    Copy {
        from: (Ino, u64),
        to: (Ino, u64),
        len: u64,
    },
    Readdir {
        dir: Ino,
    },
    ParentOf {
        dir: Ino,
    },
    Getxattr {
        ino: Ino,
        name: Name,
    },
    Setxattr {
        ino: Ino,
        name: Name,
        value: Name,
        create: bool,
        replace: bool,
    },
    Listxattr {
        ino: Ino,
    },
    Removexattr {
        ino: Ino,
        name: Name,
    },
    Sync,
}

impl Call {
    /// Whether the call can change what is stored.
    pub fn mutates(&self) -> bool {
        !matches!(
            self,
            Call::Lookup { .. }
                | Call::Getattr { .. }
                | Call::Readlink { .. }
                | Call::Open { .. }
                | Call::Read { .. }
                | Call::Readdir { .. }
                | Call::ParentOf { .. }
                | Call::Getxattr { .. }
                | Call::Listxattr { .. }
                | Call::Sync
        )
    }

    /// Whether the call gives space back, and so must never fail for want of it.
    pub fn frees(&self) -> bool {
        match self {
            Call::Unlink { .. } | Call::Rmdir { .. } | Call::Release { .. } => true,
            Call::Setattr { changes, .. } => changes.size == Some(0),
            _ => false,
        }
    }

    /// Bytes the call adds at most.
    pub fn adds_bytes(&self) -> u64 {
        match self {
            Call::Write { len, .. } => *len as u64,
            Call::Setxattr { value, .. } => value.len() as u64,
            Call::Create { attributes, .. } => attributes.iter().map(|(_, value)| value.len() as u64).sum(),
            Call::Allocate { len, .. } => len + len / 16 + 16384,
            Call::Copy { len, .. } => *len,
            _ => 0,
        }
    }

    /// The pieces in which the call may reach flash, in order, each atomic (G2): what is written or copied falls into
    /// chunks of `chunk_bytes` where it goes, everything else is one piece.
    pub fn pieces(&self, chunk_bytes: u64) -> Vec<Call> {
        let (offset, len) = match *self {
            Call::Write { offset, len, .. } => (offset, len as u64),
            Call::Copy { to, len, .. } => (to.1, len),
            _ => return vec![self.clone()],
        };
        let end = offset + len;
        let mut pieces = Vec::new();
        let mut at = offset;
        while at < end {
            let stop = ((at / chunk_bytes + 1) * chunk_bytes).min(end);
            pieces.push(self.part(at - offset, stop - at));
            at = stop;
        }
        pieces
    }

    /// The part of what is written or copied that begins `skip` bytes into it.
    fn part(&self, skip: u64, len: u64) -> Call {
        match *self {
            Call::Write { ino, offset, fill, .. } => {
                Call::Write { ino, offset: offset + skip, len: len as usize, fill: fill.skip(skip) }
            }
            Call::Copy { from, to, .. } => Call::Copy { from: (from.0, from.1 + skip), to: (to.0, to.1 + skip), len },
            _ => self.clone(),
        }
    }
}

/// What a call answers where it succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Done,
    Attr(Seen),
    Bytes(Vec<u8>),
    Count(usize),
    Ino(Ino),
    /// Entries or attribute names, sorted.
    Entries(Vec<(Vec<u8>, Ino, u32)>),
    Names(Vec<Vec<u8>>),
}

impl Reply {
    /// The inode that a `create` or `symlink` made, or the whiteout that a `rename` left.
    pub fn made(&self) -> Option<Ino> {
        match self {
            Reply::Attr(seen) => Some(seen.ino),
            _ => None,
        }
    }
}

/// The attributes that must match between a volume and the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub ino: Ino,
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    /// Of a directory: 0, since its size is the file system's own affair.
    pub size: u64,
    pub mtime_ns: i64,
}

impl From<Attr> for Seen {
    fn from(attr: Attr) -> Self {
        let Attr { ino, mode, nlink, uid, gid, rdev, mtime_ns, .. } = attr;
        let size = if mode & kind::MASK == kind::DIR { 0 } else { attr.size };
        Self { ino, mode, nlink, uid, gid, rdev, size, mtime_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Texture;

    #[test]
    fn a_write_falls_into_pieces_at_chunk_boundaries() {
        let fill = Fill { seed: 1, start: 0, texture: Texture::Noise };
        let write = Call::Write { ino: 2, offset: 4000, len: 5000, fill };
        let ranges: Vec<(u64, usize)> = write
            .pieces(4096)
            .into_iter()
            .map(|piece| match piece {
                Call::Write { offset, len, .. } => (offset, len),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ranges, [(4000, 96), (4096, 4096), (8192, 808)]);
    }
}
