//! A range of bytes, and the sectors that it lies in.
//!
//! Invariant: the parts of a range lie beside each other and fill it; an empty range lies in no sector.

use std::ops::Range;

/// A range of bytes of a disk with sectors of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSpan {
    offset: u64,
    length: u64,
    sector_bytes: u64,
}

impl ByteSpan {
    /// So many bytes from an offset on; their end is a number.
    pub fn new(offset: u64, length: u64, sector_bytes: u64) -> Self {
        Self { offset, length, sector_bytes: sector_bytes.max(1) }
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn end(&self) -> u64 {
        self.offset + self.length
    }

    pub fn sector_bytes(&self) -> u64 {
        self.sector_bytes
    }

    /// Whether it begins and ends with sectors.
    pub fn is_whole(&self) -> bool {
        self.offset.is_multiple_of(self.sector_bytes) && self.length.is_multiple_of(self.sector_bytes)
    }

    /// The first sector that has a byte of it.
    pub fn first_sector(&self) -> u64 {
        self.offset / self.sector_bytes
    }

    /// Sectors that have a byte of it.
    pub fn sectors(&self) -> u64 {
        if self.length == 0 { 0 } else { self.end().div_ceil(self.sector_bytes) - self.first_sector() }
    }

    /// Bytes of all sectors that have a byte of it.
    pub fn sector_range_bytes(&self) -> usize {
        (self.sectors() * self.sector_bytes) as usize
    }

    /// Its bytes among those of its sectors.
    pub fn within(&self) -> Range<usize> {
        let from = (self.offset % self.sector_bytes) as usize;
        from..from + self.length as usize
    }

    /// The sectors that it has only a part of, one or two, each with its bytes among those of its sectors.
    pub fn partial_sectors(&self) -> impl Iterator<Item = (u64, Range<usize>)> {
        let (size, first) = (self.sector_bytes as usize, self.first_sector());
        let begins_within = !self.offset.is_multiple_of(self.sector_bytes);
        let ends_within = !self.end().is_multiple_of(self.sector_bytes);
        let last = self.sectors().saturating_sub(1);
        let head = (begins_within && self.length > 0).then_some(0);
        let tail = (ends_within && self.length > 0 && head != Some(last)).then_some(last);
        [head, tail].into_iter().flatten().map(move |at| (first + at, at as usize * size..(at as usize + 1) * size))
    }

    /// The part before its first whole sector, its whole sectors, and the rest; each may be empty.
    pub fn parts(&self) -> (Self, Self, Self) {
        let whole_from = self.offset.next_multiple_of(self.sector_bytes).min(self.end());
        let whole_end = (self.end() / self.sector_bytes * self.sector_bytes).max(whole_from);
        let part = |from: u64, end: u64| Self::new(from, end - from, self.sector_bytes);
        (part(self.offset, whole_from), part(whole_from, whole_end), part(whole_end, self.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_falls_into_a_head_whole_sectors_and_a_tail() {
        let parts = |offset, length| {
            let (head, whole, tail) = ByteSpan::new(offset, length, 512).parts();
            [head, whole, tail].map(|part| (part.offset(), part.length()))
        };
        assert_eq!(parts(0, 1024), [(0, 0), (0, 1024), (1024, 0)]);
        assert_eq!(parts(100, 1000), [(100, 412), (512, 512), (1024, 76)]);
        // Within one sector there is no whole one.
        assert_eq!(parts(100, 200), [(100, 200), (300, 0), (300, 0)]);
        assert_eq!(parts(512, 100), [(512, 0), (512, 0), (512, 100)]);
        assert_eq!(parts(600, 0), [(600, 0), (600, 0), (600, 0)]);
    }

    #[test]
    fn sectors_of_which_only_a_part_is_named_are_told() {
        let partial = |offset, length| ByteSpan::new(offset, length, 512).partial_sectors().collect::<Vec<_>>();
        assert_eq!(partial(512, 1024), []);
        assert_eq!(partial(100, 1000), [(0, 0..512), (2, 1024..1536)]);
        assert_eq!(partial(600, 100), [(1, 0..512)]);
        assert_eq!(partial(512, 700), [(2, 512..1024)]);
        assert_eq!(partial(700, 0), []);
    }
}
