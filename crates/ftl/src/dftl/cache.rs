//! The part of the page map that is in memory: entries used lately, and those that no translation page has yet.
//!
//! The victim is found by a hand that goes round over the sectors and passes over each entry once that was used since (CLOCK).
//! Since the hand goes by sector, entries of one translation page become victims together. Invariant: an entry that no
//! translation page has is dirty, under the stamp of the page where the sector stands.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::Range;

/// Where a sector stands.
#[derive(Clone, Copy, Debug)]
struct Entry {
    packed: u32,
    /// The number of its change; 0 where a translation page has the entry.
    change: u64,
    /// Used since the hand was here.
    is_used: bool,
}

/// What may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    pub sector: u32,
    pub is_dirty: bool,
}

#[derive(Clone, Debug)]
pub struct MapCache {
    entries: BTreeMap<u32, Entry>,
    changes: Changes,
    hand: u32,
    capacity: usize,
}

/// The changes that no translation page has, in the order in which they came, which is that of their stamps. They are numbered
/// from 1 on.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// Stamp and sector of each; `None`: it is out of date. The first one is not.
    list: VecDeque<Option<(u64, u32)>>,
    /// Changes that are no longer listed.
    gone: u64,
}

impl Changes {
    /// Lists the latest change of all. Its number.
    fn add(&mut self, stamp: u64, sector: u32) -> u64 {
        self.list.push_back(Some((stamp, sector)));
        self.gone + self.list.len() as u64
    }

    /// The change of that number is out of date; no change has the number 0.
    fn forget(&mut self, number: u64) {
        let place = number.checked_sub(self.gone + 1);
        if let Some(change) = place.and_then(|place| self.list.get_mut(place as usize)) {
            *change = None;
        }
        while let Some(None) = self.list.front() {
            self.list.pop_front();
            self.gone += 1;
        }
    }
}

impl MapCache {
    /// An empty cache for so many entries.
    pub fn new(capacity: usize) -> Self {
        Self { entries: BTreeMap::new(), changes: Changes::default(), hand: 0, capacity }
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.capacity
    }

    pub fn is_over(&self) -> bool {
        self.entries.len() > self.capacity
    }

    /// The page where a sector stands, if that is known here; its entry is used.
    pub fn get(&mut self, sector: u32) -> Option<u32> {
        let entry = self.entries.get_mut(&sector)?;
        entry.is_used = true;
        Some(entry.packed)
    }

    /// Adds what a translation page says of a sector, unless it is known here.
    pub fn learn(&mut self, sector: u32, packed: u32) {
        self.entries.entry(sector).or_insert(Entry { packed, change: 0, is_used: true });
    }

    /// A sector stands in another page now, of that stamp, which is later than all before.
    pub fn change(&mut self, sector: u32, packed: u32, stamp: u64, is_used: bool) {
        let entry = self.entries.entry(sector).or_insert(Entry { packed, change: 0, is_used });
        let change = self.changes.add(stamp, sector);
        self.changes.forget(entry.change);
        *entry = Entry { packed, change, is_used: is_used || entry.is_used };
    }

    /// The entry that was not used for longest, by the hand.
    pub fn victim(&mut self) -> Option<Victim> {
        // After a round every mark is gone, and the second round begins with an entry that may go.
        for from in [self.hand, 0, 0] {
            for (&sector, entry) in self.entries.range_mut(from..) {
                self.hand = sector + 1;
                if !core::mem::take(&mut entry.is_used) {
                    return Some(Victim { sector, is_dirty: entry.change != 0 });
                }
            }
        }
        None
    }

    pub fn forget(&mut self, sector: u32) {
        if let Some(entry) = self.entries.remove(&sector) {
            self.changes.forget(entry.change);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }

    /// Dirty entries of a range of sectors: sector and page.
    pub fn dirty_in(&self, sectors: Range<u32>) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.entries
            .range(sectors)
            .filter(|(_, entry)| entry.change != 0)
            .map(|(&sector, entry)| (sector, entry.packed))
    }

    /// A translation page has all entries of a range now.
    pub fn clean(&mut self, sectors: Range<u32>) {
        for (_, entry) in self.entries.range_mut(sectors) {
            self.changes.forget(core::mem::take(&mut entry.change));
        }
    }

    /// Stamp and sector of the oldest dirty entry outside of a range.
    pub fn oldest_dirty(&self, but: &Range<u32>) -> Option<(u64, u32)> {
        self.changes.list.iter().flatten().find(|(_, sector)| !but.contains(sector)).copied()
    }

    /// Every entry: sector and page.
    pub fn all(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.entries.iter().map(|(&sector, entry)| (sector, entry.packed))
    }

    /// Whether an entry is here that no translation page has.
    pub fn is_dirty(&self, sector: u32) -> bool {
        self.entries.get(&sector).is_some_and(|entry| entry.change != 0)
    }

    /// Sectors of dirty entries, for each translation page of so many once.
    pub fn dirty_fragments(&self, sectors: u32) -> Vec<u32> {
        let dirty = self.entries.iter().filter(|(_, entry)| entry.change != 0);
        let mut fragments: Vec<u32> = dirty.map(|(sector, _)| sector / sectors).collect();
        fragments.dedup();
        fragments
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        self.entries.len() * (size_of::<u32>() + size_of::<Entry>())
            + self.changes.list.len() * (size_of::<u64>() + size_of::<u32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_was_used_outlives_those_that_were_not() {
        let mut cache = MapCache::new(3);
        (0..3).for_each(|sector| cache.learn(sector, 10 + sector));
        cache.change(1, 20, 7, true);
        // The first round takes the marks away, in the second the first without one goes.
        assert_eq!(cache.victim(), Some(Victim { sector: 0, is_dirty: false }));
        cache.forget(0);
        assert_eq!(cache.get(1), Some(20));
        assert_eq!(cache.victim(), Some(Victim { sector: 2, is_dirty: false }));
    }

    #[test]
    fn an_entry_is_dirty_until_its_translation_page_is_written() {
        let mut cache = MapCache::new(8);
        cache.change(5, 50, 9, true);
        cache.change(90, 51, 12, false);
        cache.change(5, 52, 13, false);
        assert_eq!(cache.oldest_dirty(&(0..0)), Some((12, 90)));
        assert_eq!(cache.oldest_dirty(&(64..128)), Some((13, 5)));
        assert_eq!(cache.dirty_in(0..64).collect::<Vec<_>>(), [(5, 52)]);
        cache.clean(0..64);
        assert_eq!((cache.get(5), cache.is_dirty(5)), (Some(52), false));
        assert_eq!(cache.oldest_dirty(&(64..128)), None);
    }
}
