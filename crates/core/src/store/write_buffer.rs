//! The write buffer: nodes and chunks that are not on flash yet.
//!
//! Chunks lie in the order in which they came: few enough wait for a look at each to be cheap. Invariant: a chunk is in
//! memory at most once, and chunks leave it in their order.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::format::key::Key;
use crate::policy::place::Write;

/// Chunks kept in memory before one more waits for the time of its change, where none waits for others.
pub(super) const AWAITING_MAX: usize = 8;

/// A node that waits to be packed.
pub(super) struct Pending {
    pub(super) key: Option<Key>,
    pub(super) ino: u64,
    pub(super) bytes: Vec<u8>,
    /// The sequence number to come when it was made.
    pub(super) seq: u64,
    /// It is on flash, others that came before the commit of both are not.
    pub(super) written: bool,
}

/// A chunk in memory.
pub(super) struct Dirty {
    ino: u64,
    chunk: u64,
    pub(super) bytes: Vec<u8>,
    /// Nothing is mapped there yet.
    pub(super) fresh: bool,
    turn: u64,
}

/// The write buffers.
#[derive(Default)]
pub struct WriteBuffer {
    pending: Vec<Pending>,
    pending_bytes: usize,
    /// In the order of their turns.
    dirty: VecDeque<Dirty>,
    dirty_bytes: usize,
    turn: u64,
    /// Something went to the native head since the last sync.
    native_since_sync: bool,
    /// When the oldest change was made that is not durable.
    since_ns: Option<i64>,
}

impl WriteBuffer {
    /// A pending node's bytes.
    pub fn pending(&self, number: u32) -> Option<&[u8]> {
        self.pending.get(number as usize).map(|pending| pending.bytes.as_slice())
    }

    /// A chunk in memory.
    pub fn dirty(&self, ino: u64, chunk: u64) -> Option<&[u8]> {
        self.found(ino, chunk).map(|dirty| dirty.bytes.as_slice())
    }

    fn position(&self, ino: u64, chunk: u64) -> Option<usize> {
        self.dirty.iter().position(|dirty| (dirty.ino, dirty.chunk) == (ino, chunk))
    }

    fn found(&self, ino: u64, chunk: u64) -> Option<&Dirty> {
        self.dirty.get(self.position(ino, chunk)?)
    }

    /// The chunks of an inode, in the order of their turns.
    fn of_inode(&self, ino: u64) -> impl DoubleEndedIterator<Item = &Dirty> {
        self.dirty.iter().filter(move |dirty| dirty.ino == ino)
    }

    /// Whether a chunk in memory is mapped nowhere yet.
    pub(super) fn is_fresh(&self, ino: u64, chunk: u64) -> bool {
        self.found(ino, chunk).is_some_and(|dirty| dirty.fresh)
    }

    /// Changes the bytes of a chunk, if it is in memory.
    fn change(&mut self, ino: u64, chunk: u64, change: impl FnOnce(&mut Vec<u8>)) {
        let Some(dirty) = self.position(ino, chunk).and_then(|at| self.dirty.get_mut(at)) else { return };
        let before = dirty.bytes.len();
        change(&mut dirty.bytes);
        self.dirty_bytes += dirty.bytes.len();
        self.dirty_bytes -= before;
    }

    /// Lays `data` over a chunk that is in memory, from its byte `skip` on.
    pub fn overlay(&mut self, ino: u64, chunk: u64, skip: usize, data: &[u8]) {
        self.change(ino, chunk, |bytes| {
            if bytes.len() < skip + data.len() {
                bytes.resize(skip + data.len(), 0);
            }
            if let Some(to) = bytes.get_mut(skip..skip + data.len()) {
                to.copy_from_slice(data);
            }
        });
    }

    /// Cuts a chunk that is in memory off behind `len` bytes; one stays in any case.
    pub fn truncate(&mut self, ino: u64, chunk: u64, len: usize) {
        self.change(ino, chunk, |bytes| {
            bytes.truncate(len);
            if bytes.is_empty() {
                bytes.push(0);
            }
        });
    }

    /// Zeroes `len` bytes of a chunk that is in memory, from its byte `skip` on, as far as it reaches.
    pub fn zero(&mut self, ino: u64, chunk: u64, skip: usize, len: usize) {
        self.change(ino, chunk, |bytes| bytes.iter_mut().skip(skip).take(len).for_each(|byte| *byte = 0));
    }

    /// Puts a chunk into memory; `fresh`: nothing is mapped there yet.
    pub fn put_dirty(&mut self, ino: u64, chunk: u64, bytes: Vec<u8>, fresh: bool) {
        self.drop_dirty(ino, chunk);
        self.turn += 1;
        self.dirty_bytes += bytes.len();
        self.dirty.push_back(Dirty { ino, chunk, bytes, fresh, turn: self.turn });
    }

    /// Chunks of an inode that are in memory only.
    pub fn fresh_chunks(&self, ino: u64) -> u64 {
        self.of_inode(ino).filter(|dirty| dirty.fresh).count() as u64
    }

    /// The chunks `from..to` of an inode that are in memory have a place in the index now.
    pub fn set_mapped(&mut self, ino: u64, from: u64, to: u64) {
        let mapped = self.dirty.iter_mut().filter(|dirty| dirty.ino == ino && (from..to).contains(&dirty.chunk));
        mapped.for_each(|dirty| dirty.fresh = false);
    }

    /// The first chunk in memory from `chunk` on.
    pub fn next_dirty(&self, ino: u64, chunk: u64) -> Option<u64> {
        self.of_inode(ino).map(|dirty| dirty.chunk).filter(|&other| other >= chunk).min()
    }

    /// Forgets a chunk in memory.
    pub fn drop_dirty(&mut self, ino: u64, chunk: u64) {
        self.take_dirty(ino, chunk);
    }

    /// Forgets the chunks `from..to` of an inode.
    pub fn drop_range(&mut self, ino: u64, from: u64, to: u64) {
        let mut dropped = 0;
        self.dirty.retain(|dirty| {
            let stays = dirty.ino != ino || !(from..to).contains(&dirty.chunk);
            dropped += if stays { 0 } else { dirty.bytes.len() };
            stays
        });
        self.dirty_bytes -= dropped;
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.dirty.is_empty()
    }

    /// Bytes that will take space on flash.
    pub fn bytes(&self) -> u64 {
        (self.pending_bytes + self.dirty_bytes) as u64
    }

    /// Chunks in memory.
    pub fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    /// When the oldest change was made that is not durable.
    pub(super) fn since_ns(&self) -> Option<i64> {
        self.since_ns
    }

    /// Something is not durable from now on, if all was before.
    pub(super) fn wait_since(&mut self, now_ns: i64) {
        self.since_ns.get_or_insert(now_ns);
    }

    /// What a sync of all that waits is said to be to whoever places it: with slots of so many bytes, and so many native ones
    /// after which an earlier page can no longer be endangered.
    pub(super) fn synced(&self, slot_bytes: usize, pair_slots: u32) -> Write {
        let slots = (self.dirty.len() + self.pending_bytes.div_ceil(slot_bytes)) as u32;
        Write::Synced { slots, pair_slots, follows_native: self.native_since_sync }
    }

    /// Something goes to a head, native or not.
    pub(super) fn goes_native(&mut self, native: bool) {
        self.native_since_sync |= native;
    }

    /// Everything is durable.
    pub(super) fn nothing_waits(&mut self) {
        self.since_ns = None;
    }

    /// Everything is durable and promised.
    pub(super) fn is_synced(&mut self) {
        (self.native_since_sync, self.since_ns) = (false, None);
    }

    /// Adds a node to those that wait.
    pub(super) fn add_pending(&mut self, pending: Pending) {
        self.pending_bytes += pending.bytes.len();
        self.pending.push(pending);
    }

    /// Nodes that wait, by their numbers.
    pub(super) fn pending_nodes(&mut self) -> &mut Vec<Pending> {
        &mut self.pending
    }

    /// The inode that the last of the nodes that wait is of.
    pub(super) fn last_ino(&self) -> Option<u64> {
        self.pending.last().map(|pending| pending.ino)
    }

    /// Bytes of the nodes that wait.
    pub(super) fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// A node that waits is on flash.
    pub(super) fn is_written(&mut self, number: u32) {
        if let Some(pending) = self.pending.get_mut(number as usize) {
            pending.written = true;
        }
    }

    /// The nodes that waited are on flash.
    pub(super) fn clear_pending(&mut self) {
        self.pending.clear();
        self.pending_bytes = 0;
    }

    /// Takes a chunk out of memory, to write it.
    pub(super) fn take_dirty(&mut self, ino: u64, chunk: u64) -> Option<Dirty> {
        let dirty = self.dirty.remove(self.position(ino, chunk)?)?;
        self.dirty_bytes -= dirty.bytes.len();
        Some(dirty)
    }

    /// Puts a chunk back that was taken out, in its turn. It may have been mapped before the failure.
    pub(super) fn put_back(&mut self, dirty: Dirty) {
        self.dirty_bytes += dirty.bytes.len();
        let at = self.dirty.partition_point(|other| other.turn < dirty.turn);
        self.dirty.insert(at, Dirty { fresh: false, ..dirty });
    }

    /// The chunk that has been in memory for the longest time.
    pub(super) fn oldest(&self) -> Option<(u64, u64)> {
        self.dirty.front().map(|dirty| (dirty.ino, dirty.chunk))
    }

    /// The same among those of an inode.
    pub(super) fn oldest_of(&self, ino: u64) -> Option<u64> {
        self.of_inode(ino).next().map(|dirty| dirty.chunk)
    }

    /// The chunk of an inode that came into memory last, if it is `len` bytes long.
    pub(super) fn newest_whole(&self, ino: u64, len: usize) -> Option<u64> {
        self.of_inode(ino).next_back().filter(|dirty| dirty.bytes.len() == len).map(|dirty| dirty.chunk)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// The bytes of all chunks and nodes that wait.
    fn counted(buffer: &WriteBuffer) -> u64 {
        let chunks = buffer.dirty.iter().map(|dirty| dirty.bytes.len()).sum::<usize>();
        (chunks + buffer.pending.iter().map(|pending| pending.bytes.len()).sum::<usize>()) as u64
    }

    #[test]
    fn the_bytes_that_wait_are_counted_through_every_change() {
        let mut buffer = WriteBuffer::default();
        let check = |buffer: &WriteBuffer, bytes: u64| assert_eq!((buffer.bytes(), counted(buffer)), (bytes, bytes));
        buffer.put_dirty(1, 0, vec![1; 100], true);
        buffer.put_dirty(1, 1, vec![2; 50], true);
        buffer.put_dirty(2, 0, vec![3; 7], false);
        check(&buffer, 157);
        buffer.put_dirty(1, 0, vec![4; 10], false);
        check(&buffer, 67);
        buffer.overlay(1, 0, 5, &[5; 20]);
        check(&buffer, 82);
        buffer.overlay(9, 9, 0, &[5; 20]);
        buffer.zero(1, 0, 20, 100);
        check(&buffer, 82);
        assert_eq!(
            buffer.dirty(1, 0).unwrap().split_at(20),
            (&[[4; 5], [5; 5], [5; 5], [5; 5]].concat()[..], &[0; 5][..])
        );
        buffer.truncate(1, 1, 0);
        check(&buffer, 33);
        let taken = buffer.take_dirty(1, 0).unwrap();
        check(&buffer, 8);
        buffer.put_back(taken);
        buffer.add_pending(Pending { key: None, ino: 1, bytes: vec![0; 48], seq: 1, written: false });
        check(&buffer, 81);
        buffer.drop_range(1, 0, 1);
        check(&buffer, 56);
        buffer.clear_pending();
        buffer.drop_dirty(2, 0);
        buffer.drop_dirty(1, 1);
        check(&buffer, 0);
        assert!(buffer.is_empty());
    }
}
