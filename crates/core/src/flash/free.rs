//! Which blocks can be taken, now or under other conditions.
//!
//! Invariant: a block is counted only where the reuse rule (see `blocks`) allows it, by how far the log has got.

use alloc::vec::Vec;

use nand::{Geometry, Nand};

use super::Flash;
use super::blocks::{BlockTable, Horizon, Take};
use super::dies::HomeDies;
use super::head::{HeadId, LaneId};
use super::lanes::Lanes;

/// A look at the blocks that can be taken.
pub struct Free<'a> {
    blocks: &'a BlockTable,
    lanes: &'a Lanes,
    geometry: &'a Geometry,
    /// How far the log has got.
    horizon: Horizon,
    /// The same without the last pages, which a cut may take.
    certain: Horizon,
    /// The same once the log heads have filled the blocks they stand in.
    soon: Horizon,
    /// The same once what is gathered is programmed, and the pages it endangers are given up.
    sealed: Horizon,
}

impl<'a> Free<'a> {
    pub(super) fn of<N: Nand>(flash: &'a Flash<N>) -> Self {
        let (horizon, numbers, slots) = (flash.horizon(), flash.numbers(), flash.slots());
        let seq = slots.lanes.least(|head| head.uncertain().group_seq);
        let copy = slots.lanes.least(|head| head.uncertain().copy_no);
        let certain = Horizon {
            committed_seq: horizon.committed_seq.min(seq),
            safe_copy: horizon.safe_copy.min(copy.saturating_sub(1)),
            ..horizon
        };
        let soon = Horizon { committed_seq: numbers.committed(), safe_copy: numbers.copies(), ..horizon };
        let sealed = Horizon { committed_seq: numbers.ended(), ..soon };
        let (blocks, lanes, geometry) = (slots.blocks(), slots.lanes(), &slots.shape().geometry);
        Self { blocks, lanes, geometry, horizon, certain, soon, sealed }
    }

    /// Blocks that can be taken.
    pub fn now(&self) -> u32 {
        self.blocks.reusable_count(self.horizon)
    }

    /// The same once the log heads have filled the blocks they stand in.
    pub fn soon(&self) -> u32 {
        self.blocks.reusable_count(self.soon)
    }

    /// The same once what is gathered is programmed, and the pages it endangers are given up.
    pub fn sealed(&self) -> u32 {
        self.blocks.reusable_count(self.sealed)
    }

    /// The same for a recovery if the power failed now: not those that only the last pages emptied.
    pub fn certain(&self) -> u32 {
        self.blocks.reusable_count(self.certain)
    }

    /// Blocks of a lane's home that can be taken.
    pub fn at_home(&self, at: LaneId) -> u32 {
        let home = self.lanes.home(self.geometry, at);
        self.blocks.free(self.horizon).filter(|&(number, _)| home.hold(number)).count() as u32
    }

    /// Blocks of each die that can be taken.
    pub fn by_die(&self) -> Vec<u32> {
        let mut counts = alloc::vec![0; self.geometry.dies() as usize];
        for (number, _) in self.blocks.free(self.horizon) {
            if let Some(count) = counts.get_mut(self.geometry.die_of(number) as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// Whether a block can be erased and used for something new.
    pub fn holds(&self, block: u32) -> bool {
        self.blocks.reusable(block, self.horizon)
    }

    /// Whether blocks can be used once the next checkpoint is durable, and not before.
    pub fn has_waiting(&self) -> bool {
        (0..self.blocks.len()).any(|block| self.blocks.waits_for_checkpoint(block, self.horizon))
    }

    /// The first of the so many blocks that a lane takes next which is not erased yet.
    pub fn next_to_erase(&self, ahead_blocks: u32) -> Option<u32> {
        let mut homes = self.lanes.of_head(HeadId::Slc).map(|at| self.lanes.home(self.geometry, at));
        homes.find_map(|home| self.blocks.pick_to_erase(self.horizon, ahead_blocks, home))
    }

    /// Erases of the most worn block that can be taken.
    pub fn worn_erases(&self) -> u32 {
        let worn = self.blocks.pick(self.horizon, Take::MostWorn, HomeDies::ALL);
        worn.map_or(0, |number| self.blocks.get(number).entry.erases)
    }

    /// Whether a recovery would find a block for anchors beside the pair, if the power failed now.
    pub fn has_spare_for_anchors(&self) -> bool {
        self.blocks.free_for_anchors(self.certain).next().is_some()
    }
}
