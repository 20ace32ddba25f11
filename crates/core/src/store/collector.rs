//! Emptying one block: whatever in it the index still points to is copied, and the index follows.
//!
//! Invariant: a copy changes no content. It names its source, so that replay applies it only where the index still
//! points there, and the source is kept until the copy stands on a completed word line. Nothing counts on a block's being
//! emptied to the end. A step reads a few pages to see what is live, or makes one copy.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand};

use super::log::Placement;
use super::place::{self, SlotContent, place};
use super::records::Records;
use crate::error::{Error, Result};
use crate::flash::append::Draft;
use crate::flash::blocks::Take;
use crate::flash::{Purpose, STEP_READS};
use crate::format::key::{Key, KeyKind, key};
use crate::format::node::{self, Order};
use crate::format::place::{NODE_UNIT, Place, Slot};
use crate::format::summary;
use crate::format::tag::{Kind, TAG_BYTES, Tag, is_blank};
use crate::index::Relocation;
use crate::manage::Manager;
use crate::manage::work::WorkKind;
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

/// A slot that was read: what of it is live is looked up from `at` on.
struct Opened {
    slot: Slot,
    tag: Tag,
    data: Vec<u8>,
    /// Of nodes: the unit of the first that was not looked up yet.
    at: u8,
}

/// What came of a step in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stepped {
    /// Nothing in it is left to copy.
    Through,
    /// All of it was copied.
    Emptied,
    /// A copy was made; the slot may hold more.
    Copied,
    /// Enough was read for one step; the slot is looked at again.
    Looked,
}

/// A step in emptying a block.
#[derive(Clone, Copy)]
struct CopyStep {
    /// Where its copy goes.
    to: Placement,
    /// Reads of the chip before it began.
    reads_before: u64,
}

impl CopyStep {
    /// Reads of the chip since it began.
    fn reads<N: Nand>(self, records: &Records<N>) -> u64 {
        records.log.reads() - self.reads_before
    }

    /// Whether it may look something up in the index, none of which may be in memory.
    fn may_look_up<N: Nand>(self, records: &Records<N>) -> bool {
        let spent = self.reads(records);
        spent == 0 || spent + u64::from(records.index.tree().levels()) <= STEP_READS
    }
}

/// A block being emptied.
struct CollectionJob {
    victim: u32,
    /// The victim's erases: with one more it is another block.
    erases: u32,
    write: Write,
    purpose: Purpose,
    /// The block's summary, as far as it has been read.
    summary: Vec<u8>,
    /// The block's tags, if its summary could be read.
    tags: Option<Vec<[u8; TAG_BYTES]>>,
    /// Whether the summary has been looked for.
    looked: bool,
    next: u32,
    opened: Option<Opened>,
    /// Nodes to be copied together, and the number of the first slot that any of them stands in.
    moving: Vec<Moving>,
    moving_bytes: usize,
    moving_from: u32,
    /// The generation of the index in which they were found.
    generation: u64,
}

/// Empties one block at a time.
#[derive(Default)]
pub(super) struct Collector {
    job: Option<CollectionJob>,
}

impl Collector {
    /// The block being emptied.
    pub fn victim(&self) -> Option<u32> {
        self.job.as_ref().map(|job| job.victim)
    }

    /// What the block is emptied for.
    pub fn work(&self) -> Option<WorkKind> {
        let Purpose { cause, take } = self.job.as_ref()?.purpose;
        Some(match (cause, take) {
            (_, Take::MostWorn) => WorkKind::Levelling,
            (Cause::Gc, _) => WorkKind::Collection,
            (Cause::Migration, _) => WorkKind::Migration,
            _ => WorkKind::Refresh,
        })
    }

    /// Whether the head that copies go to has room for the next one; not if nothing is being emptied.
    pub fn has_room<N: Nand>(&self, records: &Records<N>) -> bool {
        self.job.as_ref().is_some_and(|job| records.flash().slots().room(job.place(records).at) > 0)
    }

    /// Starts emptying `victim`.
    pub fn start<N: Nand>(&mut self, records: &Records<N>, victim: u32, why: Why) {
        let block = records.flash().blocks().get(victim);
        let write = place::of_copy(records, block.mode(), block.entry.live_bytes);
        let stays = block.entry.native == (records.manager.place(&write) == Region::Native);
        let purpose = match (why, stays) {
            (Why::Room, true) => Purpose::of(Cause::Gc),
            (Why::Room, false) => Purpose::of(Cause::Migration),
            (Why::Renewal, _) => Purpose::of(Cause::WearLevel),
            (Why::Levelling, _) => Purpose { cause: Cause::WearLevel, take: Take::MostWorn },
        };
        self.job = Some(CollectionJob::new(records, victim, write, purpose));
    }

    /// Reads a few pages of the block being emptied, makes one copy, or takes one step towards a place for it.
    pub fn step<N: Nand>(&mut self, records: &mut Records<N>) -> Result<()> {
        let Some(mut job) = self.job.take() else { return Ok(()) };
        if records.flash().blocks().get(job.victim).entry.erases != job.erases {
            // Callers emptied it, and it holds something else: what was taken along is out of date.
            return Ok(());
        }
        let done = job.step(records);
        match done {
            Ok(false) => self.job = Some(job),
            Ok(true) => records.log.slots_mut().give_up(job.victim),
            Err(_) => {}
        }
        records.follow_moved()?;
        done.map(|_| ())
    }

    /// Moves what is live in one slot of any block, at once: recovery does so with pages that may be unstable.
    pub fn move_one<N: Nand>(records: &mut Records<N>, slot: Slot) -> Result<()> {
        let victim = records.flash().shape().block_of(slot);
        let write = place::of_copy(records, records.flash().blocks().get(victim).mode(), 0);
        let mut job = CollectionJob::new(records, victim, write, Purpose::of(Cause::Metadata));
        loop {
            let to = job.place(records);
            match job.move_slot(records, CopyStep { to, reads_before: records.log.reads() }, slot)? {
                Stepped::Through | Stepped::Emptied => break,
                Stepped::Copied | Stepped::Looked => {}
            }
        }
        let to = job.place(records);
        job.write_moving(records, to)
    }
}

impl CollectionJob {
    fn new<N: Nand>(records: &Records<N>, victim: u32, write: Write, purpose: Purpose) -> Self {
        Self {
            victim,
            erases: records.flash().blocks().get(victim).entry.erases,
            write,
            purpose,
            summary: Vec::new(),
            tags: None,
            looked: false,
            next: 0,
            opened: None,
            moving: Vec::new(),
            moving_bytes: 0,
            moving_from: 0,
            generation: records.index.generation(),
        }
    }

    /// One step. Whether the block is done.
    fn step<N: Nand>(&mut self, records: &mut Records<N>) -> Result<bool> {
        if self.generation != records.index.generation() {
            self.look_again(records);
        }
        let block = records.flash().blocks().get(self.victim);
        let (mode, sealed) = (block.mode(), block.entry.sealed);
        if sealed && !self.looked {
            return self.read_summary(records, mode).map(|()| false);
        }
        let is_left = |job: &Self, records: &Records<N>| {
            records.flash().blocks().get(job.victim).entry.live_bytes > 0 || !job.moving.is_empty()
        };
        let to = self.place(records);
        if is_left(self, records) && !records.log.prepare(to, self.purpose)? {
            return Ok(false);
        }
        let slots = records.flash().shape().mode(mode).content_slots();
        let step = CopyStep { to, reads_before: records.log.reads() };
        while self.next < slots && records.flash().blocks().get(self.victim).entry.live_bytes > 0 {
            let slot = records.flash().shape().slot(self.victim, self.next);
            match self.move_slot(records, step, slot)? {
                Stepped::Through => self.next += 1,
                Stepped::Emptied => {
                    self.next += 1;
                    return Ok(false);
                }
                Stepped::Copied | Stepped::Looked => return Ok(false),
            }
        }
        if step.reads(records) > 1 && !self.moving.is_empty() {
            return Ok(false);
        }
        self.write_moving(records, to)?;
        Ok(true)
    }

    /// Where the next copy goes.
    fn place<N: Nand>(&self, records: &Records<N>) -> Placement {
        place(records, &self.write, SlotContent::Copies)
    }

    /// The index has another tree: what was found in the one before is found again.
    fn look_again<N: Nand>(&mut self, records: &Records<N>) {
        self.generation = records.index.generation();
        self.opened = None;
        if !self.moving.is_empty() {
            self.next = self.next.min(self.moving_from);
        }
        self.moving.clear();
        self.moving_bytes = 0;
    }

    /// Reads the next pages of the block's summary.
    fn read_summary<N: Nand>(&mut self, records: &mut Records<N>, mode: CellMode) -> Result<()> {
        let slots = records.log.slots_mut();
        let (slot_bytes, parts) = (slots.shape().slot_bytes, slots.shape().mode(mode).summary_slots);
        for _ in 0..STEP_READS {
            let part = (self.summary.len() / slot_bytes) as u32;
            let Some(bytes) = slots.read_summary_part(self.victim, mode, part, 0, self.purpose.cause)? else {
                self.looked = true;
                break;
            };
            self.summary.extend_from_slice(&bytes);
            if part + 1 == parts {
                self.looked = true;
                self.tags = summary::decode(self.victim, &self.summary).map(|summary| summary.tags);
                break;
            }
        }
        if self.looked {
            self.summary = Vec::new();
        }
        Ok(())
    }

    /// Moves what is live in a slot, by one step; the chip had been read so many times when the step began.
    fn move_slot<N: Nand>(&mut self, records: &mut Records<N>, step: CopyStep, slot: Slot) -> Result<Stepped> {
        let opened = match self.opened.take().filter(|opened| opened.slot == slot) {
            Some(opened) => opened,
            None => match self.open_slot(records, step, slot)? {
                Ok(opened) => opened,
                Err(stepped) => return Ok(stepped),
            },
        };
        match opened.tag.kind {
            Kind::Data => self.copy_data(records, step, opened),
            Kind::Nodes => self.take_nodes(records, step, opened),
            _ => Ok(Stepped::Through),
        }
    }

    /// Reads a slot, unless nothing in it can be live or enough was read before.
    fn open_slot<N: Nand>(
        &mut self,
        records: &mut Records<N>,
        step: CopyStep,
        slot: Slot,
    ) -> Result<core::result::Result<Opened, Stepped>> {
        let index = records.flash().shape().index_of(slot) as usize;
        let known = match self.tags.as_ref().map(|tags| tags.get(index)) {
            Some(None) => return Ok(Err(Stepped::Through)),
            Some(Some(raw)) if is_blank(raw) => return Ok(Err(Stepped::Through)),
            Some(Some(raw)) => Tag::decode_unchecked(raw),
            None => None,
        };
        if let Some(tag) = known
            && tag.kind == Kind::Data
        {
            if !step.may_look_up(records) {
                return Ok(Err(Stepped::Looked));
            }
            if !self.is_current(records, &tag, slot)? {
                return Ok(Err(Stepped::Through));
            }
        }
        if step.reads(records) >= STEP_READS {
            return Ok(Err(Stepped::Looked));
        }
        let mut data = vec![0; records.flash().shape().slot_bytes];
        let slots = records.log.slots_mut();
        match slots.read_tagged(slot, &mut data, self.purpose.cause) {
            Ok(Some(tag)) => Ok(Ok(Opened { slot, tag, data, at: 0 })),
            Ok(None) => Ok(Err(Stepped::Through)),
            Err(Error::Corrupt { what, slot }) => {
                // It is counted; whoever needs it will be told.
                let _ = slots.corrupt::<()>(what, slot);
                Ok(Err(Stepped::Through))
            }
            Err(error) => Err(error),
        }
    }

    /// Copies a bare chunk, if it is live.
    fn copy_data<N: Nand>(&mut self, records: &mut Records<N>, step: CopyStep, opened: Opened) -> Result<Stepped> {
        if !step.may_look_up(records) {
            self.opened = Some(opened);
            return Ok(Stepped::Looked);
        }
        let Opened { slot, tag, .. } = opened;
        if !self.is_current(records, &tag, slot)? {
            return Ok(Stepped::Through);
        }
        if step.reads(records) > 1 {
            self.opened = Some(opened);
            return Ok(Stepped::Looked);
        }
        let to = records.log.append(step.to, Draft::copy_of_data(&tag, slot), &opened.data, self.purpose)?;
        count_migrated(&mut records.manager, self.purpose);
        let place = |slot| Place::Run { slot, count: 1 };
        let key = key(tag.ino, KeyKind::Data, tag.chunk);
        records.relocate_known(Relocation { key, from: place(slot), to: place(to) });
        Ok(Stepped::Emptied)
    }

    /// Takes the live nodes of a slot along, until a slot of them is written.
    fn take_nodes<N: Nand>(&mut self, records: &mut Records<N>, step: CopyStep, mut opened: Opened) -> Result<Stepped> {
        let mut stepped = Stepped::Through;
        for (at, units, found) in node::nodes(&opened.data, opened.tag.len as usize) {
            let Some(key) = found.key().filter(|_| at >= opened.at) else { continue };
            opened.at = at;
            if !step.may_look_up(records) {
                stepped = Stepped::Looked;
                break;
            }
            let from = Place::Node { slot: opened.slot, at, units };
            let start = usize::from(at) * NODE_UNIT;
            let Some(bytes) = opened.data.get(start..start + usize::from(units) * NODE_UNIT) else { continue };
            if !records.index.points_to(records.log.slots_mut(), key, from)? {
                continue;
            }
            let fits = self.moving_bytes + bytes.len() <= records.flash().shape().slot_bytes - NODE_UNIT;
            if !fits && step.reads(records) > 1 {
                stepped = Stepped::Looked;
                break;
            }
            let moving = Moving { key, from, bytes: bytes.to_vec() };
            if fits {
                if self.moving.is_empty() {
                    self.moving_from = records.flash().shape().index_of(opened.slot);
                }
                self.moving_bytes += bytes.len();
                self.moving.push(moving);
                continue;
            }
            // With a large node those that are gathered would take a slot that others may share.
            match bytes.len() > self.moving_bytes {
                true => self.write_nodes(records, vec![moving], step.to)?,
                false => self.write_moving(records, step.to)?,
            }
            stepped = Stepped::Copied;
            break;
        }
        if stepped != Stepped::Through {
            self.opened = Some(opened);
        }
        Ok(stepped)
    }

    /// Whether the index points to the data of this tag in `slot`.
    fn is_current<N: Nand>(&self, records: &mut Records<N>, tag: &Tag, slot: Slot) -> Result<bool> {
        let key = key(tag.ino, KeyKind::Data, tag.chunk);
        records.index.points_to(records.log.slots_mut(), key, Place::Run { slot, count: 1 })
    }

    /// Writes the nodes taken along to a slot: those that are still current. With the rest a copy would be newer in the
    /// log than what replaced it; replay sees through that, a salvage could not.
    fn write_moving<N: Nand>(&mut self, records: &mut Records<N>, to: Placement) -> Result<()> {
        let mut moving = core::mem::take(&mut self.moving);
        moving.retain(|node| records.index.still_points_to(node.key, node.from));
        self.moving_bytes = 0;
        if moving.is_empty() { Ok(()) } else { self.write_nodes(records, moving, to) }
    }

    /// Copies nodes that fit one slot.
    fn write_nodes<N: Nand>(&self, records: &mut Records<N>, moving: Vec<Moving>, to: Placement) -> Result<()> {
        let slot_bytes = records.flash().shape().slot_bytes;
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
        let slot = records.log.append(to, draft, &buffer, self.purpose)?;
        count_migrated(&mut records.manager, self.purpose);
        let mut start = 0;
        for moving in moving {
            let (at, units) = ((start / NODE_UNIT) as u8, (moving.bytes.len() / NODE_UNIT) as u8);
            let to = Place::Node { slot, at, units };
            records.relocate_known(Relocation { key: moving.key, from: moving.from, to });
            start += moving.bytes.len();
        }
        Ok(())
    }
}

/// Tells the managers of a copy that was made, where it went from an SLC block to a native one.
fn count_migrated(manager: &mut Manager, purpose: Purpose) {
    if purpose.cause == Cause::Migration {
        manager.heard_of_migrated_page();
    }
}
