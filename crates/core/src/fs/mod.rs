//! The operations of a file system: POSIX semantics over a [`Store`].
//!
//! Invariant: an operation changes memory and the write buffer only as a whole; what reaches flash, and when, is the
//! store's.

pub mod data;
mod dir;
mod holes;
mod life;
mod look;
mod make;
mod rename;
pub mod types;
mod xattr;

use alloc::vec::Vec;

use nand::Nand;

use self::types::*;
use crate::error::{Error, Result};
use crate::format::inode::{Ino, Inode, kind};
use crate::format::tag::{tick_ns, ticks};
use crate::policy::budget::Call;
use crate::policy::migrate::Power;
use crate::store::Store;
use crate::store::options::{Atime, Times};
use crate::store::records::Records;

/// An access time older than this is renewed in any case, ns.
const ATIME_DAY_NS: i64 = 24 * 60 * 60 * 1_000_000_000;

/// A mounted volume.
pub struct Fs<N: Nand> {
    store: Store<N>,
}

impl<N: Nand> Fs<N> {
    fn records(&mut self) -> &mut Records<N> {
        self.store.records_mut()
    }

    /// An inode's attributes.
    pub fn getattr(&mut self, ino: Ino) -> Result<Attr> {
        let inode = self.records().inode(ino)?;
        Ok(attributes(self.records(), ino, &inode))
    }

    /// Changes attributes; a change of size truncates or extends.
    pub fn setattr(&mut self, ino: Ino, changes: SetAttr, now_ns: i64) -> Result<Attr> {
        self.store.begin(Call::REMOVAL)?;
        let mut inode = self.records().inode(ino)?;
        let by_caller = self.leaves_times(&inode);
        if by_caller
            && let Some(time_ns) = changes.only_time_ns()
            && self.records().chunks(ino).date(time_ns)?
        {
            self.store.end()?;
            return self.getattr(ino);
        }
        let changed_ns = if by_caller { inode.ctime_ns } else { self.stamp_ns(now_ns) };
        if let Some(size) = changes.size {
            match inode.mode & kind::MASK {
                kind::FILE => {}
                kind::DIR => return Err(Error::IsDirectory),
                _ => return Err(Error::Invalid("only files have a size to set")),
            }
            if size > self.records().size_max() {
                return Err(Error::FileTooLarge);
            }
            self.resize(ino, size)?;
            inode = self.records().inode(ino)?;
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
        self.records().put_inode(ino, inode)?;
        self.store.end()?;
        self.getattr(ino)
    }

    /// Notes that an inode was read, as the mount's [`Atime`] asks for. The time reaches flash with the inode's next
    /// change, or the next checkpoint.
    pub fn accessed(&mut self, ino: Ino, now_ns: i64) -> Result<()> {
        // Reading must not fill memory with inodes to be written: some times are left out then.
        if self.store.records().options().atime == Atime::None
            || self.store.writable().is_err()
            || self.store.records().holds_many_dirty_inodes()
        {
            return Ok(());
        }
        let mut inode = self.records().inode(ino)?;
        let now_ns = self.stamp_ns(now_ns);
        let changed_ns = inode.mtime_ns.max(inode.ctime_ns);
        if inode.atime_ns <= changed_ns || now_ns.saturating_sub(inode.atime_ns) >= ATIME_DAY_NS {
            inode.atime_ns = now_ns;
            self.records().derive_inode(ino, inode);
        }
        Ok(())
    }

    /// Counts an open handle: an inode without names lives until its last handle is released.
    pub fn open(&mut self, ino: Ino) -> Result<()> {
        self.records().inode(ino)?;
        self.records().count_handle(ino, 1);
        Ok(())
    }

    /// Counts a handle as released; the last one of an inode without names removes it.
    pub fn release(&mut self, ino: Ino) -> Result<()> {
        let left = self.records().count_handle(ino, -1);
        if left > 0 || self.store.writable().is_err() || self.records().inode(ino)?.nlink > 0 {
            return Ok(());
        }
        self.store.begin(Call::REMOVAL)?;
        self.records().forget_orphan(ino)?;
        self.store.end()
    }

    /// Makes everything issued before durable.
    pub fn sync(&mut self) -> Result<()> {
        self.store.sync()
    }

    /// Whether everything issued before is durable.
    pub fn is_durable(&self) -> bool {
        self.store.records().is_durable()
    }

    /// Says that a call comes, any call, and when: ns by a clock that never jumps, from whenever on. How old a change is
    /// counts from that. The time of day, which other calls are given, decides on nothing but the times they leave.
    pub fn request(&mut self, mono_ns: i64) {
        self.store.request(mono_ns);
    }

    /// Says where the power comes from, if that changes: a charger, until a call says otherwise.
    pub fn set_power(&mut self, power: Power) {
        self.records().heard_of_power(power);
    }

    /// Does at most one page's worth of internal work, at `mono_ns` by the clock of [`Fs::request`] and `wall_ns` since
    /// 1970; returns when to call again by the former, or `None` when idle.
    pub fn background(&mut self, mono_ns: i64, wall_ns: i64) -> Result<Option<i64>> {
        self.store.background(mono_ns, wall_ns)
    }

    /// The time that a call made at `now_ns` leaves.
    pub fn stamp_ns(&self, now_ns: i64) -> i64 {
        match self.store.records().options().times {
            Times::OfVolume => tick_ns(ticks(now_ns)),
            Times::OfCaller => now_ns,
        }
    }

    /// Whether the caller keeps the times of changes of an inode.
    fn leaves_times(&self, inode: &Inode) -> bool {
        self.store.records().options().times == Times::OfCaller && inode.is_file()
    }

    /// Notes that an inode's contents change now, unless the caller keeps its times. A change in the tick of the last one
    /// leaves the times as they are: the beginning of the tick may be earlier than they.
    pub(super) fn touch(&self, inode: &mut Inode, now_ns: i64) {
        if !self.leaves_times(inode) && ticks(now_ns) != ticks(inode.mtime_ns) {
            let stamp_ns = self.stamp_ns(now_ns);
            (inode.mtime_ns, inode.ctime_ns) = (stamp_ns, stamp_ns);
        }
    }

    /// The contents of a symbolic link.
    pub fn readlink(&mut self, ino: Ino) -> Result<Vec<u8>> {
        let inode = self.records().inode(ino)?;
        if inode.mode & kind::MASK != kind::SYMLINK {
            return Err(Error::Invalid("not a symbolic link"));
        }
        let mut target = alloc::vec![0; (inode.size as usize).min(4096)];
        let count = self.records().chunks(ino).read(inode.size, 0, &mut target, None)?;
        target.truncate(count);
        Ok(target)
    }
}

/// What `stat` tells of an inode.
fn attributes<N: Nand>(records: &Records<N>, ino: Ino, inode: &Inode) -> Attr {
    Attr {
        ino,
        mode: inode.mode,
        nlink: inode.nlink,
        uid: inode.uid,
        gid: inode.gid,
        rdev: inode.rdev,
        size: inode.size,
        blocks: (inode.chunks.count + records.fresh_chunks(ino)) * (records.chunk_bytes() / 512),
        atime_ns: inode.atime_ns,
        mtime_ns: inode.mtime_ns,
        ctime_ns: inode.ctime_ns,
        btime_ns: inode.btime_ns,
    }
}
