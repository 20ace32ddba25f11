//! The chunks of a file: read from wherever they stand, or held in memory to be changed.
//!
//! Invariant: what is not stored reads as zeros; what was read is checked before anything is done with it.

use alloc::vec::Vec;

use nand::Nand;

use super::records::Records;
use crate::error::{Error, Result};
use crate::flash::read::ChunkCheck;
use crate::format::inode::{Ino, Inode, kind};
use crate::format::key::{Key, KeyKind, key, offset_of};
use crate::format::node::Body;
use crate::format::page::Entry;
use crate::format::place::Place;

/// Bytes that were read but not checked: nothing may be done with them before.
#[must_use]
pub struct Unchecked {
    /// Where in the buffer a chunk begins, and what it must prove to be.
    pieces: Vec<(usize, ChunkCheck)>,
    chunk_bytes: usize,
}

impl Unchecked {
    /// Nothing yet, of chunks of so many bytes.
    pub fn new(chunk_bytes: u64) -> Self {
        Self { pieces: Vec::new(), chunk_bytes: chunk_bytes as usize }
    }

    /// Checks what stands in the buffer that was read into. `false`: something is wrong with it.
    pub fn check(&self, buf: &mut [u8]) -> bool {
        self.pieces.iter().all(|(at, check)| {
            let piece = buf.get_mut(*at..*at + self.chunk_bytes);
            piece.is_some_and(|piece| check.make(piece))
        })
    }
}

/// The chunks of a file. Chunk numbers count from the beginning of the file.
pub struct FileChunks<'a, N: Nand> {
    pub(super) records: &'a mut Records<N>,
    pub(super) ino: Ino,
}

impl<N: Nand> Records<N> {
    /// The chunks of a file.
    pub fn chunks(&mut self, ino: Ino) -> FileChunks<'_, N> {
        FileChunks { records: self, ino }
    }
}

impl<N: Nand> FileChunks<'_, N> {
    /// The file's inode.
    pub fn inode(&mut self) -> Result<Inode> {
        let inode = self.records.inode(self.ino)?;
        match inode.mode & kind::MASK {
            kind::DIR => Err(Error::IsDirectory),
            kind::FILE => Ok(inode),
            _ => Err(Error::Invalid("only files hold data")),
        }
    }

    /// The key of a chunk.
    pub(super) fn key(&self, chunk: u64) -> Key {
        key(self.ino, KeyKind::Data, chunk)
    }

    /// Where a chunk stands.
    pub(super) fn place(&mut self, chunk: u64) -> Result<Option<Place>> {
        self.records.get(key(self.ino, KeyKind::Data, chunk))
    }

    /// Lays bytes over a chunk in memory, from its byte `skip` on; `fresh`: nothing is mapped there yet.
    pub fn overlay(&mut self, chunk: u64, skip: usize, data: &[u8], fresh: bool) -> Result<()> {
        self.hold(chunk, fresh)?;
        self.records.buffer.overlay(self.ino, chunk, skip, data);
        Ok(())
    }

    /// Brings a chunk into memory, to be changed.
    fn hold(&mut self, chunk: u64, fresh: bool) -> Result<()> {
        if self.records.buffer.dirty(self.ino, chunk).is_some() {
            return Ok(());
        }
        let place = if fresh { None } else { self.place(chunk)? };
        let bytes = self.load(chunk, place)?;
        self.records.buffer.put_dirty(self.ino, chunk, bytes, place.is_none());
        Ok(())
    }

    /// Brings a chunk into memory, to be changed, if anything is stored of it.
    pub fn hold_stored(&mut self, chunk: u64) -> Result<()> {
        if self.holds_data(chunk)? { self.hold(chunk, false) } else { Ok(()) }
    }

    /// Forgets the chunks that are in memory.
    pub fn drop_buffered(&mut self) {
        self.records.buffer.drop_range(self.ino, 0, u64::MAX);
    }

    /// Cuts a chunk off behind `len` bytes, if it is in memory.
    pub fn truncate(&mut self, chunk: u64, len: usize) {
        self.records.buffer.truncate(self.ino, chunk, len);
    }

    /// Zeroes the bytes `from..to` of the file, which lie in one chunk, if that is in memory.
    pub(super) fn zero(&mut self, from: u64, to: u64) {
        let (chunk, skip) = (from / self.records.chunk_bytes(), from % self.records.chunk_bytes());
        self.records.buffer.zero(self.ino, chunk, skip as usize, (to - from) as usize);
    }

    /// Whether a chunk has bytes of its own, in memory or on flash.
    fn holds_data(&mut self, chunk: u64) -> Result<bool> {
        if self.records.buffer.dirty(self.ino, chunk).is_some() {
            return Ok(true);
        }
        Ok(!matches!(self.place(chunk)?, None | Some(Place::Reserved { .. })))
    }

    /// Whether the chunk `from` holds data, and up to where (at most `to`) that is known to stay so.
    pub fn stretch(&mut self, from: u64, to: u64) -> Result<(bool, u64)> {
        let dirty = self.records.buffer.next_dirty(self.ino, from).filter(|&chunk| chunk < to).unwrap_or(to);
        if dirty == from {
            return Ok((true, from + 1));
        }
        let found = self.records.next(self.key(from), self.key(to))?;
        let Some(entry) = found else { return Ok((false, dirty)) };
        let (first, span) = (offset_of(entry.key), entry.place.span());
        match entry.place {
            _ if first > from => Ok((false, first.min(dirty))),
            Place::Reserved { .. } => Ok((false, (first + span).min(dirty))),
            _ => Ok((true, first + span)),
        }
    }

    /// Reads from the file, which is `size` bytes long; what can be checked later goes to `unchecked`.
    pub fn read(
        &mut self,
        size: u64,
        offset: u64,
        buf: &mut [u8],
        mut unchecked: Option<&mut Unchecked>,
    ) -> Result<usize> {
        let wanted = size.saturating_sub(offset).min(buf.len() as u64) as usize;
        let chunk_bytes = self.records.chunk_bytes();
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
            let check = match self.records.buffer.dirty(self.ino, chunk) {
                Some(bytes) => {
                    copy_part(bytes, skip, to);
                    None
                }
                None => {
                    let place = self.next_place(chunk, past, &mut known)?;
                    self.read_part(chunk, place, skip, to, unchecked.is_some())?
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
    fn next_place(&mut self, chunk: u64, past: u64, known: &mut Option<Entry>) -> Result<Option<Place>> {
        let (data_key, past) = (self.key(chunk), self.key(past));
        if known.is_none_or(|entry| entry.end() <= data_key) {
            let found = self.records.next(data_key, past)?;
            // Nothing up to there.
            *known = found.or(Some(Entry { key: past, place: Place::Mark }));
        }
        let here = known.filter(|entry| entry.key <= data_key);
        Ok(here.map(|entry| entry.place.part((data_key - entry.key) as u64, 1)))
    }

    /// Reads a part of a chunk that stands at `place`, from `skip` bytes into it; what is not there reads as zeros. With
    /// `later` a check may be left to be made.
    fn read_part(
        &mut self,
        chunk: u64,
        place: Option<Place>,
        skip: usize,
        to: &mut [u8],
        later: bool,
    ) -> Result<Option<ChunkCheck>> {
        let is_whole = to.len() == self.records.flash().shape().slot_bytes;
        match place {
            None | Some(Place::Reserved { .. }) => to.fill(0),
            Some(Place::Run { slot, .. }) if is_whole && later => {
                return self.records.log.slots_mut().read_unchecked(slot, self.ino, chunk, to).map(Some);
            }
            Some(Place::Run { slot, .. }) if is_whole => {
                let len = self.records.log.slots_mut().read_data(slot, self.ino, chunk, to)?;
                to.iter_mut().skip(len as usize).for_each(|byte| *byte = 0);
            }
            Some(place) => copy_part(&self.load(chunk, Some(place))?, skip, to),
        }
        Ok(None)
    }

    /// A chunk's bytes, as many as are stored.
    fn load(&mut self, chunk: u64, place: Option<Place>) -> Result<Vec<u8>> {
        let ino = self.ino;
        match place {
            None | Some(Place::Reserved { .. }) => Ok(Vec::new()),
            Some(Place::Run { slot, .. }) => {
                let mut bytes = alloc::vec![0; self.records.flash().shape().slot_bytes];
                let len = self.records.log.slots_mut().read_data(slot, ino, chunk, &mut bytes)?;
                bytes.truncate(len as usize);
                Ok(bytes)
            }
            Some(place) => self.records.with_node(place, |found, node| match node.body {
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
}

/// Copies the part of `bytes` from `skip` on; what is missing is zeros.
fn copy_part(bytes: &[u8], skip: usize, to: &mut [u8]) {
    let from = bytes.get(skip..).unwrap_or(&[]);
    let count = from.len().min(to.len());
    let (head, tail) = to.split_at_mut(count);
    head.copy_from_slice(from.get(..count).unwrap_or(&[]));
    tail.fill(0);
}
