//! Where the power failed in the life of a volume, as far as its numbers show: what stood last before that may never
//! have counted.
//!
//! A recovery goes on with the number that is [`SEQ_GAP`] after the greatest it sees. So a number with nothing up to that
//! distance and something just there was the last before a cut. Invariant: where numbers are missing for another
//! reason, nothing is taken for a cut unless a slot that cannot be read agrees.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::format::place::Slot;
use crate::mount::open::SEQ_GAP;

/// Beyond the distance that a recovery keeps, numbers at most between the last that can still be read before it and the
/// first of its own: what it wrote first may be gone, and what it read may have been readable once.
const NEAR: u64 = SEQ_GAP;

/// A slot that cannot be read.
pub struct Hole {
    pub slot: Slot,
    /// The numbers of the originals before and behind it in its block.
    pub before: u64,
    pub behind: Option<u64>,
    /// A torn program may have destroyed it: one after which its head left units out.
    pub endangered: bool,
}

/// What the tags on a chip say of the order of things.
#[derive(Default)]
pub struct History {
    /// Numbers that were given to originals, still there or not.
    pub given: BTreeSet<u64>,
    /// The originals that the log counted, and whether each ends its group.
    pub originals: BTreeMap<u64, bool>,
    pub holes: Vec<Hole>,
    /// The number that the newest anchor, if there is one, gives as the next: what stood right before it counted.
    pub anchored: Option<u64>,
    /// Slots that recoveries copied because they might not be readable again.
    pub rescued: BTreeSet<Slot>,
}

/// What the cuts in a history did.
#[derive(Default)]
pub struct Cuts {
    /// Originals that did not count when the volume was recovered.
    pub dropped: BTreeSet<u64>,
    /// Slots that cannot be read for another reason than a cut.
    pub damaged: Vec<Slot>,
    /// The number to go on with, so that whoever looks again finds the same cuts and no others.
    pub next: u64,
}

impl History {
    /// The greatest number given.
    pub fn last(&self) -> u64 {
        self.given.last().copied().unwrap_or(0)
    }

    /// Finds the cuts.
    pub fn cuts(&self) -> Cuts {
        let mut dropped = BTreeSet::new();
        let mut lasts = BTreeSet::new();
        let anchored = self.anchored.unwrap_or(0);
        let mut go_on = self.last().max(anchored) + SEQ_GAP + NEAR;
        let next = self.given.iter().skip(1).map(Some).chain([None]);
        for (&last, next) in self.given.iter().zip(next) {
            if (last + 1..last + SEQ_GAP - 1).contains(&anchored) {
                // If nothing is missing before it, the power may have failed in what came first after it.
                if last + 1 == anchored && self.originals.contains_key(&last) {
                    lasts.insert(last);
                }
                continue;
            }
            let at_end = next.is_none();
            let next = next.copied().unwrap_or(if anchored > last { anchored } else { last + SEQ_GAP });
            // The first thing a recovery writes may be a copy, which has no number of its own.
            let Some(distance) = (next - last).checked_sub(SEQ_GAP - 1) else { continue };
            let torn = self.torn_at(last, next);
            let is_there = self.originals.contains_key(&last);
            if distance > if torn.is_some() { NEAR } else { 1 } || !(is_there || torn.is_some()) {
                continue;
            }
            lasts.insert(last);
            if at_end {
                go_on = next;
            }
            // What was read then, and never again, was the end of a group that counted.
            if torn.is_none_or(|hole| !self.rescued.contains(&hole.slot)) {
                self.drop_group(last, &mut dropped);
            }
        }
        let by_cut = |hole: &&Hole| {
            let mut after = lasts.range(hole.before..hole.before + SEQ_GAP);
            after.any(|&last| hole.endangered || hole.behind.is_none_or(|behind| behind > last))
        };
        let damaged = self.holes.iter().filter(|hole| !by_cut(hole)).map(|hole| hole.slot).collect();
        Cuts { dropped, damaged, next: go_on }
    }

    /// A slot at the end of what a head wrote before the cut at `last` that cannot be read; one that a recovery rescued
    /// rather than another.
    fn torn_at(&self, last: u64, next: u64) -> Option<&Hole> {
        let mut torn = self.near(last).filter(|hole| hole.behind.is_none_or(|behind| behind >= next));
        torn.clone().find(|hole| self.rescued.contains(&hole.slot)).or_else(|| torn.next())
    }

    /// The holes not long before a number.
    fn near(&self, last: u64) -> impl Iterator<Item = &Hole> + Clone {
        self.holes.iter().filter(move |hole| hole.before <= last && last - hole.before < SEQ_GAP)
    }

    /// Originals up to `last` did not count if none ends their group, or if a torn program destroyed one among them.
    fn drop_group(&self, last: u64, dropped: &mut BTreeSet<u64>) {
        let missing = |seq: &u64| !self.originals.contains_key(seq);
        let destroyed = |hole: &Hole| (hole.before + 1..hole.behind?.min(last)).rev().find(missing);
        let unread = Some(last).filter(missing);
        let end = self
            .near(last)
            .filter(|hole| hole.endangered)
            .filter_map(destroyed)
            .chain(unread)
            .min()
            .unwrap_or(last + 1);
        dropped.extend((0..end).rev().take_while(|seq| self.originals.get(seq) == Some(&false)));
        dropped.extend(end..=last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history of originals; `ends` are those that end a group.
    fn history(originals: &[core::ops::RangeInclusive<u64>], ends: &[u64]) -> History {
        let numbers = || originals.iter().cloned().flatten();
        History {
            given: numbers().collect(),
            originals: numbers().map(|seq| (seq, ends.contains(&seq))).collect(),
            ..History::default()
        }
    }

    #[test]
    fn a_group_without_an_end_before_a_recovery_is_dropped() {
        let cuts = history(&[1..=10, 1034..=1040], &[7, 1034, 1040]).cuts();
        assert_eq!(cuts.dropped, (8..=10).collect());
    }

    /// The last group of a volume at rest was dropped where its end could not be read.
    #[test]
    fn what_an_anchor_covers_counts_though_the_end_of_its_group_is_gone() {
        let mut history = history(&[1..=10], &[7]);
        history.holes.push(Hole { slot: 5, before: 10, behind: None, endangered: false });
        assert_eq!(history.cuts().dropped, (8..=10).collect());
        history.anchored = Some(12);
        assert!(history.cuts().dropped.is_empty() && history.cuts().damaged.len() == 1);
        history.anchored = Some(11);
        assert!(history.cuts().dropped.is_empty() && history.cuts().damaged.is_empty(), "a cut came after it");
        history.anchored = Some(12);
        // A salvage that was cut had gone on from there.
        history.given.insert(12 + SEQ_GAP);
        assert!(history.cuts().dropped.is_empty());
        history.given.remove(&(12 + SEQ_GAP));
        // One that was not has an anchor of its own.
        let next = history.cuts().next;
        history.given.insert(next);
        history.anchored = Some(next + 3);
        assert!(history.cuts().dropped.is_empty());
        history.given.remove(&next);
        // A recovery had been at it before, and written nothing else.
        for next in [10 + SEQ_GAP, 11 + SEQ_GAP] {
            history.anchored = Some(next);
            assert_eq!(history.cuts().dropped, (8..=10).collect());
            // Nor does a salvage hide that from the next one.
            let (was, next) = (history.given.clone(), history.cuts().next);
            history.given.insert(next);
            history.anchored = Some(next + 3);
            assert_eq!(history.cuts().dropped, (8..=10).collect());
            history.given = was;
        }
    }

    #[test]
    fn where_blocks_were_erased_nothing_is_dropped() {
        assert!(history(&[1..=10, 900..=910], &[7, 910]).cuts().dropped.is_empty());
        assert!(history(&[1..=10, 1035..=1040], &[7, 1040]).cuts().dropped.is_empty());
        assert!(history(&[1..=10, 5000..=5001], &[7, 5001]).cuts().dropped.is_empty());
    }

    #[test]
    fn what_stands_behind_a_slot_that_was_destroyed_did_not_count_whether_or_not_it_ends_a_group() {
        let mut history = history(&[1..=8, 10..=12, 1036..=1040], &[7, 12, 1040]);
        history.holes.push(Hole { slot: 5, before: 8, behind: Some(10), endangered: true });
        let cuts = history.cuts();
        assert_eq!((cuts.dropped, cuts.damaged.len()), (BTreeSet::from([8, 9, 10, 11, 12]), 0));
        // Where no torn program can have done that it is damage, and takes nothing else along.
        history.holes.iter_mut().for_each(|hole| hole.endangered = false);
        let cuts = history.cuts();
        assert!(cuts.dropped.is_empty() && cuts.damaged.len() == 1);
    }

    #[test]
    fn a_group_whose_end_could_be_read_once_counted_if_the_recovery_copied_it() {
        let mut history = history(&[1..=10, 1035..=1040], &[7, 1040]);
        history.holes.push(Hole { slot: 5, before: 10, behind: None, endangered: false });
        assert_eq!(history.cuts().dropped, (8..=10).collect());
        history.rescued.insert(5);
        assert!(history.cuts().dropped.is_empty());
    }

    #[test]
    fn a_slot_that_cannot_be_read_far_from_any_cut_is_damage() {
        let mut history = history(&[1..=2000], &[2000]);
        history.holes.push(Hole { slot: 5, before: 10, behind: Some(12), endangered: false });
        assert_eq!(history.cuts().damaged.len(), 1);
    }
}
