//! The record of where anchors are written: which blocks are the pair, which unit is next, and how much of it is this
//! mount's own.
//!
//! Invariants: `newest` is the block of the newest anchor that was read back or programmed without a failure;
//! [`Takeover::Own`] follows only on an anchor on a page that no earlier mount can have torn.

use alloc::vec::Vec;

use crate::format::anchor::{Anchor, Named, half_used, ordinary_units};

/// The state of the block of the pair that does not hold the newest anchor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartnerState {
    /// It holds older anchors, or is not known to be erased.
    #[default]
    Old,
    /// It is erased.
    Ready,
    /// It has gone bad, and no other has taken its place yet: a block that anchors may stand in must be found, or
    /// emptied.
    Missing,
}

/// How far a mount has come from the anchors that it found to an anchor of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Takeover {
    /// It has written no anchor; the first goes to the other block.
    #[default]
    None,
    /// It has written no anchor; the first goes behind the newest, which is clean.
    AtRest,
    /// It has written an anchor there, on a page that an earlier mount may have tried: another follows.
    Once,
    /// The newest anchor is of this mount, stable and, until the volume is unmounted, not clean.
    Own,
}

impl Takeover {
    /// The state after another anchor was written.
    pub(super) fn after_anchor(self) -> Self {
        if self == Self::AtRest { Self::Once } else { Self::Own }
    }
}

/// Where anchors are written.
#[derive(Default)]
pub struct AnchorLog {
    pub(super) pair: [u32; 2],
    /// Which of the pair holds the newest anchor.
    pub(super) newest: usize,
    /// The first unit of that block that nothing was programmed to.
    pub(super) end: u32,
    /// Which of the pair is written to.
    pub(super) current: usize,
    /// The unit to write next there; past the end: go to the other block.
    pub(super) unit: u32,
    /// The newest anchor.
    pub(super) last: Option<Anchor>,
    /// Blocks named since the checkpoint, and in which era.
    pub(super) names: Vec<(Named, u64)>,
    pub(super) other: PartnerState,
    /// The block with the newest anchor is written on because there is no other: what was programmed is read back.
    pub(super) makeshift: bool,
    pub(super) takeover: Takeover,
    /// Another block is in the pair than the newest anchor lists.
    pub(super) pair_changed: bool,
}

impl AnchorLog {
    /// Units, of a block of this many, that anchors are written to: a few more are kept for making do.
    pub(super) fn units(&self, units: u32) -> u32 {
        if self.makeshift { units } else { ordinary_units(units) }
    }

    /// The blocks anchors are written to.
    pub fn pair(&self) -> [u32; 2] {
        self.pair
    }

    /// The state of the block of the pair that does not hold the newest anchor.
    pub fn other(&self) -> PartnerState {
        self.other
    }

    /// The newest anchor.
    pub fn last(&self) -> Option<&Anchor> {
        self.last.as_ref()
    }

    /// Whether the newest anchor is of this mount, and stable.
    pub fn is_own(&self) -> bool {
        self.takeover == Takeover::Own
    }

    /// Whether this mount has written no anchor.
    pub fn is_untouched(&self) -> bool {
        matches!(self.takeover, Takeover::None | Takeover::AtRest)
    }

    /// The block that holds the newest anchor, and the first unit of it that nothing was programmed to.
    #[cfg(test)]
    pub fn newest(&self) -> (u32, u32) {
        (self.pair[self.newest], self.end)
    }

    /// Whether the other block of the pair is to be made ready, of blocks with this many units: well before it is
    /// needed, so that there is time to find another should it have gone bad.
    pub fn needs_other(&self, units: u32) -> bool {
        self.is_own() && (self.pair_changed || self.other_is_due(units))
    }

    pub(super) fn other_is_due(&self, units: u32) -> bool {
        self.is_own() && self.other == PartnerState::Old && self.unit >= half_used(units)
    }

    /// Blocks named since the checkpoint.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }
}
