//! The chunks of a file on their way to flash: at once, or after they have waited in the write buffer, as slots of their own
//! or packed into nodes.
//!
//! Invariant: an end mark comes only when nothing earlier is left in memory; a chunk whose write failed stays in memory.

use nand::{Cause, Nand};

use super::chunks::FileChunks;
use super::log::Placement;
use super::options::{Compression, Times};
use super::write_buffer::{AWAITING_MAX, Dirty};
use crate::error::Result;
use crate::flash::Purpose;
use crate::flash::append::Draft;
use crate::flash::slots::By;
use crate::format::inode::{Extent, Inode};
use crate::format::node::{Body, DATA_HEAD_BYTES};
use crate::format::place::Place;
use crate::format::tag::is_tick;
use crate::index::delta::Change;
use crate::policy::Region;
use crate::policy::place::Write;

/// Beside a chunk's bytes, what a write takes in nodes.
const WRITE_BYTES: u64 = 64;

/// When a file changed, for the record of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeTime {
    pub ns: i64,
    /// The times of modification and of change both are `ns` from this record on.
    pub dated: bool,
}

impl ChangeTime {
    /// The last change of a file. Times that differ were set by a record of their own.
    pub fn of(inode: &Inode) -> Self {
        Self { ns: inode.mtime_ns, dated: inode.mtime_ns == inode.ctime_ns }
    }
}

/// A whole chunk that a caller writes.
pub struct WholeChunk<'a> {
    pub chunk: u64,
    pub data: &'a [u8],
    pub time: ChangeTime,
    /// Nothing is mapped there yet.
    pub fresh: bool,
    /// The time of the change is still to come: the chunk waits for it in memory.
    pub awaits_time: bool,
}

/// A chunk on its way to a slot of its own.
#[derive(Clone, Copy)]
struct Piece<'a> {
    chunk: u64,
    bytes: &'a [u8],
    time: ChangeTime,
    /// Nothing is mapped there yet.
    fresh: bool,
    /// It may end a group: it is an operation of its own, or the last of a commit.
    may_end: bool,
}

/// A chunk in a slot of its own.
struct BareChunk {
    replaced: Extent,
    /// Its tag tells the time of the change exactly.
    tells_time: bool,
}

impl<N: Nand> FileChunks<'_, N> {
    /// Whether `bytes` can be stored in a chunk: where space is reserved for it, or it has a whole slot, on flash or to come,
    /// there is room.
    pub(super) fn need_room(&mut self, chunk: u64, bytes: u64) -> Result<()> {
        let outcome = self.records.need_bytes(bytes + WRITE_BYTES);
        if outcome.is_ok() {
            return outcome;
        }
        let chunk_bytes = self.records.chunk_bytes();
        if self.records.buffer.dirty(self.ino, chunk).is_some_and(|held| held.len() as u64 == chunk_bytes) {
            return Ok(());
        }
        match self.place(chunk)? {
            Some(Place::Reserved { .. } | Place::Run { .. }) => Ok(()),
            _ => outcome,
        }
    }

    /// Takes a whole chunk: it is written at once, or behind as many others as the policy lets wait, or with the time of its
    /// change. What it replaced, if it was written in a slot of its own: its caller counts it as one of the file's.
    pub fn write(&mut self, whole: &WholeChunk<'_>) -> Result<Option<Extent>> {
        let &WholeChunk { chunk, data, time, fresh, awaits_time } = whole;
        let shape = self.records.flash().shape();
        let depth = self.records.manager.waiting_slots(shape.native.pair_slots, shape.slc.content_slots());
        let waiting = match depth {
            0 if awaits_time => AWAITING_MAX,
            depth => depth as usize,
        };
        // What does not wait for others goes to flash in the order of its writes: of a file the last chunk waits for its time.
        while depth == 0
            && self.records.options.times == Times::OfCaller
            && self.records.buffer.newest_whole(self.ino, data.len()).is_some_and(|last| last != chunk)
            && let Some(oldest) = self.records.buffer.oldest_of(self.ino)
        {
            self.store(oldest, None, true)?;
        }
        if waiting > 0 {
            let fresh = fresh || self.place(chunk)?.is_none();
            // Room is made before: what cannot be stored must not keep these bytes where nobody counts them.
            while self.records.buffer.dirty_count() >= waiting
                && self.records.buffer.dirty(self.ino, chunk).is_none()
                && let Some((ino, oldest)) = self.records.buffer.oldest()
            {
                self.records.chunks(ino).store(oldest, None, true)?;
            }
            self.records.buffer.put_dirty(self.ino, chunk, data.to_vec(), fresh);
            return Ok(None);
        }
        self.records.buffer.drop_dirty(self.ino, chunk);
        let reserved = !fresh && self.is_reserved(chunk)?;
        let pack = self.records.options.compression == Compression::Lz4 && !reserved;
        if pack && self.store_packed(chunk, data, time, fresh)? {
            return Ok(None);
        }
        let to = self.place_of_data(chunk, &Write::Host)?;
        let piece = Piece { chunk, bytes: data, time, fresh, may_end: true };
        self.store_bare(to, piece, data).map(|stored| Some(stored.replaced))
    }

    /// Writes a chunk that waits in memory, with the times of its inode unless another is given; whether its tag tells the
    /// time. A node does not for certain: before the commit another record may take its place.
    pub(super) fn store(&mut self, chunk: u64, time: Option<ChangeTime>, may_end: bool) -> Result<bool> {
        self.store_at(None, chunk, time, may_end)
    }

    /// The same at the place that room was made in, if it was.
    pub(super) fn store_at(
        &mut self,
        to: Option<Placement>,
        chunk: u64,
        time: Option<ChangeTime>,
        may_end: bool,
    ) -> Result<bool> {
        let time = match time {
            Some(time) => time,
            None => ChangeTime::of(&self.records.inode(self.ino)?),
        };
        let Some(dirty) = self.records.buffer.take_dirty(self.ino, chunk) else { return Ok(false) };
        let outcome = self.store_taken(to, chunk, &dirty, time, may_end);
        if outcome.is_err() {
            self.records.buffer.put_back(dirty);
        }
        outcome
    }

    fn store_taken(
        &mut self,
        to: Option<Placement>,
        chunk: u64,
        dirty: &Dirty,
        time: ChangeTime,
        may_end: bool,
    ) -> Result<bool> {
        let (bytes, fresh) = (dirty.bytes.as_slice(), dirty.fresh);
        let slot_bytes = self.records.flash().shape().slot_bytes;
        let reserved = !fresh && self.is_reserved(chunk)?;
        let lz4 = self.records.options.compression == Compression::Lz4 && !reserved;
        if lz4 && bytes.len() > slot_bytes / 4 && self.store_packed(chunk, bytes, time, fresh)? {
            return Ok(false);
        }
        if bytes.len() + 512 <= slot_bytes && !reserved {
            let ChangeTime { ns: time_ns, dated } = time;
            let body = Body::Data { chunk, time_ns, dated, len: bytes.len() as u32, lz4: false, bytes };
            return self.push_data(chunk, body, fresh).map(|()| false);
        }
        let to = match to {
            Some(to) => to,
            None => self.place_of_data(chunk, &Write::Host)?,
        };
        let piece = Piece { chunk, bytes, time, fresh, may_end };
        let stored = if bytes.len() == slot_bytes {
            self.store_bare(to, piece, bytes)?
        } else {
            let mut padded = bytes.to_vec();
            padded.resize(slot_bytes, 0);
            self.store_bare(to, piece, &padded)?
        };
        self.count(chunk, stored.replaced)?;
        Ok(stored.tells_time)
    }

    /// Writes a chunk as a compressed node. `false`: it does not get smaller.
    fn store_packed(&mut self, chunk: u64, data: &[u8], time: ChangeTime, fresh: bool) -> Result<bool> {
        let packed = lz4_flex::compress(data);
        if packed.len() + DATA_HEAD_BYTES > data.len() * 7 / 8 {
            return Ok(false);
        }
        let ChangeTime { ns: time_ns, dated } = time;
        let body = Body::Data { chunk, time_ns, dated, len: data.len() as u32, lz4: true, bytes: &packed };
        self.push_data(chunk, body, fresh)?;
        Ok(true)
    }

    /// Makes a node of a chunk; where that is `fresh`, what stands in the index need not be readable.
    fn push_data(&mut self, chunk: u64, body: Body<'_>, fresh: bool) -> Result<()> {
        let was = if fresh { None } else { self.place(chunk)? };
        self.records.spreads.forget(self.ino);
        self.records.push_node(self.ino, body, fresh)?;
        let replaced = match was {
            None => Extent::default(),
            Some(Place::Reserved { .. }) => Extent::reserved(1),
            Some(_) => {
                self.records.manager.heard_of_overwrite(self.ino);
                Extent::of(chunk)
            }
        };
        self.count(chunk, replaced)
    }

    /// Counts a chunk as one of the file's that took the place of others.
    fn count(&mut self, chunk: u64, replaced: Extent) -> Result<()> {
        self.records
            .change_inode(self.ino, |inode| inode.chunks = inode.chunks.with(Extent::of(chunk)).without(replaced))
    }

    /// Appends a chunk as a slot of its own, `padded` to a slot's length.
    fn store_bare(&mut self, to: Placement, piece: Piece<'_>, padded: &[u8]) -> Result<BareChunk> {
        let Piece { chunk, bytes, time, fresh, may_end } = piece;
        let is_counted = self.records.spreads.counts(self.ino);
        let was_in = if is_counted { self.block_of(chunk)? } else { None };
        let (ino, data_key, records) = (self.ino, self.key(chunk), &mut *self.records);
        let end = may_end && records.buffer.is_empty();
        let draft = Draft::data(ino, chunk, bytes.len() as u32, time.ns, end).dated(time.dated);
        let slot = records.log.append(to, draft, padded, Purpose::of(Cause::Host))?;
        if end {
            records.log.end_group();
        }
        records.buffer.goes_native(to.region == Region::Native);
        records.manager.heard_of_data(to.region, to.hot);
        if is_counted {
            records.spreads.heard_of_page(ino, was_in, records.flash().shape().block_of(slot));
        }
        let mut release = records.flash().by_record();
        release.by = By::Record(records.flash().numbers().next() - 1);
        let change = Change::Put(Place::Run { slot, count: 1 });
        let replaced = records.index.set(records.log.slots_mut(), data_key, change, release, fresh)?;
        if replaced.chunks.written().count > 0 {
            records.manager.heard_of_overwrite(ino);
        }
        records.follow_moved()?;
        let tells_time = is_tick(time.ns) || !records.flash().shape().is_first(slot);
        Ok(BareChunk { replaced: replaced.chunks, tells_time })
    }

    /// Whether nothing has to be read to know where a chunk in memory stood before. If something had to be, it was.
    pub(super) fn is_at_hand(&mut self, chunk: u64) -> Result<bool> {
        if self.records.buffer.is_fresh(self.ino, chunk) {
            return Ok(true);
        }
        let reads = self.records.log.reads();
        self.place(chunk)?;
        Ok(self.records.log.reads() == reads)
    }
}
