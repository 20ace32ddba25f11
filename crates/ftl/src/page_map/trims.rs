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

/// The ranges that a page gives up, as many as its tag says.
pub(super) fn ranges(page: &[u8], count: u32) -> Vec<(u32, u32)> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u32::from(byte));
    let ranges = page.chunks_exact(RANGE_BYTES).take(count as usize);
    ranges.map(|range| range.split_at(RANGE_BYTES / 2)).map(|(first, count)| (number(first), number(count))).collect()
}
