//! An SLC region of fixed size that fills and drains, as SSDs have it.
//!
//! Invariant: callers begin no SLC block beyond those of the region; in a call that began with one left, its head fills
//! what it has.

use super::Manager;
use super::job::View;
use crate::policy::Region;
use crate::policy::admission::share_of_blocks;
use crate::policy::allocate::WHOLE;

impl Manager {
    /// The region of a caller's next page, where the SLC region has a fixed size.
    pub(super) fn buffered(&self) -> Option<Region> {
        self.policy.slc_blocks_max()?;
        Some(if self.pace.slc_share_max > 0 { Region::Slc } else { Region::Native })
    }
}

/// The share of pages that may go to an SLC region of so many percent of the blocks: all until it is full, then none.
pub(super) fn share_of_buffer(percent: u8, view: &impl View) -> u32 {
    if view.slc_blocks() <= share_of_blocks(view.block_count(), percent) { WHOLE } else { 0 }
}
