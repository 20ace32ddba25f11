//! The directory: where the newest page of each fragment stands, in as few bytes as the chip's pages take.
//!
//! It is what memory grows by with the chip. Invariant: what is read was set, or is nowhere.

use alloc::vec::Vec;

/// Bytes of a place on a chip of fewer pages than three bytes have numbers, and on others.
const PLACE_BYTES: [usize; 2] = [3, 4];

/// A page's number for each fragment, or none.
#[derive(Clone, Debug)]
pub(super) struct Places {
    place_bytes: usize,
    bytes: Vec<u8>,
}

impl Places {
    /// Nowhere for each of so many fragments, on a chip of so many pages.
    pub fn new(fragments: u32, pages: u64) -> Self {
        let [few, many] = PLACE_BYTES;
        let place_bytes = if pages < 1 << (8 * few) { few } else { many };
        Self { place_bytes, bytes: alloc::vec![0xff; fragments as usize * place_bytes] }
    }

    pub fn len(&self) -> usize {
        self.bytes.len() / self.place_bytes
    }

    /// Where a fragment's newest page stands.
    pub fn get(&self, fragment: u32) -> Option<u32> {
        let first = fragment as usize * self.place_bytes;
        self.bytes.get(first..first + self.place_bytes).and_then(number)
    }

    /// It stands there now, or nowhere.
    pub fn set(&mut self, fragment: u32, place: Option<u32>) {
        let slots = self.bytes.iter_mut().skip(fragment as usize * self.place_bytes).take(self.place_bytes);
        slots.zip(place.unwrap_or(u32::MAX).to_le_bytes()).for_each(|(slot, byte)| *slot = byte);
    }

    /// Every fragment's place in turn.
    pub fn iter(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.bytes.chunks_exact(self.place_bytes).map(number)
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    let is_nowhere = bytes.iter().all(|&byte| byte == 0xff);
    (!is_nowhere).then(|| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_it_was_set_on_chips_of_few_and_many_pages() {
        for (pages, place_bytes) in [(1 << 24, 4), ((1 << 24) - 1, 3), (200, 3)] {
            let mut places = Places::new(5, pages);
            places.set(3, Some(pages as u32 - 1));
            places.set(4, Some(0));
            places.set(1, Some(7));
            places.set(1, None);
            assert_eq!(places.iter().collect::<Vec<_>>(), [None, None, None, Some(pages as u32 - 1), Some(0)]);
            assert_eq!((places.get(3), places.get(1), places.get(5)), (Some(pages as u32 - 1), None, None));
            assert_eq!((places.len(), places.ram_bytes()), (5, 5 * place_bytes));
        }
    }
}
