//! Keeping what is stored readable: bit errors grow with time, with reads and with wear, so every block is looked at now
//! and then, and what comes near to what the ECC can correct is written anew elsewhere.
//!
//! Invariant: looking changes nothing on the chip; what is written anew goes the way of collection, or of a checkpoint.

use nand::{Cause, Nand, NandError};

use super::Fs;
use crate::error::Result;
use crate::flash::blocks::Block;
use crate::flash::head::HeadId;
use crate::format::table::Use;

/// Between two looks at every block, ns: a day.
const PASS_NS: i64 = 24 * 60 * 60 * 1_000_000_000;

/// How far the look at every block has come.
#[derive(Default)]
pub(crate) struct Scrub {
    next: u32,
    /// Passes done: each looks at other pages.
    passes: u32,
    /// When the next one begins.
    due_ns: i64,
}

impl<N: Nand> Fs<N> {
    /// Reads a page of the next block that holds something, if a pass is due. Whether it did.
    pub(super) fn scrub_step(&mut self, now_ns: i64) -> Result<bool> {
        if now_ns < self.scrub.due_ns {
            return Ok(false);
        }
        while self.scrub.next < self.flash.blocks.len() {
            let number = self.scrub.next;
            self.scrub.next += 1;
            if self.look_at(number)? {
                return Ok(true);
            }
        }
        self.scrub = Scrub { next: 0, passes: self.scrub.passes + 1, due_ns: now_ns.saturating_add(PASS_NS) };
        Ok(false)
    }

    /// Reads a page of a block, if the block holds something.
    fn look_at(&mut self, number: u32) -> Result<bool> {
        let block = self.flash.blocks.get(number);
        let needed = match block.entry.used_as {
            Use::Anchor => true,
            Use::Log | Use::Meta => block.entry.live_bytes > 0,
            Use::Free | Use::Bad => false,
        };
        let units = self.flash.shape.mode(block.mode()).content_units.max(1);
        let unit = if block.entry.sealed { self.scrub.passes % units } else { 0 };
        let pages = self.flash.nand.layout(block.mode()).unit_pages(unit);
        let Some(&page) = pages.first().filter(|_| needed) else { return Ok(false) };
        match self.flash.nand.read(number, page, 0, &mut [], &mut [], Cause::WearLevel) {
            Ok(info) => self.flash.note_errors(number, info),
            // Whoever needs it will be told.
            Err(NandError::Uncorrectable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Begins to write anew what stands in a block that fades or fails, if there is one. Whether it did.
    pub(super) fn renew_step(&mut self) -> Result<bool> {
        if self.flash.blocks.fading_count() == 0 && self.flash.blocks.failing_count() == 0 {
            return Ok(false);
        }
        self.leave_fading_heads()?;
        // What has to wait for space holds nothing else up.
        let space = self.flash.free_blocks() > self.recovery_floor();
        let due = self.flash.blocks.iter().find(|(_, block)| {
            let log = block.entry.used_as == Use::Log && block.entry.live_bytes > 0 && !block.stuck && !block.open;
            log && space && (block.fading || block.entry.failing)
                || block.fading && Self::is_renewed_by_checkpoint(block)
        });
        let Some((number, used_as)) = due.map(|(number, block)| (number, block.entry.used_as)) else {
            return Ok(false);
        };
        match used_as {
            Use::Log => {
                self.flash.own_anchor()?;
                self.start_collecting(number, true);
            }
            Use::Anchor => {
                self.flash.blocks.forget_fading(number);
                self.flash.leave_anchor_block(number)?;
                self.follow_moved()?;
            }
            _ => {
                self.flash.own_anchor()?;
                self.begin_checkpoint(false)?;
            }
        }
        Ok(true)
    }

    /// Whether a checkpoint, or an anchor, takes what a block holds elsewhere.
    fn is_renewed_by_checkpoint(block: &Block) -> bool {
        match block.entry.used_as {
            Use::Meta => block.entry.live_bytes > 0 && !block.open,
            Use::Anchor => true,
            Use::Log | Use::Free | Use::Bad => false,
        }
    }

    /// What fades is not written to any more.
    fn leave_fading_heads(&mut self) -> Result<()> {
        for id in HeadId::ALL {
            let fades = self.flash.head(id).block.is_some_and(|block| self.flash.blocks.get(block).fading);
            if fades {
                self.flash.flush_units()?;
                self.follow_moved()?;
                self.flash.leave_block(id);
            }
        }
        Ok(())
    }
}
