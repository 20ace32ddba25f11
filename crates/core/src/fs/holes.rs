//! What of a file holds no data: holes, and space that is reserved for data to come.
//!
//! Invariant: reserved space counts as used until data takes it or it is given back, so writing there finds room.

use nand::Nand;

use super::Fs;
use super::types::*;
use crate::error::{Error, Result};
use crate::format::inode::Extent;
use crate::format::key::{KeyKind, key, offset_of};
use crate::format::node::Body;
use crate::format::place::{Place, RUN_MAX};
use crate::index::delta::Change;

/// What a chunk's place in the index may take, twice over, since a checkpoint writes the new index beside the old.
const INDEX_BYTES: u64 = 96;
/// Beside a chunk's bytes, what a write takes in nodes.
const WRITE_BYTES: u64 = 64;
/// Bytes copied at a time.
const COPY_BYTES: usize = 64 << 10;

impl<N: Nand> Fs<N> {
    /// Makes the chunks `from..to` holes.
    pub(super) fn cut(&mut self, ino: Ino, from: u64, to: u64) -> Result<()> {
        let seq = self.flash.next_seq;
        let change = Change::Cut(u128::from(to - from));
        // What may fail comes first.
        let replaced = self.index.set(&mut self.flash, key(ino, KeyKind::Data, from), change, seq, false)?;
        self.log.drop_range(ino, from, to);
        if replaced.any {
            self.count_chunks(ino, Extent::default(), replaced.chunks)?;
            self.push(ino, Body::Cut { from, count: to - from })?;
        }
        Ok(())
    }

    /// Makes a hole (reads as zeros); the size stays.
    pub fn punch(&mut self, ino: Ino, offset: u64, len: u64, now_ns: i64) -> Result<()> {
        self.begin_removal()?;
        self.file(ino)?;
        if len == 0 {
            return Err(Error::Invalid("a hole has a length"));
        }
        self.punch_part(ino, offset, len)?;
        self.end_allocation(ino, None, now_ns)
    }

    /// Reserves space for `offset .. offset + len`: writing there finds room. The file grows to hold the range,
    /// unless `keep_size`.
    pub fn allocate(&mut self, ino: Ino, offset: u64, len: u64, keep_size: bool, now_ns: i64) -> Result<()> {
        self.begin_change()?;
        let (from, to) = self.allocation(ino, offset, len, false)?;
        self.reserve(ino, from, to)?;
        self.end_allocation(ino, (!keep_size).then_some(offset + len), now_ns)
    }

    /// Makes `offset .. offset + len` read as zeros and reserves space for it. The file grows to hold the range,
    /// unless `keep_size`.
    pub fn zero_range(&mut self, ino: Ino, offset: u64, len: u64, keep_size: bool, now_ns: i64) -> Result<()> {
        self.begin_change()?;
        let (from, to) = self.allocation(ino, offset, len, true)?;
        self.punch_part(ino, offset, len)?;
        self.reserve(ino, from, to)?;
        self.end_allocation(ino, (!keep_size).then_some(offset + len), now_ns)
    }

    /// Checks that space for a range of bytes can be had, though what stands there is given up first where `anew`; the
    /// chunks it touches.
    fn allocation(&mut self, ino: Ino, offset: u64, len: u64, anew: bool) -> Result<(u64, u64)> {
        self.file(ino)?;
        if len == 0 {
            return Err(Error::Invalid("there is nothing to allocate"));
        }
        let end = offset.checked_add(len).filter(|&end| end <= self.size_max()).ok_or(Error::FileTooLarge)?;
        let chunk_bytes = self.chunk_bytes();
        let (from, to) = (offset / chunk_bytes, end.div_ceil(chunk_bytes));
        // Every chunk of the range will need space: one as large as this is not worth a walk over it.
        if (to - from).saturating_mul(chunk_bytes) > self.capacity_bytes() {
            return Err(Error::NoSpace);
        }
        let each = self.reserved_bytes_each();
        let (mut needed, mut at, past) =
            ((to - from) * each, key(ino, KeyKind::Data, from), key(ino, KeyKind::Data, to));
        while let Some(entry) = self.index.next(&mut self.flash, at, past)? {
            // What stands there already is kept, or given up first.
            needed -= match entry.place {
                Place::Run { count, .. } if anew => u64::from(count) * chunk_bytes,
                Place::Node { .. } if anew => u64::from(self.flash.bytes_of(entry.place)),
                place => place.span() * each,
            };
            at = entry.end();
        }
        self.need_bytes(needed)?;
        Ok((from, to))
    }

    /// Ends an operation on a file's space: it changed now, and is at least `size` long.
    fn end_allocation(&mut self, ino: Ino, size: Option<u64>, now_ns: i64) -> Result<()> {
        let mut inode = self.inode(ino)?;
        inode.size = inode.size.max(size.unwrap_or(0));
        self.touch(&mut inode, now_ns);
        self.put_inode(ino, inode)?;
        self.end_change(now_ns)
    }

    /// The chunks from the first one on in `from..to` to which nothing is mapped, up to the next that has a place.
    fn next_hole(&mut self, ino: Ino, mut from: u64, to: u64) -> Result<Option<(u64, u64)>> {
        let past = key(ino, KeyKind::Data, to);
        while from < to {
            match self.index.next(&mut self.flash, key(ino, KeyKind::Data, from), past)? {
                None => return Ok(Some((from, to))),
                Some(entry) if offset_of(entry.key) > from => return Ok(Some((from, offset_of(entry.key)))),
                Some(entry) => from = offset_of(entry.key) + entry.place.span(),
            }
        }
        Ok(None)
    }

    fn reserve(&mut self, ino: Ino, from: u64, to: u64) -> Result<()> {
        // Chunks in memory get a place, so that storing them gives it back.
        self.log.set_mapped(ino, from, to);
        let seq = self.flash.next_seq;
        let added = self.reserve_holes(ino, from, to, seq)?;
        if added == 0 {
            return Ok(());
        }
        let chunk_bytes = self.chunk_bytes();
        let mut inode = self.inode(ino)?;
        inode.chunks = inode.chunks.with(Extent::reserved(added));
        inode.reserves_past_end |= to > inode.size.div_ceil(chunk_bytes);
        self.derive_inode(ino, inode);
        self.push(ino, Body::Reserve { from, count: to - from })
    }

    /// Reserves space for the holes among the chunks `from..to`, because of the record with sequence number `seq`; how
    /// many there were.
    pub(crate) fn reserve_holes(&mut self, ino: Ino, from: u64, to: u64, seq: u64) -> Result<u64> {
        // No file has space for more: a range like that was made up.
        if to - from > self.flash.shape.stride * u64::from(self.flash.blocks.len()) {
            return Ok(0);
        }
        let (mut at, mut added) = (from, 0);
        while let Some((mut first, past)) = self.next_hole(ino, at, to)? {
            while first < past {
                let count = (past - first).min(RUN_MAX);
                let change = Change::Put(Place::Reserved { count: count as u32 });
                self.index.set(&mut self.flash, key(ino, KeyKind::Data, first), change, seq, true)?;
                (first, added) = (first + count, added + count);
            }
            at = past;
        }
        Ok(added)
    }

    /// What reserving a chunk takes: its bytes, and what its place in the index may take.
    pub(super) fn reserved_bytes_each(&self) -> u64 {
        self.chunk_bytes() + INDEX_BYTES
    }

    /// Bytes that are reserved.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.index.reserved_chunks.saturating_mul(self.reserved_bytes_each())
    }

    /// Whether `bytes` can be stored in a chunk: where space is reserved for it, or it has a whole slot, there is room.
    pub(super) fn need_room_for_chunk(&mut self, ino: Ino, chunk: u64, bytes: u64) -> Result<()> {
        let outcome = self.need_bytes(bytes + WRITE_BYTES);
        if outcome.is_err()
            && let Some(Place::Reserved { .. } | Place::Run { .. }) =
                self.index.get(&mut self.flash, key(ino, KeyKind::Data, chunk))?
        {
            return Ok(());
        }
        outcome
    }

    /// Whether a chunk has space reserved: it is stored in a slot of its own, or the rest of it would be lost.
    pub(super) fn is_reserved(&mut self, ino: Ino, chunk: u64) -> Result<bool> {
        if self.index.reserved_chunks == 0 {
            return Ok(false);
        }
        let place = self.index.get(&mut self.flash, key(ino, KeyKind::Data, chunk))?;
        Ok(matches!(place, Some(Place::Reserved { .. })))
    }

    /// Whether a chunk has bytes of its own, in memory or on flash.
    pub(super) fn holds_data(&mut self, ino: Ino, chunk: u64) -> Result<bool> {
        if self.log.dirty(ino, chunk).is_some() {
            return Ok(true);
        }
        let place = self.index.get(&mut self.flash, key(ino, KeyKind::Data, chunk))?;
        Ok(!matches!(place, None | Some(Place::Reserved { .. })))
    }

    /// Makes the bytes `offset .. offset + len` of a file holes, as far as it reaches. Where a chunk at an edge cannot be
    /// read, nothing is.
    fn punch_part(&mut self, ino: Ino, offset: u64, len: u64) -> Result<()> {
        let size = self.inode(ino)?.size.min(self.size_max());
        let end = offset.saturating_add(len).min(size);
        let chunk_bytes = self.chunk_bytes();
        if offset >= end {
            return Ok(());
        }
        let (first, last) = (offset.div_ceil(chunk_bytes), end / chunk_bytes);
        let past = if end == size { size.div_ceil(chunk_bytes) } else { last };
        let edges = match first > last {
            true => [(offset, end), (end, end)],
            false => [(offset, first * chunk_bytes), ((past * chunk_bytes).min(end), end)],
        };
        for (from, to) in edges {
            if from < to {
                self.hold_data(ino, from / chunk_bytes)?;
            }
        }
        if first < past {
            self.cut(ino, first, past)?;
        }
        edges.into_iter().for_each(|(from, to)| self.zero_held(ino, from, to));
        Ok(())
    }

    /// Brings a chunk into memory, to be changed, if anything is stored of it.
    pub(super) fn hold_data(&mut self, ino: Ino, chunk: u64) -> Result<()> {
        if self.holds_data(ino, chunk)? { self.hold_chunk(ino, chunk, false) } else { Ok(()) }
    }

    /// Zeroes the bytes `from..to`, which lie in one chunk, if that is in memory.
    fn zero_held(&mut self, ino: Ino, from: u64, to: u64) {
        let (chunk, skipped) = (from / self.chunk_bytes(), from % self.chunk_bytes());
        if let Some(bytes) = self.log.dirty_mut(ino, chunk) {
            let zeroed = bytes.iter_mut().skip(skipped as usize).take((to - from) as usize);
            zeroed.for_each(|byte| *byte = 0);
        }
    }

    /// Where from `offset` on the next data (or, with `hole`, the next hole) of a file is. The end of the file counts as
    /// a hole; reserved space does too.
    pub fn seek(&mut self, ino: Ino, offset: u64, hole: bool) -> Result<u64> {
        let size = self.file(ino)?.size;
        if offset >= size {
            return Err(Error::PastEnd);
        }
        let chunk_bytes = self.chunk_bytes();
        let mut from = offset / chunk_bytes;
        let past = size.div_ceil(chunk_bytes);
        while from < past {
            let (data, until) = self.stretch(ino, from, past)?;
            if data != hole {
                return Ok((from * chunk_bytes).max(offset).min(size));
            }
            from = until;
        }
        if hole { Ok(size) } else { Err(Error::PastEnd) }
    }

    /// Whether the chunk `from` holds data, and up to where (at most `to`) that is known to stay so.
    fn stretch(&mut self, ino: Ino, from: u64, to: u64) -> Result<(bool, u64)> {
        let dirty = self.log.next_dirty(ino, from).filter(|&chunk| chunk < to).unwrap_or(to);
        if dirty == from {
            return Ok((true, from + 1));
        }
        let found = self.index.next(&mut self.flash, key(ino, KeyKind::Data, from), key(ino, KeyKind::Data, to))?;
        let Some(entry) = found else { return Ok((false, dirty)) };
        let (first, span) = (offset_of(entry.key), entry.place.span());
        match entry.place {
            _ if first > from => Ok((false, first.min(dirty))),
            Place::Reserved { .. } => Ok((false, (first + span).min(dirty))),
            _ => Ok((true, first + span)),
        }
    }

    /// Copies up to `len` bytes from one file (or place in it) to another; how many. Fewer at the end of the source,
    /// and where it failed after some: whoever asks for the rest is told why.
    pub fn copy_range(
        &mut self,
        (from, from_offset): (Ino, u64),
        (to, to_offset): (Ino, u64),
        len: u64,
        now_ns: i64,
    ) -> Result<u64> {
        let size = self.file(from)?.size;
        self.file(to)?;
        if from == to && from_offset.abs_diff(to_offset) < len {
            return Err(Error::Invalid("a range cannot be copied over a part of itself"));
        }
        let len = len.min(size.saturating_sub(from_offset));
        let mut buffer = alloc::vec![0; COPY_BYTES.min(len as usize)];
        let mut done = 0;
        while done < len {
            let Some(piece) = buffer.get_mut(..((len - done) as usize).min(COPY_BYTES)) else { break };
            let copied = self.read(from, from_offset + done, piece).and_then(|count| {
                let written = self.write(to, to_offset + done, piece.get(..count).unwrap_or(&[]), now_ns)?;
                Ok((count, written))
            });
            let (count, written) = match copied {
                Err(_) if done > 0 => break,
                copied => copied?,
            };
            done += written as u64;
            if written < count || count == 0 {
                break;
            }
        }
        Ok(done)
    }
}
