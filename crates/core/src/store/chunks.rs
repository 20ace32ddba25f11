//! Chunks of data: read from wherever they stand, held in memory to be changed, made holes, or given space.
//!
//! Invariant: an inode counts the chunks that are mapped, and reserved space counts as used until data takes it or it is
//! given back.

use alloc::vec::Vec;

use nand::Nand;

use super::records::Records;
use crate::error::Result;
use crate::flash::read::ChunkCheck;
use crate::format::inode::Ino;
use crate::format::key::{KeyKind, key, offset_of};
use crate::format::node::Body;
use crate::format::page::Entry;
use crate::format::place::{Place, RUN_MAX};
use crate::index::delta::Change;

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

impl<N: Nand> Records<N> {
    /// Lays bytes over a chunk in memory.
    pub fn overlay_chunk(&mut self, ino: Ino, chunk: u64, skip: usize, data: &[u8], fresh: bool) -> Result<()> {
        self.hold_chunk(ino, chunk, fresh)?;
        let Some(bytes) = self.buffer.dirty_mut(ino, chunk) else { return Ok(()) };
        if bytes.len() < skip + data.len() {
            bytes.resize(skip + data.len(), 0);
        }
        if let Some(to) = bytes.get_mut(skip..skip + data.len()) {
            to.copy_from_slice(data);
        }
        Ok(())
    }

    /// Brings a chunk into memory, to be changed.
    pub fn hold_chunk(&mut self, ino: Ino, chunk: u64, fresh: bool) -> Result<()> {
        if self.buffer.dirty(ino, chunk).is_some() {
            return Ok(());
        }
        let place = match fresh {
            true => None,
            false => self.get(key(ino, KeyKind::Data, chunk))?,
        };
        let bytes = load_chunk(self, ino, chunk, place)?;
        self.buffer.put_dirty(ino, chunk, bytes, place.is_none());
        Ok(())
    }

    /// Makes the chunks `from..to` holes.
    pub fn cut(&mut self, ino: Ino, from: u64, to: u64) -> Result<()> {
        let change = Change::Cut(u128::from(to - from));
        // What may fail comes first.
        let replaced = self.set(key(ino, KeyKind::Data, from), change)?;
        self.buffer.drop_range(ino, from, to);
        if replaced.any {
            self.change_inode(ino, |inode| inode.chunks = inode.chunks.without(replaced.chunks))?;
            self.push(ino, Body::Cut { from, count: to - from })?;
        }
        Ok(())
    }

    /// The chunks from the first one on in `from..to` to which nothing is mapped, up to the next that has a place.
    fn next_hole(&mut self, ino: Ino, mut from: u64, to: u64) -> Result<Option<(u64, u64)>> {
        let past = key(ino, KeyKind::Data, to);
        while from < to {
            match self.next(key(ino, KeyKind::Data, from), past)? {
                None => return Ok(Some((from, to))),
                Some(entry) if offset_of(entry.key) > from => return Ok(Some((from, offset_of(entry.key)))),
                Some(entry) => from = offset_of(entry.key) + entry.place.span(),
            }
        }
        Ok(None)
    }

    /// Reserves space for the holes among the chunks `from..to`; how many there were.
    pub fn reserve_holes(&mut self, ino: Ino, from: u64, to: u64) -> Result<u64> {
        // No file has space for more: a range like that was made up.
        if to - from > self.flash.shape().stride * u64::from(self.flash.blocks().len()) {
            return Ok(0);
        }
        let (mut at, mut added) = (from, 0);
        while let Some((mut first, past)) = self.next_hole(ino, at, to)? {
            while first < past {
                let count = (past - first).min(RUN_MAX);
                let change = Change::Put(Place::Reserved { count: count as u32 });
                self.set_fresh(key(ino, KeyKind::Data, first), change)?;
                (first, added) = (first + count, added + count);
            }
            at = past;
        }
        Ok(added)
    }

    /// Whether a chunk has space reserved: it is stored in a slot of its own, or the rest of it would be lost.
    pub fn is_reserved(&mut self, ino: Ino, chunk: u64) -> Result<bool> {
        if self.index.reserved_chunks() == 0 {
            return Ok(false);
        }
        let place = self.get(key(ino, KeyKind::Data, chunk))?;
        Ok(matches!(place, Some(Place::Reserved { .. })))
    }

    /// Whether a chunk has bytes of its own, in memory or on flash.
    pub fn holds_data(&mut self, ino: Ino, chunk: u64) -> Result<bool> {
        if self.buffer.dirty(ino, chunk).is_some() {
            return Ok(true);
        }
        let place = self.get(key(ino, KeyKind::Data, chunk))?;
        Ok(!matches!(place, None | Some(Place::Reserved { .. })))
    }

    /// Brings a chunk into memory, to be changed, if anything is stored of it.
    pub fn hold_data(&mut self, ino: Ino, chunk: u64) -> Result<()> {
        if self.holds_data(ino, chunk)? { self.hold_chunk(ino, chunk, false) } else { Ok(()) }
    }
}

/// Reads from the chunks of an inode of `size` bytes; what can be checked later goes to `unchecked`.
pub fn read<N: Nand>(
    records: &mut Records<N>,
    ino: Ino,
    size: u64,
    offset: u64,
    buf: &mut [u8],
    mut unchecked: Option<&mut Unchecked>,
) -> Result<usize> {
    let wanted = size.saturating_sub(offset).min(buf.len() as u64) as usize;
    let chunk_bytes = records.chunk_bytes();
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
        let check = match records.buffer.dirty(ino, chunk) {
            Some(bytes) => {
                copy_part(bytes, skip, to);
                None
            }
            None => {
                let place = next_place(records, ino, chunk, past, &mut known)?;
                read_chunk(records, (ino, chunk), place, skip, to, unchecked.is_some())?
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
fn next_place<N: Nand>(
    records: &mut Records<N>,
    ino: Ino,
    chunk: u64,
    past: u64,
    known: &mut Option<Entry>,
) -> Result<Option<Place>> {
    let (data_key, past) = (key(ino, KeyKind::Data, chunk), key(ino, KeyKind::Data, past));
    if known.is_none_or(|entry| entry.end() <= data_key) {
        let found = records.next(data_key, past)?;
        // Nothing up to there.
        *known = found.or(Some(Entry { key: past, place: Place::Mark }));
    }
    let here = known.filter(|entry| entry.key <= data_key);
    Ok(here.map(|entry| entry.place.part((data_key - entry.key) as u64, 1)))
}

/// Reads a part of a chunk that stands at `place`, from `skip` bytes into it; what is not there reads as zeros. With
/// `later` a check may be left to be made.
fn read_chunk<N: Nand>(
    records: &mut Records<N>,
    (ino, chunk): (Ino, u64),
    place: Option<Place>,
    skip: usize,
    to: &mut [u8],
    later: bool,
) -> Result<Option<ChunkCheck>> {
    match place {
        None | Some(Place::Reserved { .. }) => to.fill(0),
        Some(Place::Run { slot, .. }) if to.len() == records.flash.shape().slot_bytes && later => {
            return records.flash.slots_mut().read_unchecked(slot, ino, chunk, to).map(Some);
        }
        Some(Place::Run { slot, .. }) if to.len() == records.flash.shape().slot_bytes => {
            let len = records.flash.slots_mut().read_data(slot, ino, chunk, to)?;
            to.iter_mut().skip(len as usize).for_each(|byte| *byte = 0);
        }
        Some(place) => copy_part(&load_chunk(records, ino, chunk, Some(place))?, skip, to),
    }
    Ok(None)
}

/// A chunk's bytes, as many as are stored.
fn load_chunk<N: Nand>(records: &mut Records<N>, ino: Ino, chunk: u64, place: Option<Place>) -> Result<Vec<u8>> {
    match place {
        None | Some(Place::Reserved { .. }) => Ok(Vec::new()),
        Some(Place::Run { slot, .. }) => {
            let mut bytes = alloc::vec![0; records.flash.shape().slot_bytes];
            let len = records.flash.slots_mut().read_data(slot, ino, chunk, &mut bytes)?;
            bytes.truncate(len as usize);
            Ok(bytes)
        }
        Some(place) => records.with_node(place, |found, node| match node.body {
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

/// Zeroes the bytes `from..to`, which lie in one chunk, if that is in memory.
pub fn zero<N: Nand>(records: &mut Records<N>, ino: Ino, from: u64, to: u64) {
    let (chunk, skipped) = (from / records.chunk_bytes(), from % records.chunk_bytes());
    if let Some(bytes) = records.buffer.dirty_mut(ino, chunk) {
        let zeroed = bytes.iter_mut().skip(skipped as usize).take((to - from) as usize);
        zeroed.for_each(|byte| *byte = 0);
    }
}

/// Whether the chunk `from` holds data, and up to where (at most `to`) that is known to stay so.
pub fn stretch<N: Nand>(records: &mut Records<N>, ino: Ino, from: u64, to: u64) -> Result<(bool, u64)> {
    let dirty = records.buffer.next_dirty(ino, from).filter(|&chunk| chunk < to).unwrap_or(to);
    if dirty == from {
        return Ok((true, from + 1));
    }
    let found = records.next(key(ino, KeyKind::Data, from), key(ino, KeyKind::Data, to))?;
    let Some(entry) = found else { return Ok((false, dirty)) };
    let (first, span) = (offset_of(entry.key), entry.place.span());
    match entry.place {
        _ if first > from => Ok((false, first.min(dirty))),
        Place::Reserved { .. } => Ok((false, (first + span).min(dirty))),
        _ => Ok((true, first + span)),
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
