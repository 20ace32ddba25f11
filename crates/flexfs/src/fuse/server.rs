//! The kernel's requests, each answered by one operation of the core.
//!
//! A node of the kernel is an inode number of the core, and an open file has no state of its own beyond the
//! core's count of open handles. The kernel checks permissions, keeps locks and caches names, attributes and pages
//! for as long as it likes: nobody else changes the volume under it. What it leaves to a file system is done in
//! `make` (who owns what is made, access control lists, the end of set-user-id and set-group-id) and `data`.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flexfs_core::{Attr, Error, Ino, NAME_MAX_BYTES, RenameMode, SetAttr, kind};
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, INodeNo, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::MountManner;
use super::attr::{PERMISSIONS, Times, file_type, is_privileged, to_kernel, unknown};
use super::connection::{LONG, Listings, NO_HANDLE, ONLY, negotiate};
use super::data::{self, Writers};
use super::directory::{list, look_up};
use super::handed_times::{HandedTimes, TimesRequest};
use super::kept_listings::KeptListings;
use super::kernel_cache::KernelCache;
use super::make::{self, Making};
use super::recorded::Recorded;
use super::removed::RemovedInodes;
use super::volume::Volume;
use crate::attribute_names;
use crate::clock::{now_ns, stamp_ns};

/// `setxattr(2)` flags.
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

/// The server of one mounted volume.
pub struct Server {
    volume: Arc<Volume>,
    chunk_bytes: u32,
    manner: MountManner,
    kernel_cache: Arc<KernelCache>,
    writers: Writers,
    removed: RemovedInodes,
    handed_times: HandedTimes,
    listings: Listings,
    kept_listings: KeptListings,
}

impl Server {
    pub fn new(volume: Arc<Volume>, chunk_bytes: u32, manner: MountManner) -> Self {
        let kernel_cache = Arc::<KernelCache>::default();
        let writers = Writers::new(Arc::clone(&kernel_cache));
        let kept_listings = KeptListings::new(Arc::clone(&kernel_cache));
        let (removed, listings) = (RemovedInodes::default(), Listings::Seen);
        let handed_times = HandedTimes::default();
        Self { volume, chunk_bytes, manner, kernel_cache, writers, removed, handed_times, listings, kept_listings }
    }

    /// The kernel's cache, to be connected with it.
    pub fn kernel_cache(&self) -> Arc<KernelCache> {
        Arc::clone(&self.kernel_cache)
    }

    fn answer_entry(&self, reply: ReplyEntry, result: Result<Attr, Errno>) {
        match result {
            Ok(attr) => {
                let kernel = to_kernel(&attr, self.chunk_bytes);
                reply.entry_with_ttls(&attr_ttl(&attr), &LONG, &kernel, ONLY);
            }
            Err(errno) => reply.error(errno),
        }
    }

    /// What is asked of an inode itself, not of a name, once another has replaced it: the kernel looks for the name again.
    /// Not so for one that was removed: made again meanwhile, the kernel may take it for what it was before its last change.
    fn of_inode<T>(&self, ino: Ino, result: Result<T, Errno>) -> Result<T, Errno> {
        result.map_err(|errno| {
            let gone = errno.code() == Errno::ENOENT.code();
            if gone && self.removed.is_replaced(ino) { Errno::ESTALE } else { errno }
        })
    }

    /// A directory is being read.
    fn listed(&self, fs: &mut Recorded, dir: Ino) -> Result<(), Error> {
        if self.manner.dates_listings() {
            return self.manner.accessed(fs, dir);
        }
        self.kept_listings.handed(dir);
        Ok(())
    }

    /// Changes names in directories, and has the kernel list these anew.
    fn change_names<T>(
        &self,
        directories: &[INodeNo],
        change: impl FnOnce(&mut Recorded) -> Result<T, Error>,
    ) -> Result<T, Errno> {
        let result = self.volume.change(change);
        // A change that fails may have been made in memory.
        self.kept_listings.changed(directories.iter().map(|dir| dir.0));
        result
    }

    fn answer_attr(&self, reply: ReplyAttr, result: Result<Attr, Errno>) {
        match result {
            Ok(attr) => reply.attr(&attr_ttl(&attr), &to_kernel(&attr, self.chunk_bytes)),
            Err(errno) => reply.error(errno),
        }
    }
}

/// How long the kernel may believe these attributes.
fn attr_ttl(attr: &Attr) -> Duration {
    if is_privileged(attr.mode) { Duration::ZERO } else { LONG }
}

/// Whether times that the kernel hands over fail since their inode was removed: numbers of inodes are not used twice. The kernel
/// would keep an error for the next `syncfs`, though nothing is lost.
fn is_of_removed(errno: Errno) -> bool {
    errno.code() == Errno::ENOENT.code()
}

fn is_directory(attr: &Attr) -> bool {
    attr.mode & kind::MASK == kind::DIR
}

fn answer_empty(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

/// Answers a request for an attribute's value or names: first its size, then, if it fits, the bytes.
fn answer_xattr(reply: ReplyXattr, size: u32, result: Result<Vec<u8>, Errno>) {
    match result {
        Ok(bytes) if size == 0 => reply.size(u32::try_from(bytes.len()).unwrap_or(u32::MAX)),
        Ok(bytes) if bytes.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(bytes) => reply.data(&bytes),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Server {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        negotiate(config, self.manner.write_back)?;
        self.listings = if self.manner.dates_listings() { Listings::Seen } else { Listings::kept(config) };
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.as_bytes();
        match self.volume.read(|fs| look_up(fs, parent.0, name)) {
            Err(errno) if matches!(name, b"." | b"..") && errno.code() == Errno::ENOENT.code() => {
                reply.error(Errno::ESTALE)
            }
            // With inode 0 the kernel remembers that there is no such name.
            Err(errno) if errno.code() == Errno::ENOENT.code() => reply.entry(&LONG, &unknown(0, 0), ONLY),
            result => self.answer_entry(reply, result),
        }
    }

    /// An inode needs no memory here for being known to the kernel, but for a removed directory.
    fn forget(&self, _req: &Request, ino: INodeNo, _nlookup: u64) {
        self.kept_listings.forgotten(ino.0);
        if self.removed.forget(ino.0) {
            // Nobody waits for a sync of that. Where it fails it has been told; the next mount removes the directory.
            let _ = self.volume.read(|fs| fs.release(ino.0));
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        if let Some(errno) = self.writers.failure(ino.0, fh) {
            return reply.error(errno);
        }
        self.answer_attr(reply, self.of_inode(ino.0, self.volume.read(|fs| fs.getattr(ino.0))));
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let times = match Times::asked(atime, mtime, ctime) {
            Ok(times) => times,
            Err(errno) => return reply.error(errno),
        };
        let handed_over = times.are_handed_over() && mode.is_none() && uid.is_none() && gid.is_none() && size.is_none();
        // A request that leaves the time of modification as it is replaces none.
        let ctime_ns = times.ctime_ns.filter(|_| times.mtime.is_some());
        let request = ctime_ns.map(|ctime_ns| TimesRequest { ino: ino.0, number: req.unique().0, ctime_ns });
        let result = self.volume.change(|fs| {
            if request.is_some_and(|request| self.handed_times.is_overtaken(request)) && handed_over {
                return fs.getattr(ino.0);
            }
            // The clock for stamps is dear, and no stamp is left where the kernel says all of them.
            let now_ns = if times.ask_now() || times.ctime_ns.is_none() { stamp_ns() } else { now_ns() };
            let present_ns = fs.stamp_ns(now_ns);
            let changes = SetAttr {
                mode: mode.map(|mode| mode & PERMISSIONS),
                uid,
                gid,
                size,
                atime_ns: times.atime.map(|time| time.ns(present_ns)),
                mtime_ns: times.mtime.map(|time| time.ns(present_ns)),
                ctime_ns: times.ctime_ns,
            };
            make::change(fs, req, ino.0, changes, now_ns)
        });
        match result {
            Err(errno) if handed_over && is_of_removed(errno) => {
                reply.attr(&Duration::ZERO, &unknown(ino.0, kind::FILE));
            }
            result => self.answer_attr(reply, self.of_inode(ino.0, result)),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        let target = self.volume.read(|fs| {
            let target = fs.readlink(ino.0)?;
            self.manner.accessed(fs, ino.0)?;
            Ok(target)
        });
        match self.of_inode(ino.0, target) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, rdev: u32, reply: ReplyEntry) {
        let place = (parent.0, name.as_bytes());
        let result = self.change_names(&[parent], |fs| make::create(fs, req, place, (mode, umask), rdev));
        self.answer_entry(reply, result);
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let (place, mode) = ((parent.0, name.as_bytes()), kind::DIR | mode & PERMISSIONS);
        let result = self.change_names(&[parent], |fs| make::create(fs, req, place, (mode, umask), 0));
        self.answer_entry(reply, result);
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer_empty(reply, self.change_names(&[parent], |fs| fs.unlink(parent.0, name.as_bytes(), stamp_ns())));
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let place = (parent.0, name.as_bytes());
        answer_empty(reply, self.change_names(&[parent], |fs| self.removed.rmdir(fs, place, stamp_ns())));
    }

    fn symlink(&self, req: &Request, parent: INodeNo, link_name: &OsStr, target: &Path, reply: ReplyEntry) {
        let result = self.change_names(&[parent], |fs| {
            let Making { node, .. } = Making::new(fs, req, parent.0, kind::SYMLINK, 0, 0)?;
            let target = target.as_os_str().as_bytes();
            fs.symlink(parent.0, link_name.as_bytes(), target, node.uid, node.gid, stamp_ns())
        });
        self.answer_entry(reply, result);
    }

    fn rename(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let leaves_whiteout = flags.contains(RenameFlags::RENAME_WHITEOUT);
        let mode = match flags.difference(RenameFlags::RENAME_WHITEOUT) {
            RenameFlags::RENAME_NOREPLACE => RenameMode::NoReplace,
            RenameFlags::RENAME_EXCHANGE if !leaves_whiteout => RenameMode::Exchange,
            none if none.is_empty() => RenameMode::Replace,
            _ => return reply.error(Errno::EINVAL),
        };
        let (place, new_place) = ((parent.0, name.as_bytes()), (newparent.0, newname.as_bytes()));
        let result = self.change_names(&[parent, newparent], |fs| {
            let mode = if leaves_whiteout { make::whiteout(fs, req, parent.0, mode)? } else { mode };
            let target = fs.lookup(new_place.0, new_place.1).ok();
            let rename = |fs: &mut Recorded| {
                fs.rename(place.0, place.1, new_place.0, new_place.1, mode, stamp_ns())?;
                Ok(())
            };
            self.removed.replace(fs, target, rename)?;
            if parent == newparent {
                return Ok([None; 2]);
            }
            let moved = [new_place, place].map(|(parent, name)| fs.lookup(parent, name).ok());
            Ok(moved.map(|moved| moved.filter(is_directory).map(|moved| moved.ino)))
        });
        if let Ok(moved) = result {
            // A listing names the parent.
            self.kept_listings.changed(moved.into_iter().flatten());
        }
        answer_empty(reply, result.map(|_| ()));
    }

    fn link(&self, _req: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let result = self.change_names(&[newparent], |fs| fs.link(ino.0, newparent.0, newname.as_bytes(), stamp_ns()));
        self.answer_entry(reply, result);
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.of_inode(ino.0, self.volume.read(|fs| fs.open(ino.0))) {
            Ok(()) => {
                reply.opened(self.writers.opened(ino.0, flags), FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (place, mode) = ((parent.0, name.as_bytes()), kind::FILE | mode & PERMISSIONS);
        let result = self.change_names(&[parent], |fs| {
            let attr = make::create(fs, req, place, (mode, umask), 0)?;
            fs.open(attr.ino)?;
            Ok(attr)
        });
        match result {
            Ok(attr) => {
                let handle = self.writers.opened(attr.ino, OpenFlags(flags));
                let kernel = to_kernel(&attr, self.chunk_bytes);
                reply.created(&attr_ttl(&attr), &kernel, ONLY, handle, FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        data::read(&self.volume, &self.manner, ino.0, offset, size, reply);
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match data::write(&self.volume, &self.writers, ino.0, offset, data, write_flags) {
            Ok(count) => reply.written(count),
            Err(errno) => reply.error(errno),
        }
    }

    /// Nothing to do at a close: the kernel has handed its dirty pages over, and need not ask again.
    fn flush(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _lock_owner: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.writers.released(ino.0, flags);
        answer_empty(reply, self.volume.change(|fs| fs.release(ino.0)));
    }

    fn fsync(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        answer_empty(reply, self.volume.sync(ino.0));
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let Some(flags) = self.listings.open_flags() else { return reply.error(Errno::ENOSYS) };
        match self.of_inode(ino.0, self.volume.read(|fs| fs.getattr(ino.0))) {
            Ok(_) => reply.opened(NO_HANDLE, flags),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let result = self.volume.read(|fs| {
            self.listed(fs, ino.0)?;
            list(fs, ino.0, offset, |_, entry| {
                !reply.add(INodeNo(entry.ino), entry.next, file_type(entry.kind), entry.name())
            })
        });
        match result {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdirplus(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        let result = self.volume.read(|fs| {
            self.listed(fs, ino.0)?;
            list(fs, ino.0, offset, |fs, entry| {
                let (attr, ttl) = match fs.getattr(entry.ino) {
                    Ok(attr) => (to_kernel(&attr, self.chunk_bytes), attr_ttl(&attr)),
                    // Its name is listed all the same; whoever looks closer gets the error.
                    Err(_) => (unknown(entry.ino, entry.kind), Duration::ZERO),
                };
                !reply.add(INodeNo(entry.ino), entry.next, entry.name(), &ttl, &attr, ONLY)
            })
        });
        match result {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn releasedir(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsyncdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        answer_empty(reply, self.volume.sync(ino.0));
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match self.volume.read(|fs| fs.unrecorded().statfs()) {
            Ok(stat) => {
                let chunk = u64::from(stat.chunk_bytes.max(1));
                // Who asks what is available may go on to reserve it.
                let (free, available) = (stat.free_bytes / chunk, stat.reservable_bytes / chunk);
                let names = NAME_MAX_BYTES as u32;
                let size = stat.chunk_bytes;
                reply.statfs(stat.capacity_bytes / chunk, free, available, stat.files + free, free, size, names, size);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn setxattr(
        &self,
        req: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        if let Err(errno) = attribute_names::check(name.as_bytes()) {
            return reply.error(errno);
        }
        let how = (flags & XATTR_CREATE != 0, flags & XATTR_REPLACE != 0);
        let attribute = (name.as_bytes(), value);
        let result = self.volume.change(|fs| make::set_attribute(fs, req, ino.0, attribute, how));
        answer_empty(reply, self.of_inode(ino.0, result));
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let value = self.volume.read(|fs| fs.getxattr(ino.0, name.as_bytes()));
        answer_xattr(reply, size, self.of_inode(ino.0, attribute_names::found(name.as_bytes(), value)));
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.volume.read(|fs| fs.listxattr(ino.0)).map(|names| {
            let mut bytes = Vec::new();
            for name in names {
                bytes.extend_from_slice(&name);
                bytes.push(0);
            }
            bytes
        });
        answer_xattr(reply, size, self.of_inode(ino.0, names));
    }

    fn removexattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let result = self.volume.change(|fs| fs.removexattr(ino.0, name.as_bytes(), stamp_ns()));
        answer_empty(reply, self.of_inode(ino.0, attribute_names::found(name.as_bytes(), result)));
    }

    /// Never asked, since the kernel checks permissions itself; whatever exists may be accessed.
    fn access(&self, _req: &Request, ino: INodeNo, _mask: AccessFlags, reply: ReplyEmpty) {
        answer_empty(reply, self.of_inode(ino.0, self.volume.read(|fs| fs.getattr(ino.0))).map(|_| ()));
    }

    fn fallocate(
        &self,
        req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if !data::can_allocate(mode) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let range = (offset, length);
        answer_empty(reply, self.volume.change(|fs| data::allocate(fs, req, ino.0, range, mode)));
    }

    fn lseek(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        data::seek(&self.volume, &self.writers, ino.0, (offset, whence), reply);
    }

    fn copy_file_range(
        &self,
        req: &Request,
        ino_in: INodeNo,
        _fh_in: FileHandle,
        offset_in: u64,
        ino_out: INodeNo,
        _fh_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let (from, to) = ((ino_in.0, offset_in), (ino_out.0, offset_out));
        match self.volume.change(|fs| data::copy(fs, req, from, to, len)) {
            Ok(count) => reply.written(count),
            Err(errno) => reply.error(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `syncfs` has to fail for the times of a file that is there.
    #[test]
    fn times_that_a_living_inode_lost_stay_an_error() {
        assert!(is_of_removed(Errno::ENOENT));
        for errno in [Errno::EIO, Errno::ENOSPC, Errno::EROFS, Errno::EACCES] {
            assert!(!is_of_removed(errno), "{errno:?}");
        }
    }
}
