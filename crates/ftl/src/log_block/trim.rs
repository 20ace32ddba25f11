//! Giving sectors up: whole blocks in the map, others by a page of their log blocks that lists them.
//!
//! Invariant: each data block's part of it is durable as a whole or not at all.

use nand::Nand;

use super::LogBlock;
use super::fragment::Standing;
use super::map_blocks::Change;
use super::write::{ATTEMPTS, Part, Wrote, parts};
use crate::device::Span;
use crate::flash::tag::{Kind, Tag};
use crate::{Error, Result};

impl<N: Nand> LogBlock<N> {
    /// Gives a span up: whole blocks in the map, or by a page of their log blocks like the other parts.
    pub(super) fn trim_span(&mut self, span: Span) -> Result<()> {
        let pages = self.flash.pages_per_block();
        for part in parts(span, pages).filter(|_| span.count > 0) {
            let standing = self.table.find(&mut self.flash, part.block)?;
            let holds = standing.is_some_and(|standing| !standing.is_empty);
            let has_log = self.log_of(part.block).is_some();
            match standing {
                _ if !holds && !has_log => {}
                Some(old) if self.is_whole(&part) && self.table.is_on_flash() => {
                    self.make_map_room(1, None)?;
                    self.commit(&[Change { block: part.block, now: Standing { is_empty: true, ..old } }], None)?;
                }
                _ => self.trim_in_log(part)?,
            }
        }
        Ok(())
    }

    fn trim_in_log(&mut self, part: Part) -> Result<()> {
        let first = u64::from(part.block) * u64::from(self.flash.pages_per_block());
        let mut page = alloc::vec![0; self.flash.page_bytes()];
        for offset in part.offset..part.offset + part.count {
            if let Some(byte) = page.get_mut(offset as usize / 8) {
                *byte |= 1 << (offset % 8);
            }
        }
        // Room for one page of this block's log block.
        let span =
            Span { first: first + u64::from(part.offset).min(u64::from(self.flash.pages_per_block()) - 1), count: 1 };
        let tag = Tag { kind: Kind::Trim, ends: true, logical: first as u32, stamp: 0, extra: 0 };
        for _ in 0..ATTEMPTS {
            self.make_room(span)?;
            let start = self.flash.next_stamp();
            match self.append(part.block, tag, &page)? {
                Wrote::Done => return Ok(()),
                Wrote::Failed(bad) => self.undo(start, &[], Some(bad))?,
            }
        }
        Err(Error::WornOut)
    }
}
