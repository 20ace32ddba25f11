//! Changes of the index that are not on flash yet: puts and cuts of key ranges.
//!
//! Invariant: no two overlap, and none reaches beyond its inode.

use alloc::collections::BTreeMap;

use crate::format::key::{Key, ino_of, whole_inode};
use crate::format::place::Place;

/// What becomes of a range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The keys from here on, as many as the place covers, stand there.
    Put(Place),
    /// So many keys from here on are gone.
    Cut(u128),
}

impl Change {
    /// How many keys it covers.
    pub fn span(self) -> u128 {
        match self {
            Change::Put(place) => u128::from(place.span()),
            Change::Cut(span) => span,
        }
    }

    /// The part from the `skip`th key on, `span` keys long.
    fn part(self, skip: u128, span: u128) -> Self {
        match self {
            Change::Put(place) => Change::Put(place.part(skip as u64, span as u64)),
            Change::Cut(_) => Change::Cut(span),
        }
    }
}

/// A set of changes.
#[derive(Default)]
pub struct Delta {
    map: BTreeMap<Key, Change>,
}

impl Delta {
    /// Number of changes.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The first change that reaches into `from..to`: start, end, change.
    pub fn seek(&self, from: Key, to: Key) -> Option<(Key, Key, Change)> {
        let last = self.last_before(from, to).map(whole)?;
        if last.0 <= from {
            return Some(last).filter(|&(_, end, _)| end > from);
        }
        let before = self.last_before(from, from + 1).map(whole).filter(|&(_, end, _)| end > from);
        before.or_else(|| self.map.range(from..to).next().map(whole))
    }

    /// The changes that reach into `from..to`, in order: start, end, change.
    pub fn within(&self, from: Key, to: Key) -> impl Iterator<Item = (Key, Key, Change)> {
        let before = self.last_before(from, from).map(whole).filter(|&(_, end, _)| end > from);
        before.into_iter().chain(self.map.range(from..to).map(whole))
    }

    /// The last change that begins before `end` and, if it begins before `key`, may reach it: no change reaches beyond
    /// its inode.
    fn last_before(&self, key: Key, end: Key) -> Option<(&Key, &Change)> {
        let (first, _) = whole_inode(ino_of(key));
        self.map.range(..end).next_back().filter(|&(&start, _)| start >= first)
    }

    /// All changes in order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, Change)> {
        self.map.iter().map(|(&key, &change)| (key, change))
    }

    /// The exact change at `key`.
    pub fn at(&self, key: Key) -> Option<Change> {
        self.map.get(&key).copied()
    }

    /// Puts a change of as many keys in the place of the one at `key`, if that is `from`. Whether it did.
    pub fn replace(&mut self, key: Key, from: Change, to: Change) -> bool {
        match self.map.get_mut(&key) {
            Some(change) if *change == from && from.span() == to.span() => {
                *change = to;
                true
            }
            _ => false,
        }
    }

    /// Sets what becomes of the keys from `key` on; earlier changes of the same keys are overridden.
    pub fn set(&mut self, key: Key, change: Change) {
        let end = key + change.span();
        self.clear(key, end);
        self.map.insert(key, change);
    }

    /// As [`Delta::set`], but joins a place to the one just before it, where the two go on from each other.
    pub fn set_joined(&mut self, key: Key, change: Change) {
        let end = key + change.span();
        // Most often the last change before the end is one before the key, and nothing is to be cleared.
        let (first, _) = whole_inode(ino_of(key));
        let last = self.map.range_mut(..end).next_back().filter(|&(&start, _)| start >= first);
        if last.as_ref().is_some_and(|&(&start, ref last)| start >= key || start + last.span() > key) {
            self.clear(key, end);
            if join(self.map.range_mut(..key).next_back(), key, change) {
                return;
            }
        } else if join(last, key, change) {
            return;
        }
        self.map.insert(key, change);
    }

    fn clear(&mut self, key: Key, end: Key) {
        match self.last_before(key, end) {
            None => return,
            Some((&start, change)) if start < key && start + change.span() <= key => return,
            Some(_) => {}
        }
        if let Some((&start, &before)) = self.map.range(..key).next_back() {
            let before_end = start + before.span();
            if before_end > key {
                self.map.insert(start, before.part(0, key - start));
                if before_end > end {
                    self.map.insert(end, before.part(end - start, before_end - end));
                }
            }
        }
        while let Some((&start, &inside)) = self.map.range(key..end).next() {
            self.map.remove(&start);
            let inside_end = start + inside.span();
            if inside_end > end {
                self.map.insert(end, inside.part(end - start, inside_end - end));
            }
        }
    }
}

/// A change with its end.
fn whole((&start, &change): (&Key, &Change)) -> (Key, Key, Change) {
    (start, start + change.span(), change)
}

/// Joins a change to the one before it, where the two go on from each other; whether they do.
fn join(before: Option<(&Key, &mut Change)>, key: Key, change: Change) -> bool {
    if let Change::Put(place @ (Place::Run { .. } | Place::Reserved { .. })) = change
        && let Some((&start, Change::Put(before))) = before
        && start + u128::from(before.span()) == key
        && let Some(both) = before.joined(place)
    {
        *before = both;
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::key::{KeyKind, key};

    fn run(slot: u64, count: u32) -> Change {
        Change::Put(Place::Run { slot, count })
    }

    #[test]
    fn a_put_in_the_middle_of_a_run_leaves_both_ends() {
        let mut delta = Delta::default();
        delta.set(10, run(100, 10));
        delta.set(13, run(500, 2));
        let all: alloc::vec::Vec<_> = delta.iter().collect();
        assert_eq!(all, [(10, run(100, 3)), (13, run(500, 2)), (15, run(105, 5))]);
        assert_eq!(delta.seek(14, 20), Some((13, 15, run(500, 2))));
    }

    #[test]
    fn a_cut_swallows_what_it_covers_and_trims_its_edges() {
        let mut delta = Delta::default();
        delta.set(10, run(100, 10));
        delta.set(30, run(200, 10));
        delta.set(15, Change::Cut(20));
        let all: alloc::vec::Vec<_> = delta.iter().collect();
        assert_eq!(all, [(10, run(100, 5)), (15, Change::Cut(20)), (35, run(205, 5))]);
    }

    #[test]
    fn appended_slots_join_into_one_run() {
        let mut delta = Delta::default();
        (0..5).for_each(|i| delta.set_joined(Key::from(i as u32), run(40 + i, 1)));
        assert_eq!(delta.iter().collect::<alloc::vec::Vec<_>>(), [(0, run(40, 5))]);
    }

    /// Keys of an inode that histories work on.
    const KEYS: u64 = 24;

    fn a_change() -> impl Strategy<Value = (u64, u64, Change, bool)> {
        let put = (0..200u64, 1..9u32).prop_map(|(slot, count)| run(slot, count));
        let mark = Just(Change::Put(Place::Mark));
        let cut = (1..KEYS).prop_map(|span| Change::Cut(span.into()));
        (0..3u64, 0..KEYS, prop_oneof![put, mark, cut], any::<bool>())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        /// The first key from each on that something becomes of, and what, as if every key had been set by itself.
        #[test]
        fn seeking_finds_what_a_map_of_single_keys_does(changes in proptest::collection::vec(a_change(), 1..40)) {
            let mut delta = Delta::default();
            let mut single = BTreeMap::new();
            for (ino, offset, change, joined) in changes {
                let span = change.span().min(u128::from(KEYS - offset));
                let (change, at) = (change.part(0, span), key(ino, KeyKind::Data, offset));
                if joined { delta.set_joined(at, change) } else { delta.set(at, change) }
                single.extend((0..span).map(|skip| (at + skip, change.part(skip, 1))));
            }
            for (ino, offset, len) in (0..3).flat_map(|ino| (0..KEYS).flat_map(move |at| [(ino, at, 1), (ino, at, 7)])) {
                let from = key(ino, KeyKind::Data, offset);
                let to = if len == 1 { from + 1 } else { key(ino + 1, KeyKind::Data, len) };
                let found = delta.seek(from, to).map(|(start, end, change)| {
                    let at = start.max(from);
                    assert!(start < to && end > from);
                    (at, change.part(at - start, 1))
                });
                prop_assert_eq!(found, single.range(from..to).next().map(|(&at, &change)| (at, change)));
                let within: alloc::vec::Vec<_> = delta.within(from, to).collect();
                let mut sought = alloc::vec::Vec::new();
                let mut at = from;
                while let Some(change) = delta.seek(at, to).filter(|_| at < to) {
                    sought.push(change);
                    at = change.1;
                }
                prop_assert_eq!(within, sought);
            }
        }
    }
}
