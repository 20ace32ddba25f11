//! The index on flash: a copy-on-write B+-tree, never changed in place, read through the slot cache.

use nand::{Cause, Nand};

use crate::error::{Error, Result};
use crate::flash::slots::Slots;
use crate::format::key::{KEY_END, Key};
use crate::format::page::{Entry, Page};
use crate::format::place::{Place, Slot};
use crate::format::tag::Kind;

/// A tree, by its root.
#[derive(Clone, Copy, Default)]
pub struct Tree {
    /// Root page and number of levels.
    pub root: Option<(Slot, u8)>,
    /// Pages in it.
    pub pages: u64,
}

/// A page of the tree and the keys it answers for.
pub struct Found {
    pub page: Page,
    pub slot: Slot,
    /// The key its parent lists it under.
    pub listed: Key,
    pub low: Key,
    pub high: Key,
}

/// Reads and checks a page.
pub fn load<N: Nand>(slots: &mut Slots<N>, slot: Slot, level: u8) -> Result<Page> {
    if let Some(bytes) = slots.cached(slot) {
        return Ok(Page::trusted(bytes));
    }
    let bytes = slots.read_uncached(slot, Kind::Index, Cause::Metadata)?;
    match Page::parse(bytes.clone(), level) {
        Some(page) => {
            slots.keep(slot, bytes);
            Ok(page)
        }
        None => slots.corrupt("index page", slot),
    }
}

impl Tree {
    /// Number of levels; 0 for an empty tree.
    pub fn levels(&self) -> u8 {
        self.root.map_or(0, |(_, levels)| levels)
    }

    /// The page at `level` that answers for `key`; `None` where the tree is not that high.
    pub fn find<N: Nand>(&self, slots: &mut Slots<N>, level: u8, key: Key) -> Result<Option<Found>> {
        let Some((mut slot, levels)) = self.root.filter(|&(_, levels)| level < levels) else { return Ok(None) };
        let (mut low, mut high, mut listed) = (0, KEY_END, 0);
        for at in (level..levels).rev() {
            let page = load(slots, slot, at)?;
            if at == level {
                return Ok(Some(Found { page, slot, listed, low, high }));
            }
            let child = page.upper(key).saturating_sub(1);
            let Some(Entry { key: first, place: Place::Run { slot: below, .. } }) = page.get(child) else {
                return slots.corrupt("index page", slot);
            };
            listed = first;
            if child > 0 {
                low = first;
            }
            if let Some(next) = page.key(child + 1) {
                high = next.min(high);
            }
            slot = below;
        }
        Err(Error::Corrupt { what: "index", slot })
    }

    /// The first entry that reaches into `from..to`, cut to that range.
    pub fn next<N: Nand>(&self, slots: &mut Slots<N>, mut from: Key, to: Key) -> Result<Option<Entry>> {
        while from < to {
            let Some(found) = self.find(slots, 0, from)? else { return Ok(None) };
            let upper = found.page.upper(from);
            let candidates = [upper.checked_sub(1), Some(upper)];
            let entry = candidates.into_iter().flatten().filter_map(|at| found.page.get(at)).find(|e| e.end() > from);
            match entry {
                Some(entry) if entry.key >= to => return Ok(None),
                Some(entry) => return Ok(Some(clip(entry, from, to))),
                None if found.high <= from => return Err(Error::Corrupt { what: "index", slot: found.slot }),
                None => from = found.high,
            }
        }
        Ok(None)
    }
}

/// The part of an entry inside `from..to`, with which it must overlap.
pub fn clip(entry: Entry, from: Key, to: Key) -> Entry {
    let (start, end) = (entry.key.max(from), entry.end().min(to));
    Entry { key: start, place: entry.place.part((start - entry.key) as u64, (end - start) as u64) }
}
