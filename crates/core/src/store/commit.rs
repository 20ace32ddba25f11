//! Commit: what is in the write buffer goes to flash, in groups.
//!
//! Everything appended between two end marks is one group: after a cut it counts whole or not at all. Invariant: an
//! end mark is written only when no earlier operation has anything left in memory.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::options::{Compression, Times};
use super::place;
use super::records::Records;
use super::write_buffer::{AWAITING_MAX, DIRTY_MAX, Dirty, Pending};
use crate::error::Result;
use crate::flash::Purpose;
use crate::flash::append::Draft;
use crate::flash::head::HeadId;
use crate::flash::slots::By;
use crate::format::inode::{Extent, Inode};
use crate::format::key::{KeyKind, key, kind_of};
use crate::format::node::{self, Body, DATA_HEAD_BYTES, Node, Order};
use crate::format::place::{NODE_UNIT, Place};
use crate::format::tag::is_tick;
use crate::index::delta::Change;
use crate::policy::place::Write;

/// Slots of a group before it is closed.
const GROUP_MAX: u64 = 256;

/// A pending node in the slot it is written in: where it begins and how long it is, in units.
#[derive(Clone, Copy)]
struct Packed {
    number: u32,
    at: u8,
    units: u8,
}

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
    pub ino: u64,
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
    ino: u64,
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

impl<N: Nand> Records<N> {
    /// Makes a node; it is found under its key from now on.
    pub fn push(&mut self, ino: u64, body: Body<'_>) -> Result<()> {
        self.push_node(ino, body, false).map(|_| ())
    }

    /// Makes a node under whose key nothing is found yet.
    pub fn push_new(&mut self, ino: u64, body: Body<'_>) -> Result<()> {
        self.push_node(ino, body, true).map(|_| ())
    }

    /// Makes a node; whether it replaced another. `fresh` promises that it does not.
    pub(super) fn push_node(&mut self, ino: u64, body: Body<'_>, fresh: bool) -> Result<bool> {
        let node = Node { ino, order: Order::Back(0), body };
        let (key, bytes, seq) = (node.key(), node.encode(), self.flash.numbers().next());
        let number = self.buffer.pending_nodes().len() as u32;
        let change = Change::Put(Place::Pending { number });
        let replaced = match (key, fresh) {
            (None, _) => false,
            (Some(key), true) => self.set_fresh(key, change)?.any,
            (Some(key), false) => self.set(key, change)?.any,
        };
        self.buffer.add_pending(Pending { key, ino, bytes, seq, written: false });
        Ok(replaced)
    }

    /// Ends a change: writes out what has grown too large to wait.
    pub(super) fn end_change(&mut self) -> Result<()> {
        self.end_operation()?;
        if !self.inodes.is_strained() {
            return Ok(());
        }
        self.write_inodes()?;
        self.commit(false)
    }

    /// Ends an operation: writes out what has grown too large to wait, but for inodes.
    pub fn end_operation(&mut self) -> Result<()> {
        if self.is_durable() {
            self.buffer.nothing_waits();
            return Ok(());
        }
        let numbers = self.flash.numbers();
        if self.buffer.is_empty() && numbers.is_ended() {
            return Ok(());
        }
        let long = numbers.next() - numbers.ended() >= GROUP_MAX;
        let shape = self.flash.shape();
        let full = self.buffer.pending_bytes() + NODE_UNIT * 4 > shape.slot_bytes;
        if full || long || self.buffer.dirty_count() > DIRTY_MAX.min(shape.slc.content_slots() as usize) {
            self.commit(false)?;
        }
        Ok(())
    }

    /// Writes out everything in memory and closes the group. With `sync` it is durable and promised afterwards.
    pub fn commit(&mut self, sync: bool) -> Result<()> {
        let commit = Commit::of(self, sync);
        while !commit.step(self)? {}
        Ok(())
    }

    /// Takes a whole chunk: it is written at once, or behind as many others as the policy lets wait, or with the time of its
    /// change. What it replaced, if it was written.
    pub fn write_chunk(&mut self, whole: &WholeChunk<'_>) -> Result<Option<Extent>> {
        let &WholeChunk { ino, chunk, data, time, fresh, awaits_time } = whole;
        let shape = self.flash.shape();
        let depth = self.manager.waiting_slots(shape.native.pair_slots, shape.slc.content_slots());
        let waiting = match depth {
            0 if awaits_time => AWAITING_MAX,
            depth => depth as usize,
        };
        // What does not wait for others goes to flash in the order of its writes: of a file the last chunk waits for its time.
        while depth == 0
            && self.options.times == Times::OfCaller
            && self.buffer.newest_whole(ino, data.len()).is_some_and(|last| last != chunk)
            && let Some(oldest) = self.buffer.oldest_of(ino)
        {
            self.store_dirty(&Write::Host, oldest, None, true)?;
        }
        if waiting > 0 {
            let fresh = fresh || self.get(key(ino, KeyKind::Data, chunk))?.is_none();
            // Room is made before: what cannot be stored must not keep these bytes where nobody counts them.
            while self.buffer.dirty_count() >= waiting
                && self.buffer.dirty(ino, chunk).is_none()
                && let Some(oldest) = self.buffer.oldest()
            {
                self.store_dirty(&Write::Host, oldest, None, true)?;
            }
            self.buffer.put_dirty(ino, chunk, data.to_vec(), fresh);
            return Ok(None);
        }
        self.buffer.drop_dirty(ino, chunk);
        let reserved = !fresh && self.is_reserved(ino, chunk)?;
        let pack = self.options.compression == Compression::Lz4 && !reserved;
        if pack && self.store_packed(ino, chunk, data, time, fresh)? {
            return Ok(None);
        }
        let piece = Piece { ino, chunk, bytes: data, time, fresh, may_end: true };
        self.store_bare(&Write::Host, piece, data).map(|stored| Some(stored.replaced))
    }

    /// Writes a chunk in memory, with the times of its inode unless another is given; whether its tag tells the time. A node
    /// does not for certain: before the commit another record may take its place.
    pub(super) fn store_dirty(
        &mut self,
        write: &Write,
        (ino, chunk): (u64, u64),
        time: Option<ChangeTime>,
        may_end: bool,
    ) -> Result<bool> {
        let time = match time {
            Some(time) => time,
            None => match self.inodes.get(ino) {
                Some(cached) => ChangeTime::of(&cached.inode),
                None => ChangeTime::of(&self.inode(ino)?),
            },
        };
        let Some(dirty) = self.buffer.take_dirty(ino, chunk) else { return Ok(false) };
        let outcome = self.store_taken(write, (ino, chunk), &dirty, time, may_end);
        if outcome.is_err() {
            self.buffer.put_back(dirty);
        }
        outcome
    }

    fn store_taken(
        &mut self,
        write: &Write,
        (ino, chunk): (u64, u64),
        dirty: &Dirty,
        time: ChangeTime,
        may_end: bool,
    ) -> Result<bool> {
        let (bytes, fresh) = (dirty.bytes.as_slice(), dirty.fresh);
        let slot_bytes = self.flash.shape().slot_bytes;
        let reserved = !fresh && self.is_reserved(ino, chunk)?;
        let lz4 = self.options.compression == Compression::Lz4 && !reserved;
        if lz4 && bytes.len() > slot_bytes / 4 && self.store_packed(ino, chunk, bytes, time, fresh)? {
            return Ok(false);
        }
        if bytes.len() + 512 <= slot_bytes && !reserved {
            let ChangeTime { ns: time_ns, dated } = time;
            let body = Body::Data { chunk, time_ns, dated, len: bytes.len() as u32, lz4: false, bytes };
            return self.push_data(ino, chunk, body, fresh).map(|()| false);
        }
        let piece = Piece { ino, chunk, bytes, time, fresh, may_end };
        let stored = if bytes.len() == slot_bytes {
            self.store_bare(write, piece, bytes)?
        } else {
            let mut padded = bytes.to_vec();
            padded.resize(slot_bytes, 0);
            self.store_bare(write, piece, &padded)?
        };
        self.change_inode(ino, |inode| inode.chunks = inode.chunks.with(Extent::of(chunk)).without(stored.replaced))?;
        Ok(stored.tells_time)
    }

    /// Writes a chunk as a compressed node. `false`: it does not get smaller.
    fn store_packed(&mut self, ino: u64, chunk: u64, data: &[u8], time: ChangeTime, fresh: bool) -> Result<bool> {
        let packed = lz4_flex::compress(data);
        if packed.len() + DATA_HEAD_BYTES > data.len() * 7 / 8 {
            return Ok(false);
        }
        let ChangeTime { ns: time_ns, dated } = time;
        let body = Body::Data { chunk, time_ns, dated, len: data.len() as u32, lz4: true, bytes: &packed };
        self.push_data(ino, chunk, body, fresh)?;
        Ok(true)
    }

    /// Makes a node of a chunk; where that is `fresh`, what stands in the index need not be readable.
    fn push_data(&mut self, ino: u64, chunk: u64, body: Body<'_>, fresh: bool) -> Result<()> {
        let data_key = key(ino, KeyKind::Data, chunk);
        let was = if fresh { None } else { self.get(data_key)? };
        self.push_node(ino, body, fresh)?;
        let replaced = match was {
            None => Extent::default(),
            Some(Place::Reserved { .. }) => Extent::reserved(1),
            Some(_) => {
                self.manager.heard_of_overwrite(ino);
                Extent::of(chunk)
            }
        };
        self.change_inode(ino, |inode| inode.chunks = inode.chunks.with(Extent::of(chunk)).without(replaced))
    }

    /// Appends a chunk as a slot of its own, `padded` to a slot's length.
    fn store_bare(&mut self, write: &Write, piece: Piece<'_>, padded: &[u8]) -> Result<BareChunk> {
        let Piece { ino, chunk, bytes, time, fresh, may_end } = piece;
        let end = may_end && self.buffer.is_empty();
        let draft = Draft::data(ino, chunk, bytes.len() as u32, time.ns, end).dated(time.dated);
        let head = place::head_of_data(self, write, ino);
        let slot = self.flash.append(head, draft, padded, Purpose::of(Cause::Host))?;
        if end {
            self.flash.end_group();
        }
        self.buffer.goes_native(head == HeadId::Native);
        self.manager.heard_of_data(place::region_of(head), place::is_hot(self, ino));
        let mut release = self.flash.by_record();
        release.by = By::Record(self.flash.numbers().next() - 1);
        let change = Change::Put(Place::Run { slot, count: 1 });
        let data_key = key(ino, KeyKind::Data, chunk);
        let replaced = self.index.set(self.flash.slots_mut(), data_key, change, release, fresh)?;
        if replaced.chunks.written().count > 0 {
            self.manager.heard_of_overwrite(ino);
        }
        if self.flash.has_moved() {
            self.follow_moved()?;
        }
        let tells_time = is_tick(time.ns) || !self.flash.shape().is_first(slot);
        Ok(BareChunk { replaced: replaced.chunks, tells_time })
    }
}

/// A commit: where it writes to, which is decided once for all of it, and whether it is made durable.
#[derive(Clone, Copy)]
pub(super) struct Commit {
    write: Write,
    sync: bool,
}

impl Commit {
    /// A commit of what is in memory now, and of what comes while it is under way.
    pub fn of<N: Nand>(records: &Records<N>, sync: bool) -> Self {
        Self { write: commit_write(records, sync), sync }
    }

    /// One step: a few reads, one program, or one towards a place for it. Whether everything is written, its group closed
    /// and, with `sync`, promised.
    pub fn step<N: Nand>(&self, records: &mut Records<N>) -> Result<bool> {
        let done = self.advance(records)?;
        records.follow_moved().map(|()| done)
    }

    fn advance<N: Nand>(&self, records: &mut Records<N>) -> Result<bool> {
        let oldest = records.buffer.oldest();
        if !records.buffer.is_empty() || !records.flash.numbers().is_ended() {
            let (head, cause) = match oldest {
                Some((ino, _)) => (place::head_of_data(records, &self.write, ino), Cause::Host),
                None => (place::head_of_nodes(records, &self.write, records.buffer.last_ino()), Cause::Metadata),
            };
            if !records.flash.prepare(head, Purpose::of(cause))? {
                return Ok(false);
            }
            match oldest {
                Some((ino, chunk)) if is_at_hand(records, ino, chunk)? => {
                    records.store_dirty(&self.write, (ino, chunk), None, true)?;
                }
                Some(_) => {}
                None => self.write_pending(records)?,
            }
            return Ok(false);
        }
        if self.sync {
            if records.flash.flush_unit()? {
                return Ok(false);
            }
            records.flash.numbers_mut().promise();
            records.buffer.is_synced();
        }
        Ok(true)
    }

    /// Packs pending nodes that still count into a slot; the last of them ends the group, or an empty slot does.
    fn write_pending<N: Nand>(&self, records: &mut Records<N>) -> Result<()> {
        let alive = alive_pending(records)?;
        let slot_bytes = records.flash.shape().slot_bytes;
        let (mut buffer, mut taken) = (Vec::with_capacity(slot_bytes), Vec::new());
        for &number in &alive {
            let Some(pending) = records.buffer.pending_nodes().get(number as usize) else { break };
            if buffer.len() + pending.bytes.len() > slot_bytes - NODE_UNIT {
                break;
            }
            let (at, units) = (buffer.len() / NODE_UNIT, pending.bytes.len() / NODE_UNIT);
            taken.push(Packed { number, at: at as u8, units: units as u8 });
            buffer.extend_from_slice(&pending.bytes);
        }
        let all = taken.len() == alive.len();
        if !taken.is_empty() {
            self.write_nodes(records, buffer, &taken, all)?;
        } else if !records.flash.numbers().is_ended() {
            self.append_nodes(records, &vec![0; slot_bytes], 1, true)?;
        }
        if all || taken.is_empty() {
            records.buffer.clear_pending();
        }
        Ok(())
    }

    fn write_nodes<N: Nand>(
        &self,
        records: &mut Records<N>,
        mut buffer: Vec<u8>,
        taken: &[Packed],
        end: bool,
    ) -> Result<()> {
        let used = buffer.len();
        let slot_seq = records.flash.numbers().next();
        for &Packed { number, at, .. } in taken {
            let Some(pending) = records.buffer.pending_nodes().get(number as usize) else { continue };
            let back = slot_seq.saturating_sub(pending.seq).min(u64::from(u16::MAX)) as u16;
            if let Some(bytes) = buffer.get_mut(usize::from(at) * NODE_UNIT..) {
                node::set_order(bytes, Order::Back(back));
            }
        }
        buffer.resize(records.flash.shape().slot_bytes, 0);
        let slot = self.append_nodes(records, &buffer, used, end)?;
        for &Packed { number, at, units } in taken {
            let Some((key, ino)) = records.buffer.pending_nodes().get(number as usize).map(|p| (p.key, p.ino)) else {
                continue;
            };
            records.buffer.is_written(number);
            let Some(key) = key else { continue };
            records.index.settle(records.flash.slots_mut(), key, number, Place::Node { slot, at, units });
            if kind_of(key) == KeyKind::Inode as u8 {
                records.inodes.cleaned(ino);
            }
        }
        records.flash.slots_mut().keep(slot, buffer.into());
        Ok(())
    }

    fn append_nodes<N: Nand>(&self, records: &mut Records<N>, bytes: &[u8], used: usize, end: bool) -> Result<u64> {
        let last_ino = records.buffer.last_ino();
        let head = place::head_of_nodes(records, &self.write, last_ino);
        let slot = records.flash.append(head, Draft::nodes(used as u32, end), bytes, Purpose::of(Cause::Metadata))?;
        records.buffer.goes_native(head == HeadId::Native);
        let hot = last_ino.is_some_and(|ino| place::is_hot(records, ino));
        records.manager.heard_of_nodes(place::region_of(head), hot);
        if end {
            records.flash.end_group();
        }
        Ok(slot)
    }
}

/// Whether nothing had to be read to know where a chunk in memory stood before.
fn is_at_hand<N: Nand>(records: &mut Records<N>, ino: u64, chunk: u64) -> Result<bool> {
    if records.buffer.is_fresh(ino, chunk) {
        return Ok(true);
    }
    let reads = records.flash.slots().reads();
    records.get(key(ino, KeyKind::Data, chunk))?;
    Ok(records.flash.slots().reads() == reads)
}

/// The pending nodes that still count, inodes last and up to date.
fn alive_pending<N: Nand>(records: &mut Records<N>) -> Result<Vec<u32>> {
    let mut alive = Vec::new();
    let mut inodes = Vec::new();
    for number in 0..records.buffer.pending_nodes().len() as u32 {
        let Some(pending) = records.buffer.pending_nodes().get(number as usize) else { break };
        match pending.key {
            None if pending.written => {}
            None => alive.push(number),
            Some(key) => {
                if records.index.pending_at(key) != Some(number) {
                    continue;
                }
                if kind_of(key) == KeyKind::Inode as u8 { inodes.push(number) } else { alive.push(number) }
            }
        }
    }
    for &number in &inodes {
        let Some(ino) = records.buffer.pending_nodes().get(number as usize).map(|pending| pending.ino) else { break };
        let inode = records.inode(ino)?;
        if let Some(pending) = records.buffer.pending_nodes().get_mut(number as usize) {
            pending.bytes = Node { ino, order: Order::Back(0), body: Body::Inode(inode) }.encode();
            pending.seq = u64::MAX;
        }
    }
    alive.extend(inodes);
    Ok(alive)
}

/// What of a commit is said to whoever places it.
fn commit_write<N: Nand>(records: &Records<N>, sync: bool) -> Write {
    if !sync {
        return Write::Host;
    }
    let shape = records.flash.shape();
    let node_slots = records.buffer.pending_bytes().div_ceil(shape.slot_bytes);
    Write::Synced {
        slots: (records.buffer.dirty_count() + node_slots) as u32,
        pair_slots: shape.native.pair_slots,
        follows_native: records.buffer.went_native(),
    }
}
