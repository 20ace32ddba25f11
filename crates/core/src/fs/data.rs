//! File data: reading, writing, truncating; always by whole chunks underneath.

use nand::Nand;

use super::Fs;
use crate::error::{Error, Result};
use crate::format::inode::{Extent, Ino, Inode};
use crate::format::tag::CHUNKS_MAX;
use crate::store::chunk_writes::{ChangeTime, WholeChunk};
use crate::store::chunks::Unchecked;
use crate::store::room_ahead::RoomAhead;

/// The bytes of a write that lie in one chunk.
pub(super) struct WritePart<'a> {
    pub chunk: u64,
    /// Where in the chunk they begin.
    pub skip: usize,
    pub data: &'a [u8],
    /// No chunk of the same write follows.
    pub is_last: bool,
}

impl<N: Nand> Fs<N> {
    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    pub fn read(&mut self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let size = self.records().chunks(ino).inode()?.size;
        self.records().chunks(ino).read(size, offset, buf, None)
    }

    /// As [`Fs::read`], but leaves it to the caller to check most of the bytes, who may do so while others use the
    /// volume. Where [`Unchecked::check`] fails, `read` says what is wrong.
    pub fn read_unchecked(&mut self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<(usize, Unchecked)> {
        let size = self.records().chunks(ino).inode()?.size;
        let mut unchecked = Unchecked::new(self.records().chunk_bytes());
        let count = self.records().chunks(ino).read(size, offset, buf, Some(&mut unchecked))?;
        Ok((count, unchecked))
    }

    /// Writes; a short count only where it failed after some bytes: whoever writes the rest is told why.
    pub fn write(&mut self, ino: Ino, offset: u64, data: &[u8], now_ns: i64) -> Result<usize> {
        self.store.writable()?;
        let mut inode = self.records().chunks(ino).inode()?;
        if offset.saturating_add(data.len() as u64) > self.records().size_max() {
            return Err(Error::FileTooLarge);
        }
        let chunk_bytes = self.records().chunk_bytes();
        self.records().chunks(ino).begin_request(offset, data.len() as u64);
        let (mut done, mut room) = (0, RoomAhead::default());
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            let at = offset + done as u64;
            let skip = (at % chunk_bytes) as usize;
            let count = rest.len().min(chunk_bytes as usize - skip);
            let part = rest.get(..count).unwrap_or(rest);
            let part = WritePart { chunk: at / chunk_bytes, skip, data: part, is_last: count == rest.len() };
            let more_chunks = ((rest.len() - count) as u64).div_ceil(chunk_bytes);
            match self.write_part((ino, &mut inode), &part, (more_chunks, &mut room), now_ns) {
                Ok(()) => done += count,
                Err(_) if done > 0 && self.store.writable().is_ok() => break,
                Err(error) => return Err(error),
            }
        }
        self.store.end()?;
        Ok(done)
    }

    /// One chunk of a write: an operation of its own, which the end of the write ends if it is the last.
    fn write_part(
        &mut self,
        (ino, inode): (Ino, &mut Inode),
        part: &WritePart<'_>,
        (more_chunks, room): (u64, &mut RoomAhead),
        now_ns: i64,
    ) -> Result<()> {
        room.begin_chunk(&mut self.store, (ino, part.chunk), part.data.len() as u64, more_chunks)?;
        self.put_part((ino, inode), part, now_ns)?;
        if part.is_last { Ok(()) } else { self.records().end_operation() }
    }

    /// Lays bytes into one chunk, as a part of an operation. Of `inode`, which the caller looked up, size and times are kept up
    /// to date.
    pub(super) fn put_part(
        &mut self,
        (ino, inode): (Ino, &mut Inode),
        part: &WritePart<'_>,
        now_ns: i64,
    ) -> Result<()> {
        let &WritePart { chunk, skip, data, is_last } = part;
        let chunk_bytes = self.records().chunk_bytes();
        let past_end = chunk * chunk_bytes >= inode.size.next_multiple_of(chunk_bytes);
        let fresh = past_end && !inode.reserves_past_end;
        // The caller sets the times of the change after its last chunk.
        let awaits_time = is_last && self.leaves_times(inode);
        self.touch(inode, now_ns);
        let mut chunks = None;
        if data.len() as u64 == chunk_bytes {
            let time = ChangeTime::of(inode);
            let replaced = self.records().chunks(ino).write(&WholeChunk { chunk, data, time, fresh, awaits_time })?;
            chunks = replaced.map(|replaced| (Extent::of(chunk), replaced));
        } else {
            self.records().chunks(ino).overlay(chunk, skip, data, fresh)?;
        }
        inode.size = inode.size.max(chunk * chunk_bytes + (skip + data.len()) as u64);
        let Inode { size, mtime_ns, ctime_ns, .. } = *inode;
        self.records().change_inode(ino, |inode| {
            if let Some((added, removed)) = chunks {
                inode.chunks = inode.chunks.with(added).without(removed);
            }
            (inode.size, inode.mtime_ns, inode.ctime_ns) = (inode.size.max(size), mtime_ns, ctime_ns);
        })
    }

    /// Makes a file's data fit a new size: nothing of what is cut off can come back. Where the chunk that stays in part
    /// cannot be read, all of it stays.
    pub(super) fn resize(&mut self, ino: Ino, size: u64) -> Result<()> {
        let inode = self.records().inode(ino)?;
        if size > inode.size || (size == inode.size && !inode.reserves_past_end) {
            return Ok(());
        }
        let (last, tail) = (size / self.records().chunk_bytes(), (size % self.records().chunk_bytes()) as usize);
        if tail > 0 {
            self.records().chunks(ino).hold_stored(last)?;
        }
        self.records().chunks(ino).cut(last + u64::from(tail > 0), CHUNKS_MAX)?;
        if tail > 0 {
            self.records().chunks(ino).truncate(last, tail);
        }
        let mut inode = self.records().inode(ino)?;
        (inode.size, inode.reserves_past_end) = (size, false);
        self.records().derive_inode(ino, inode);
        Ok(())
    }
}
