//! Giving sectors up: whole blocks in the map, those of one fragment at once, others by a page of their log blocks that lists
//! them.
//!
//! Invariant: each data block's part of it is durable as a whole or not at all.

use alloc::vec::Vec;
use core::ops::Range;

use nand::Nand;

use super::LogBlock;
use super::fragment::Standing;
use super::map_blocks::Change;
use super::write::{ATTEMPTS, Part, Wrote, parts, wholes};
use crate::device::Span;
use crate::flash::Flash;
use crate::flash::tag::{Kind, Tag};
use crate::{Error, Result};

impl LogBlock {
    /// Gives a span up: whole blocks in the map, or by a page of their log blocks like the other parts.
    pub(super) fn trim_span(&mut self, flash: &mut Flash<impl Nand>, span: Span) -> Result<()> {
        let pages = self.pages_per_block;
        let in_map = if self.table.is_on_flash() { wholes(span, pages) } else { 0..0 };
        for part in parts(span, pages).filter(|_| span.count > 0) {
            if part.block == in_map.start {
                self.trim_in_map(flash, in_map.clone())?;
            }
            if !in_map.contains(&part.block) && self.holds(flash, part.block)? {
                self.trim_in_log(flash, part)?;
            }
        }
        Ok(())
    }

    /// Whether a data block holds anything, or its log block does.
    fn holds(&mut self, flash: &mut Flash<impl Nand>, block: u32) -> Result<bool> {
        Ok(self.log_of(block).is_some() || self.table.holder(flash, block)?.is_some())
    }

    /// Gives whole data blocks up, with a page of the map for those of each fragment.
    fn trim_in_map(&mut self, flash: &mut Flash<impl Nand>, blocks: Range<u32>) -> Result<()> {
        let mut next = blocks.start;
        while next < blocks.end {
            let end = blocks.end.min(next.saturating_add(self.table.neighbours(next, 1)));
            let mut changes = Vec::new();
            for block in next..end {
                if self.holds(flash, block)?
                    && let Some(old) = self.table.find(flash, block)?
                {
                    changes.push(Change { block, now: Standing { is_empty: true, ..old } });
                }
            }
            if !changes.is_empty() {
                self.make_map_room(flash, 1, None)?;
                self.commit(flash, &changes, None)?;
            }
            next = end;
        }
        Ok(())
    }

    fn trim_in_log(&mut self, flash: &mut Flash<impl Nand>, part: Part) -> Result<()> {
        let first = u64::from(part.block) * u64::from(self.pages_per_block);
        let mut page = alloc::vec![0; flash.page_bytes()];
        for offset in part.offset..part.offset + part.count {
            if let Some(byte) = page.get_mut(offset as usize / 8) {
                *byte |= 1 << (offset % 8);
            }
        }
        // Room for one page of this block's log block.
        let span = Span { first: first + u64::from(part.offset).min(u64::from(self.pages_per_block) - 1), count: 1 };
        let tag = Tag::new(Kind::Trim, first as u32);
        for _ in 0..ATTEMPTS {
            self.make_room(flash, span)?;
            let start = flash.next_stamp();
            match self.append(flash, part.block, tag, &page)? {
                Wrote::Done => return Ok(()),
                Wrote::Failed(bad) => self.undo(flash, start, &[], Some(bad))?,
            }
        }
        Err(Error::WornOut)
    }
}
