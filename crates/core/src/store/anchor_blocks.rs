//! Blocks for anchors: a pair that is whole, and where blocks fail one more, emptied in time.
//!
//! Invariant: between operations anchors have two blocks to go on in, unless nothing can be emptied.

use nand::{Cause, Nand};

use super::collector::Why;
use super::{Store, place};
use crate::error::{Error, Result};
use crate::flash::Purpose;
use crate::flash::anchor_log::PartnerState;
use crate::format::anchor::ANCHOR_BLOCKS;
use crate::format::table::Use;
use crate::manage::job::{Job, View};
use crate::policy::budget::Call;

impl<N: Nand> Store<N> {
    /// Sees to the blocks for anchors, if that can be done now: where the pair has lost one it gets another, and where
    /// blocks have failed, one is emptied for the next that does.
    pub(super) fn keep_anchor_blocks(&mut self) -> Result<()> {
        let outcome = match self.records.flash().anchors().other() {
            PartnerState::Missing => self.complete_anchor_pair(),
            PartnerState::Old | PartnerState::Ready => {
                self.ready_anchor_pair().and_then(|()| self.keep_spare_anchor_block())
            }
        };
        match outcome {
            Err(Error::NoSpace) => Ok(()),
            outcome => outcome,
        }
    }

    /// Makes the block ready that anchors go on in next, if it is time.
    fn ready_anchor_pair(&mut self) -> Result<()> {
        while self.needs_other_anchor_block() {
            self.ready_anchor_step()?;
        }
        Ok(())
    }

    /// One step of that.
    pub(super) fn ready_anchor_step(&mut self) -> Result<()> {
        let outcome = self.records.log.flash_mut().ready_step();
        self.records.follow_moved()?;
        outcome
    }

    fn needs_other_anchor_block(&self) -> bool {
        self.records.flash().anchors().needs_other(self.records.flash().shape().slc.units)
    }

    fn complete_anchor_pair(&mut self) -> Result<()> {
        self.take_free_anchor_block()?;
        if self.records.flash().anchors().other() == PartnerState::Missing {
            self.empty_anchor_block()?;
            self.take_free_anchor_block()?;
        }
        Ok(())
    }

    fn take_free_anchor_block(&mut self) -> Result<()> {
        let outcome = self.records.log.flash_mut().complete_pair();
        // What was gathered before has been programmed, or failed to be.
        self.records.follow_moved()?;
        outcome
    }

    /// Whether blocks fail on this chip, none that anchors may stand in is free, and emptying one takes nothing from
    /// what a recovery needs.
    pub(super) fn lacks_spare_anchor_block(&self) -> bool {
        let flash = self.records.flash();
        self.records.flash().blocks().failed_count() > 0
            && !flash.free().has_spare_for_anchors()
            && flash.free_blocks() >= self.records.space().budget(Call::REMOVAL).for_collection()
    }

    /// Empties a block for the next one of the pair that fails, if there is none.
    fn keep_spare_anchor_block(&mut self) -> Result<()> {
        if !self.lacks_spare_anchor_block() {
            return Ok(());
        }
        let found = self.empty_anchor_block()?;
        // A recovery that cannot rely on the last pages is to find it empty, too.
        if found && !self.records.flash().free().has_spare_for_anchors() { self.checkpoint_now() } else { Ok(()) }
    }

    /// The block that anchors may stand in which costs least to empty.
    fn cheapest_anchor_block(&self) -> Option<u32> {
        let log = self.records.flash().blocks().iter().take(ANCHOR_BLOCKS as usize).filter(|(_, block)| {
            block.entry.used_as == Use::Log && !block.open && !block.stuck && !block.entry.failing
        });
        log.map(|(number, block)| (block.entry.live_bytes, number)).min().map(|(_, number)| number)
    }

    /// Empties the block that anchors may stand in which costs least; whether there was one.
    fn empty_anchor_block(&mut self) -> Result<bool> {
        self.finish_emptying()?;
        let Some(number) = self.cheapest_anchor_block() else { return Ok(false) };
        self.empty_block(number, Why::Renewal)?;
        self.release_waiting()?;
        Ok(true)
    }

    /// In a recovery, before it writes anything: where the pair has lost a block, opens the block that another one's contents
    /// will move to. The checkpoint's anchor lists it; opened later, it would take one of the few anchors that are left.
    pub(super) fn open_ahead_for_pair(&mut self) -> Result<()> {
        let flash = self.records.flash();
        if flash.anchors().other() != PartnerState::Missing
            || flash.free_blocks() < self.records.space().budget(Call::REMOVAL).for_collection()
        {
            return Ok(());
        }
        let Some(victim) = self.cheapest_anchor_block() else { return Ok(()) };
        let block = flash.blocks().get(victim);
        let write = place::of_copy(&self.records, block.mode(), block.entry.live_bytes);
        let (id, shape) = (place::log_head(self.records.manager.place(&write)), flash.shape());
        // The checkpoint leaves out what torn programs would hit.
        let slots = block.entry.live_bytes.div_ceil(shape.slot_bytes as u32) + shape.mode(id.mode()).doubtful_slots;
        // Where everything goes to one region, what the recovery copies comes before it.
        let one_region = self.records.manager.policy().uses_one_region();
        let slots = slots + if one_region { flash.slots().stash().len() as u32 } else { 0 };
        if flash.slots().lanes().room(id, shape.mode(id.mode())) >= slots {
            return Ok(());
        }
        self.records.log.flash_mut().open_fresh(id.into(), Purpose::of(Cause::Gc))
    }

    /// Frees blocks that are empty but wait for a commit, for their copies, or for a checkpoint.
    fn release_waiting(&mut self) -> Result<()> {
        let before = self.records.flash().free_blocks();
        self.run(Job::Seal)?;
        let gained = self.records.flash().free_blocks() > before;
        if !gained && self.look(Call::REMOVAL).has_waiting() { self.checkpoint_now() } else { Ok(()) }
    }
}
