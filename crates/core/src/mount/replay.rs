//! Replay: what the log says since the last checkpoint, applied in order up to the last group that is whole.
//!
//! Invariants: originals count only up to the first missing sequence number, and only in complete groups; a copy counts
//! only if the index points to its source at that point. Nothing but nodes of the log itself is read for it: what
//! older blocks held may have been erased since. What cannot be read of the index keeps nothing from being applied.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use nand::Nand;

use super::actions::{self, Action, Basis};
use super::scan::Scan;
use crate::error::{Error, Result};
use crate::flash::Flash;
use crate::flash::blocks::Found;
use crate::flash::slots::{By, Release};
use crate::format::inode::{Census, Extent, Ino};
use crate::format::key::{Key, KeyKind, key, whole_inode};
use crate::format::node::{self, Body, Order};
use crate::format::place::{Place, Slot};
use crate::format::table::Use;
use crate::index::delta::Change;
use crate::index::{Relocation, Replaced};
use crate::store::records::Records;

/// What was counted, or not, because nothing was found in its place. Where the log is applied to nothing, that may have
/// been erased.
#[derive(Clone, Debug, Default)]
pub struct Unseen {
    /// Chunks that were counted as new.
    pub chunks: Vec<u64>,
    /// One past the last chunk there may have been before.
    pub end_chunk: u64,
    /// The offsets of entries that were counted as new.
    pub came: Vec<u64>,
    /// The offsets of entries that were not counted as gone.
    pub gone: Vec<u64>,
}

/// What originals say about an inode besides its own node.
#[derive(Default)]
pub struct Derived {
    size: u64,
    /// The times of modification and of change became this one.
    changed_ns: Option<i64>,
    added: Extent,
    removed: Extent,
    entries: Census,
    unseen: Unseen,
}

impl Derived {
    /// What was counted, or not, because nothing was found in its place.
    pub fn take_unseen(&mut self) -> Unseen {
        core::mem::take(&mut self.unseen)
    }

    /// Changes an inode by what is said about it.
    pub fn apply<N: Nand>(self, records: &mut Records<N>, ino: Ino) -> Result<()> {
        let mut inode = match records.inode(ino) {
            Ok(inode) => inode,
            Err(Error::NotFound | Error::Corrupt { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        inode.size = inode.size.max(self.size).min(i64::MAX as u64);
        inode.chunks = inode.chunks.with(self.added).without(self.removed);
        inode.entries = inode.entries.with(self.entries);
        if let Some(time_ns) = self.changed_ns {
            (inode.mtime_ns, inode.ctime_ns) = (time_ns, time_ns);
        }
        records.derive_inode(ino, inode);
        Ok(())
    }
}

impl Scan {
    /// The originals that count end before this sequence number, if the slots `without` could not be read.
    fn limit(&self, without: &BTreeSet<Slot>) -> u64 {
        let (mut next, mut limit) = (self.seq, self.seq);
        let originals = self.slots.iter().filter(|(tag, slot)| !tag.copy && !without.contains(slot));
        let originals: BTreeMap<u64, bool> = originals.map(|(tag, _)| (tag.seq, tag.end)).collect();
        for (seq, end) in originals {
            if seq != next {
                break;
            }
            next += 1;
            if end {
                limit = next;
            }
        }
        limit
    }
}

impl Scan {
    /// What the log says, in order, as far as it counts. The blocks that it went through are listed as its own.
    pub fn take_in<N: Nand>(&self, flash: &mut Flash<N>) -> Result<Vec<Action>> {
        let era = flash.numbers().era();
        for (&block, visited) in &self.visited {
            let Some(mut found) = flash.slots_mut().blocks_mut().get_mut(block) else { continue };
            found.era = era;
            found.entry.failing |= found.entry.used_as == Use::Bad;
            visited.id.mark(&mut found.entry);
            found.found = Found::Pages;
            found.entry.sealed = visited.sealed;
            found.entry.erases = visited.erases.unwrap_or(found.entry.erases).max(found.entry.erases);
        }
        actions::in_order(flash.slots_mut(), &self.slots, self.limit(&BTreeSet::new()), Basis::Checkpoint)
    }
}

/// A log being applied to the records of a volume.
pub struct Replay<'a, N: Nand> {
    records: &'a mut Records<N>,
    /// What the action being applied takes from a block may not be readable again: the block stays as it is until the
    /// next checkpoint.
    doubtful: bool,
    derived: BTreeMap<Ino, Derived>,
}

impl<'a, N: Nand> Replay<'a, N> {
    /// Before anything is applied.
    pub fn new(records: &'a mut Records<N>) -> Self {
        Self { records, doubtful: false, derived: BTreeMap::new() }
    }

    /// Applies the log: what it says, and how it was found. Whether anything of it had to be dropped.
    pub fn apply(mut self, scan: &Scan, actions: &[Action]) -> Result<bool> {
        let limit = scan.limit(&BTreeSet::new());
        self.records.recovery().note_ino(scan.last_ino);
        // What the last pages say may not be readable again, should this recovery be cut short: blocks that they took
        // anything from stay as they are until the checkpoint.
        let doubtful: BTreeSet<Slot> =
            self.records.flash().slots().stash().iter().map(|stashed| stashed.slot).collect();
        let certain = scan.limit(&doubtful);
        for action in actions {
            self.doubtful = doubtful.contains(&action.slot) || (!action.tag.copy && action.tag.seq >= certain);
            self.apply_action(action, Basis::Checkpoint)?;
        }
        self.records.recovery().recount_blocks();
        for (ino, derived) in self.take_derived() {
            derived.apply(self.records, ino)?;
        }
        Ok(scan.slots.iter().any(|(tag, _)| !tag.copy && tag.seq >= limit))
    }

    /// What originals said about inodes so far besides their own nodes.
    pub fn take_derived(&mut self) -> BTreeMap<Ino, Derived> {
        core::mem::take(&mut self.derived)
    }

    /// Applies one action to the index alone: what it says about inodes they have counted.
    pub fn apply_to_index(&mut self, action: &Action, basis: Basis) -> Result<()> {
        let derived = self.take_derived();
        let outcome = self.apply_action(action, basis);
        self.derived = derived;
        outcome
    }

    /// What stood at a key cannot be read: what is older must not take its place.
    pub fn cut(&mut self, key: Key) -> Result<()> {
        let release = self.release(By::Record(0));
        self.records.recovery().set(key, Change::Cut(1), release).map(|_| ())
    }

    /// The records, as far as they are applied.
    pub fn records(&mut self) -> &mut Records<N> {
        self.records
    }

    /// Applies one action.
    pub fn apply_action(&mut self, action: &Action, basis: Basis) -> Result<()> {
        let tag = &action.tag;
        let Some(at) = action.at else {
            let data_key = key(tag.ino, KeyKind::Data, tag.chunk);
            let place = Place::Run { slot: action.slot, count: 1 };
            if tag.copy {
                return self.apply_copy(basis, data_key, Place::Run { slot: tag.source, count: 1 }, place, tag.seq);
            }
            let replaced = self.change(data_key, Change::Put(place), tag.seq)?;
            let changed_ns = tag.dated.then_some(tag.time_ns);
            self.derive_data((tag.ino, tag.chunk), tag.len, changed_ns, replaced);
            return Ok(());
        };
        let bytes = self.records.slot_reader().nodes(action.slot)?;
        let found = node::nodes(&bytes, tag.len as usize).find(|&(start, ..)| start == at);
        let Some((_, units, found)) = found else { return Ok(()) };
        let place = Place::Node { slot: action.slot, at, units };
        if let Order::CopyOf { slot, at } = found.order {
            let Some(key) = found.key() else { return Ok(()) };
            return self.apply_copy(basis, key, Place::Node { slot, at, units }, place, tag.seq);
        }
        self.apply_node(&found, place, tag.seq)
    }

    fn apply_copy(&mut self, basis: Basis, key: Key, from: Place, to: Place, seq: u64) -> Result<()> {
        let (by_copy, by_record) = (self.release(By::Copy(0)), self.release(By::Record(seq)));
        let mut recovery = self.records.recovery();
        match basis {
            Basis::Checkpoint => or_unseen(recovery.relocate(Relocation { key, from, to }, by_copy)).map(|_| ()),
            // What it was taken from may be gone, and whatever tells of that. It was current when it was written.
            Basis::Nothing => recovery.set(key, Change::Put(to), by_record).map(|_| ()),
        }
    }

    /// What something applied makes of what it replaces.
    fn release(&self, by: By) -> Release {
        Release { by, held: self.doubtful.then(|| self.records.flash().numbers().era()) }
    }

    fn apply_node(&mut self, found: &node::Node<'_>, place: Place, seq: u64) -> Result<()> {
        let ino = found.ino;
        let replaced = match found.key() {
            Some(key) => self.change(key, Change::Put(place), seq)?,
            None => Replaced::default(),
        };
        let cut = |replay: &mut Self, from, span| replay.change(from, Change::Cut(span), seq);
        match found.body {
            Body::Inode(inode) => {
                self.records.recovery().count_files(u64::from(!replaced.any), 0);
                self.records.recovery().note_ino(ino);
                self.derived.remove(&ino);
                if inode.nlink == 0 {
                    self.change(key(0, KeyKind::Orphan, ino), Change::Put(Place::Mark), seq)?;
                }
            }
            Body::Entry { offset, time_ns, .. } => {
                let found = self.derived.entry(ino).or_default();
                found.changed_ns = Some(time_ns);
                if !replaced.any {
                    found.entries.add(offset);
                    found.unseen.came.push(offset);
                }
            }
            Body::EntryGone { offset, time_ns } => {
                let gone = cut(self, key(ino, KeyKind::Entry, offset), 1)?;
                let found = self.derived.entry(ino).or_default();
                found.changed_ns = Some(time_ns);
                match gone.any {
                    true => found.entries.remove(offset),
                    false => found.unseen.gone.push(offset),
                }
            }
            Body::Data { chunk, time_ns, dated, len, .. } => {
                self.derive_data((ino, chunk), len, dated.then_some(time_ns), replaced);
            }
            Body::Cut { from, count } => {
                let gone = cut(self, key(ino, KeyKind::Data, from), u128::from(count))?;
                let found = self.derived.entry(ino).or_default();
                found.removed = found.removed.with(gone.chunks);
            }
            Body::Reserve { from, count } => {
                let added = or_unseen(self.records.chunks(ino).reserve_holes(from, from + count))?;
                let found = self.derived.entry(ino).or_default();
                found.added = found.added.with(Extent::reserved(added));
            }
            Body::Xattr { .. } | Body::XattrPart { .. } => {}
            Body::XattrGone { offset, count } => {
                cut(self, key(ino, KeyKind::Xattr, offset), u128::from(count))?;
            }
            Body::Forget => {
                // Data of an inode may stand in the log without the inode: it came and went within one group.
                let was = or_unseen(self.records.get(key(ino, KeyKind::Inode, 0)))?.is_some();
                let (from, to) = whole_inode(ino);
                cut(self, from, to - from)?;
                cut(self, key(0, KeyKind::Orphan, ino), 1)?;
                self.records.recovery().count_files(0, u64::from(was));
                self.derived.remove(&ino);
            }
        }
        Ok(())
    }

    /// Changes the index as a record says. Where it cannot be read what it said before, that was not needed when the record
    /// was written, or could be read then: it counts as nothing.
    fn change(&mut self, key: Key, change: Change, seq: u64) -> Result<Replaced> {
        let release = self.release(By::Record(seq));
        let mut recovery = self.records.recovery();
        match recovery.set(key, change, release) {
            Err(Error::Corrupt { .. }) => {
                recovery.overlay(key, change);
                Ok(Replaced::default())
            }
            outcome => outcome,
        }
    }

    fn derive_data(&mut self, (ino, chunk): (Ino, u64), len: u32, changed_ns: Option<i64>, replaced: Replaced) {
        let chunk_bytes = self.records.chunk_bytes();
        let found = self.derived.entry(ino).or_default();
        found.size = found.size.max(chunk.saturating_mul(chunk_bytes).saturating_add(u64::from(len)));
        found.changed_ns = changed_ns.or(found.changed_ns);
        found.added = found.added.with(Extent::of(chunk));
        found.removed = found.removed.with(replaced.chunks);
        found.unseen.chunks.extend((replaced.chunks.count == 0).then_some(chunk));
    }
}

/// What was asked of the index, or nothing where that cannot be read.
fn or_unseen<T: Default>(found: Result<T>) -> Result<T> {
    match found {
        Err(Error::Corrupt { .. }) => Ok(T::default()),
        found => found,
    }
}
