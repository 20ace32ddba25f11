//! Merging a chain (paper §II): the latest page of each place is copied to the last block, if all of those that it lacks
//! can still be programmed there, else to a free block.
//!
//! Invariant: the blocks of the chain are freed when every page that counts stands in the one that stays.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::{Chain, Replacement};
use crate::flash::latest::COPIED;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found, Outcome, Place};
use crate::{Error, Result};

impl Replacement {
    /// Merges the chain of a data block. The block `bad` is given up.
    pub(super) fn merge(&mut self, flash: &mut Flash<impl Nand>, owner: u32, bad: Option<u32>) -> Result<()> {
        let chain = match self.chains.get(&owner) {
            Some(chain) => chain.clone(),
            None => {
                let Some(block) = self.map.get(owner) else { return Err(Error::Failed) };
                Chain { blocks: alloc::vec![block], latest: alloc::vec![0; self.pages_per_block as usize] }
            }
        };
        flash.counts_mut().merges += 1;
        let last = chain.blocks.last().copied().filter(|&last| bad != Some(last) && self.completes(&chain, last));
        let target = match last {
            Some(last) if self.fill(flash, &chain, last)? == Outcome::Done => last,
            // A program failed in the last block: what it holds is copied like the rest.
            Some(last) => {
                let target = self.fresh(flash, &chain)?;
                flash.mark_bad(last)?;
                target
            }
            None => self.fresh(flash, &chain)?,
        };
        for block in chain.blocks.into_iter().filter(|&block| block != target) {
            self.next.remove(&block);
            if bad == Some(block) && !flash.is_bad(block) {
                flash.mark_bad(block)?;
            } else if !flash.is_bad(block) {
                flash.pool.release(block);
            }
        }
        self.chains.remove(&owner);
        self.map.set(owner, Some(target));
        Ok(())
    }

    /// Whether every place that `last` lacks can still be programmed in it.
    fn completes(&self, chain: &Chain, last: u32) -> bool {
        let next = self.next.get(&last).copied().unwrap_or(self.pages_per_block);
        (0..next).all(|offset| chain.holder(offset) == Some(last))
    }

    /// Copies all places to a free block, another one if a program fails in it.
    fn fresh(&mut self, flash: &mut Flash<impl Nand>, chain: &Chain) -> Result<u32> {
        loop {
            let target = flash.take(Cause::Gc)?;
            self.next.insert(target, 0);
            if self.fill(flash, chain, target)? == Outcome::Done {
                flash.pool.commit(target);
                return Ok(target);
            }
            self.next.remove(&target);
            flash.give_up(target)?;
        }
    }

    /// Copies to `target` whatever it lacks.
    fn fill(&mut self, flash: &mut Flash<impl Nand>, chain: &Chain, target: u32) -> Result<Outcome> {
        let lacking = (0..self.pages_per_block).filter(|&page| chain.holder(page) != Some(target));
        for page in lacking.collect::<Vec<u32>>() {
            let Some(from) = chain.holder(page) else { continue };
            let Some(tag) = self.copied(flash, chain, Place { block: from, page })? else { continue };
            let cause = if tag.kind == Kind::Merged { Cause::Gc } else { Cause::Metadata };
            if flash.program_copy(Place { block: target, page }, tag, cause)? == Outcome::Failed {
                return Ok(Outcome::Failed);
            }
            self.next.insert(target, page + 1);
        }
        if self.next.get(&target).is_some_and(|&next| next >= self.pages_per_block) {
            self.next.remove(&target);
        }
        Ok(Outcome::Done)
    }

    /// Reads a page that is to be copied: the tag of its copy; `None` where nothing was programmed.
    fn copied(&self, flash: &mut Flash<impl Nand>, chain: &Chain, from: Place) -> Result<Option<Tag>> {
        let tag = |kind, logical| Some(Tag { extra: COPIED, ..Tag::new(kind, logical) });
        Ok(match flash.read(from, &mut [], Cause::Gc)? {
            Found::Erased => None,
            Found::Page(page) if page.kind.is_payload() => tag(Kind::Merged, page.logical),
            Found::Page(page) => tag(page.kind, page.logical),
            Found::Unreadable => {
                let owner = self.owner_of(chain);
                owner.and_then(|owner| tag(Kind::Lost, owner * self.pages_per_block + from.page))
            }
        })
    }

    fn owner_of(&self, chain: &Chain) -> Option<u32> {
        let first = *chain.blocks.first()?;
        let is_its = |chain: &Chain| chain.blocks.first() == Some(&first);
        let chained = self.chains.iter().find(|(_, chain)| is_its(chain)).map(|(&owner, _)| owner);
        chained.or_else(|| self.map.owner_of(first))
    }
}
