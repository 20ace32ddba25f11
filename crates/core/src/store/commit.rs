//! Commit: what is in the write buffer goes to flash, in groups.
//!
//! Everything appended between two end marks is one group: after a cut it counts whole or not at all. Invariant: an
//! end mark is written only when no earlier operation has anything left in memory.

use nand::{Cause, Nand};

use super::place::{SlotContent, place};
use super::records::Records;
use crate::error::Result;
use crate::flash::Purpose;
use crate::format::place::NODE_UNIT;
use crate::policy::budget::BUFFERED_CHUNKS_MAX;
use crate::policy::place::Write;

/// Slots of a group before it is closed.
const GROUP_MAX: u64 = 256;

impl<N: Nand> Records<N> {
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
        let numbers = self.flash().numbers();
        if self.buffer.is_empty() && numbers.is_ended() {
            return Ok(());
        }
        let long = numbers.next() - numbers.ended() >= GROUP_MAX;
        let shape = self.flash().shape();
        let full = self.buffer.pending_bytes() + NODE_UNIT * 4 > shape.slot_bytes;
        if full || long || self.buffer.dirty_count() > BUFFERED_CHUNKS_MAX.min(shape.slc.content_slots()) as usize {
            self.commit(false)?;
        }
        Ok(())
    }

    /// Writes out everything in memory and closes the group. With `sync` it is durable and promised afterwards.
    pub(super) fn commit(&mut self, sync: bool) -> Result<()> {
        let commit = Commit::of(self, sync);
        while !commit.step(self)? {}
        Ok(())
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
        let shape = records.flash().shape();
        let write = match sync {
            true => records.buffer.synced(shape.slot_bytes, shape.native.pair_slots),
            false => Write::Host,
        };
        Self { write, sync }
    }

    /// One step: a few reads, one program, or one towards a place for it. Whether everything is written, its group closed
    /// and, with `sync`, promised.
    pub fn step<N: Nand>(&self, records: &mut Records<N>) -> Result<bool> {
        let oldest = records.buffer.oldest();
        let is_written = records.buffer.is_empty() && records.flash().numbers().is_ended();
        let done = match oldest {
            None if is_written => self.finish(records)?,
            _ => self.write(records, oldest).map(|()| false)?,
        };
        records.follow_moved().map(|()| done)
    }

    /// Writes the chunk that has waited longest; without one a slot of nodes, or an empty one where only the end of the group
    /// is missing. Where something had to be read to know where the chunk stood before, that is the step.
    fn write<N: Nand>(&self, records: &mut Records<N>, oldest: Option<(u64, u64)>) -> Result<()> {
        let (to, cause) = match oldest {
            Some((ino, chunk)) => (records.chunks(ino).place_of_data(chunk, &self.write)?, Cause::Host),
            None => {
                let nodes = SlotContent::Nodes(records.buffer.last_ino());
                (place(records, &self.write, nodes), Cause::Metadata)
            }
        };
        if !records.log.prepare(to, Purpose::of(cause))? {
            return Ok(());
        }
        let Some((ino, chunk)) = oldest else { return records.store_nodes(to) };
        let mut file = records.chunks(ino);
        if file.is_at_hand(chunk)? { file.store_at(Some(to), chunk, None, true).map(|_| ()) } else { Ok(()) }
    }

    /// Everything is in the log: programs a unit that is not full, or promises what is on flash. Whether that was all.
    fn finish<N: Nand>(&self, records: &mut Records<N>) -> Result<bool> {
        if self.sync {
            if records.log.commit_unit()? {
                return Ok(false);
            }
            records.log.acknowledge();
            records.buffer.is_synced();
        }
        Ok(true)
    }
}
