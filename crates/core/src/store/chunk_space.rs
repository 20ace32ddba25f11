//! The space of a file's chunks: reserved before there is data, and given back where holes are made.
//!
//! Invariant: an inode counts the chunks that are mapped, and reserved space counts as used until data takes it or it is
//! given back.

use nand::Nand;

use super::chunks::FileChunks;
use crate::error::{Error, Result};
use crate::format::inode::Extent;
use crate::format::key::offset_of;
use crate::format::node::Body;
use crate::format::place::{Place, RUN_MAX};
use crate::index::delta::Change;

impl<N: Nand> FileChunks<'_, N> {
    /// Checks that space for the bytes `offset .. offset + len` can be had, though what stands there is given up first where
    /// `anew`; the chunks they lie in.
    pub fn need_space(&mut self, offset: u64, len: u64, anew: bool) -> Result<(u64, u64)> {
        self.inode()?;
        if len == 0 {
            return Err(Error::Invalid("there is nothing to allocate"));
        }
        let end = offset.checked_add(len).filter(|&end| end <= self.records.size_max()).ok_or(Error::FileTooLarge)?;
        let (space, chunk_bytes) = (self.records.space(), self.records.chunk_bytes());
        let (from, to) = (offset / chunk_bytes, end.div_ceil(chunk_bytes));
        // Every chunk of the range will need space: one as large as this is not worth a walk over it.
        if (to - from).saturating_mul(chunk_bytes) > space.capacity_bytes() {
            return Err(Error::NoSpace);
        }
        let each = space.reserved_bytes_each();
        let (mut needed, mut at, past) = ((to - from) * each, self.key(from), self.key(to));
        while let Some(entry) = self.records.next(at, past)? {
            // What stands there already is kept, or given up first.
            needed -= match entry.place {
                Place::Run { count, .. } if anew => u64::from(count) * chunk_bytes,
                Place::Node { .. } if anew => u64::from(self.records.flash().slots().bytes_of(entry.place)),
                place => place.span() * each,
            };
            at = entry.end();
        }
        self.records.need_bytes(needed)?;
        Ok((from, to))
    }

    /// Reserves space for the holes among the chunks `from..to`. Chunks in memory get a place, too, so that storing them gives
    /// it back.
    pub fn reserve(&mut self, from: u64, to: u64) -> Result<()> {
        self.records.buffer.set_mapped(self.ino, from, to);
        let added = self.reserve_holes(from, to)?;
        if added == 0 {
            return Ok(());
        }
        let chunk_bytes = self.records.chunk_bytes();
        let mut inode = self.records.inode(self.ino)?;
        inode.chunks = inode.chunks.with(Extent::reserved(added));
        inode.reserves_past_end |= to > inode.size.div_ceil(chunk_bytes);
        self.records.derive_inode(self.ino, inode);
        self.records.push(self.ino, Body::Reserve { from, count: to - from })
    }

    /// Makes the bytes `offset .. offset + len` holes, as far as the file reaches. Where a chunk at an edge cannot be read,
    /// nothing is.
    pub fn punch(&mut self, offset: u64, len: u64) -> Result<()> {
        let size = self.records.inode(self.ino)?.size.min(self.records.size_max());
        let end = offset.saturating_add(len).min(size);
        let chunk_bytes = self.records.chunk_bytes();
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
                self.hold_stored(from / chunk_bytes)?;
            }
        }
        if first < past {
            self.cut(first, past)?;
        }
        edges.into_iter().for_each(|(from, to)| self.zero(from, to));
        Ok(())
    }

    /// Makes the chunks `from..to` holes.
    pub fn cut(&mut self, from: u64, to: u64) -> Result<()> {
        let change = Change::Cut(u128::from(to - from));
        // What may fail comes first.
        let replaced = self.records.set(self.key(from), change)?;
        self.records.spreads.forget(self.ino);
        self.records.buffer.drop_range(self.ino, from, to);
        if replaced.any {
            self.records.change_inode(self.ino, |inode| inode.chunks = inode.chunks.without(replaced.chunks))?;
            self.records.push(self.ino, Body::Cut { from, count: to - from })?;
        }
        Ok(())
    }

    /// The chunks from the first one on in `from..to` to which nothing is mapped, up to the next that has a place.
    fn next_hole(&mut self, mut from: u64, to: u64) -> Result<Option<(u64, u64)>> {
        while from < to {
            match self.records.next(self.key(from), self.key(to))? {
                None => return Ok(Some((from, to))),
                Some(entry) if offset_of(entry.key) > from => return Ok(Some((from, offset_of(entry.key)))),
                Some(entry) => from = offset_of(entry.key) + entry.place.span(),
            }
        }
        Ok(None)
    }

    /// Reserves space for the holes among the chunks `from..to`; how many there were.
    pub fn reserve_holes(&mut self, from: u64, to: u64) -> Result<u64> {
        // No file has space for more: a range like that was made up.
        let flash = self.records.flash();
        if to - from > flash.shape().stride * u64::from(flash.blocks().len()) {
            return Ok(0);
        }
        let (mut at, mut added) = (from, 0);
        while let Some((mut first, past)) = self.next_hole(at, to)? {
            while first < past {
                let count = (past - first).min(RUN_MAX);
                let change = Change::Put(Place::Reserved { count: count as u32 });
                self.records.set_fresh(self.key(first), change)?;
                (first, added) = (first + count, added + count);
            }
            at = past;
        }
        Ok(added)
    }

    /// Whether a chunk has space reserved: it is stored in a slot of its own, or the rest of it would be lost.
    pub(super) fn is_reserved(&mut self, chunk: u64) -> Result<bool> {
        if self.records.index.reserved_chunks() == 0 {
            return Ok(false);
        }
        Ok(matches!(self.place(chunk)?, Some(Place::Reserved { .. })))
    }
}
