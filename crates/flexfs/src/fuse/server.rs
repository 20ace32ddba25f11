//! The kernel's requests, each answered by one operation of the core.
//!
//! A node of the kernel is an inode number of the core, and an open file has no state of its own beyond the
//! core's count of open handles. The kernel checks permissions, applies the umask, keeps locks and caches names,
//! attributes and pages for as long as it likes: nobody else changes the volume under it. What it leaves to a
//! file system, and is done here: the group of what is made in a set-group-id directory, and the end of
//! set-user-id and set-group-id when a file is written to or changes hands.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use emulator::Chip;
use flexfs_core::{Attr, Error, Fs, Ino, NAME_MAX_BYTES, NewNode, RenameMode, SetAttr, kind};
use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, INodeNo, KernelConfig, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use rustix::mount::MountFlags;

use super::Manner;
use super::attr::{
    PERMISSIONS, SET_GID, file_type, from_request, is_privileged, time_to_set, to_kernel, unknown, without_privileges,
};
use super::connection::{LONG, NO_HANDLE, ONLY, negotiate};
use super::directory::list;
use super::volume::{Volume, now_ns};

/// `fallocate(2)` flags.
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;

/// `setxattr(2)` flags.
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

thread_local! {
    /// Where a server thread reads file data into before it hands them to the kernel.
    static READ_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The server of one mounted volume.
pub struct Server {
    volume: Arc<Volume>,
    chunk_bytes: u32,
    manner: Manner,
}

impl Server {
    pub fn new(volume: Arc<Volume>, chunk_bytes: u32, manner: Manner) -> Self {
        Self { volume, chunk_bytes, manner }
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

    /// A directory is being read.
    fn listed(&self, fs: &mut Fs<Chip>, dir: Ino) -> Result<(), Error> {
        if self.manner.flags.contains(MountFlags::NODIRATIME) { Ok(()) } else { fs.accessed(dir, now_ns()) }
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

/// Takes the privileges from a file whose contents or owner somebody unprivileged changes.
fn drop_privileges(fs: &mut Fs<Chip>, ino: Ino) -> Result<(), Error> {
    if let Some(mode) = without_privileges(fs.getattr(ino)?.mode) {
        fs.setattr(ino, SetAttr { mode: Some(mode), ..SetAttr::default() }, now_ns())?;
    }
    Ok(())
}

/// Reads up to the end of the file or of `room`. The kernel takes a short answer for a hole and shows zeros, so an
/// error behind the first bytes must not end as one.
fn read_fully(fs: &mut Fs<Chip>, ino: Ino, offset: u64, room: &mut [u8]) -> Result<usize, Error> {
    let mut done = 0;
    while let Some(rest) = room.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match fs.read(ino, offset + done as u64, rest)? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

/// Whether the caller keeps a file's privileges when it changes its contents.
fn is_root(req: &Request) -> bool {
    req.uid() == 0
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

/// Who and what a new inode in `parent` is: made by the caller, of the group of a set-group-id directory.
fn new_node(fs: &mut Fs<Chip>, req: &Request, parent: Ino, mode: u32, rdev: u32) -> Result<NewNode, Error> {
    let dir = fs.getattr(parent)?;
    let mut node = NewNode { mode, uid: req.uid(), gid: req.gid(), rdev };
    if dir.mode & SET_GID != 0 {
        node.gid = dir.gid;
        if mode & kind::MASK == kind::DIR {
            node.mode |= SET_GID;
        }
    }
    Ok(node)
}

impl Filesystem for Server {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        negotiate(config, self.manner.write_back);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.volume.read(|fs| fs.lookup(parent.0, name.as_bytes())) {
            // With inode 0 the kernel remembers that there is no such name.
            Err(errno) if errno.code() == Errno::ENOENT.code() => reply.entry(&LONG, &unknown(0, 0), ONLY),
            result => self.answer_entry(reply, result),
        }
    }

    /// Nothing to do: an inode needs no memory here for being known to the kernel.
    fn forget(&self, _req: &Request, _ino: INodeNo, _nlookup: u64) {}

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        self.answer_attr(reply, self.volume.read(|fs| fs.getattr(ino.0)));
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
        let changes = SetAttr {
            mode: mode.map(|mode| mode & PERMISSIONS),
            uid,
            gid,
            size,
            atime_ns: atime.map(time_to_set),
            mtime_ns: mtime.map(time_to_set),
            ctime_ns: ctime.map(from_request),
        };
        let owner_changes = uid.is_some() || gid.is_some();
        let drops = mode.is_none() && (owner_changes || size.is_some() && !is_root(req));
        let result = self.volume.change(|fs| {
            let mut changes = changes;
            if drops {
                changes.mode = without_privileges(fs.getattr(ino.0)?.mode);
            }
            fs.setattr(ino.0, changes, now_ns())
        });
        self.answer_attr(reply, result);
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.volume.read(|fs| fs.readlink(ino.0).and_then(|target| fs.accessed(ino.0, now_ns()).map(|()| target)))
        {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let result = self.volume.change(|fs| {
            let node = new_node(fs, req, parent.0, mode, rdev)?;
            fs.create(parent.0, name.as_bytes(), node, now_ns())
        });
        self.answer_entry(reply, result);
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        let result = self.volume.change(|fs| {
            let node = new_node(fs, req, parent.0, kind::DIR | mode & PERMISSIONS, 0)?;
            fs.create(parent.0, name.as_bytes(), node, now_ns())
        });
        self.answer_entry(reply, result);
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer_empty(reply, self.volume.change(|fs| fs.unlink(parent.0, name.as_bytes(), now_ns())));
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer_empty(reply, self.volume.change(|fs| fs.rmdir(parent.0, name.as_bytes(), now_ns())));
    }

    fn symlink(&self, req: &Request, parent: INodeNo, link_name: &OsStr, target: &Path, reply: ReplyEntry) {
        let result = self.volume.change(|fs| {
            let node = new_node(fs, req, parent.0, kind::SYMLINK, 0)?;
            let target = target.as_os_str().as_bytes();
            fs.symlink(parent.0, link_name.as_bytes(), target, node.uid, node.gid, now_ns())
        });
        self.answer_entry(reply, result);
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mode = match flags {
            RenameFlags::RENAME_NOREPLACE => RenameMode::NoReplace,
            RenameFlags::RENAME_EXCHANGE => RenameMode::Exchange,
            none if none.is_empty() => RenameMode::Replace,
            _ => return reply.error(Errno::EINVAL),
        };
        let result = self
            .volume
            .change(|fs| fs.rename(parent.0, name.as_bytes(), newparent.0, newname.as_bytes(), mode, now_ns()));
        answer_empty(reply, result);
    }

    fn link(&self, _req: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let result = self.volume.change(|fs| fs.link(ino.0, newparent.0, newname.as_bytes(), now_ns()));
        self.answer_entry(reply, result);
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.volume.read(|fs| fs.open(ino.0)) {
            Ok(()) => reply.opened(NO_HANDLE, FopenFlags::FOPEN_KEEP_CACHE),
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let result = self.volume.change(|fs| {
            let node = new_node(fs, req, parent.0, kind::FILE | mode & PERMISSIONS, 0)?;
            let attr = fs.create(parent.0, name.as_bytes(), node, now_ns())?;
            fs.open(attr.ino)?;
            Ok(attr)
        });
        match result {
            Ok(attr) => {
                let kernel = to_kernel(&attr, self.chunk_bytes);
                reply.created(&attr_ttl(&attr), &kernel, ONLY, NO_HANDLE, FopenFlags::FOPEN_KEEP_CACHE);
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
        READ_BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size as usize {
                buffer.resize(size as usize, 0);
            }
            let (room, _) = buffer.split_at_mut(size as usize);
            let read = self.volume.read(|fs| {
                fs.accessed(ino.0, now_ns())?;
                read_fully(fs, ino.0, offset, room)
            });
            match read {
                Ok(count) => reply.data(room.get(..count).unwrap_or(room)),
                Err(errno) => reply.error(errno),
            }
        });
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
        let result = self.volume.change(|fs| {
            if write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
                drop_privileges(fs, ino.0)?;
            }
            fs.write(ino.0, offset, data, now_ns())
        });
        match result {
            // From its page cache the kernel does not look at a short count: only an error reaches the caller.
            Ok(count) if count < data.len() && write_flags.contains(WriteFlags::FUSE_WRITE_CACHE) => {
                reply.error(Errno::ENOSPC);
            }
            Ok(count) => reply.written(u32::try_from(count).unwrap_or(u32::MAX)),
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
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        answer_empty(reply, self.volume.change(|fs| fs.release(ino.0, now_ns())));
    }

    fn fsync(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        answer_empty(reply, self.volume.sync());
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.volume.read(|fs| fs.open(ino.0)) {
            Ok(()) => reply.opened(NO_HANDLE, FopenFlags::empty()),
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

    fn releasedir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        answer_empty(reply, self.volume.change(|fs| fs.release(ino.0, now_ns())));
    }

    fn fsyncdir(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        answer_empty(reply, self.volume.sync());
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match self.volume.read(Fs::statfs) {
            Ok(stat) => {
                let chunk = u64::from(stat.chunk_bytes.max(1));
                let free = stat.free_bytes / chunk;
                let names = NAME_MAX_BYTES as u32;
                let size = stat.chunk_bytes;
                reply.statfs(stat.capacity_bytes / chunk, free, free, stat.files + free, free, size, names, size);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn setxattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let (create, replace) = (flags & XATTR_CREATE != 0, flags & XATTR_REPLACE != 0);
        let result = self.volume.change(|fs| fs.setxattr(ino.0, name.as_bytes(), value, create, replace, now_ns()));
        answer_empty(reply, result);
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        answer_xattr(reply, size, self.volume.read(|fs| fs.getxattr(ino.0, name.as_bytes())));
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
        answer_xattr(reply, size, names);
    }

    fn removexattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer_empty(reply, self.volume.change(|fs| fs.removexattr(ino.0, name.as_bytes(), now_ns())));
    }

    /// Never asked, since the kernel checks permissions itself; whatever exists may be accessed.
    fn access(&self, _req: &Request, ino: INodeNo, _mask: AccessFlags, reply: ReplyEmpty) {
        answer_empty(reply, self.volume.read(|fs| fs.getattr(ino.0)).map(|_| ()));
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
        if mode != PUNCH_HOLE | KEEP_SIZE {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let result = self.volume.change(|fs| {
            if !is_root(req) {
                drop_privileges(fs, ino.0)?;
            }
            fs.punch(ino.0, offset, length, now_ns())
        });
        answer_empty(reply, result);
    }
}
