//! A bounded cache of checked slots: index pages and packed nodes. Second-chance replacement; never dirty.

use alloc::sync::Arc;
use alloc::vec::Vec;

use hashbrown::HashMap;

use crate::format::place::Slot;

struct Line {
    slot: Slot,
    bytes: Arc<[u8]>,
    used: bool,
}

/// The cache.
pub struct SlotCache {
    lines: Vec<Line>,
    by_slot: HashMap<Slot, u32>,
    hand: usize,
    capacity: usize,
}

impl SlotCache {
    /// A cache of at most `capacity` slots (at least 4).
    pub fn new(capacity: usize) -> Self {
        Self { lines: Vec::new(), by_slot: HashMap::new(), hand: 0, capacity: capacity.max(4) }
    }

    /// The slot's bytes, if they are here.
    pub fn get(&mut self, slot: Slot) -> Option<Arc<[u8]>> {
        let line = self.lines.get_mut(*self.by_slot.get(&slot)? as usize)?;
        line.used = true;
        Some(line.bytes.clone())
    }

    /// Keeps a slot's bytes, dropping another's if the cache is full.
    pub fn put(&mut self, slot: Slot, bytes: Arc<[u8]>) {
        if let Some(line) = self.by_slot.get(&slot).and_then(|&at| self.lines.get_mut(at as usize)) {
            line.bytes = bytes;
            return;
        }
        if self.lines.len() < self.capacity {
            self.by_slot.insert(slot, self.lines.len() as u32);
            self.lines.push(Line { slot, bytes, used: false });
            return;
        }
        for _ in 0..=2 * self.lines.len() {
            self.hand = (self.hand + 1) % self.lines.len().max(1);
            let Some(line) = self.lines.get_mut(self.hand) else { return };
            if line.used {
                line.used = false;
                continue;
            }
            self.by_slot.remove(&line.slot);
            self.by_slot.insert(slot, self.hand as u32);
            *line = Line { slot, bytes, used: false };
            return;
        }
    }

    /// Forgets the slots `from..to`: their block is being erased.
    pub fn forget(&mut self, from: Slot, to: Slot) {
        for slot in from..to {
            let Some(at) = self.by_slot.remove(&slot) else { continue };
            self.lines.swap_remove(at as usize);
            if let Some(moved) = self.lines.get(at as usize) {
                self.by_slot.insert(moved.slot, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_never_holds_more_than_its_bound_and_forgets_erased_blocks() {
        let mut cache = SlotCache::new(8);
        for slot in 0..100u64 {
            cache.put(slot, Arc::from([slot as u8]));
            assert!(cache.lines.len() <= 8);
            assert_eq!(cache.get(slot).as_deref(), Some(&[slot as u8][..]));
        }
        cache.forget(0, 100);
        assert!(cache.lines.is_empty() && cache.by_slot.is_empty());
        cache.put(3, Arc::from([9]));
        assert_eq!(cache.get(3).as_deref(), Some(&[9][..]));
    }
}
