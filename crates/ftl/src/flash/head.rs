//! The heads that fill blocks, page by page.
//!
//! Invariant: a block is closed once no head fills it; after an opening a head goes on behind every page that may be
//! torn.

use nand::{Cause, Nand};

use super::pages::Pages;
use super::tag::{Kind, Tag};
use super::{Flash, Found, Outcome, Place};
use crate::Result;

/// The block that is being filled, and its next page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head(Option<Place>);

impl Head {
    pub fn block(&self) -> Option<u32> {
        self.0.map(|next| next.block)
    }

    /// Pages of the block that can still be programmed.
    pub fn room(&self, pages_per_block: u32) -> u32 {
        self.0.map_or(0, |next| pages_per_block.saturating_sub(next.page))
    }
}

impl Pages {
    /// Programs the next page of a head, `program` doing so, in another block if that fails: it counts. The page's
    /// number.
    pub fn append<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        head: &mut Head,
        mut program: impl FnMut(&mut Flash<N>, Place) -> Result<Outcome>,
    ) -> Result<u32> {
        loop {
            let at = match head.0.filter(|next| next.page < self.pages_per_block) {
                Some(next) => next,
                None => {
                    self.close(head);
                    let block = flash.take(Cause::Gc)?;
                    flash.pool.commit(block);
                    Place { block, page: 0 }
                }
            };
            head.0 = Some(Place { page: at.page + 1, ..at });
            if program(flash, at)? == Outcome::Done {
                let packed = self.pack(at);
                self.counts_now(packed);
                return Ok(packed);
            }
            self.failing.push(at.block);
            head.0 = None;
        }
    }

    /// Copies a sector to the next page of a head: the bytes of the page that was read last, or that they are lost
    /// where that holds none. The copy's number.
    pub fn append_copy<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        head: &mut Head,
        sector: u32,
        found: Found,
    ) -> Result<u32> {
        let is_readable = matches!(found, Found::Page(tag) if tag.kind.is_payload());
        let tag = Tag::new(if is_readable { Kind::Merged } else { Kind::Lost }, sector);
        self.append(flash, head, |flash, at| flash.program_copy(at, tag, Cause::Gc))
    }

    /// A head goes on in the block that it was filling when the volume was last used.
    pub fn reopen<N: Nand>(&mut self, flash: &mut Flash<N>, head: &mut Head, block: u32) -> Result<()> {
        let mut page = flash.end_of(block)?;
        self.set_aside(&mut flash.pool, block);
        while page < self.pages_per_block {
            // The page after the last may have been half programmed when the power went. Where it shows, one more is
            // used up, so that a page which cannot be read is followed by one that holds nothing.
            flash.use_up(Place { block, page })?;
            page += 1;
            if flash.read(Place { block, page: page - 1 }, &mut [], Cause::Metadata)? != Found::Unreadable {
                break;
            }
        }
        head.0 = Some(Place { block, page });
        Ok(())
    }

    fn close(&mut self, head: &mut Head) {
        if let Some(next) = head.0.take() {
            self.set_closed(next.block, true);
        }
    }
}
