//! Programs and erases, one at a time.
//!
//! Invariant: each is waited for before the next, and every program has a stamp later than those before it.

use nand::{Cause, CellMode, Nand, NandError};

use super::counts::count;
use super::tag::{Kind, Tag, checksum};
use super::{Flash, Outcome, Payload, Place};
use crate::{Error, Result};

impl<N: Nand> Flash<N> {
    /// Programs a page. The tag's stamp is given here.
    pub fn program(&mut self, at: Place, tag: Tag, data: &[u8], cause: Cause) -> Result<Outcome> {
        let is_covered = self.payload == Payload::Kept || !tag.kind.is_payload();
        let sum = if is_covered { checksum(self.volume, data) } else { self.volume };
        self.program_summed(at, tag, data, sum, cause)
    }

    /// Programs a page whose bytes have that checksum, if its tag covers them.
    fn program_summed(&mut self, at: Place, tag: Tag, data: &[u8], sum: u32, cause: Cause) -> Result<Outcome> {
        let spare = Tag { stamp: self.next_stamp, ..tag }.encode(sum);
        self.next_stamp += 1;
        count(&mut self.counts.programs, cause);
        match self.chip.program(at.block, at.page, CellMode::Slc, data, &spare, cause) {
            Ok(()) => self.wait(),
            Err(NandError::ProgramFailed { .. }) => Ok(Outcome::Failed),
            Err(error) => Err(error.into()),
        }
    }

    /// Uses up a page that may have been half programmed when the power went, whatever becomes of it.
    pub fn use_up(&mut self, at: Place) -> Result<()> {
        let tag = Tag { ends: false, ..Tag::new(Kind::Filler, u32::MAX) };
        match self.program_filled(at, tag, Cause::Metadata, |_| {}) {
            Ok(_) | Err(Error::Nand(NandError::Misuse { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Programs a page whose bytes `fill` puts into the page buffer, which is zeros before.
    pub fn program_filled(
        &mut self,
        at: Place,
        tag: Tag,
        cause: Cause,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Outcome> {
        let mut page = core::mem::take(&mut self.page);
        self.page_sum = None;
        page.fill(0);
        fill(&mut page);
        let outcome = self.program(at, tag, &page, cause);
        self.page = page;
        outcome
    }

    /// Programs a copy: what the page buffer holds, as the last read left it, or zeros where the tag says that the page
    /// holds no host's bytes.
    pub fn program_copy(&mut self, at: Place, tag: Tag, cause: Cause) -> Result<Outcome> {
        if !tag.kind.is_payload() {
            return self.program_filled(at, tag, cause, |_| {});
        }
        let page = core::mem::take(&mut self.page);
        let outcome = match self.page_sum {
            Some(sum) => self.program_summed(at, tag, &page, sum, cause),
            None => self.program(at, tag, &page, cause),
        };
        self.page = page;
        outcome
    }

    pub fn erase(&mut self, block: u32, cause: Cause) -> Result<Outcome> {
        count(&mut self.counts.erases, cause);
        match self.chip.erase(block, cause) {
            Ok(()) => self.wait(),
            Err(NandError::EraseFailed { .. }) => Ok(Outcome::Failed),
            Err(error) => Err(error.into()),
        }
    }

    fn wait(&mut self) -> Result<Outcome> {
        self.failures.clear();
        self.chip.barrier(&mut self.failures)?;
        Ok(if self.failures.is_empty() { Outcome::Done } else { Outcome::Failed })
    }

    pub fn mark_bad(&mut self, block: u32) -> Result<()> {
        self.counts.grown_bad += 1;
        Ok(self.chip.mark_bad(block)?)
    }
}
