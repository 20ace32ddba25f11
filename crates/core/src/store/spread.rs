//! How a volume is spread over the dies of its chip, lane by lane and die by die.
//!
//! Invariant: nothing here changes anything.

use alloc::vec::Vec;

use nand::Nand;

use crate::flash::Flash;
use crate::flash::head::{HeadId, LaneId};
use crate::format::table::Use;

/// A lane of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneInfo {
    /// `slc`, `native`, `index` or `slc-hot`.
    pub head: &'static str,
    pub lane: u8,
    /// The block that it fills, and the unit of that to come.
    pub open: Option<(u32, u32)>,
    /// Slots left in that block.
    pub room_slots: u32,
    /// Programs since mount.
    pub programs: u64,
}

/// A die of a chip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DieInfo {
    pub die: u32,
    /// Erased, or holding nothing that is needed.
    pub free_blocks: u32,
    /// Blocks that heads fill.
    pub open_blocks: u32,
    /// Erases of all its blocks that are not bad.
    pub erases: u64,
    /// Programs since mount.
    pub programs: u64,
}

impl LaneInfo {
    /// The lanes of every head.
    pub(super) fn all<N: Nand>(flash: &Flash<N>) -> Vec<Self> {
        let slots = flash.slots();
        let told = |at: LaneId| {
            let lane = slots.head(at);
            LaneInfo {
                head: at.head.name(),
                lane: at.lane,
                open: lane.block().map(|block| (block, lane.unit())),
                room_slots: slots.room(at),
                programs: lane.programs(),
            }
        };
        HeadId::ALL.into_iter().flat_map(|head| slots.lanes().of_head(head)).map(told).collect()
    }
}

impl DieInfo {
    /// The dies of the chip.
    pub(super) fn all<N: Nand>(flash: &Flash<N>) -> Vec<Self> {
        let (geometry, free) = (&flash.shape().geometry, flash.free());
        let programs = (0..).zip(flash.slots().lanes().programs());
        let mut dies: Vec<DieInfo> =
            programs.map(|(die, &programs)| DieInfo { die, programs, ..DieInfo::default() }).collect();
        for (number, block) in flash.blocks().iter() {
            let Some(die) = dies.get_mut(geometry.die_of(number) as usize) else { continue };
            die.free_blocks += u32::from(free.holds(number));
            die.open_blocks += u32::from(block.open);
            die.erases += if block.entry.used_as == Use::Bad { 0 } else { u64::from(block.entry.erases) };
        }
        dies
    }
}
