//! Sectors that are given up: a page lists them, and counts as long as one of them was not written again.
//!
//! Invariant: a page lists at least one sector, and no more ranges than it has room for.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::PageMap;
use crate::Result;
use crate::device::Span;
use crate::flash::Flash;
use crate::flash::pages::NOWHERE;
use crate::flash::tag::{Kind, Tag};

/// Bytes of a range: its first sector, and how many there are.
const RANGE_BYTES: usize = 8;

impl PageMap {
    /// Gives a span up.
    pub(super) fn trim_span(&mut self, flash: &mut Flash<impl Nand>, span: Span) -> Result<()> {
        let sectors = span.first as usize..(span.first + span.count) as usize;
        let holds = self.map.get(sectors).unwrap_or_default().iter().any(|&packed| packed != NOWHERE);
        if !holds {
            return Ok(());
        }
        self.make_room(flash)?;
        self.write_trim(flash, &[(span.first as u32, span.count as u32)])?;
        self.give_up_failing(flash)
    }

    /// Writes a page that gives these ranges up.
    pub(super) fn write_trim(&mut self, flash: &mut Flash<impl Nand>, ranges: &[(u32, u32)]) -> Result<()> {
        let tag = Tag::new(Kind::Trim, ranges.len() as u32);
        let packed = self.append(flash, |flash, at| {
            flash.program_filled(at, tag, Cause::Metadata, |page| {
                let bytes =
                    ranges.iter().flat_map(|(first, count)| first.to_le_bytes().into_iter().chain(count.to_le_bytes()));
                page.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = byte);
            })
        })?;
        self.trims.insert(packed, ranges.iter().map(|(_, count)| count).sum());
        for &(first, count) in ranges {
            (first..first + count).for_each(|sector| self.remap(sector, packed));
        }
        Ok(())
    }
}

/// Ranges that fit a page of so many bytes.
pub(super) fn ranges_max(page_bytes: usize) -> usize {
    (page_bytes / RANGE_BYTES - 1).max(1)
}

/// The ranges that a page gives up, as many as its tag says, on a volume of so many sectors. They ascend as they were written;
/// where a page says otherwise, the rest of it counts for nothing.
pub(super) fn ranges(page: &[u8], count: u32, sectors: u32) -> Vec<(u32, u32)> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte));
    let told = page.chunks_exact(RANGE_BYTES).take(count as usize);
    let told = told.map(|range| range.split_at(RANGE_BYTES / 2)).map(|(first, count)| (number(first), number(count)));
    let mut free_from = 0;
    let ascending = told.take_while(|&(first, count)| {
        let end = first.saturating_add(count);
        let follows = first >= free_from && end <= sectors;
        free_from = end;
        follows
    });
    ascending.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fuzzer changed a range to 4,227,858,432 sectors, over which an opening went one by one, for each such range.
    #[test]
    fn ranges_beyond_the_volume_or_out_of_order_count_for_nothing() {
        let page = |told: &[(u32, u32)]| -> Vec<u8> {
            told.iter().flat_map(|(first, count)| [first.to_le_bytes(), count.to_le_bytes()].concat()).collect()
        };
        let sound = [(0, 3), (3, 1), (90, 10)];
        assert_eq!(ranges(&page(&sound), 3, 100), sound);
        assert_eq!(ranges(&page(&sound), 2, 100), sound[..2]);
        assert_eq!(ranges(&page(&sound), 3, 99), sound[..2]);
        assert_eq!(ranges(&page(&[(4, 2), (5, 4_227_858_432)]), 2, 100), [(4, 2)]);
        assert_eq!(ranges(&page(&[(4, 2), (5, 90), (5, 90)]), 3, 100), [(4, 2)]);
        assert_eq!(ranges(&page(&[(u32::MAX, 2)]), 1, 100), []);
    }
}
