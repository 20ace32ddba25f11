//! The write buffers: nodes and chunks that are not on flash yet, and the groups they are written in.
//!
//! Everything appended between two end marks is one group: after a cut it counts whole or not at all. Invariant: an
//! end mark is written only when no earlier operation has anything left in memory.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::Fs;
use crate::error::Result;
use crate::flash::append::Draft;
use crate::flash::head::HeadId;
use crate::format::inode::Extent;
use crate::format::key::{Key, KeyKind, key, kind_of};
use crate::format::node::{self, Body, DATA_HEAD_BYTES, Node, Order};
use crate::format::place::{NODE_UNIT, Place};
use crate::format::tag::{Kind, ticks};
use crate::fs::types::Compression;
use crate::index::delta::Change;

/// Chunks kept in memory before they are written out.
pub(super) const DIRTY_MAX: usize = 64;
/// Slots of a group before it is closed.
const GROUP_MAX: u64 = 256;

/// A node that waits to be packed.
struct Pending {
    key: Option<Key>,
    ino: u64,
    bytes: Vec<u8>,
    /// The sequence number to come when it was made.
    seq: u64,
}

/// A chunk on its way to a slot of its own.
#[derive(Clone, Copy)]
struct Piece<'a> {
    ino: u64,
    chunk: u64,
    bytes: &'a [u8],
    time_ns: i64,
    /// Nothing is mapped there yet.
    fresh: bool,
    /// It may end a group: it is an operation of its own, or the last of a commit.
    may_end: bool,
}

/// A chunk in memory.
pub struct Dirty {
    pub bytes: Vec<u8>,
    /// Nothing is mapped there yet.
    fresh: bool,
    turn: u64,
}

/// The write buffers.
#[derive(Default)]
pub struct Log {
    pending: Vec<Pending>,
    pending_bytes: usize,
    dirty: BTreeMap<(u64, u64), Dirty>,
    turns: BTreeMap<u64, (u64, u64)>,
    turn: u64,
    /// Something went to the native head since the last sync.
    native_since_sync: bool,
    /// When the oldest thing in memory was put there.
    pub since_ns: Option<i64>,
}

impl Log {
    /// A pending node's bytes.
    pub fn pending(&self, number: u32) -> Option<&[u8]> {
        self.pending.get(number as usize).map(|pending| pending.bytes.as_slice())
    }

    /// A chunk in memory.
    pub fn dirty(&self, ino: u64, chunk: u64) -> Option<&[u8]> {
        self.dirty.get(&(ino, chunk)).map(|dirty| dirty.bytes.as_slice())
    }

    /// A chunk in memory, to change it.
    pub fn dirty_mut(&mut self, ino: u64, chunk: u64) -> Option<&mut Vec<u8>> {
        self.dirty.get_mut(&(ino, chunk)).map(|dirty| &mut dirty.bytes)
    }

    /// Puts a chunk into memory; `fresh`: nothing is mapped there yet.
    pub fn put_dirty(&mut self, ino: u64, chunk: u64, bytes: Vec<u8>, fresh: bool) {
        self.drop_dirty(ino, chunk);
        self.turn += 1;
        self.turns.insert(self.turn, (ino, chunk));
        self.dirty.insert((ino, chunk), Dirty { bytes, fresh, turn: self.turn });
    }

    /// Chunks of an inode that are in memory only.
    pub fn fresh_chunks(&self, ino: u64) -> u64 {
        self.dirty.range((ino, 0)..(ino + 1, 0)).filter(|(_, dirty)| dirty.fresh).count() as u64
    }

    /// The chunks `from..to` of an inode that are in memory have a place in the index now.
    pub fn set_mapped(&mut self, ino: u64, from: u64, to: u64) {
        self.dirty.range_mut((ino, from)..(ino, to)).for_each(|(_, dirty)| dirty.fresh = false);
    }

    /// The first chunk in memory from `chunk` on.
    pub fn next_dirty(&self, ino: u64, chunk: u64) -> Option<u64> {
        self.dirty.range((ino, chunk)..(ino + 1, 0)).next().map(|(&(_, chunk), _)| chunk)
    }

    /// Forgets a chunk in memory.
    pub fn drop_dirty(&mut self, ino: u64, chunk: u64) {
        if let Some(dirty) = self.dirty.remove(&(ino, chunk)) {
            self.turns.remove(&dirty.turn);
        }
    }

    /// Forgets the chunks `from..to` of an inode.
    pub fn drop_range(&mut self, ino: u64, from: u64, to: u64) {
        while let Some((&(_, chunk), _)) = self.dirty.range((ino, from)..(ino, to)).next() {
            self.drop_dirty(ino, chunk);
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.dirty.is_empty()
    }

    /// Bytes that will take space on flash.
    pub fn bytes(&self) -> u64 {
        self.pending_bytes as u64 + self.dirty.values().map(|dirty| dirty.bytes.len() as u64).sum::<u64>()
    }

    /// Chunks in memory.
    pub fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    fn oldest(&self) -> Option<(u64, u64)> {
        self.turns.values().next().copied()
    }

    fn oldest_of(&self, ino: u64) -> Option<(u64, u64)> {
        self.dirty.range((ino, 0)..(ino + 1, 0)).min_by_key(|(_, dirty)| dirty.turn).map(|(&at, _)| at)
    }
}

impl<N: Nand> Fs<N> {
    /// Makes a node; it is found under its key from now on.
    pub(crate) fn push(&mut self, ino: u64, body: Body<'_>) -> Result<()> {
        self.push_node(ino, body, false).map(|_| ())
    }

    /// Makes a node under whose key nothing is found yet.
    pub(crate) fn push_new(&mut self, ino: u64, body: Body<'_>) -> Result<()> {
        self.push_node(ino, body, true).map(|_| ())
    }

    /// Makes a node; whether it replaced another. `fresh` promises that it does not.
    pub(super) fn push_node(&mut self, ino: u64, body: Body<'_>, fresh: bool) -> Result<bool> {
        let node = Node { ino, order: Order::Back(0), body };
        let (key, bytes, seq) = (node.key(), node.encode(), self.flash.next_seq);
        let number = self.log.pending.len() as u32;
        let mut replaced = false;
        if let Some(key) = key {
            let change = Change::Put(Place::Pending { number });
            replaced = self.index.set(&mut self.flash, key, change, seq, fresh)?.any;
        }
        self.log.pending_bytes += bytes.len();
        self.log.pending.push(Pending { key, ino, bytes, seq });
        Ok(replaced)
    }

    /// Ends an operation: writes out what has grown too large to wait.
    pub(crate) fn end_operation(&mut self, now_ns: i64) -> Result<()> {
        self.flash.now_ns = now_ns;
        if self.log.is_empty() && self.flash.ended_seq == self.flash.next_seq {
            self.log.since_ns = None;
            return Ok(());
        }
        self.log.since_ns.get_or_insert(now_ns);
        let full = self.log.pending_bytes + NODE_UNIT * 4 > self.flash.shape.slot_bytes;
        let long = self.flash.next_seq - self.flash.ended_seq >= GROUP_MAX;
        if full || long || self.log.dirty.len() > DIRTY_MAX.min(self.flash.shape.slc.content_slots() as usize) {
            self.commit(false)?;
        }
        Ok(())
    }

    /// Writes out everything in memory and closes the group. With `sync` it is durable and promised afterwards.
    pub(crate) fn commit(&mut self, sync: bool) -> Result<()> {
        let head = self.commit_head(sync);
        while let Some((ino, chunk)) = self.log.oldest() {
            self.store_dirty(head, ino, chunk, true)?;
        }
        self.write_pending(head)?;
        if self.flash.ended_seq != self.flash.next_seq {
            let empty = vec![0; self.flash.shape.slot_bytes];
            self.append_nodes(head, &empty, 1, true, Cause::Metadata)?;
        }
        self.log.since_ns = None;
        if sync {
            self.flash.flush_units()?;
            self.flash.promised_seq = self.flash.committed_seq;
            self.log.native_since_sync = false;
        }
        self.follow_moved()
    }

    /// Where a commit goes: a sync smaller than the pairing distance goes to SLC (large ones stay native).
    fn commit_head(&self, sync: bool) -> HeadId {
        let slots = self.log.dirty.len() + self.log.pending_bytes.div_ceil(self.flash.shape.slot_bytes);
        let small = slots < self.flash.shape.native.pair_slots as usize && !self.log.native_since_sync;
        let native = self.options.mode.writes_native() && !(sync && small) && self.flash.naming;
        self.head_with_room(if native { HeadId::Native } else { HeadId::Slc })
    }

    /// The log head to write to: `wanted`, unless it has no room, the other has, and a block of its own would be one
    /// of the last; recovery, which cannot make room, never takes one while either head has room.
    pub(crate) fn head_with_room(&self, wanted: HeadId) -> HeadId {
        let room = |id: HeadId| self.flash.head(id).room(self.flash.shape.mode(id.mode())) > 0;
        let other = if wanted == HeadId::Slc { HeadId::Native } else { HeadId::Slc };
        let stay = room(wanted) || !room(other) || (self.flash.naming && self.flash.free_blocks() > 0);
        if stay { wanted } else { other }
    }

    /// Writes a full chunk, to flash at once or (natively) behind a few others.
    pub(crate) fn write_chunk(
        &mut self,
        ino: u64,
        chunk: u64,
        data: &[u8],
        now_ns: i64,
        fresh: bool,
    ) -> Result<Option<Extent>> {
        if self.options.mode.writes_native() {
            let data_key = key(ino, KeyKind::Data, chunk);
            let fresh = fresh || self.index.get(&mut self.flash, data_key)?.is_none();
            // Room is made before: what cannot be stored must not keep these bytes where nobody counts them.
            while self.log.dirty(ino, chunk).is_none()
                && self.log.dirty.len() >= self.flash.shape.native.pair_slots.max(1) as usize
                && let Some((ino, chunk)) = self.log.oldest()
            {
                self.store_dirty(HeadId::Native, ino, chunk, true)?;
            }
            self.log.put_dirty(ino, chunk, data.to_vec(), fresh);
            return Ok(None);
        }
        self.log.drop_dirty(ino, chunk);
        let reserved = !fresh && self.is_reserved(ino, chunk)?;
        let pack = self.options.compression == Compression::Lz4 && !reserved;
        if pack && self.store_packed(ino, chunk, data, now_ns, fresh)? {
            return Ok(None);
        }
        let piece = Piece { ino, chunk, bytes: data, time_ns: now_ns, fresh, may_end: true };
        self.store_bare(HeadId::Slc, piece, data).map(Some)
    }

    /// Writes every chunk in memory of an inode: its attributes are about to be set apart from its data.
    pub(crate) fn store_inode(&mut self, ino: u64) -> Result<()> {
        let head = self.commit_head(false);
        while let Some((ino, chunk)) = self.log.oldest_of(ino) {
            self.store_dirty(head, ino, chunk, false)?;
        }
        Ok(())
    }

    fn store_dirty(&mut self, head: HeadId, ino: u64, chunk: u64, may_end: bool) -> Result<()> {
        let Some(mut dirty) = self.log.dirty.remove(&(ino, chunk)) else { return Ok(()) };
        self.log.turns.remove(&dirty.turn);
        let outcome = self.store_taken(head, ino, chunk, &dirty, may_end);
        if outcome.is_err() {
            // It may have been mapped before the failure.
            dirty.fresh = false;
            self.log.turns.insert(dirty.turn, (ino, chunk));
            self.log.dirty.insert((ino, chunk), dirty);
        }
        outcome
    }

    fn store_taken(&mut self, head: HeadId, ino: u64, chunk: u64, dirty: &Dirty, may_end: bool) -> Result<()> {
        let (bytes, fresh) = (dirty.bytes.as_slice(), dirty.fresh);
        let now_ns = self.inode(ino)?.mtime_ns;
        let slot_bytes = self.flash.shape.slot_bytes;
        let reserved = !fresh && self.is_reserved(ino, chunk)?;
        let lz4 = self.options.compression == Compression::Lz4 && !reserved;
        if lz4 && bytes.len() > slot_bytes / 4 && self.store_packed(ino, chunk, bytes, now_ns, fresh)? {
            return Ok(());
        }
        if bytes.len() + 512 <= slot_bytes && !reserved {
            let body = Body::Data { chunk, time_ns: now_ns, len: bytes.len() as u32, lz4: false, bytes };
            return self.push_data(ino, chunk, body, fresh);
        }
        let piece = Piece { ino, chunk, bytes, time_ns: now_ns, fresh, may_end };
        let replaced = if bytes.len() == slot_bytes {
            self.store_bare(head, piece, bytes)?
        } else {
            let mut padded = bytes.to_vec();
            padded.resize(slot_bytes, 0);
            self.store_bare(head, piece, &padded)?
        };
        self.count_chunks(ino, Extent::of(chunk), replaced)
    }

    /// Writes a chunk as a compressed node. `false`: it does not get smaller.
    fn store_packed(&mut self, ino: u64, chunk: u64, data: &[u8], now_ns: i64, fresh: bool) -> Result<bool> {
        let packed = lz4_flex::compress(data);
        if packed.len() + DATA_HEAD_BYTES > data.len() * 7 / 8 {
            return Ok(false);
        }
        let body = Body::Data { chunk, time_ns: now_ns, len: data.len() as u32, lz4: true, bytes: &packed };
        self.push_data(ino, chunk, body, fresh)?;
        Ok(true)
    }

    /// Makes a node of a chunk; where that is `fresh`, what stands in the index need not be readable.
    fn push_data(&mut self, ino: u64, chunk: u64, body: Body<'_>, fresh: bool) -> Result<()> {
        let data_key = key(ino, KeyKind::Data, chunk);
        let was = if fresh { None } else { self.index.get(&mut self.flash, data_key)? };
        self.push_node(ino, body, fresh)?;
        let replaced = match was {
            None => Extent::default(),
            Some(Place::Reserved { .. }) => Extent::reserved(1),
            Some(_) => Extent::of(chunk),
        };
        self.count_chunks(ino, Extent::of(chunk), replaced)
    }

    /// Appends a chunk as a slot of its own, `padded` to a slot's length; what it replaced.
    fn store_bare(&mut self, head: HeadId, piece: Piece<'_>, padded: &[u8]) -> Result<Extent> {
        let Piece { ino, chunk, bytes, time_ns, fresh, may_end } = piece;
        let end = may_end && self.log.is_empty();
        let (len, stamp) = (bytes.len() as u32, ticks(time_ns));
        let draft = Draft { kind: Kind::Data, end, copy: false, ino, chunk, len, stamp };
        let slot = self.flash.append(head, draft, padded, Cause::Host)?;
        if end {
            self.flash.end_group();
        }
        self.log.native_since_sync |= head == HeadId::Native;
        let (data_key, seq) = (key(ino, KeyKind::Data, chunk), self.flash.next_seq - 1);
        let change = Change::Put(Place::Run { slot, count: 1 });
        let replaced = self.index.set(&mut self.flash, data_key, change, seq, fresh)?;
        if !self.flash.moved.is_empty() {
            self.follow_moved()?;
        }
        Ok(replaced.chunks)
    }

    /// Packs the pending nodes that still count into slots; the last one ends the group.
    fn write_pending(&mut self, head: HeadId) -> Result<()> {
        let alive = self.alive_pending()?;
        let slot_bytes = self.flash.shape.slot_bytes;
        let mut numbers = alive.as_slice();
        while !numbers.is_empty() {
            let mut buffer = Vec::with_capacity(slot_bytes);
            let mut taken = Vec::new();
            while let Some((&number, rest)) = numbers.split_first()
                && let Some(pending) = self.log.pending.get(number as usize)
                && buffer.len() + pending.bytes.len() <= slot_bytes - NODE_UNIT
            {
                taken.push((number, (buffer.len() / NODE_UNIT) as u8, (pending.bytes.len() / NODE_UNIT) as u8));
                buffer.extend_from_slice(&pending.bytes);
                numbers = rest;
            }
            if taken.is_empty() {
                break;
            }
            self.write_nodes(head, buffer, &taken, numbers.is_empty())?;
        }
        self.log.pending.clear();
        self.log.pending_bytes = 0;
        Ok(())
    }

    /// The pending nodes that still count, inodes last and up to date.
    fn alive_pending(&mut self) -> Result<Vec<u32>> {
        let mut alive = Vec::new();
        let mut inodes = Vec::new();
        for number in 0..self.log.pending.len() as u32 {
            let Some(pending) = self.log.pending.get(number as usize) else { break };
            match pending.key {
                None => alive.push(number),
                Some(key) => {
                    if self.index.delta.at(key) != Some(Change::Put(Place::Pending { number })) {
                        continue;
                    }
                    if kind_of(key) == KeyKind::Inode as u8 { inodes.push(number) } else { alive.push(number) }
                }
            }
        }
        for &number in &inodes {
            let Some(ino) = self.log.pending.get(number as usize).map(|pending| pending.ino) else { break };
            let inode = self.inode(ino)?;
            if let Some(pending) = self.log.pending.get_mut(number as usize) {
                pending.bytes = Node { ino, order: Order::Back(0), body: Body::Inode(inode) }.encode();
                pending.seq = u64::MAX;
            }
        }
        alive.extend(inodes);
        Ok(alive)
    }

    fn write_nodes(&mut self, head: HeadId, mut buffer: Vec<u8>, taken: &[(u32, u8, u8)], end: bool) -> Result<()> {
        let used = buffer.len();
        let slot_seq = self.flash.next_seq;
        for &(number, at, _) in taken {
            let Some(pending) = self.log.pending.get(number as usize) else { continue };
            let back = slot_seq.saturating_sub(pending.seq).min(u64::from(u16::MAX)) as u16;
            if let Some(bytes) = buffer.get_mut(usize::from(at) * NODE_UNIT..) {
                node::set_order(bytes, Order::Back(back));
            }
        }
        buffer.resize(self.flash.shape.slot_bytes, 0);
        let slot = self.append_nodes(head, &buffer, used, end, Cause::Metadata)?;
        for &(number, at, units) in taken {
            let Some((key, ino)) = self.log.pending.get(number as usize).map(|p| (p.key, p.ino)) else { continue };
            let Some(key) = key else { continue };
            self.index.settle(&mut self.flash, key, number, Place::Node { slot, at, units });
            if kind_of(key) == KeyKind::Inode as u8 {
                self.inodes.cleaned(ino);
            }
        }
        self.flash.cache.put(slot, buffer.into());
        Ok(())
    }

    fn append_nodes(&mut self, head: HeadId, bytes: &[u8], used: usize, end: bool, cause: Cause) -> Result<u64> {
        let draft = Draft { kind: Kind::Nodes, end, copy: false, ino: 0, chunk: 0, len: used as u32, stamp: 0 };
        let slot = self.flash.append(head, draft, bytes, cause)?;
        self.log.native_since_sync |= head == HeadId::Native;
        if end {
            self.flash.end_group();
        }
        Ok(slot)
    }
}
