//! The bytes of a block in RAM. They are put one behind another, and how long they become is known before.
//!
//! The host makes memory when it is first written, a page at a time, and each time costs a fault. So a large block has a
//! mapping of its own, and its memory is asked for in steps, just ahead of the bytes. Invariant: what is read of a block
//! was put there; memory ahead of it is never seen.

use std::ops::{Deref, DerefMut};

use memmap2::{Advice, MmapMut};

/// Room from which a block has a mapping of its own. Memory of smaller ones is used again by the allocator.
const MAPPED_MIN_BYTES: usize = 256 << 10;
/// Memory that is asked for at once.
const STEP_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) enum BlockBytes {
    Heap(Vec<u8>),
    Mapped(MappedBytes),
}

#[derive(Debug)]
pub(super) struct MappedBytes {
    map: MmapMut,
    len: usize,
    /// The host has made memory up to here.
    ready_bytes: usize,
}

impl MappedBytes {
    /// Puts bytes behind the others. `false`: there is no room for them.
    fn extend(&mut self, bytes: &[u8]) -> bool {
        let end = self.len + bytes.len();
        if end > self.map.len() {
            return false;
        }
        while self.ready_bytes < end {
            let step = STEP_BYTES.min(self.map.len() - self.ready_bytes);
            // A host that does not know of this makes the memory when it is written.
            let _ = self.map.advise_range(Advice::PopulateWrite, self.ready_bytes, step);
            self.ready_bytes += step;
        }
        self.map[self.len..end].copy_from_slice(bytes);
        self.len = end;
        true
    }
}

impl BlockBytes {
    /// None, which take no memory.
    pub(super) fn new() -> Self {
        Self::Heap(Vec::new())
    }

    /// None yet, with room for so many.
    fn with_room(bytes: usize) -> Self {
        match (bytes >= MAPPED_MIN_BYTES).then(|| MmapMut::map_anon(bytes)) {
            Some(Ok(map)) => Self::Mapped(MappedBytes { map, len: 0, ready_bytes: 0 }),
            Some(Err(_)) | None => Self::Heap(Vec::with_capacity(bytes)),
        }
    }

    fn room(&self) -> usize {
        match self {
            Self::Heap(bytes) => bytes.capacity(),
            Self::Mapped(mapped) => mapped.map.len(),
        }
    }

    /// Makes room for so many bytes, where there was none.
    pub(super) fn make_room(&mut self, bytes: usize) {
        if self.room() == 0 {
            *self = Self::with_room(bytes);
        }
    }

    /// Puts bytes behind the others.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        match self {
            Self::Heap(heap) => heap.extend_from_slice(bytes),
            Self::Mapped(mapped) => {
                if !mapped.extend(bytes) {
                    *self = Self::Heap([&**self, bytes].concat());
                }
            }
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Heap(heap) => heap.clear(),
            Self::Mapped(mapped) => mapped.len = 0,
        }
    }
}

impl Deref for BlockBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Heap(heap) => heap,
            Self::Mapped(mapped) => &mapped.map[..mapped.len],
        }
    }
}

impl DerefMut for BlockBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(heap) => heap,
            Self::Mapped(mapped) => &mut mapped.map[..mapped.len],
        }
    }
}

impl Clone for BlockBytes {
    fn clone(&self) -> Self {
        let mut own = Self::with_room(self.room());
        own.extend(self);
        own
    }

    fn clone_from(&mut self, from: &Self) {
        self.clear();
        self.make_room(from.room());
        self.extend(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_by_small_and_large_blocks_past_their_room() {
        for room in [1 << 10, MAPPED_MIN_BYTES, MAPPED_MIN_BYTES + 1000] {
            let piece: Vec<u8> = (0..room / 7).map(|number| (number % 251) as u8).collect();
            let (mut bytes, mut expected) = (BlockBytes::new(), Vec::new());
            bytes.make_room(room);
            assert_eq!(matches!(bytes, BlockBytes::Mapped(_)), room >= MAPPED_MIN_BYTES);
            for _ in 0..9 {
                bytes.extend(&piece);
                expected.extend_from_slice(&piece);
                assert!(*bytes == *expected, "{} of {room} bytes", bytes.len());
                bytes[0] ^= 0xFF;
                expected[0] ^= 0xFF;
                let snapshot = bytes.clone();
                bytes[1] ^= 0xFF;
                assert!(*snapshot == *expected);
                bytes.clone_from(&snapshot);
                assert!(*bytes == *expected);
            }
            bytes.clear();
            assert!(bytes.is_empty());
        }
    }
}
