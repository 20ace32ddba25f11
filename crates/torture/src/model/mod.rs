//! A reference file system in memory: what a FlexFS volume must look like after a history of calls.
//!
//! It has the same calls as the real one and refuses with the same `errno`. Where several refusals apply POSIX
//! does not say which comes first, so a refusal is a set. Invariants: `digest` is the sum of the digests of all
//! inodes with a name; a call that is refused changes nothing.

mod data;
pub mod digest;
mod names;
mod node;
pub mod sparse;

use std::collections::BTreeMap;
use std::sync::Arc;

use flexfs_core::{Ino, ROOT_INO, Times};

pub use node::{Body, Node};

use crate::ops::{Call, Reply};

/// Why a call is refused: any of these `errno`s is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub Vec<i32>);

/// The `errno`s the model knows.
pub mod errno {
    pub const PERM: i32 = 1;
    pub const NOENT: i32 = 2;
    pub const IO: i32 = 5;
    pub const TOOBIG: i32 = 7;
    pub const EXIST: i32 = 17;
    pub const NOTDIR: i32 = 20;
    pub const ISDIR: i32 = 21;
    pub const INVAL: i32 = 22;
    pub const FBIG: i32 = 27;
    pub const NOSPC: i32 = 28;
    pub const NAMETOOLONG: i32 = 36;
    pub const NOTEMPTY: i32 = 39;
    pub const NODATA: i32 = 61;
}

pub type Answer<T> = Result<T, Refused>;

fn refuse<T>(errno: i32) -> Answer<T> {
    Err(Refused(vec![errno]))
}

/// The model. A copy shares the inodes that neither changes.
#[derive(Clone, Debug)]
pub struct ModelFs {
    nodes: BTreeMap<Ino, Arc<Node>>,
    digest: u64,
    /// Who says when a file's contents changed.
    times: Times,
    /// The inode that was written to last.
    written: Option<Ino>,
}

impl ModelFs {
    /// A freshly formatted volume whose root directory has `mode` (type bits included).
    pub fn new(root_mode: u32, uid: u32, gid: u32, now_ns: i64) -> Self {
        let mut root = Node::new(root_mode, ROOT_INO, now_ns);
        (root.uid, root.gid) = (uid, gid);
        let digest = root.digest(ROOT_INO);
        Self { nodes: BTreeMap::from([(ROOT_INO, Arc::new(root))]), digest, times: Times::OfVolume, written: None }
    }

    /// The same, where these say when a file's contents changed.
    pub fn with_times(self, times: Times) -> Self {
        Self { times, ..self }
    }

    /// The inode that was written to last.
    pub fn written(&self) -> Option<Ino> {
        self.written
    }

    /// A tree put together from outside, such as what stands on a volume.
    pub fn from_nodes(nodes: BTreeMap<Ino, Node>) -> Self {
        let digest = nodes.iter().fold(0u64, |sum, (&ino, node)| sum.wrapping_add(node.digest(ino)));
        let nodes = nodes.into_iter().map(|(ino, node)| (ino, Arc::new(node))).collect();
        Self { nodes, digest, times: Times::OfVolume, written: None }
    }

    /// The digest of everything reachable.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub fn node(&self, ino: Ino) -> Option<&Node> {
        self.nodes.get(&ino).map(|node| &**node)
    }

    /// Every inode, those without a name included.
    pub fn nodes(&self) -> impl Iterator<Item = (Ino, &Node)> {
        self.nodes.iter().map(|(&ino, node)| (ino, &**node))
    }

    /// Bytes a file system needs at least to store this: file bytes that are not zero, and xattrs.
    pub fn stored_bytes(&self) -> u64 {
        let of = |node: &Node| {
            let data = if let Body::File(bytes) = &node.body { bytes.pieces() * sparse::PIECE_BYTES } else { 0 };
            data + node.xattrs.values().map(Vec::len).sum::<usize>()
        };
        self.nodes.values().map(|node| of(node) as u64).sum()
    }

    /// Makes a call. `made` is the inode number to give to what the call creates; `now_ns` its time.
    pub fn apply(&mut self, call: &Call, made: Ino, now_ns: i64) -> Answer<Reply> {
        if call.target().is_some_and(|ino| !self.nodes.contains_key(&ino)) {
            return refuse(errno::NOENT);
        }
        match call {
            Call::Lookup { parent, name } => {
                let ino = self.child(*parent, name)?;
                self.seen(ino)
            }
            Call::Create { parent, name, node, attributes } => {
                self.create(*parent, name, (*node, attributes), made, now_ns)
            }
            Call::Symlink { parent, name, target, uid, gid } => {
                self.symlink(*parent, name, target, (*uid, *gid), made, now_ns)
            }
            Call::Link { ino, parent, name } => self.link(*ino, *parent, name, now_ns),
            Call::Unlink { parent, name } => self.unlink(*parent, name, now_ns),
            Call::Rmdir { parent, name } => self.rmdir(*parent, name, now_ns),
            Call::Rename { parent, name, new_parent, new_name, mode } => {
                self.rename((*parent, name), (*new_parent, new_name), *mode, (made, now_ns))
            }
            Call::Readdir { dir } => self.readdir(*dir),
            Call::ParentOf { dir } => self.parent_of(*dir),
            Call::Open { ino } => {
                self.edit(*ino, |node| node.open += 1);
                Ok(Reply::Done)
            }
            Call::Release { ino } => self.release(*ino),
            Call::Sync => Ok(Reply::Done),
            _ => self.apply_to_inode(call, now_ns),
        }
    }

    /// What a remount leaves: no handle is open, inodes without a name are gone.
    pub fn forget_handles(&mut self) {
        self.nodes.retain(|_, node| node.nlink > 0);
        let held = self.nodes.values_mut().filter(|node| node.open > 0);
        held.for_each(|node| Arc::make_mut(node).open = 0);
    }

    /// Inodes whose times of modification or of change differ from those in `other`.
    pub fn time_differences(&self, other: &ModelFs) -> Vec<String> {
        let times = |node: &Node| (node.mtime_ns, node.ctime_ns);
        let differing = self.nodes.iter().filter_map(|(ino, node)| {
            let theirs = times(other.nodes.get(ino)?);
            (node.nlink > 0 && times(node) != theirs)
                .then(|| format!("inode {ino}: mtime and ctime {:?} against {theirs:?}", times(node)))
        });
        differing.collect()
    }

    /// Everything that tells this tree from `other`, one line each, in both directions.
    pub fn differences(&self, other: &ModelFs) -> Vec<String> {
        let mut lines = Vec::new();
        for (&ino, node) in self.nodes.iter().filter(|(_, node)| node.nlink > 0) {
            match other.nodes.get(&ino).filter(|node| node.nlink > 0) {
                Some(theirs) => lines.extend(node.differences(theirs, ino)),
                None => lines.push(format!("inode {ino} (mode {:o}, {} bytes): only here", node.mode, node.size())),
            }
        }
        for (&ino, node) in other.nodes.iter().filter(|(_, node)| node.nlink > 0) {
            if self.nodes.get(&ino).is_none_or(|node| node.nlink == 0) {
                lines.push(format!("inode {ino} (mode {:o}, {} bytes): only there", node.mode, node.size()));
            }
        }
        lines
    }

    /// The attributes of an inode, as a reply.
    fn seen(&self, ino: Ino) -> Answer<Reply> {
        match self.nodes.get(&ino) {
            Some(node) => Ok(Reply::Attr(node.seen(ino))),
            None => refuse(errno::NOENT),
        }
    }

    /// Changes an inode that exists; one that has neither name nor handle afterwards is gone.
    fn edit(&mut self, ino: Ino, change: impl FnOnce(&mut Node)) {
        let Some(mut node) = self.nodes.remove(&ino) else { return };
        if node.nlink > 0 {
            self.digest = self.digest.wrapping_sub(node.digest(ino));
        }
        change(Arc::make_mut(&mut node));
        if node.nlink > 0 {
            self.digest = self.digest.wrapping_add(node.digest(ino));
        }
        if node.nlink > 0 || node.open > 0 {
            self.nodes.insert(ino, node);
        }
    }

    fn insert(&mut self, ino: Ino, node: Node) {
        self.digest = self.digest.wrapping_add(node.digest(ino));
        self.nodes.insert(ino, Arc::new(node));
    }
}
