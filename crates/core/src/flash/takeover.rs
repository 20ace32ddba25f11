//! How a mount takes over the newest anchor it found: where its own first anchors go, and when the newest one is its own.
//!
//! Invariants: after a mount that found the volume in use, the first anchor goes to the other block, since the last page of
//! this one may have been torn. After one that found it at rest, the first two go behind the newest, and no block is erased:
//! an earlier mount may have been cut while it wrote the first of them, but never the second.

use nand::Nand;

use super::Flash;
use super::anchor_log::{PartnerState, Takeover};
use super::anchors::PartnerNeed;
use super::newest::Found;
use super::slots::Slots;
use crate::error::Result;
use crate::format::anchor::{half_used, ordinary_units};
use crate::format::table::Use;

impl<N: Nand> Flash<N> {
    /// Goes on behind the newest anchor, as a mount found it.
    pub fn resume_anchors(&mut self, found: &Found) {
        let anchor = &found.anchor;
        let newest = usize::from(anchor.pair.first() != Some(&found.block));
        let era = self.numbers.era();
        (self.anchors.pair, self.anchors.newest, self.anchors.current) = (anchor.pair, newest, newest);
        (self.anchors.end, self.anchors.unit) = (found.end, self.slots.shape.slc.units);
        if let Some(other) = goes_on_behind(&self.slots, found) {
            (self.anchors.takeover, self.anchors.other, self.anchors.unit) = (Takeover::AtRest, other, found.end);
        }
        self.anchors.names = anchor.names.iter().map(|&named| (named, era)).collect();
        self.remember_anchor(anchor);
    }

    /// Before the first program or erase of a mount, makes sure by one operation after the other that the newest anchor is
    /// stable and not clean. Whether it is.
    pub fn own_step(&mut self) -> Result<bool> {
        match (self.anchors.takeover, self.anchors.other) {
            (Takeover::Own, _) => return Ok(true),
            (Takeover::None, PartnerState::Old) => self.prepare_other(PartnerNeed::Now)?,
            _ => self.rewrite_anchor()?,
        }
        Ok(false)
    }
}

/// The state of the other block, where the newest anchor is of a volume at rest and has room behind it for two.
fn goes_on_behind<N: Nand>(slots: &Slots<N>, found: &Found) -> Option<PartnerState> {
    let (units, pair) = (slots.shape.slc.units, found.anchor.pair);
    let is_sound = |block: u32| {
        let entry = slots.blocks.get(block).entry;
        entry.used_as == Use::Anchor && !entry.failing && !slots.nand.is_bad(block)
    };
    if !found.anchor.clean || !pair.iter().all(|&block| is_sound(block)) {
        return None;
    }
    // With something behind the newest anchor, a later mount may have begun to write to the other block.
    let is_ready = found.anchor.other_erased && found.end == found.unit + 1;
    let (other, limit) =
        if is_ready { (PartnerState::Ready, ordinary_units(units)) } else { (PartnerState::Old, half_used(units)) };
    (found.end + 2 <= limit).then_some(other)
}
