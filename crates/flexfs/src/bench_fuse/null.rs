//! The null file system: names in one table, bytes in memory, nothing else; what any server over FUSE costs at least.
//!
//! Invariant: it agrees on the same with the kernel as FlexFS does, and answers the same calls with the same words.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flexfs_core::{Attr, ROOT_INO, kind};
use fuser::{
    Errno, FileHandle, Filesystem, FopenFlags, INodeNo, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

use crate::clock::now_ns;
use crate::fuse::attr::{file_type, to_kernel, unknown};
use crate::fuse::connection::{LONG, NO_HANDLE, ONLY, negotiate};

/// What it says transfers go best in.
const CHUNK_BYTES: u32 = 4096;

struct Inode {
    attr: Attr,
    bytes: Vec<u8>,
}

struct Tree {
    names: HashMap<(u64, OsString), u64>,
    /// The names in a directory by the inodes they lead to, of which each has one.
    listings: HashMap<u64, BTreeMap<u64, OsString>>,
    inodes: HashMap<u64, Inode>,
    next_ino: u64,
}

/// The file system.
pub struct Null {
    tree: Mutex<Tree>,
    read_bytes: Arc<AtomicU64>,
}

impl Default for Null {
    fn default() -> Self {
        let mut tree =
            Tree { names: HashMap::new(), listings: HashMap::new(), inodes: HashMap::new(), next_ino: ROOT_INO };
        tree.make(kind::DIR | 0o755);
        Self { tree: Mutex::new(tree), read_bytes: Arc::default() }
    }
}

impl Tree {
    fn make(&mut self, mode: u32) -> Attr {
        let (ino, now) = (self.next_ino, now_ns());
        self.next_ino += 1;
        let attr = Attr {
            ino,
            mode,
            nlink: 1,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            size: 0,
            blocks: 0,
            atime_ns: now,
            mtime_ns: now,
            ctime_ns: now,
            btime_ns: now,
        };
        self.inodes.insert(ino, Inode { attr, bytes: Vec::new() });
        attr
    }

    fn make_named(&mut self, parent: INodeNo, name: &OsStr, mode: u32) -> Attr {
        let attr = self.make(mode);
        self.names.insert((parent.0, name.to_owned()), attr.ino);
        self.listings.entry(parent.0).or_default().insert(attr.ino, name.to_owned());
        attr
    }

    /// What is listed of a directory after that inode.
    fn listed_after(&self, directory: INodeNo, ino: u64) -> impl Iterator<Item = (&OsString, Attr)> {
        let names = self.listings.get(&directory.0).into_iter().flat_map(move |names| names.range(ino + 1..));
        names.filter_map(|(ino, name)| Some((name, self.inodes.get(ino)?.attr)))
    }

    fn find(&self, parent: INodeNo, name: &OsStr) -> Option<Attr> {
        let ino = self.names.get(&(parent.0, name.to_owned()))?;
        self.inodes.get(ino).map(|inode| inode.attr)
    }
}

impl Null {
    /// Bytes of file data that it was asked for and gave.
    pub fn read_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read_bytes)
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer_attr(&self, ino: INodeNo, reply: ReplyAttr) {
        match self.tree().inodes.get(&ino.0) {
            Some(inode) => reply.attr(&LONG, &to_kernel(&inode.attr, CHUNK_BYTES)),
            None => reply.error(Errno::ENOENT),
        }
    }
}

impl Filesystem for Null {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        negotiate(config, true)
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let attr = self.tree().find(parent, name).map_or(unknown(0, 0), |attr| to_kernel(&attr, CHUNK_BYTES));
        reply.entry(&LONG, &attr, ONLY);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        self.answer_attr(ino, reply);
    }

    /// Times and sizes that the kernel hands back are taken for granted.
    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<std::time::SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<std::time::SystemTime>,
        _chgtime: Option<std::time::SystemTime>,
        _bkuptime: Option<std::time::SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        self.answer_attr(ino, reply);
    }

    fn mkdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        let attr = self.tree().make_named(parent, name, kind::DIR | mode);
        reply.entry(&LONG, &to_kernel(&attr, CHUNK_BYTES), ONLY);
    }

    fn create(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let attr = self.tree().make_named(parent, name, kind::FILE | mode);
        reply.created(&LONG, &to_kernel(&attr, CHUNK_BYTES), ONLY, NO_HANDLE, FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let mut tree = self.tree();
        match tree.names.remove(&(parent.0, name.to_owned())) {
            Some(ino) => {
                tree.inodes.remove(&ino);
                if let Some(names) = tree.listings.get_mut(&parent.0) {
                    names.remove(&ino);
                }
                reply.ok();
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Without `.` and `..`, which nobody here asks for.
    fn readdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        for (name, attr) in self.tree().listed_after(ino, offset) {
            if reply.add(INodeNo(attr.ino), attr.ino, file_type(attr.mode), name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        for (name, attr) in self.tree().listed_after(ino, offset) {
            if reply.add(INodeNo(attr.ino), attr.ino, name, &LONG, &to_kernel(&attr, CHUNK_BYTES), ONLY) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(NO_HANDLE, FopenFlags::FOPEN_KEEP_CACHE);
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
        let tree = self.tree();
        let Some(inode) = tree.inodes.get(&ino.0) else { return reply.error(Errno::ENOENT) };
        let from = inode.bytes.get(offset as usize..).unwrap_or_default();
        let piece = from.get(..size as usize).unwrap_or(from);
        self.read_bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
        reply.data(piece);
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut tree = self.tree();
        let Some(inode) = tree.inodes.get_mut(&ino.0) else { return reply.error(Errno::ENOENT) };
        let (start, end) = (offset as usize, offset as usize + data.len());
        if inode.bytes.len() < end {
            inode.bytes.resize(end, 0);
        }
        if let Some(place) = inode.bytes.get_mut(start..end) {
            place.copy_from_slice(data);
        }
        inode.attr.size = inode.bytes.len() as u64;
        reply.written(data.len() as u32);
    }

    /// The kernel keeps listings, and opens a directory without asking.
    fn opendir(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    fn flush(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _lock_owner: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn fsync(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }
}
