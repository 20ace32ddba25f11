//! What of a file holds no data: holes, and space that is reserved for data to come.
//!
//! Invariant: reserved space counts as used until data takes it or it is given back, so writing there finds room.

use nand::Nand;

use super::Fs;
use super::data::regular_file;
use crate::error::{Error, Result};
use crate::format::inode::{Extent, Ino};
use crate::format::key::{KeyKind, key};
use crate::format::node::Body;
use crate::format::place::Place;
use crate::store::budget::Call;
use crate::store::chunks;
use crate::store::records::Records;
use crate::store::space;

/// Bytes copied at a time.
const COPY_BYTES: usize = 64 << 10;

impl<N: Nand> Fs<N> {
    /// Makes a hole (reads as zeros); the size stays.
    pub fn punch(&mut self, ino: Ino, offset: u64, len: u64, now_ns: i64) -> Result<()> {
        self.store.begin(Call::REMOVAL)?;
        regular_file(self.records(), ino)?;
        if len == 0 {
            return Err(Error::Invalid("a hole has a length"));
        }
        punch(self.records(), ino, offset, len)?;
        self.end_allocation(ino, None, now_ns)
    }

    /// Reserves space for `offset .. offset + len`: writing there finds room. The file grows to hold the range,
    /// unless `keep_size`.
    pub fn allocate(&mut self, ino: Ino, offset: u64, len: u64, keep_size: bool, now_ns: i64) -> Result<()> {
        self.store.begin(Call::CHANGE)?;
        let (from, to) = allocation(self.records(), ino, offset, len, false)?;
        reserve(self.records(), ino, from, to)?;
        self.end_allocation(ino, (!keep_size).then_some(offset + len), now_ns)
    }

    /// Makes `offset .. offset + len` read as zeros and reserves space for it. The file grows to hold the range,
    /// unless `keep_size`.
    pub fn zero_range(&mut self, ino: Ino, offset: u64, len: u64, keep_size: bool, now_ns: i64) -> Result<()> {
        self.store.begin(Call::CHANGE)?;
        let (from, to) = allocation(self.records(), ino, offset, len, true)?;
        punch(self.records(), ino, offset, len)?;
        reserve(self.records(), ino, from, to)?;
        self.end_allocation(ino, (!keep_size).then_some(offset + len), now_ns)
    }

    /// Ends an operation on a file's space: it changed now, and is at least `size` long.
    fn end_allocation(&mut self, ino: Ino, size: Option<u64>, now_ns: i64) -> Result<()> {
        let mut inode = self.records().inode(ino)?;
        inode.size = inode.size.max(size.unwrap_or(0));
        self.touch(&mut inode, now_ns);
        self.records().put_inode(ino, inode)?;
        self.store.end()
    }

    /// Where from `offset` on the next data (or, with `hole`, the next hole) of a file is. The end of the file counts as
    /// a hole; reserved space does too.
    pub fn seek(&mut self, ino: Ino, offset: u64, hole: bool) -> Result<u64> {
        let size = regular_file(self.records(), ino)?.size;
        if offset >= size {
            return Err(Error::PastEnd);
        }
        let chunk_bytes = self.records().chunk_bytes();
        let mut from = offset / chunk_bytes;
        let past = size.div_ceil(chunk_bytes);
        while from < past {
            let (data, until) = chunks::stretch(self.records(), ino, from, past)?;
            if data != hole {
                return Ok((from * chunk_bytes).max(offset).min(size));
            }
            from = until;
        }
        if hole { Ok(size) } else { Err(Error::PastEnd) }
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
        let size = regular_file(self.records(), from)?.size;
        regular_file(self.records(), to)?;
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

/// Checks that space for a range of bytes can be had, though what stands there is given up first where `anew`; the
/// chunks it touches.
fn allocation<N: Nand>(records: &mut Records<N>, ino: Ino, offset: u64, len: u64, anew: bool) -> Result<(u64, u64)> {
    regular_file(records, ino)?;
    if len == 0 {
        return Err(Error::Invalid("there is nothing to allocate"));
    }
    let end = offset.checked_add(len).filter(|&end| end <= records.size_max()).ok_or(Error::FileTooLarge)?;
    let chunk_bytes = records.chunk_bytes();
    let (from, to) = (offset / chunk_bytes, end.div_ceil(chunk_bytes));
    // Every chunk of the range will need space: one as large as this is not worth a walk over it.
    if (to - from).saturating_mul(chunk_bytes) > space::capacity_bytes(records) {
        return Err(Error::NoSpace);
    }
    let each = space::reserved_bytes_each(records);
    let (mut needed, mut at, past) = ((to - from) * each, key(ino, KeyKind::Data, from), key(ino, KeyKind::Data, to));
    while let Some(entry) = records.next(at, past)? {
        // What stands there already is kept, or given up first.
        needed -= match entry.place {
            Place::Run { count, .. } if anew => u64::from(count) * chunk_bytes,
            Place::Node { .. } if anew => u64::from(records.flash().slots().bytes_of(entry.place)),
            place => place.span() * each,
        };
        at = entry.end();
    }
    space::need_bytes(records, needed)?;
    Ok((from, to))
}

fn reserve<N: Nand>(records: &mut Records<N>, ino: Ino, from: u64, to: u64) -> Result<()> {
    // Chunks in memory get a place, so that storing them gives it back.
    records.buffer().set_mapped(ino, from, to);
    let added = records.reserve_holes(ino, from, to)?;
    if added == 0 {
        return Ok(());
    }
    let chunk_bytes = records.chunk_bytes();
    let mut inode = records.inode(ino)?;
    inode.chunks = inode.chunks.with(Extent::reserved(added));
    inode.reserves_past_end |= to > inode.size.div_ceil(chunk_bytes);
    records.derive_inode(ino, inode);
    records.push(ino, Body::Reserve { from, count: to - from })
}

/// Makes the bytes `offset .. offset + len` of a file holes, as far as it reaches. Where a chunk at an edge cannot be
/// read, nothing is.
fn punch<N: Nand>(records: &mut Records<N>, ino: Ino, offset: u64, len: u64) -> Result<()> {
    let size = records.inode(ino)?.size.min(records.size_max());
    let end = offset.saturating_add(len).min(size);
    let chunk_bytes = records.chunk_bytes();
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
            records.hold_data(ino, from / chunk_bytes)?;
        }
    }
    if first < past {
        records.cut(ino, first, past)?;
    }
    edges.into_iter().for_each(|(from, to)| chunks::zero(records, ino, from, to));
    Ok(())
}
