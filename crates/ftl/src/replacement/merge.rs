//! Merging a chain (paper §II): the latest page of each place is copied to the last block, if all of those that it lacks
//! can still be programmed there, else to a free block.
//!
//! Invariant: the blocks of the chain are freed when every page that counts stands in the one that stays.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::{Chain, NOWHERE, Replacement};
use crate::flash::latest::COPIED;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Found, Outcome, Place};
use crate::{Error, Result};

impl<N: Nand> Replacement<N> {
    /// Merges the chain of a data block. The block `bad` is given up.
    pub(super) fn merge(&mut self, owner: u32, bad: Option<u32>) -> Result<()> {
        let pages = self.flash.pages_per_block();
        let chain = match self.chains.get(&owner) {
            Some(chain) => chain.clone(),
            None => {
                let block = self.map.get(owner as usize).copied().filter(|&block| block != NOWHERE);
                let Some(block) = block else { return Err(Error::Failed) };
                Chain { blocks: alloc::vec![block], latest: alloc::vec![0; pages as usize] }
            }
        };
        self.flash.counts_mut().merges += 1;
        let last = chain.blocks.last().copied().filter(|&last| bad != Some(last) && self.completes(&chain, last));
        let target = match last {
            Some(last) if self.fill(&chain, last)? == Outcome::Done => last,
            // A program failed in the last block: what it holds is copied like the rest.
            Some(last) => {
                let target = self.fresh(&chain)?;
                self.flash.mark_bad(last)?;
                target
            }
            None => self.fresh(&chain)?,
        };
        for block in chain.blocks.into_iter().filter(|&block| block != target) {
            self.next.remove(&block);
            if bad == Some(block) && !self.flash.is_bad(block) {
                self.flash.mark_bad(block)?;
            } else if !self.flash.is_bad(block) {
                self.pool.release(block);
            }
        }
        self.chains.remove(&owner);
        if let Some(slot) = self.map.get_mut(owner as usize) {
            *slot = target;
        }
        Ok(())
    }

    /// Whether every place that `last` lacks can still be programmed in it.
    fn completes(&self, chain: &Chain, last: u32) -> bool {
        let next = self.next.get(&last).copied().unwrap_or(self.flash.pages_per_block());
        (0..next).all(|offset| chain.holder(offset) == Some(last))
    }

    /// Copies all places to a free block, another one if a program fails in it.
    fn fresh(&mut self, chain: &Chain) -> Result<u32> {
        loop {
            let target = self.pool.take(&mut self.flash, Cause::Gc)?;
            self.next.insert(target, 0);
            if self.fill(chain, target)? == Outcome::Done {
                self.pool.commit(target);
                return Ok(target);
            }
            self.next.remove(&target);
            self.pool.give_up(&mut self.flash, target)?;
        }
    }

    /// Copies to `target` whatever it lacks.
    fn fill(&mut self, chain: &Chain, target: u32) -> Result<Outcome> {
        let lacking: Vec<u32> =
            (0..self.flash.pages_per_block()).filter(|&page| chain.holder(page) != Some(target)).collect();
        for page in lacking {
            let Some(from) = chain.holder(page) else { continue };
            let logical = self.logical(chain, from, page)?;
            let Some(tag) = logical else { continue };
            let to = Place { block: target, page };
            let outcome = match tag.kind {
                Kind::Merged => self.flash.program_buffer(to, tag, Cause::Gc)?,
                _ => self.flash.program_filled(to, tag, Cause::Metadata, |_| {})?,
            };
            if outcome == Outcome::Failed {
                return Ok(Outcome::Failed);
            }
            self.next.insert(target, page + 1);
        }
        if self.next.get(&target).is_some_and(|&next| next >= self.flash.pages_per_block()) {
            self.next.remove(&target);
        }
        Ok(Outcome::Done)
    }

    /// Reads a page that is to be copied: the tag of its copy; `None` where nothing was programmed.
    fn logical(&mut self, chain: &Chain, from: u32, page: u32) -> Result<Option<Tag>> {
        let found = self.flash.read(Place { block: from, page }, &mut [], Cause::Gc)?;
        let tag = |kind, logical| Some(Tag { kind, ends: true, logical, stamp: 0, extra: COPIED });
        Ok(match found {
            Found::Erased => None,
            Found::Page(page) if page.kind.is_payload() => tag(Kind::Merged, page.logical),
            Found::Page(page) => tag(page.kind, page.logical),
            Found::Unreadable => {
                let owner = self.owner_of(chain);
                owner.and_then(|owner| tag(Kind::Lost, owner * self.flash.pages_per_block() + page))
            }
        })
    }

    fn owner_of(&self, chain: &Chain) -> Option<u32> {
        let first = chain.blocks.first()?;
        let chained =
            self.chains.iter().find(|(_, chain)| chain.blocks.first() == Some(first)).map(|(&owner, _)| owner);
        chained.or_else(|| self.map.iter().position(|block| block == first).map(|owner| owner as u32))
    }
}
