//! The part of the page map that is in memory: entries used lately, and those that no translation page has yet.
//!
//! The victim is found by a hand that goes round over the sectors and passes over each entry once that was used since (CLOCK).
//! Since the hand goes by sector, entries of one translation page become victims together. Invariant: an entry that no
//! translation page has is dirty, under the stamp of the page where the sector stands.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// Where a sector stands.
#[derive(Clone, Copy, Debug)]
struct Entry {
    packed: u32,
    /// The page's stamp; 0 where a translation page has the entry.
    dirty: u64,
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
    /// Sectors of dirty entries by stamp.
    dirty: BTreeMap<u64, u32>,
    hand: u32,
    capacity: usize,
}

impl MapCache {
    /// An empty cache for so many entries.
    pub fn new(capacity: usize) -> Self {
        Self { entries: BTreeMap::new(), dirty: BTreeMap::new(), hand: 0, capacity }
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
        self.entries.entry(sector).or_insert(Entry { packed, dirty: 0, is_used: true });
    }

    /// A sector stands in another page now, of that stamp.
    pub fn change(&mut self, sector: u32, packed: u32, stamp: u64, is_used: bool) {
        let entry = self.entries.entry(sector).or_insert(Entry { packed, dirty: 0, is_used });
        self.dirty.remove(&entry.dirty);
        *entry = Entry { packed, dirty: stamp, is_used: is_used || entry.is_used };
        self.dirty.insert(stamp, sector);
    }

    /// The entry that was not used for longest, by the hand.
    pub fn victim(&mut self) -> Option<Victim> {
        // After a round every mark is gone.
        for _ in 0..2 * self.entries.len() {
            let next = self.entries.range_mut(self.hand..).next();
            let Some((&sector, entry)) = next else {
                self.hand = 0;
                continue;
            };
            self.hand = sector + 1;
            if !core::mem::take(&mut entry.is_used) {
                return Some(Victim { sector, is_dirty: entry.dirty != 0 });
            }
        }
        self.entries.first_key_value().map(|(&sector, entry)| Victim { sector, is_dirty: entry.dirty != 0 })
    }

    pub fn forget(&mut self, sector: u32) {
        if let Some(entry) = self.entries.remove(&sector) {
            self.dirty.remove(&entry.dirty);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }

    /// Dirty entries of a range of sectors: sector and page.
    pub fn dirty_in(&self, sectors: Range<u32>) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.entries.range(sectors).filter(|(_, entry)| entry.dirty != 0).map(|(&sector, entry)| (sector, entry.packed))
    }

    /// A translation page has all entries of a range now.
    pub fn clean(&mut self, sectors: Range<u32>) {
        for (_, entry) in self.entries.range_mut(sectors) {
            self.dirty.remove(&entry.dirty);
            entry.dirty = 0;
        }
    }

    /// Stamp and sector of the oldest dirty entry outside of a range.
    pub fn oldest_dirty(&self, but: &Range<u32>) -> Option<(u64, u32)> {
        self.dirty.iter().find(|(_, sector)| !but.contains(sector)).map(|(&stamp, &sector)| (stamp, sector))
    }

    /// Every entry: sector and page.
    pub fn all(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.entries.iter().map(|(&sector, entry)| (sector, entry.packed))
    }

    /// Whether an entry is here that no translation page has.
    pub fn is_dirty(&self, sector: u32) -> bool {
        self.entries.get(&sector).is_some_and(|entry| entry.dirty != 0)
    }

    /// Sectors of dirty entries, for each translation page of so many once.
    pub fn dirty_fragments(&self, sectors: u32) -> Vec<u32> {
        let mut fragments: Vec<u32> = self.dirty.values().map(|sector| sector / sectors).collect();
        fragments.sort_unstable();
        fragments.dedup();
        fragments
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        self.entries.len() * (size_of::<u32>() + size_of::<Entry>())
            + self.dirty.len() * (size_of::<u64>() + size_of::<u32>())
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
