//! An SLC region of fixed size that fills and drains, as SSDs have it.
//!
//! Invariant: callers begin no SLC block beyond those of the region; in a call that began with one left, its head fills
//! what it has.

use super::Manager;
use super::job::View;
use crate::policy::allocate::WHOLE;
use crate::policy::{BlockView, Holds, Region};

impl Manager {
    /// The region of a caller's next page, where the SLC region has a fixed size.
    pub(super) fn buffered(&self) -> Option<Region> {
        self.policy.slc_blocks_max()?;
        Some(if self.pace.slc_share_max > 0 { Region::Slc } else { Region::Native })
    }

    /// The share of pages that may go to an SLC region of that size: all until it is full, then none.
    pub(super) fn share_of_buffer(percent: u8, view: &impl View) -> u32 {
        let (mut all, mut slc) = (0, 0);
        let is_slc = |block: &BlockView| block.holds == Holds::Log && block.region == Region::Slc;
        for block in view.blocks() {
            all += 1;
            slc += u32::from(is_slc(&block) && (block.live_bytes > 0 || block.open));
        }
        if slc <= all * u32::from(percent) / 100 { WHOLE } else { 0 }
    }
}
