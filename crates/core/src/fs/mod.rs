//! The operations of a file system, over the index and the flash manager.
//!
//! An operation changes memory and the write buffers only as a whole; `commit` (in `log`) is what reaches flash.

mod anchor_blocks;
pub mod data;
pub mod dir;
pub mod dump;
mod holes;
pub mod inodes;
pub mod log;
mod make;
pub mod names;
pub mod report;
mod reserve;
mod scrub;
pub mod space;
pub mod types;
pub mod xattr;

use alloc::string::String;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use self::inodes::{Cached, Inodes};
use self::log::Log;
use self::scrub::Scrub;
use self::types::*;
use crate::error::{Error, Result};
use crate::flash::Flash;
use crate::format::inode::{Extent, Inode};
use crate::format::key::{KeyKind, key, whole_inode};
use crate::format::node::{self, Body};
use crate::format::place::{Place, Slot};
use crate::format::tag::{Kind, tick_ns, ticks};
use crate::index::Index;
use crate::index::delta::Change;
use crate::mount::ongoing::{Checkpoint, Tables};
use crate::reclaim::ongoing::Collector;

/// An access time older than this is renewed in any case, ns.
const ATIME_DAY_NS: i64 = 24 * 60 * 60 * 1_000_000_000;

/// What is fixed for the life of a volume, or changes only at checkpoints.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub id: [u8; 16],
    pub label: String,
    pub created_ns: i64,
    pub epoch: u32,
    pub checkpoint: u64,
    pub next_ino: u64,
    pub files: u64,
    /// Seeds the name hash.
    pub hash_seed: u64,
    /// Nothing was written since the last checkpoint of the mount before.
    pub clean: bool,
}

/// A mounted volume.
pub struct Fs<N: Nand> {
    pub(crate) flash: Flash<N>,
    pub(crate) index: Index,
    pub(crate) log: Log,
    pub(crate) inodes: Inodes,
    pub(crate) volume: Volume,
    pub(crate) tables: Tables,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) collector: Option<Collector>,
    pub(crate) options: MountOptions,
    pub(crate) collections: u64,
    /// Blocks for the index that were free when room was made last, if no checkpoint has come since.
    pub(crate) index_reserve: u32,
    /// Live bytes when blocks were emptied last without any gain.
    pub(crate) fruitless_at: Option<u64>,
    /// Why this mount was made read-only, though it was to be for writing.
    pub(crate) ended: Option<Ended>,
    pub(crate) scrub: Scrub,
}

impl<N: Nand> Fs<N> {
    /// The chip, to look at.
    pub fn chip(&self) -> &N {
        &self.flash.nand
    }

    /// The chip, to change its faults or its clock.
    pub fn chip_mut(&mut self) -> &mut N {
        &mut self.flash.nand
    }

    /// Gives the chip back as it is, as a power cut would: nothing is written.
    pub fn into_chip(self) -> N {
        self.flash.nand
    }

    /// Bytes of a chunk.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        self.flash.shape.slot_bytes as u64
    }

    /// Before a change that takes space: refuses on a read-only mount, and makes room on the chip.
    pub(crate) fn begin_change(&mut self) -> Result<()> {
        self.begin(false)
    }

    /// Before a change that gives space back: it may use the reserve.
    pub(crate) fn begin_removal(&mut self) -> Result<()> {
        self.begin(true)
    }

    fn begin(&mut self, gives_back: bool) -> Result<()> {
        self.writable()?;
        // An operation that ended with an error may have left slots behind that the index does not follow yet.
        let followed = self.flash.own_anchor().and_then(|()| self.follow_moved());
        match followed.and_then(|()| self.make_room(gives_back)) {
            Err(Error::NoSpace) if gives_back => {
                // Not even for that there is room: so many blocks went bad that this is the end.
                self.flash.fail(&Error::NoSpace);
                Err(Error::ReadOnly)
            }
            ready => self.noted(ready),
        }
    }

    /// Remembers that the chip failed.
    pub(crate) fn noted<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if let Err(error @ Error::Nand(_)) = &outcome {
            self.flash.fail(error);
        }
        outcome
    }

    /// Whether anything may be written; the failure that ended it, otherwise.
    pub(crate) fn writable(&self) -> Result<()> {
        match &self.flash.broken {
            _ if self.options.read_only => Err(Error::ReadOnly),
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Ends a change: buffers that are full go out.
    pub(crate) fn end_change(&mut self, now_ns: i64) -> Result<()> {
        let mut outcome = self.end_operation(now_ns);
        if outcome.is_ok() && self.inodes.is_strained() {
            outcome = self.write_inodes().and_then(|()| self.commit(false));
        }
        self.noted(outcome)
    }

    /// An inode, from memory or flash.
    pub(crate) fn inode(&mut self, ino: Ino) -> Result<Inode> {
        if let Some(cached) = self.inodes.get(ino) {
            return Ok(cached.inode);
        }
        let place = self.index.get(&mut self.flash, key(ino, KeyKind::Inode, 0))?.ok_or(Error::NotFound)?;
        let inode = self.with_node(place, |found, node| match node.body {
            Body::Inode(inode) if found == ino => Some(inode),
            _ => None,
        })?;
        self.inodes.insert(ino, inode);
        Ok(inode)
    }

    /// Looks at the node at `place`: `look` gets its inode number and the node.
    pub(crate) fn with_node<T>(
        &mut self,
        place: Place,
        look: impl FnOnce(u64, &node::Node<'_>) -> Option<T>,
    ) -> Result<T> {
        let (bytes, slot): (alloc::sync::Arc<[u8]>, Slot) = match place {
            Place::Pending { number } => {
                let bytes = self.log.pending(number).unwrap_or(&[]);
                let found = node::node_at(bytes, 0).and_then(|node| look(node.ino, &node));
                return found.ok_or(Error::Corrupt { what: "pending node", slot: 0 });
            }
            Place::Node { slot, .. } => (self.flash.read_slot(slot, Kind::Nodes, Cause::Metadata)?, slot),
            Place::Run { slot, .. } => return self.flash.corrupt("node", slot),
            Place::Mark | Place::Reserved { .. } => return self.flash.corrupt("node", 0),
        };
        let Place::Node { at, .. } = place else { return self.flash.corrupt("node", slot) };
        match node::node_at(&bytes, at).and_then(|node| look(node.ino, &node)) {
            Some(found) => Ok(found),
            None => self.flash.corrupt("node", slot),
        }
    }

    /// Changes an inode in memory only: replay derives the change from what is logged anyway.
    pub(crate) fn derive_inode(&mut self, ino: Ino, inode: Inode) {
        self.inodes.update(ino, inode);
    }

    /// Changes an inode and logs it. What it has is counted elsewhere: that stays.
    pub(crate) fn put_inode(&mut self, ino: Ino, mut inode: Inode) -> Result<()> {
        self.store_inode(ino)?;
        if let Some(Cached { inode: held, .. }) = self.inodes.get(ino) {
            (inode.chunks, inode.entries) = (held.chunks, held.entries);
        }
        self.inodes.update(ino, inode);
        let inode_key = key(ino, KeyKind::Inode, 0);
        let pending = matches!(self.index.delta.at(inode_key), Some(Change::Put(Place::Pending { .. })));
        if pending { Ok(()) } else { self.push(ino, Body::Inode(inode)) }
    }

    /// Logs every inode that is newer in memory than on flash.
    pub(crate) fn write_inodes(&mut self) -> Result<()> {
        let mut from = 0;
        while let Some((ino, inode)) = self.inodes.next_dirty(from) {
            from = ino + 1;
            self.put_inode(ino, inode)?;
        }
        Ok(())
    }

    /// Counts chunks that an inode got, and those it has no more, in memory.
    pub(crate) fn count_chunks(&mut self, ino: Ino, added: Extent, removed: Extent) -> Result<()> {
        let mut inode = self.inode(ino)?;
        inode.chunks = inode.chunks.with(added).without(removed);
        self.derive_inode(ino, inode);
        Ok(())
    }

    /// An inode's attributes.
    pub fn getattr(&mut self, ino: Ino) -> Result<Attr> {
        let inode = self.inode(ino)?;
        Ok(self.attr_of(ino, &inode))
    }

    pub(crate) fn attr_of(&self, ino: Ino, inode: &Inode) -> Attr {
        Attr {
            ino,
            mode: inode.mode,
            nlink: inode.nlink,
            uid: inode.uid,
            gid: inode.gid,
            rdev: inode.rdev,
            size: inode.size,
            blocks: (inode.chunks.count + self.log.fresh_chunks(ino)) * (self.chunk_bytes() / 512),
            atime_ns: inode.atime_ns,
            mtime_ns: inode.mtime_ns,
            ctime_ns: inode.ctime_ns,
            btime_ns: inode.btime_ns,
        }
    }

    /// Changes attributes; a change of size truncates or extends.
    pub fn setattr(&mut self, ino: Ino, changes: SetAttr, now_ns: i64) -> Result<Attr> {
        self.begin_removal()?;
        let mut inode = self.inode(ino)?;
        let by_caller = self.leaves_times(&inode);
        let changed_ns = if by_caller { inode.ctime_ns } else { self.stamp_ns(now_ns) };
        if let Some(size) = changes.size {
            match inode.mode & kind::MASK {
                kind::FILE => {}
                kind::DIR => return Err(Error::IsDirectory),
                _ => return Err(Error::Invalid("only files have a size to set")),
            }
            if size > self.size_max() {
                return Err(Error::FileTooLarge);
            }
            self.resize(ino, size)?;
            inode = self.inode(ino)?;
            inode.size = size;
            inode.mtime_ns = if by_caller { inode.mtime_ns } else { changed_ns };
        }
        if let Some(mode) = changes.mode {
            inode.mode = inode.mode & kind::MASK | mode & 0o7777;
        }
        inode.uid = changes.uid.unwrap_or(inode.uid);
        inode.gid = changes.gid.unwrap_or(inode.gid);
        inode.atime_ns = changes.atime_ns.unwrap_or(inode.atime_ns);
        inode.mtime_ns = changes.mtime_ns.unwrap_or(inode.mtime_ns);
        inode.ctime_ns = changes.ctime_ns.unwrap_or(changed_ns);
        self.put_inode(ino, inode)?;
        self.end_change(now_ns)?;
        self.getattr(ino)
    }

    /// Notes that an inode was read, as the mount's [`Atime`] asks for. The time reaches flash with the inode's next
    /// change, or the next checkpoint.
    pub fn accessed(&mut self, ino: Ino, now_ns: i64) -> Result<()> {
        // Reading must not fill memory with inodes to be written: some times are left out then.
        if self.options.atime == Atime::None || self.writable().is_err() || self.inodes.is_strained() {
            return Ok(());
        }
        let mut inode = self.inode(ino)?;
        let now_ns = self.stamp_ns(now_ns);
        let changed_ns = inode.mtime_ns.max(inode.ctime_ns);
        if inode.atime_ns <= changed_ns || now_ns.saturating_sub(inode.atime_ns) >= ATIME_DAY_NS {
            inode.atime_ns = now_ns;
            self.derive_inode(ino, inode);
        }
        Ok(())
    }

    /// Counts an open handle: an inode without names lives until its last handle is released.
    pub fn open(&mut self, ino: Ino) -> Result<()> {
        self.inode(ino)?;
        self.inodes.count_open(ino, 1);
        Ok(())
    }

    /// Counts a handle as released; the last one of an inode without names removes it.
    pub fn release(&mut self, ino: Ino, now_ns: i64) -> Result<()> {
        let left = self.inodes.count_open(ino, -1);
        if left > 0 || self.writable().is_err() || self.inode(ino)?.nlink > 0 {
            return Ok(());
        }
        self.begin_removal()?;
        self.forget_orphan(ino)?;
        self.end_change(now_ns)
    }

    /// Removes an inode that lost its last name before its last handle.
    pub(crate) fn forget_orphan(&mut self, ino: Ino) -> Result<()> {
        self.forget(ino)?;
        let seq = self.flash.next_seq;
        self.index.set(&mut self.flash, key(0, KeyKind::Orphan, ino), Change::Cut(1), seq, false)?;
        Ok(())
    }

    /// Removes an inode with everything it has. Where any of it cannot be read, all of it stays.
    pub(crate) fn forget(&mut self, ino: Ino) -> Result<()> {
        let (from, to) = whole_inode(ino);
        let seq = self.flash.next_seq;
        self.index.set(&mut self.flash, from, Change::Cut(to - from), seq, false)?;
        self.log.drop_range(ino, 0, u64::MAX);
        self.inodes.remove(ino);
        self.volume.files = self.volume.files.saturating_sub(1);
        self.push(ino, Body::Forget)
    }

    /// Makes everything issued before durable.
    pub fn sync(&mut self, now_ns: i64) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        let idle = self.log.is_empty() && self.flash.ended_seq == self.flash.next_seq;
        if idle && self.flash.promised_seq == self.flash.next_seq {
            return self.writable();
        }
        self.begin_removal()?;
        self.log.since_ns = Some(now_ns);
        let outcome = self.commit(true);
        self.noted(outcome)
    }

    /// The time that a call made at `now_ns` leaves.
    pub fn stamp_ns(&self, now_ns: i64) -> i64 {
        match self.options.times {
            Times::OfVolume => tick_ns(ticks(now_ns)),
            Times::OfCaller => now_ns,
        }
    }

    /// Whether the caller keeps the times of changes of an inode.
    fn leaves_times(&self, inode: &Inode) -> bool {
        self.options.times == Times::OfCaller && inode.is_file()
    }

    /// Notes that an inode's contents change now, unless the caller keeps its times. A time in the tick of the last
    /// change is that of the last change: a tag, from which a replay learns of this one, does not tell them apart.
    pub(crate) fn touch(&self, inode: &mut Inode, now_ns: i64) {
        if !self.leaves_times(inode) && ticks(now_ns) != ticks(inode.mtime_ns) {
            let stamp_ns = self.stamp_ns(now_ns);
            (inode.mtime_ns, inode.ctime_ns) = (stamp_ns, stamp_ns);
        }
    }

    /// The contents of a symbolic link.
    pub fn readlink(&mut self, ino: Ino) -> Result<Vec<u8>> {
        let inode = self.inode(ino)?;
        if inode.mode & kind::MASK != kind::SYMLINK {
            return Err(Error::Invalid("not a symbolic link"));
        }
        let mut target = alloc::vec![0; (inode.size as usize).min(4096)];
        let count = self.read_bytes(ino, inode.size, 0, &mut target, None)?;
        target.truncate(count);
        Ok(target)
    }
}
