//! Undoing a request that did not come to its end, because a program failed in it or the power went.
//!
//! Its log blocks are merged without its pages, and its whole blocks are erased. Invariant: no page that ends a later
//! request is programmed before nothing is left of this one.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::LogBlock;
use super::log::{Log, scan};
use super::map_blocks::Change;
use super::merge::Seal;
use crate::Result;
use crate::flash::{Flash, Outcome};

impl LogBlock {
    /// Undoes a request of which pages from the stamp `start` on were programmed: what its log blocks held before is merged,
    /// and its whole blocks are erased. The block `bad` is given up.
    pub(super) fn undo(
        &mut self,
        flash: &mut Flash<impl Nand>,
        start: u64,
        wholes: &[Change],
        bad: Option<u32>,
    ) -> Result<()> {
        for block in wholes.iter().map(|change| change.now.block) {
            wipe(flash, block, bad)?;
        }
        // The block in which a program failed may have been written last by an earlier request.
        let is_torn = |log: &&Log| log.written() >= start || Some(log.block) == bad;
        let torn: Vec<u32> = self.logs.iter().filter(is_torn).map(|log| log.block).collect();
        self.undo_logs(flash, &torn, start.saturating_sub(1), bad)
    }

    /// Merges log blocks, of whose pages those with stamps up to `limit` count, and commits all of that at once; where the
    /// map is in memory, the last merged block is the one that says so.
    pub(super) fn undo_logs(
        &mut self,
        flash: &mut Flash<impl Nand>,
        torn: &[u32],
        limit: u64,
        bad: Option<u32>,
    ) -> Result<()> {
        self.make_map_room(flash, torn.len().max(1) as u32, Some(limit))?;
        let mut changes = Vec::new();
        for (nth, &block) in torn.iter().enumerate() {
            let Some(at) = self.logs.iter().position(|log| log.block == block) else { continue };
            match scan(flash, block, limit)?.log {
                Some(log) => {
                    let owner = log.owner;
                    self.logs.insert(at, log);
                    self.logs.swap_remove(at + 1);
                    let seal = if nth + 1 == torn.len() { Seal::Resolved } else { Seal::Silent };
                    changes.push(Change { block: owner, now: self.merged(flash, at, seal)? });
                }
                None => {
                    self.logs.swap_remove(at);
                    flash.pool.hold(block);
                    wipe(flash, block, bad)?;
                }
            }
        }
        self.commit(flash, &changes, bad)
    }
}

/// Erases a taken block of which nothing counts, and frees it, or gives it up.
fn wipe(flash: &mut Flash<impl Nand>, block: u32, bad: Option<u32>) -> Result<()> {
    if bad == Some(block) || flash.erase(block, Cause::Gc)? == Outcome::Failed {
        return flash.give_up(block);
    }
    flash.pool.put_back(block);
    Ok(())
}
