//! The index: where everything stands, in three layers, newest first: changes since the last checkpoint began, the
//! changes a running checkpoint is writing out, and the tree on flash.
//!
//! Invariant: every byte the index points to is counted as live in its block, once.

pub mod delta;
pub mod merge;
pub mod tree;

use nand::Nand;

use self::delta::{Change, Delta};
use self::tree::{Tree, clip};
use crate::error::Result;
use crate::flash::slots::{Release, Slots};
use crate::format::inode::Extent;
use crate::format::key::{Key, KeyKind, kind_of, offset_of};
use crate::format::page::Entry;
use crate::format::place::Place;

/// Entries that one change replaces as a rule: these are not looked up a second time.
const FEW: usize = 4;

/// The index.
#[derive(Default)]
pub struct Index {
    /// Changes since the last checkpoint began.
    delta: Delta,
    /// Those that the checkpoint under way writes out.
    frozen: Option<Delta>,
    tree: Tree,
    /// Checkpoints whose tree this was since mount.
    generation: u64,
    /// Chunks that space is reserved for.
    reserved_chunks: u64,
}

/// What a change replaced.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replaced {
    pub chunks: Extent,
    /// Whether anything was there.
    pub any: bool,
}

/// Content that stands elsewhere now.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    pub key: Key,
    pub from: Place,
    pub to: Place,
}

impl Index {
    /// The index of a checkpoint.
    pub fn new(tree: Tree, reserved_chunks: u64) -> Self {
        Self { tree, reserved_chunks, ..Self::default() }
    }

    /// The tree on flash.
    pub fn tree(&self) -> Tree {
        self.tree
    }

    /// Changes with each tree: what was found in one of a generation stands there until something in memory says otherwise.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Chunks that space is reserved for.
    pub fn reserved_chunks(&self) -> u64 {
        self.reserved_chunks
    }

    /// Changes since the last checkpoint began.
    pub fn fresh_changes(&self) -> usize {
        self.delta.len()
    }

    /// Changes that are not in the tree.
    pub fn all_changes(&self) -> usize {
        self.delta.len() + self.frozen.as_ref().map_or(0, Delta::len)
    }

    /// The pending node that a key leads to.
    pub fn pending_at(&self, key: Key) -> Option<u32> {
        match self.delta.at(key) {
            Some(Change::Put(Place::Pending { number })) => Some(number),
            _ => None,
        }
    }

    /// Sets the changes so far aside for a checkpoint to write out.
    pub fn freeze(&mut self) {
        self.frozen = Some(core::mem::take(&mut self.delta));
    }

    /// The changes set aside.
    pub fn frozen(&self) -> Option<&Delta> {
        self.frozen.as_ref()
    }

    /// The changes set aside are in this tree.
    pub fn thaw(&mut self, tree: Tree) {
        self.tree = tree;
        self.frozen = None;
        self.generation += 1;
    }

    /// Where a key's content stands.
    pub fn get<N: Nand>(&self, slots: &mut Slots<N>, key: Key) -> Result<Option<Place>> {
        Ok(self.next(slots, key, key + 1)?.map(|entry| entry.place))
    }

    /// Whether a key's content stands in `place`: only then what stands there may be copied, and the copy count.
    pub fn points_to<N: Nand>(&self, slots: &mut Slots<N>, key: Key, place: Place) -> Result<bool> {
        Ok(self.get(slots, key)? == Some(place))
    }

    /// Whether a key's content still stands in `place`, where it stood in this generation: nothing is read for it.
    pub fn still_points_to(&self, key: Key, place: Place) -> bool {
        let layers = [Some(&self.delta), self.frozen.as_ref()];
        let change = layers.into_iter().flatten().find_map(|layer| layer.seek(key, key + 1));
        match change {
            Some((start, _, Change::Put(found))) => {
                clip(Entry { key: start, place: found }, key, key + 1).place == place
            }
            Some((_, _, Change::Cut(_))) => false,
            None => true,
        }
    }

    /// The first entry that reaches into `from..to`, cut to that range.
    pub fn next<N: Nand>(&self, slots: &mut Slots<N>, from: Key, to: Key) -> Result<Option<Entry>> {
        self.next_from(slots, 0, from, to)
    }

    fn next_from<N: Nand>(&self, slots: &mut Slots<N>, layer: u8, mut from: Key, to: Key) -> Result<Option<Entry>> {
        let changes = match (layer, &self.frozen) {
            (0, _) => &self.delta,
            (1, Some(frozen)) => frozen,
            _ => return self.tree.next(slots, from, to),
        };
        while from < to {
            let Some((start, end, change)) = changes.seek(from, to) else {
                return self.next_from(slots, layer + 1, from, to);
            };
            if start > from {
                if let Some(entry) = self.next_from(slots, layer + 1, from, start)? {
                    return Ok(Some(entry));
                }
                from = start;
            }
            match change {
                Change::Put(place) => return Ok(Some(clip(Entry { key: start, place }, from, to))),
                Change::Cut(_) => from = end,
            }
        }
        Ok(None)
    }

    /// Changes what the keys from `key` on map to, releasing what was mapped there.
    ///
    /// `fresh` promises that nothing is mapped there yet.
    pub fn set<N: Nand>(
        &mut self,
        slots: &mut Slots<N>,
        key: Key,
        change: Change,
        release: Release,
        fresh: bool,
    ) -> Result<Replaced> {
        let replaced = if fresh { Replaced::default() } else { self.take(slots, key, key + change.span(), release)? };
        if replaced.any || matches!(change, Change::Put(_)) {
            self.overlay(slots, key, change);
        }
        Ok(replaced)
    }

    /// Changes what the keys from `key` on map to, whatever that was: it is not counted as gone.
    pub fn overlay<N: Nand>(&mut self, slots: &mut Slots<N>, key: Key, change: Change) {
        let Change::Put(place) = change else { return self.delta.set(key, change) };
        if let Place::Reserved { count } = place {
            self.reserved_chunks += u64::from(count);
        }
        slots.retain(place);
        self.delta.set_joined(key, change);
    }

    /// Counts what stands in `from..to` as gone. Where any of it cannot be read, nothing is.
    fn take<N: Nand>(&mut self, slots: &mut Slots<N>, mut from: Key, to: Key, release: Release) -> Result<Replaced> {
        let mut few = [None; FEW];
        let (first, mut count) = (from, 0);
        while let Some(entry) = self.next(slots, from, to)? {
            if let Some(place) = few.get_mut(count) {
                *place = Some(entry);
            }
            (from, count) = (entry.end(), count + 1);
        }
        let mut replaced = Replaced { any: count > 0, ..Replaced::default() };
        if count <= FEW {
            few.into_iter().flatten().for_each(|entry| self.count_gone(slots, entry, release, &mut replaced));
            return Ok(replaced);
        }
        from = first;
        while let Some(entry) = self.next(slots, from, to)? {
            self.count_gone(slots, entry, release, &mut replaced);
            from = entry.end();
        }
        Ok(replaced)
    }

    fn count_gone<N: Nand>(&mut self, slots: &mut Slots<N>, entry: Entry, release: Release, replaced: &mut Replaced) {
        if let Place::Reserved { count } = entry.place {
            self.reserved_chunks = self.reserved_chunks.saturating_sub(u64::from(count));
            replaced.chunks = replaced.chunks.with(Extent::reserved(count.into()));
        } else if kind_of(entry.key) == KeyKind::Data as u8 {
            let first = offset_of(entry.key);
            let chunks = (first..first + entry.place.span()).map(Extent::of);
            replaced.chunks = chunks.fold(replaced.chunks, Extent::with);
        }
        slots.release(entry.place, release);
    }

    /// Makes a key point to a copy, if it still points to the original. Whether it did.
    pub fn relocate<N: Nand>(&mut self, slots: &mut Slots<N>, moved: Relocation, release: Release) -> Result<bool> {
        Ok(self.points_to(slots, moved.key, moved.from)? && self.relocate_known(slots, moved, release))
    }

    /// The same where it pointed to the original in this generation of the index.
    pub fn relocate_known<N: Nand>(&mut self, slots: &mut Slots<N>, moved: Relocation, release: Release) -> bool {
        let Relocation { key, from, to } = moved;
        let still = self.still_points_to(key, from);
        if still {
            slots.release(from, release);
            slots.retain(to);
            self.delta.set_joined(key, Change::Put(to));
        }
        still
    }

    /// Gives a pending node its place on flash, if the index still points to it. Whether it did.
    pub fn place_pending<N: Nand>(&mut self, slots: &mut Slots<N>, key: Key, number: u32, to: Place) -> bool {
        let settled = self.delta.replace(key, Change::Put(Place::Pending { number }), Change::Put(to));
        if settled {
            slots.retain(to);
        }
        settled
    }
}
