//! Writing a checkpoint's changes into a new tree, a page at a time, level by level from the leaves up.
//!
//! Each level takes the pages that changes fall into, overlays the changes, and writes the result as new pages;
//! what that does to the list of children is the next level's changes. The old tree stays whole throughout.
//! Invariant: an entry never reaches past the keys its page answers for.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::delta::{Change, Delta};
use super::tree::{Found, Tree, clip};
use crate::error::Result;
use crate::flash::append::Draft;
use crate::flash::head::LaneId;
use crate::flash::{Flash, Purpose, STEP_READS};
use crate::format::key::{KEY_END, Key};
use crate::format::page::{self, Entry, LEVELS_MAX};
use crate::format::place::{Place, Slot};
use crate::format::tag::Kind;

/// A merge under way.
pub struct Merge {
    old: Tree,
    level: u8,
    /// Changes of this level; the leaves' are the frozen layer of the index.
    changes: Option<Delta>,
    /// Changes of the level above.
    above: Delta,
    /// Keys of this level up to here are done.
    done: Key,
    /// Entries to write, and the key their first page is listed under.
    carry: Vec<Entry>,
    carry_listed: Option<Key>,
    /// Pages to write anew although nothing in them changes: (level, key).
    touch: BTreeSet<(u8, Key)>,
    /// Pages of the old tree that the new one does without.
    obsolete: Vec<Slot>,
    /// Pages written.
    new: Vec<Slot>,
}

impl Merge {
    /// A merge into `old`, which also moves the pages of `touch`.
    pub fn new(old: Tree, touch: BTreeSet<(u8, Key)>) -> Self {
        Self {
            old,
            level: 0,
            changes: None,
            above: Delta::default(),
            done: 0,
            carry: Vec::new(),
            carry_listed: None,
            touch,
            obsolete: Vec::new(),
            new: Vec::new(),
        }
    }

    /// Writes at most one page, to this lane. The new tree, when it is complete.
    pub fn step<N: Nand>(&mut self, flash: &mut Flash<N>, to: LaneId, frozen: &Delta) -> Result<Option<Tree>> {
        let capacity = page::capacity(flash.shape().slot_bytes);
        // Whatever opens a block comes before anything is read: a step does one or the other.
        let writes = !self.carry.is_empty() || self.next_change(frozen).is_some();
        if writes && !flash.prepare(to, Purpose::of(Cause::Metadata))? {
            return Ok(None);
        }
        let reads = flash.slots().reads();
        loop {
            let spent = flash.slots().reads() - reads;
            if spent > 0 && spent + u64::from(self.old.levels()) > STEP_READS {
                return Ok(None);
            }
            if self.carry.len() > capacity {
                return self.write_after(flash, to, reads);
            }
            if self.pull_next(flash, frozen, capacity)? {
                continue;
            }
            if let [Entry { place: Place::Run { slot, .. }, .. }] = self.carry.as_slice()
                && self.level > 0
                && self.is_top()
                && self.above_is_empty()
            {
                return Ok(Some(self.tree(Some((*slot, self.level)))));
            }
            if !self.carry.is_empty() {
                return self.write_after(flash, to, reads);
            }
            if self.next_change(frozen).is_some() {
                continue;
            }
            // The pages above say where these stand: none may move any more.
            if flash.flush_pages()? || flash.has_moved() {
                return Ok(None);
            }
            return Ok(self.next_level());
        }
    }

    /// Writes a page, unless too much was read since a step began after so many reads.
    fn write_after<N: Nand>(&mut self, flash: &mut Flash<N>, to: LaneId, reads: u64) -> Result<Option<Tree>> {
        if flash.slots().reads() - reads <= 1 {
            self.write(flash, to)?;
        }
        Ok(None)
    }

    /// Pages of the old tree that the new one does without.
    pub fn obsolete(&self) -> &[Slot] {
        &self.obsolete
    }

    /// Pages written.
    pub fn new_pages(&self) -> &[Slot] {
        &self.new
    }

    fn is_top(&self) -> bool {
        self.level + 1 >= self.old.levels()
    }

    fn above_is_empty(&self) -> bool {
        !self.above.iter().any(|(_, change)| matches!(change, Change::Put(_)))
    }

    fn tree(&self, root: Option<(Slot, u8)>) -> Tree {
        let pages = (self.old.pages + self.new.len() as u64).saturating_sub(self.obsolete.len() as u64);
        Tree { root, pages }
    }

    /// The first key that is not done and must be.
    fn next_change(&self, frozen: &Delta) -> Option<Key> {
        if self.done >= KEY_END {
            return None;
        }
        let changes = self.changes.as_ref().unwrap_or(frozen);
        let change = changes.seek(self.done, KEY_END).map(|(start, ..)| start.max(self.done));
        let touched = self.touch.range((self.level, self.done)..(self.level + 1, 0)).next().map(|&(_, key)| key);
        change.into_iter().chain(touched).min()
    }

    /// Takes the next page into the carry, if it may go on there. `false`: the carry must be written first, or
    /// nothing is left to take.
    fn pull_next<N: Nand>(&mut self, flash: &mut Flash<N>, frozen: &Delta, capacity: usize) -> Result<bool> {
        let next = self.next_change(frozen);
        let meagre = !self.carry.is_empty() && self.carry.len() < capacity / 4 && self.done < KEY_END;
        let key = match next {
            _ if meagre => self.done,
            Some(key) => key,
            None => return Ok(false),
        };
        let found = self.old.find(flash.slots_mut(), self.level, key)?;
        let low = found.as_ref().map_or(0, |found| found.low);
        if self.carry_listed.is_some() && low != self.done {
            return Ok(false);
        }
        self.pull(found, frozen);
        Ok(true)
    }

    fn pull(&mut self, found: Option<Found>, frozen: &Delta) {
        let (old, low, high, listed) = match &found {
            Some(found) => (found.page.entries(), found.low, found.high, found.listed),
            None => (Vec::new(), 0, KEY_END, 0),
        };
        if let Some(found) = &found {
            self.obsolete.push(found.slot);
            self.above.set(found.listed, Change::Cut(1));
        }
        let changes = self.changes.as_ref().unwrap_or(frozen);
        overlay(&old, changes, low, high, self.level == 0, &mut self.carry);
        if self.carry_listed.is_none() && !self.carry.is_empty() {
            self.carry_listed = Some(listed);
        }
        self.done = high;
    }

    /// Writes the first page's worth of the carry: evenly split, or packed where keys only grow.
    fn write<N: Nand>(&mut self, flash: &mut Flash<N>, to: LaneId) -> Result<()> {
        let capacity = page::capacity(flash.shape().slot_bytes);
        let count = if self.done >= KEY_END && self.level == 0 {
            self.carry.len().min(capacity)
        } else {
            self.carry.len().div_ceil(self.carry.len().div_ceil(capacity).max(1))
        };
        let entries = self.carry.get(..count).unwrap_or(&[]);
        let Some(first) = entries.first() else { return Ok(()) };
        let listed = self.carry_listed.unwrap_or(first.key);
        let bytes = page::encode(self.level, entries, flash.shape().slot_bytes);
        let draft = Draft::page(Kind::Index, u64::from(self.level), bytes.len() as u32);
        // Only what is on flash leaves the carry: a full chip may end the step here, and another will go on.
        let slot = flash.append(to, draft, &bytes, Purpose::of(Cause::Metadata))?;
        self.carry.drain(..count);
        flash.slots_mut().retain(Place::Run { slot, count: 1 });
        flash.slots_mut().keep(slot, bytes.into());
        self.new.push(slot);
        self.above.set(listed, Change::Put(Place::Run { slot, count: 1 }));
        self.carry_listed = self.carry.first().map(|entry| entry.key);
        Ok(())
    }

    /// Goes on with the level above, unless this was the last. The new tree, if it was.
    fn next_level(&mut self) -> Option<Tree> {
        if self.above.is_empty() && !self.touch.iter().any(|&(level, _)| level > self.level) {
            return Some(self.tree(self.old.root));
        }
        if self.is_top() {
            let mut pages = self.above.iter().filter_map(|(_, change)| match change {
                Change::Put(Place::Run { slot, .. }) => Some(slot),
                _ => None,
            });
            let root = match (pages.next(), pages.next()) {
                (None, _) => Some(None),
                (Some(slot), None) => Some(Some((slot, self.level + 1))),
                _ => None,
            };
            if let Some(root) = root {
                return Some(self.tree(root));
            }
        }
        if self.level >= LEVELS_MAX {
            return Some(self.tree(self.old.root));
        }
        self.level += 1;
        self.changes = Some(core::mem::take(&mut self.above));
        self.done = 0;
        self.carry_listed = None;
        None
    }

    /// A page written by this merge stands elsewhere now.
    pub fn follow(&mut self, from: Slot, to: Slot) {
        self.new.iter_mut().filter(|slot| **slot == from).for_each(|slot| *slot = to);
        let is_from = |change: &Change| matches!(change, Change::Put(Place::Run { slot, .. }) if *slot == from);
        let listed = self.above.iter().find(|(_, change)| is_from(change)).map(|(key, _)| key);
        if let Some(key) = listed {
            self.above.set(key, Change::Put(Place::Run { slot: to, count: 1 }));
        }
    }
}

/// Appends to `out` the entries of `old` as the changes in `low..high` leave them.
fn overlay(old: &[Entry], changes: &Delta, low: Key, high: Key, join: bool, out: &mut Vec<Entry>) {
    let (mut rest, mut at) = (old, low);
    let mut changes = changes.within(low, high);
    while at < high {
        let change = changes.next();
        let (start, end) = change.map_or((high, high), |(start, end, _)| (start.max(at), end.min(high)));
        while let Some((&entry, after)) = rest.split_first() {
            if entry.key >= start {
                break;
            }
            if entry.end() > at && start > at {
                push(clip(entry, at, start), join, out);
            }
            if entry.end() > end {
                break;
            }
            rest = after;
        }
        while let Some((entry, after)) = rest.split_first()
            && entry.end() <= end
        {
            rest = after;
        }
        if let Some((first, _, Change::Put(place))) = change {
            push(clip(Entry { key: first, place }, start, end), join, out);
        }
        at = end;
    }
}

fn push(entry: Entry, join: bool, out: &mut Vec<Entry>) {
    if join
        && let Some(last) = out.last_mut()
        && last.end() == entry.key
        && let Some(both) = last.place.joined(entry.place)
    {
        last.place = both;
        return;
    }
    out.push(entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(key: Key, slot: u64, count: u32) -> Entry {
        Entry { key, place: Place::Run { slot, count } }
    }

    fn overlaid(old: &[Entry], changes: &[(Key, Change)], low: Key, high: Key) -> Vec<Entry> {
        let mut delta = Delta::default();
        changes.iter().for_each(|&(key, change)| delta.set(key, change));
        let mut out = Vec::new();
        overlay(old, &delta, low, high, true, &mut out);
        out
    }

    #[test]
    fn a_put_inside_a_run_keeps_both_sides_of_it() {
        let old = [run(0, 100, 10), run(20, 200, 5)];
        let changes = [(3, Change::Put(Place::Run { slot: 500, count: 2 }))];
        let expected = [run(0, 100, 3), run(3, 500, 2), run(5, 105, 5), run(20, 200, 5)];
        assert_eq!(overlaid(&old, &changes, 0, KEY_END), expected);
    }

    #[test]
    fn a_change_that_reaches_past_the_page_is_cut_at_its_edge() {
        let old = [run(10, 100, 10)];
        let changes = [(15, Change::Put(Place::Run { slot: 500, count: 10 })), (2, Change::Cut(10))];
        assert_eq!(overlaid(&old, &changes, 5, 20), [run(12, 102, 3), run(15, 500, 5)]);
    }

    #[test]
    fn changes_before_between_and_after_entries_are_all_taken() {
        let old = [run(10, 100, 1), run(12, 200, 1)];
        let changes = [(9, 1), (11, 2), (13, 3)].map(|(key, slot)| (key, Change::Put(Place::Run { slot, count: 1 })));
        let expected = [run(9, 1, 1), run(10, 100, 1), run(11, 2, 1), run(12, 200, 1), run(13, 3, 1)];
        assert_eq!(overlaid(&old, &changes, 0, KEY_END), expected);
    }
}
