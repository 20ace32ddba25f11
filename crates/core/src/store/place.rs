//! Where something is written: its region as the policy says, and the log head there.

use nand::{CellMode, Nand};

use super::records::Records;
use super::{budget, space};
use crate::flash::head::HeadId;
use crate::format::inode::Ino;
use crate::policy::Region;
use crate::policy::place::Write;
use crate::store::budget::Call;

/// The log head to write to. What is written before a checkpoint counts goes to SLC, where there are two regions.
pub(super) fn head<N: Nand>(records: &Records<N>, write: &Write) -> HeadId {
    let region = if records.flash.phase().is_logged() { records.manager.place(write) } else { Region::Slc };
    head_with_room(records, log_head(region), write)
}

/// The same for data that a caller wrote to a file.
pub(super) fn head_of_data<N: Nand>(records: &Records<N>, write: &Write, ino: Ino) -> HeadId {
    if is_hot(records, ino) { head_with_room(records, hot_head(records), write) } else { head(records, write) }
}

/// The same for nodes, which are as hot as the inode that the last of them is of.
pub(super) fn head_of_nodes<N: Nand>(records: &Records<N>, write: &Write, ino: Option<Ino>) -> HeadId {
    let wanted = match records.flash.phase().is_logged() {
        true if ino.is_some_and(|ino| is_hot(records, ino)) => hot_head(records),
        true => log_head(records.manager.place_nodes(write)),
        false => HeadId::Slc,
    };
    head_with_room(records, wanted, write)
}

/// The log head of hot data: its own as long as that has room. It takes another block where data is kept apart, and space
/// is left for it.
fn hot_head<N: Nand>(records: &Records<N>) -> HeadId {
    let takes_block = || records.manager.keeps_hot_apart() && space::has_room_for_head(records);
    if records.flash.slots().room(HeadId::SlcHot) > 0 || takes_block() { HeadId::SlcHot } else { HeadId::Slc }
}

/// Whether what is written to a file is hot.
pub(super) fn is_hot<N: Nand>(records: &Records<N>, ino: Ino) -> bool {
    records.flash.phase().is_logged() && records.manager.is_hot(ino)
}

/// The region of a log head.
pub(super) fn region_of(head: HeadId) -> Region {
    if head == HeadId::Native { Region::Native } else { Region::Slc }
}

/// Free blocks that must stay when one is taken for a write though another head has room. A call that writes to several
/// heads has found room for one block more, not for one each.
fn blocks_kept<N: Nand>(records: &Records<N>, write: &Write) -> u32 {
    match write {
        Write::Host | Write::Synced { .. } if records.manager.writes_to_both() => {
            budget::of(records, Call::CHANGE).for_commit()
        }
        _ => budget::recovery_blocks(records),
    }
}

/// The log head of a region.
pub(super) fn log_head(region: Region) -> HeadId {
    match region {
        Region::Slc => HeadId::Slc,
        Region::Native => HeadId::Native,
    }
}

/// The log head to write to: `wanted`, unless it has no room, another has, and a block of its own would be one
/// that a recovery needs; recovery, which cannot make room, never takes one while any head has room.
///
/// Where there is one region, it is the native head, whatever is wanted. Blocks that an earlier mount left open for other heads
/// are filled first, since an open block is never emptied.
fn head_with_room<N: Nand>(records: &Records<N>, wanted: HeadId, write: &Write) -> HeadId {
    let slots = records.flash.slots();
    if records.manager.policy().uses_one_region() {
        let left = [HeadId::Slc, HeadId::SlcHot].into_iter().find(|&id| slots.room(id) > 0);
        return left.unwrap_or(HeadId::Native);
    }
    if slots.room(wanted) > 0 {
        return wanted;
    }
    let others = match wanted {
        HeadId::Native => [HeadId::Slc, HeadId::SlcHot],
        HeadId::SlcHot => [HeadId::Slc, HeadId::Native],
        HeadId::Slc | HeadId::Meta => [HeadId::Native, HeadId::SlcHot],
    };
    let Some(other) = others.into_iter().find(|&id| slots.room(id) > 0) else { return wanted };
    let takes = records.flash.phase().is_logged() && records.flash.free_blocks() > blocks_kept(records, write);
    if takes { wanted } else { other }
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
