//! How far a volume's chip is worn, as its managers see it, and the life they follow, kept over a mount.
//!
//! Invariant: the writing budget that is left comes from the erase counts of the block table alone.

use nand::{CellMode, Nand};

use super::records::Records;
use crate::flash::Flash;
use crate::flash::head::LaneId;
use crate::format::table::{BlockEntry, Use};
use crate::manage::life::WearView;
use crate::policy::{Policy, Region, level, wear};

/// The wear of a chip.
struct ChipWear<'a, N: Nand> {
    flash: &'a Flash<N>,
    policy: Policy,
}

impl<N: Nand> ChipWear<'_, N> {
    /// Live bytes of the log blocks that are so.
    fn live_bytes_of(&self, counts: impl Fn(&BlockEntry) -> bool) -> u64 {
        let entries = self.flash.blocks().iter().map(|(_, block)| block.entry);
        let log = entries.filter(|entry| entry.used_as == Use::Log && counts(entry));
        log.map(|entry| u64::from(entry.live_bytes)).sum()
    }
}

impl<N: Nand> WearView for ChipWear<'_, N> {
    fn block_bytes(&self) -> u64 {
        self.flash.shape().geometry.block_bytes()
    }

    /// A block that was opened more often than it endures has taken the capacity of another. Blocks of anchors wear by
    /// themselves, and hardly.
    fn left_bytes(&self) -> u64 {
        let endurance = self.flash.slots().nand().endurance(CellMode::Native);
        let blocks = self.flash.blocks().iter().map(|(_, block)| block);
        let (mut left, mut count) = (0i64, 0);
        for block in blocks.filter(|block| !matches!(block.entry.used_as, Use::Anchor | Use::Bad)) {
            left += i64::from(endurance) - i64::from(block.cycles());
            count += 1;
        }
        let behind = level::behind_at_end(endurance);
        wear::usable_cycles(u64::try_from(left).unwrap_or(0), count, behind) * self.block_bytes()
    }

    /// Hot data stays.
    fn owed_bytes(&self) -> u64 {
        if self.policy.relocated() == Region::Slc || self.policy.uses_one_region() {
            return 0;
        }
        self.live_bytes_of(|entry| !entry.native && !entry.hot)
    }

    fn settled_bytes(&self) -> u64 {
        self.live_bytes_of(|entry| entry.native)
    }

    fn begun_bytes(&self) -> u64 {
        let (slots, shape) = (self.flash.slots(), self.flash.shape());
        let unused = |at: LaneId| {
            let content_slots = u64::from(shape.mode(at.mode()).content_slots().max(1));
            u64::from(slots.room(at)) * self.block_bytes() / content_slots
        };
        slots.lanes().all().map(unused).sum()
    }

    fn bits_per_cell(&self) -> u8 {
        let shape = self.flash.shape();
        (shape.native.content_slots() / shape.slc.content_slots().max(1)) as u8
    }
}

impl<N: Nand> Records<N> {
    /// Lets the managers look at the wear, if it is time.
    pub(super) fn review_wear(&mut self) {
        let policy = self.manager.policy();
        if self.manager.review_wear(&ChipWear { flash: self.log.flash(), policy }) {
            self.log.slots_mut().blocks_mut().set_settling(self.manager.settles());
        }
    }

    /// The same whether it is time or not.
    pub(super) fn review_wear_now(&mut self) {
        let policy = self.manager.policy();
        self.manager.review_wear_now(&ChipWear { flash: self.log.flash(), policy });
        self.log.slots_mut().blocks_mut().set_settling(self.manager.settles());
    }

    /// What the next anchors say of the volume's life.
    pub(super) fn record_life(&mut self) {
        self.review_wear_now();
        self.volume.manager = self.manager.life_record();
    }
}
