//! Emptying one block: whatever in it the index still points to is copied, and the index follows.
//!
//! Invariant: a copy changes no content. It names its source, so that replay applies it only where the index still
//! points there, and the source is kept until the copy stands on a completed word line. Nothing counts on a block's being
//! emptied to the end.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::place;
use super::records::Records;
use crate::error::{Error, Result};
use crate::flash::Purpose;
use crate::flash::append::Draft;
use crate::flash::blocks::Take;
use crate::format::key::{Key, KeyKind, key};
use crate::format::node::{self, Order};
use crate::format::place::{NODE_UNIT, Place, Slot};
use crate::format::tag::{Kind, TAG_BYTES, Tag, is_blank};
use crate::index::Relocation;
use crate::policy::Region;
use crate::policy::place::Write;

/// Why a block is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// To make room.
    Room,
    /// It fails, or what it holds fades, or something else is to stand in it.
    Renewal,
    /// What it holds has not changed for long, and goes to worn blocks.
    Levelling,
}

/// A node on its way to a new slot.
struct Moving {
    key: Key,
    from: Place,
    bytes: Vec<u8>,
}

/// A block being emptied.
struct Job {
    victim: u32,
    /// The victim's erases: with one more it is another block.
    erases: u32,
    write: Write,
    purpose: Purpose,
    /// The block's tags, if its summary has been read.
    tags: Option<Vec<[u8; TAG_BYTES]>>,
    /// Whether the summary has been looked for.
    looked: bool,
    next: u32,
    moving: Vec<Moving>,
    moving_bytes: usize,
}

/// Empties one block at a time.
#[derive(Default)]
pub(super) struct Collector {
    job: Option<Job>,
}

impl Collector {
    /// The block being emptied.
    pub fn victim(&self) -> Option<u32> {
        self.job.as_ref().map(|job| job.victim)
    }

    /// Starts emptying `victim`.
    pub fn start<N: Nand>(&mut self, records: &Records<N>, victim: u32, why: Why) {
        let block = records.flash.blocks().get(victim);
        let write = place::of_copy(records, block.mode(), block.entry.live_bytes);
        let stays = block.entry.native == (records.manager.place(&write) == Region::Native);
        let purpose = match (why, stays) {
            (Why::Room, true) => Purpose::of(Cause::Gc),
            (Why::Room, false) => Purpose::of(Cause::Migration),
            (Why::Renewal, _) => Purpose::of(Cause::WearLevel),
            (Why::Levelling, _) => Purpose { cause: Cause::WearLevel, take: Take::MostWorn },
        };
        self.job = Some(Job::new((victim, block.entry.erases), write, purpose));
    }

    /// Moves at most one slot's worth of the block being emptied.
    pub fn step<N: Nand>(&mut self, records: &mut Records<N>) -> Result<()> {
        let Some(mut job) = self.job.take() else { return Ok(()) };
        if records.flash.blocks().get(job.victim).entry.erases != job.erases {
            // Callers emptied it, and it holds something else: what was taken along is out of date.
            return Ok(());
        }
        let done = job.move_some(records);
        match done {
            Ok(false) => self.job = Some(job),
            Ok(true) => records.flash.slots_mut().give_up(job.victim),
            Err(_) => {}
        }
        records.follow_moved()?;
        done.map(|_| ())
    }
}

/// Moves what is live in one slot of any block, at once: recovery does so with pages that may be unstable.
pub(super) fn move_one<N: Nand>(records: &mut Records<N>, slot: Slot) -> Result<()> {
    let victim = records.flash.shape().block_of(slot);
    let block = records.flash.blocks().get(victim);
    let write = place::of_copy(records, block.mode(), 0);
    let mut job = Job::new((victim, block.entry.erases), write, Purpose::of(Cause::Metadata));
    job.move_slot(records, slot)?;
    if job.moving.is_empty() { Ok(()) } else { job.write_moving(records) }
}

impl Job {
    fn new((victim, erases): (u32, u32), write: Write, purpose: Purpose) -> Self {
        let (tags, moving) = (None, Vec::new());
        Self { victim, erases, write, purpose, tags, looked: false, next: 0, moving, moving_bytes: 0 }
    }

    /// Whether the block is done.
    fn move_some<N: Nand>(&mut self, records: &mut Records<N>) -> Result<bool> {
        let block = records.flash.blocks().get(self.victim);
        if !self.looked {
            self.looked = true;
            if block.entry.sealed {
                let slots = records.flash.slots_mut();
                let summary = slots.read_summary(self.victim, block.mode(), 0, self.purpose.cause)?;
                self.tags = summary.map(|summary| summary.tags);
            }
        }
        let slots = records.flash.shape().mode(block.mode()).content_slots();
        while self.next < slots && records.flash.blocks().get(self.victim).entry.live_bytes > 0 {
            let slot = records.flash.shape().slot(self.victim, self.next);
            self.next += 1;
            if self.move_slot(records, slot)? {
                return Ok(false);
            }
        }
        if !self.moving.is_empty() {
            self.write_moving(records)?;
        }
        Ok(true)
    }

    /// Moves what is live in a slot. Whether anything was copied.
    fn move_slot<N: Nand>(&mut self, records: &mut Records<N>, slot: Slot) -> Result<bool> {
        let index = records.flash.shape().index_of(slot) as usize;
        let known = match self.tags.as_ref().map(|tags| tags.get(index)) {
            Some(None) => return Ok(false),
            Some(Some(raw)) if is_blank(raw) => return Ok(false),
            Some(Some(raw)) => Tag::decode_unchecked(raw),
            None => None,
        };
        if let Some(tag) = known
            && tag.kind == Kind::Data
            && !is_current(records, &tag, slot)?
        {
            return Ok(false);
        }
        let mut data = vec![0; records.flash.shape().slot_bytes];
        let slots = records.flash.slots_mut();
        let tag = match slots.read_tagged(slot, &mut data, self.purpose.cause) {
            Ok(Some(tag)) => tag,
            Ok(None) => return Ok(false),
            Err(Error::Corrupt { .. }) => {
                slots.count_corrupt();
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        match tag.kind {
            Kind::Data if is_current(records, &tag, slot)? => self.copy_data(records, &tag, slot, &data).map(|()| true),
            Kind::Nodes => self.take_nodes(records, &tag, slot, &data),
            _ => Ok(false),
        }
    }

    /// Copies a bare chunk.
    fn copy_data<N: Nand>(&self, records: &mut Records<N>, tag: &Tag, slot: Slot, data: &[u8]) -> Result<()> {
        let head = place::head(records, &self.write);
        let to = records.flash.append(head, Draft::copy_of_data(tag, slot), data, self.purpose)?;
        let place = |slot| Place::Run { slot, count: 1 };
        let key = key(tag.ino, KeyKind::Data, tag.chunk);
        records.relocate(Relocation { key, from: place(slot), to: place(to) })
    }

    /// Takes the live nodes of a slot along. Whether a slot of them was written.
    fn take_nodes<N: Nand>(&mut self, records: &mut Records<N>, tag: &Tag, slot: Slot, data: &[u8]) -> Result<bool> {
        let mut wrote = false;
        for (at, units, found) in node::nodes(data, tag.len as usize) {
            let Some(key) = found.key() else { continue };
            let from = Place::Node { slot, at, units };
            if !records.points_to(key, from)? {
                continue;
            }
            let start = usize::from(at) * NODE_UNIT;
            let Some(bytes) = data.get(start..start + usize::from(units) * NODE_UNIT) else { continue };
            let moving = Moving { key, from, bytes: bytes.to_vec() };
            let fits = self.moving_bytes + bytes.len() <= records.flash.shape().slot_bytes - NODE_UNIT;
            if !fits && bytes.len() > self.moving_bytes {
                // With it those that are gathered would take a slot that others may share.
                write_nodes(records, alloc::vec![moving], &self.write, self.purpose)?;
                wrote = true;
                continue;
            }
            if !fits {
                self.write_moving(records)?;
                wrote = true;
            }
            self.moving_bytes += bytes.len();
            self.moving.push(moving);
        }
        Ok(wrote)
    }

    /// Writes the nodes taken along to a slot: those that are still current. With the rest a copy would be newer in the
    /// log than what replaced it; replay sees through that, a salvage could not.
    fn write_moving<N: Nand>(&mut self, records: &mut Records<N>) -> Result<()> {
        let mut moving = Vec::with_capacity(self.moving.len());
        for node in core::mem::take(&mut self.moving) {
            if records.points_to(node.key, node.from)? {
                moving.push(node);
            }
        }
        self.moving_bytes = 0;
        if moving.is_empty() { Ok(()) } else { write_nodes(records, moving, &self.write, self.purpose) }
    }
}

/// Copies nodes that fit one slot.
fn write_nodes<N: Nand>(records: &mut Records<N>, moving: Vec<Moving>, write: &Write, purpose: Purpose) -> Result<()> {
    let slot_bytes = records.flash.shape().slot_bytes;
    let mut buffer = Vec::with_capacity(slot_bytes);
    for moving in &moving {
        let start = buffer.len();
        buffer.extend_from_slice(&moving.bytes);
        if let (Some(bytes), Place::Node { slot, at, .. }) = (buffer.get_mut(start..), moving.from) {
            node::set_order(bytes, Order::CopyOf { slot, at });
        }
    }
    let draft = Draft::copies_of_nodes(buffer.len() as u32);
    buffer.resize(slot_bytes, 0);
    let head = place::head(records, write);
    let slot = records.flash.append(head, draft, &buffer, purpose)?;
    let mut start = 0;
    for moving in moving {
        let (at, units) = ((start / NODE_UNIT) as u8, (moving.bytes.len() / NODE_UNIT) as u8);
        let to = Place::Node { slot, at, units };
        records.relocate(Relocation { key: moving.key, from: moving.from, to })?;
        start += moving.bytes.len();
    }
    Ok(())
}

/// Whether the index points to the data of this tag in `slot`.
fn is_current<N: Nand>(records: &mut Records<N>, tag: &Tag, slot: Slot) -> Result<bool> {
    records.points_to(key(tag.ino, KeyKind::Data, tag.chunk), Place::Run { slot, count: 1 })
}
