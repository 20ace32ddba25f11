//! Where something is written: its region as the policy says, and the log head there.

use nand::{CellMode, Nand};

use super::records::Records;
use super::{budget, space};
use crate::flash::head::HeadId;
use crate::policy::Region;
use crate::policy::place::Write;

/// The log head to write to. What is written before a checkpoint counts goes to SLC.
pub(super) fn head<N: Nand>(records: &Records<N>, write: &Write) -> HeadId {
    let region = if records.flash.phase().is_logged() { records.manager.place(write) } else { Region::Slc };
    head_with_room(records, log_head(region))
}

/// The log head of a region.
pub(super) fn log_head(region: Region) -> HeadId {
    match region {
        Region::Slc => HeadId::Slc,
        Region::Native => HeadId::Native,
    }
}

/// The log head to write to: `wanted`, unless it has no room, the other has, and a block of its own would be one
/// that a recovery needs; recovery, which cannot make room, never takes one while either head has room.
fn head_with_room<N: Nand>(records: &Records<N>, wanted: HeadId) -> HeadId {
    let slots = records.flash.slots();
    let other = if wanted == HeadId::Slc { HeadId::Native } else { HeadId::Slc };
    let stay = slots.room(wanted) > 0
        || slots.room(other) == 0
        || (records.flash.phase().is_logged() && records.flash.free_blocks() > budget::recovery_blocks(records));
    if stay { wanted } else { other }
}

/// What of moving `live_bytes` out of a block of this mode is said to whoever places it.
pub(super) fn of_copy<N: Nand>(records: &Records<N>, mode: CellMode, live_bytes: u32) -> Write {
    let shape = records.flash.shape();
    Write::Copy {
        native: mode == CellMode::Native,
        live_bytes,
        slc_bytes: shape.slc.content_slots() * shape.slot_bytes as u32,
        overfull: space::is_overfull(records),
    }
}
