//! File data: reading, writing, and what of a file takes space.
//!
//! With its writeback cache the kernel knows of bytes that the server has not seen. Invariants: where data is looked for,
//! the kernel has handed them over before; what is read was checked before it is answered.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use flexfs_core::{Error, Ino};
use fuser::{Errno, FileHandle, OpenAccMode, OpenFlags, ReplyData, ReplyLseek, Request, WriteFlags};

use super::MountManner;
use super::caller::is_root;
use super::connection::{NO_HANDLE, WRITER};
use super::kernel_cache::KernelCache;
use super::make::drop_privileges;
use super::recorded::Recorded;
use super::volume::Volume;
use crate::clock::stamp_ns;

/// `fallocate(2)` flags.
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const ZERO_RANGE: i32 = 16;

/// `lseek(2)` ways.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// The most that is copied for one request, so that nobody else waits for long.
const COPY_BYTES: u64 = 8 << 20;

thread_local! {
    /// Where a server thread reads file data into before it hands them to the kernel.
    static READ_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The files that are open for writing: of these the kernel may hold back bytes.
pub struct Writers {
    open: Mutex<HashMap<Ino, Writer>>,
    kernel_cache: Arc<KernelCache>,
}

/// A file that is open for writing.
#[derive(Default)]
struct Writer {
    handles: u32,
    /// Why bytes that the kernel had held back could not be written, until somebody is told.
    failed: Option<Errno>,
}

impl Writers {
    pub fn new(kernel_cache: Arc<KernelCache>) -> Self {
        Self { open: Mutex::default(), kernel_cache }
    }

    /// Counts a handle in; what the kernel is to call it.
    pub fn opened(&self, ino: Ino, flags: OpenFlags) -> FileHandle {
        if flags.acc_mode() == OpenAccMode::O_RDONLY {
            return NO_HANDLE;
        }
        self.files().entry(ino).or_default().handles += 1;
        WRITER
    }

    /// Counts a handle out.
    pub fn released(&self, ino: Ino, flags: OpenFlags) {
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            let mut files = self.files();
            if let Some(writer) = files.get_mut(&ino) {
                writer.handles -= 1;
                if writer.handles == 0 {
                    files.remove(&ino);
                }
            }
        }
    }

    fn has(&self, ino: Ino) -> bool {
        self.files().contains_key(&ino)
    }

    /// Bytes that the kernel had held back could not be written. It tells so at the next `fsync` or `close`, and goes on
    /// taking bytes until then: it is made to ask for the file's attributes before it takes any more.
    fn failed(&self, ino: Ino, errno: Errno) {
        match self.files().get_mut(&ino) {
            Some(writer) => writer.failed = Some(errno),
            None => return,
        }
        self.kernel_cache.drop_attributes(ino);
    }

    /// What the answer to a question for attributes is, where it is asked for the sake of a handle and bytes could not be
    /// written. Only whoever asks first is told.
    pub fn failure(&self, ino: Ino, handle: Option<FileHandle>) -> Option<Errno> {
        handle.filter(|&handle| handle == WRITER).and_then(|_| self.files().get_mut(&ino)?.failed.take())
    }

    fn files(&self) -> std::sync::MutexGuard<'_, HashMap<Ino, Writer>> {
        // An entry is changed in one step: whoever panicked left it whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads and answers. Most of the check is made while others may use the volume.
pub fn read(volume: &Volume, manner: &MountManner, ino: Ino, offset: u64, size: u32, reply: ReplyData) {
    READ_BUFFER.with_borrow_mut(|buffer| {
        if buffer.len() < size as usize {
            buffer.resize(size as usize, 0);
        }
        let (room, _) = buffer.split_at_mut(size as usize);
        let read = volume.read(|fs| {
            manner.accessed(fs, ino)?;
            fs.read_unchecked(ino, offset, room)
        });
        let count = match read {
            Ok((count, unchecked)) if unchecked.check(room) => Ok(count),
            // The kernel takes a short answer for a hole, so an error anywhere is one of the whole.
            Ok(_) => volume.read(|fs| fs.read(ino, offset, room)),
            Err(errno) => Err(errno),
        };
        match count {
            Ok(count) => reply.data(room.get(..count).unwrap_or(room)),
            Err(errno) => reply.error(errno),
        }
    });
}

/// Writes; how many bytes.
pub fn write(
    volume: &Volume,
    writers: &Writers,
    ino: Ino,
    offset: u64,
    data: &[u8],
    flags: WriteFlags,
) -> Result<u32, Errno> {
    let written = volume.change(|fs| {
        let now_ns = volume.contents_ns();
        if flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            drop_privileges(fs, ino)?;
        }
        let mut done = fs.write(ino, offset, data, now_ns)?;
        // From its page cache the kernel does not look at a short count: only an error reaches the caller.
        while done < data.len() && flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
            done += fs.write(ino, offset + done as u64, data.get(done..).unwrap_or_default(), now_ns)?;
        }
        Ok(done)
    });
    if let Err(errno) = &written
        && flags.contains(WriteFlags::FUSE_WRITE_CACHE)
    {
        writers.failed(ino, *errno);
    }
    Ok(u32::try_from(written?).unwrap_or(u32::MAX))
}

/// `fallocate(2)`: reserves space, makes holes or zeros.
pub fn allocate(fs: &mut Recorded, req: &Request, ino: Ino, (offset, len): (u64, u64), mode: i32) -> Result<(), Error> {
    if !is_root(req) {
        drop_privileges(fs, ino)?;
    }
    let keep_size = mode & KEEP_SIZE != 0;
    match mode & !KEEP_SIZE {
        PUNCH_HOLE => fs.punch(ino, offset, len, stamp_ns()),
        ZERO_RANGE => fs.zero_range(ino, offset, len, keep_size, stamp_ns()),
        _ => fs.allocate(ino, offset, len, keep_size, stamp_ns()),
    }
}

/// Whether `allocate` knows what `mode` asks for.
pub fn can_allocate(mode: i32) -> bool {
    matches!(mode, 0 | KEEP_SIZE | ZERO_RANGE) || mode == PUNCH_HOLE | KEEP_SIZE || mode == ZERO_RANGE | KEEP_SIZE
}

/// Finds the next data or hole, and answers: from another thread where the kernel must hand over bytes first.
pub fn seek(volume: &Arc<Volume>, writers: &Writers, ino: Ino, at: (i64, i32), reply: ReplyLseek) {
    let (offset, whence) = at;
    let (Ok(offset), SEEK_DATA | SEEK_HOLE) = (u64::try_from(offset), whence) else {
        return reply.error(if offset < 0 { Errno::ENXIO } else { Errno::EINVAL });
    };
    let find = move |volume: &Volume| volume.read(|fs| fs.seek(ino, offset, whence == SEEK_HOLE));
    let answer = |reply: ReplyLseek, found: Result<u64, Errno>| match found {
        Ok(offset) => reply.offset(i64::try_from(offset).unwrap_or(i64::MAX)),
        Err(errno) => reply.error(errno),
    };
    if !writers.has(ino) {
        return answer(reply, find(volume));
    }
    let (volume, kernel_cache) = (Arc::clone(volume), Arc::clone(&writers.kernel_cache));
    let asked = Arc::new(Mutex::new(Some(reply)));
    let mine = Arc::clone(&asked);
    let take = |asked: &Mutex<Option<ReplyLseek>>| asked.lock().unwrap_or_else(PoisonError::into_inner).take();
    let spawned = std::thread::Builder::new().name("seek".into()).spawn(move || {
        if let Some(reply) = take(&mine) {
            answer(reply, kernel_cache.drop_pages(ino).and_then(|()| find(&volume)));
        }
    });
    if spawned.is_err()
        && let Some(reply) = take(&asked)
    {
        reply.error(Errno::EAGAIN);
    }
}

/// Copies within the volume; how many bytes, perhaps fewer than asked for.
pub fn copy(fs: &mut Recorded, req: &Request, from: (Ino, u64), to: (Ino, u64), len: u64) -> Result<u32, Error> {
    if !is_root(req) {
        drop_privileges(fs, to.0)?;
    }
    let count = fs.copy_range(from, to, len.min(COPY_BYTES), stamp_ns())?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}
