//! File data: reading, writing, truncating; always by whole chunks underneath.

use alloc::vec::Vec;

use nand::Nand;

use super::Fs;
use super::types::*;
use crate::error::{Error, Result};
use crate::flash::read::Check;
use crate::format::inode::{Extent, Inode};
use crate::format::key::{KeyKind, key};
use crate::format::node::Body;
use crate::format::page::Entry;
use crate::format::place::Place;
use crate::format::tag::CHUNKS_MAX;

/// Bytes that were read but not checked: nothing may be done with them before.
#[must_use]
pub struct Unchecked {
    /// Where in the buffer a chunk begins, and what it must prove to be.
    pieces: Vec<(usize, Check)>,
    chunk_bytes: usize,
}

impl Unchecked {
    /// Checks what stands in the buffer that was read into. `false`: something is wrong with it.
    pub fn check(&self, buf: &mut [u8]) -> bool {
        self.pieces.iter().all(|(at, check)| {
            let piece = buf.get_mut(*at..*at + self.chunk_bytes);
            piece.is_some_and(|piece| check.make(piece))
        })
    }
}

impl<N: Nand> Fs<N> {
    pub(super) fn file(&mut self, ino: Ino) -> Result<Inode> {
        let inode = self.inode(ino)?;
        match inode.mode & kind::MASK {
            kind::DIR => Err(Error::IsDirectory),
            kind::FILE => Ok(inode),
            _ => Err(Error::Invalid("only files hold data")),
        }
    }

    /// The largest size of a file, bytes.
    pub(crate) fn size_max(&self) -> u64 {
        CHUNKS_MAX.saturating_mul(self.chunk_bytes()).min(i64::MAX as u64)
    }

    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    pub fn read(&mut self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let size = self.file(ino)?.size;
        self.read_bytes(ino, size, offset, buf, None)
    }

    /// As [`Fs::read`], but leaves it to the caller to check most of the bytes, who may do so while others use the
    /// volume. Where [`Unchecked::check`] fails, `read` says what is wrong.
    pub fn read_unchecked(&mut self, ino: Ino, offset: u64, buf: &mut [u8]) -> Result<(usize, Unchecked)> {
        let size = self.file(ino)?.size;
        let mut unchecked = Unchecked { pieces: Vec::new(), chunk_bytes: self.flash.shape.slot_bytes };
        let count = self.read_bytes(ino, size, offset, buf, Some(&mut unchecked))?;
        Ok((count, unchecked))
    }

    /// Reads from the chunks of an inode of `size` bytes; what can be checked later goes to `unchecked`.
    pub(crate) fn read_bytes(
        &mut self,
        ino: Ino,
        size: u64,
        offset: u64,
        buf: &mut [u8],
        mut unchecked: Option<&mut Unchecked>,
    ) -> Result<usize> {
        let wanted = size.saturating_sub(offset).min(buf.len() as u64) as usize;
        let chunk_bytes = self.chunk_bytes();
        let past = offset.saturating_add(wanted as u64).div_ceil(chunk_bytes);
        // Where the next chunks stand, as far as is known: one look at the index for each run of them.
        let mut known: Option<Entry> = None;
        let mut done = 0;
        while done < wanted {
            let at = offset + done as u64;
            let skip = (at % chunk_bytes) as usize;
            let count = (wanted - done).min(chunk_bytes as usize - skip);
            let Some(to) = buf.get_mut(done..done + count) else { break };
            let chunk = at / chunk_bytes;
            let check = match self.log.dirty(ino, chunk) {
                Some(bytes) => {
                    copy_part(bytes, skip, to);
                    None
                }
                None => {
                    let place = self.next_place(ino, chunk, past, &mut known)?;
                    self.read_chunk((ino, chunk), place, skip, to, unchecked.is_some())?
                }
            };
            if let (Some(unchecked), Some(check)) = (unchecked.as_mut(), check) {
                unchecked.pieces.push((done, check));
            }
            done += count;
        }
        Ok(done)
    }

    /// Where a chunk stands. `known` is the entry found last; one is looked for among the chunks before `past` only where
    /// that does not tell.
    fn next_place(&mut self, ino: Ino, chunk: u64, past: u64, known: &mut Option<Entry>) -> Result<Option<Place>> {
        let (data_key, past) = (key(ino, KeyKind::Data, chunk), key(ino, KeyKind::Data, past));
        if known.is_none_or(|entry| entry.end() <= data_key) {
            let found = self.index.next(&mut self.flash, data_key, past)?;
            // Nothing up to there.
            *known = found.or(Some(Entry { key: past, place: Place::Mark }));
        }
        let here = known.filter(|entry| entry.key <= data_key);
        Ok(here.map(|entry| entry.place.part((data_key - entry.key) as u64, 1)))
    }

    /// Reads a part of a chunk that stands at `place`, from `skip` bytes into it; what is not there reads as zeros. With
    /// `later` a check may be left to be made.
    fn read_chunk(
        &mut self,
        (ino, chunk): (Ino, u64),
        place: Option<Place>,
        skip: usize,
        to: &mut [u8],
        later: bool,
    ) -> Result<Option<Check>> {
        match place {
            None | Some(Place::Reserved { .. }) => to.fill(0),
            Some(Place::Run { slot, .. }) if to.len() == self.flash.shape.slot_bytes && later => {
                return self.flash.read_unchecked(slot, ino, chunk, to).map(Some);
            }
            Some(Place::Run { slot, .. }) if to.len() == self.flash.shape.slot_bytes => {
                let len = self.flash.read_data(slot, ino, chunk, to)?;
                to.iter_mut().skip(len as usize).for_each(|byte| *byte = 0);
            }
            Some(place) => copy_part(&self.load_chunk(ino, chunk, Some(place))?, skip, to),
        }
        Ok(None)
    }

    /// A chunk's bytes, as many as are stored.
    fn load_chunk(&mut self, ino: Ino, chunk: u64, place: Option<Place>) -> Result<Vec<u8>> {
        match place {
            None | Some(Place::Reserved { .. }) => Ok(Vec::new()),
            Some(Place::Run { slot, .. }) => {
                let mut bytes = alloc::vec![0; self.flash.shape.slot_bytes];
                let len = self.flash.read_data(slot, ino, chunk, &mut bytes)?;
                bytes.truncate(len as usize);
                Ok(bytes)
            }
            Some(place) => self.with_node(place, |found, node| match node.body {
                Body::Data { chunk: which, len, lz4, bytes, .. } if found == ino && which == chunk => {
                    if lz4 {
                        lz4_flex::decompress(bytes, len as usize).ok()
                    } else {
                        Some(bytes.to_vec())
                    }
                }
                _ => None,
            }),
        }
    }

    /// Writes; a short count only where it failed after some bytes: whoever writes the rest is told why.
    pub fn write(&mut self, ino: Ino, offset: u64, data: &[u8], now_ns: i64) -> Result<usize> {
        self.writable()?;
        self.file(ino)?;
        if offset.saturating_add(data.len() as u64) > self.size_max() {
            return Err(Error::FileTooLarge);
        }
        let chunk_bytes = self.chunk_bytes();
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            let at = offset + done as u64;
            let skip = (at % chunk_bytes) as usize;
            let count = rest.len().min(chunk_bytes as usize - skip);
            let part = rest.get(..count).unwrap_or(rest);
            match self.write_part(ino, at / chunk_bytes, skip, part, now_ns) {
                Ok(()) => done += count,
                Err(_) if done > 0 && self.flash.broken.is_none() => break,
                Err(error) => return Err(error),
            }
        }
        self.end_change(now_ns)?;
        Ok(done)
    }

    /// One chunk of a write: an operation of its own.
    fn write_part(&mut self, ino: Ino, chunk: u64, skip: usize, data: &[u8], now_ns: i64) -> Result<()> {
        self.begin_change()?;
        self.need_room_for_chunk(ino, chunk, data.len() as u64)?;
        self.put_part(ino, chunk, skip, data, now_ns)?;
        self.end_operation(now_ns)
    }

    /// Lays bytes into one chunk, as a part of an operation.
    pub(crate) fn put_part(&mut self, ino: Ino, chunk: u64, skip: usize, data: &[u8], now_ns: i64) -> Result<()> {
        let chunk_bytes = self.chunk_bytes();
        let mut inode = self.inode(ino)?;
        let past_end = chunk * chunk_bytes >= inode.size.next_multiple_of(chunk_bytes);
        let fresh = past_end && !inode.reserves_past_end;
        let set_ns = inode.mtime_ns;
        self.touch(&mut inode, now_ns);
        let (time_ns, changed_ns) = (inode.mtime_ns, inode.ctime_ns);
        if data.len() as u64 == chunk_bytes {
            let replaced = self.write_chunk(ino, chunk, data, time_ns, fresh)?;
            inode = self.inode(ino)?;
            if let Some(replaced) = replaced {
                inode.chunks = inode.chunks.with(Extent::of(chunk)).without(replaced);
            }
        } else {
            self.overlay_chunk(ino, chunk, skip, data, fresh)?;
        }
        inode.size = inode.size.max(chunk * chunk_bytes + (skip + data.len()) as u64);
        (inode.mtime_ns, inode.ctime_ns) = (time_ns, changed_ns);
        self.derive_inode(ino, inode);
        // From tags of a later tick a replay would not learn that a time to come, set by hand, was given up.
        if time_ns < set_ns { self.put_inode(ino, inode) } else { Ok(()) }
    }

    /// Lays bytes over a chunk in memory.
    fn overlay_chunk(&mut self, ino: Ino, chunk: u64, skip: usize, data: &[u8], fresh: bool) -> Result<()> {
        self.hold_chunk(ino, chunk, fresh)?;
        let Some(bytes) = self.log.dirty_mut(ino, chunk) else { return Ok(()) };
        if bytes.len() < skip + data.len() {
            bytes.resize(skip + data.len(), 0);
        }
        if let Some(to) = bytes.get_mut(skip..skip + data.len()) {
            to.copy_from_slice(data);
        }
        Ok(())
    }

    /// Brings a chunk into memory, to be changed.
    pub(super) fn hold_chunk(&mut self, ino: Ino, chunk: u64, fresh: bool) -> Result<()> {
        if self.log.dirty(ino, chunk).is_some() {
            return Ok(());
        }
        let place = match fresh {
            true => None,
            false => self.index.get(&mut self.flash, key(ino, KeyKind::Data, chunk))?,
        };
        let bytes = self.load_chunk(ino, chunk, place)?;
        self.log.put_dirty(ino, chunk, bytes, place.is_none());
        Ok(())
    }

    /// Makes a file's data fit a new size: nothing of what is cut off can come back. Where the chunk that stays in part
    /// cannot be read, all of it stays.
    pub(crate) fn resize(&mut self, ino: Ino, size: u64) -> Result<()> {
        let inode = self.inode(ino)?;
        if size > inode.size || (size == inode.size && !inode.reserves_past_end) {
            return Ok(());
        }
        let (last, tail) = (size / self.chunk_bytes(), (size % self.chunk_bytes()) as usize);
        if tail > 0 {
            self.hold_data(ino, last)?;
        }
        self.cut(ino, last + u64::from(tail > 0), CHUNKS_MAX)?;
        if tail > 0
            && let Some(bytes) = self.log.dirty_mut(ino, last)
        {
            bytes.truncate(tail);
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        let mut inode = self.inode(ino)?;
        (inode.size, inode.reserves_past_end) = (size, false);
        self.derive_inode(ino, inode);
        Ok(())
    }
}

/// Copies the part of `bytes` from `skip` on; what is missing is zeros.
fn copy_part(bytes: &[u8], skip: usize, to: &mut [u8]) {
    let from = bytes.get(skip..).unwrap_or(&[]);
    let count = from.len().min(to.len());
    let (head, tail) = to.split_at_mut(count);
    head.copy_from_slice(from.get(..count).unwrap_or(&[]));
    tail.fill(0);
}
