//! Where a slot goes: its region as the policy says, the log head there, and which of its lanes.
//!
//! Invariant: a slot is placed once. What makes room for it, what appends it and what the managers are told follow from the
//! same [`Placement`].

use core::cmp::Reverse;

use nand::{CellMode, Nand};

use super::file_spread::PageSpread;
use super::log::Placement;
use super::records::Records;
use crate::flash::head::{HeadId, LaneId};
use crate::format::inode::Ino;
use crate::policy::Region;
use crate::policy::budget::Call;
use crate::policy::channel::{self, CHANNELS_MAX, ChannelView};
use crate::policy::place::Write;

/// What a slot holds.
#[derive(Clone, Copy)]
pub(super) enum SlotContent<'a> {
    /// A chunk that a caller wrote to this file, and the file's pages on each channel, where the policy asks for them.
    Data(Ino, Option<&'a PageSpread>),
    /// Nodes, which are as hot as the inode that the last of them is of.
    Nodes(Option<Ino>),
    /// What is moved out of a block.
    Copies,
    /// A page of the index or of the block table.
    Page,
}

/// The place of a slot. What is written before a checkpoint counts goes to SLC, where there are two regions.
pub(super) fn place<N: Nand>(records: &Records<N>, write: &Write, content: SlotContent<'_>) -> Placement {
    Placer { records, write }.place(content)
}

/// Whoever places the slots of a write.
struct Placer<'a, N: Nand> {
    records: &'a Records<N>,
    write: &'a Write,
}

impl<N: Nand> Placer<'_, N> {
    fn place(&self, content: SlotContent<'_>) -> Placement {
        let manager = &self.records.manager;
        let is_logged = self.records.flash().phase().is_logged();
        let of_file = match content {
            SlotContent::Data(ino, _) => Some(ino),
            SlotContent::Nodes(ino) => ino,
            SlotContent::Copies => None,
            SlotContent::Page => return Placement { at: self.page_lane(), region: Region::Slc, hot: false },
        };
        let hot = is_logged && of_file.is_some_and(|ino| manager.is_hot(ino));
        let wanted = match (hot, is_logged, content) {
            (true, ..) => self.hot_head(),
            (false, true, SlotContent::Nodes(_)) => log_head(manager.place_nodes(self.write)),
            (false, true, _) => log_head(manager.place(self.write)),
            (false, false, _) => HeadId::Slc,
        };
        let head = self.head_with_room(wanted);
        Placement { at: self.lane(head, content), region: region_of(head), hot }
    }

    fn room(&self, head: HeadId) -> u32 {
        let slots = self.records.flash().slots();
        slots.lanes().room(head, slots.shape().mode(head.mode()))
    }

    /// The lane of a head: that which gathers a unit, else the one that the content is for. Without room it takes a block
    /// where that leaves those that a commit may need; else one with room is filled first.
    fn lane(&self, head: HeadId, content: SlotContent<'_>) -> LaneId {
        let flash = self.records.flash();
        let (slots, lanes) = (flash.slots(), flash.slots().lanes());
        if !lanes.are_several() {
            return head.into();
        }
        if let Some(gathering) = lanes.gathering(head) {
            return gathering;
        }
        let wanted = match content {
            SlotContent::Copies => match self.lane_with_exposed_copies(head) {
                Some(exposed) => return exposed,
                None => self.lane_of_most_free_blocks(head),
            },
            SlotContent::Data(_, spread) => self.lane_of_data(head, spread),
            SlotContent::Nodes(_) | SlotContent::Page => self.lane_in_turn(head, 1),
        };
        if slots.room(wanted) > 0 || flash.phase().is_logged() && self.has_blocks_for_lanes() {
            return wanted;
        }
        let roomiest = lanes.of_head(head).max_by_key(|&at| (slots.room(at), Reverse(at.lane)));
        roomiest.filter(|&at| slots.room(at) > 0).unwrap_or(wanted)
    }

    /// The lane of pages that gathers a unit, else the one that was written to the least of those with room, or of all where
    /// there are blocks for that.
    fn page_lane(&self) -> LaneId {
        let (slots, lanes) = (self.records.flash().slots(), self.records.flash().slots().lanes());
        if !lanes.are_several() {
            return HeadId::Meta.into();
        }
        if let Some(gathering) = lanes.gathering(HeadId::Meta) {
            return gathering;
        }
        let takes_blocks = self.records.flash().phase().is_logged() && self.has_blocks_for_lanes();
        let pages = lanes.of_head(HeadId::Meta).filter(|&at| takes_blocks || slots.room(at) > 0);
        let least = pages.min_by_key(|&at| slots.head(at).programs());
        least.unwrap_or_else(|| self.lane_of_most_free_blocks(HeadId::Meta))
    }

    /// The lane that the policy chooses for a chunk; of those of a channel the one whose turn it is. A sync that goes to native
    /// cells is kept to few.
    fn lane_of_data(&self, head: HeadId, spread: Option<&PageSpread>) -> LaneId {
        let lanes = self.records.flash().slots().lanes().count();
        let run_pages = match self.write {
            &Write::Synced { slots, pair_slots, follows_native: false } if head == HeadId::Native => {
                channel::run_of_sync(slots, pair_slots, lanes)
            }
            _ => 1,
        };
        let Some(spread) = spread.filter(|_| run_pages == 1) else { return self.lane_in_turn(head, run_pages) };
        let requests = self.records.log.requests();
        let nand = self.records.flash().slots().nand();
        let dies = self.records.flash().shape().geometry.dies().max(1);
        let turn_of_lane = requests.turn / u64::from(requests.channels.max(1));
        let lane_of = |channel: u8| {
            let lanes_each = u64::from(lanes / requests.channels.max(1)).max(1);
            channel + requests.channels * (turn_of_lane % lanes_each) as u8
        };
        let mut views = [ChannelView::default(); CHANNELS_MAX];
        for (channel, view) in (0..requests.channels).zip(&mut views) {
            let at = usize::from(channel);
            let of = |counts: &[u32]| counts.get(at).copied().unwrap_or(0);
            *view = ChannelView {
                of_request: of(&requests.of_request),
                of_file: of(&spread.of_file),
                near: of(&spread.near),
                issued: requests.issued.get(at).copied().unwrap_or(0),
                reads_pending: 0,
                pending_ns: nand.pending_ns(u32::from(lane_of(channel)) % dies),
            };
        }
        let views = views.get(..usize::from(requests.channels)).unwrap_or(&views);
        let chosen = requests.rule.choose(requests.request_pages, views, requests.rule_turn);
        LaneId { head, lane: lane_of(chosen as u8) }
    }

    /// The lane whose turn it is, where so many pages go to each.
    fn lane_in_turn(&self, head: HeadId, run_pages: u32) -> LaneId {
        let lanes = self.records.flash().slots().lanes().count();
        let turn = self.records.log.requests().turn / u64::from(run_pages.max(1));
        LaneId { head, lane: (turn % u64::from(lanes.max(1))) as u8 }
    }

    /// The lane with the oldest copies that a torn program could still take: their sources are kept until that lane has gone on
    /// far enough, so that copies go there as long as there are any.
    fn lane_with_exposed_copies(&self, head: HeadId) -> Option<LaneId> {
        let slots = self.records.flash().slots();
        let oldest = |at| slots.head(at).oldest_exposed_copy();
        slots.lanes().of_head(head).min_by_key(|&at| oldest(at)).filter(|&at| oldest(at) != u64::MAX)
    }

    fn lane_of_most_free_blocks(&self, head: HeadId) -> LaneId {
        let (free, slots) = (self.records.flash().free(), self.records.flash().slots());
        let order = |&at: &LaneId| (free.at_home(at), Reverse(slots.head(at).programs()));
        slots.lanes().of_head(head).max_by_key(order).unwrap_or(head.into())
    }

    /// Whether lanes without room may take blocks though others have room.
    fn has_blocks_for_lanes(&self) -> bool {
        self.records.flash().free_blocks() > self.records.space().budget(Call::CHANGE).for_commit()
    }

    /// The log head of hot data: its own as long as that has room. It takes another block where data is kept apart, and space
    /// is left for it.
    fn hot_head(&self) -> HeadId {
        let takes_block = || self.records.manager.keeps_hot_apart() && self.records.space().takes_block_of_hot_data();
        if self.room(HeadId::SlcHot) > 0 || takes_block() { HeadId::SlcHot } else { HeadId::Slc }
    }

    /// The log head to write to: `wanted`, unless it has no room, another has, and a block of its own would be one
    /// that a recovery needs; recovery, which cannot make room, never takes one while any head has room.
    ///
    /// Where there is one region, it is the native head, whatever is wanted. Blocks that an earlier mount left open for other
    /// heads are filled first, since an open block is never emptied.
    fn head_with_room(&self, wanted: HeadId) -> HeadId {
        let with_room = |others: [HeadId; 2]| others.into_iter().find(|&id| self.room(id) > 0);
        if self.records.write_regions.is_one {
            return with_room([HeadId::Slc, HeadId::SlcHot]).unwrap_or(HeadId::Native);
        }
        if self.room(wanted) > 0 {
            return wanted;
        }
        let other = with_room(match wanted {
            HeadId::Native => [HeadId::Slc, HeadId::SlcHot],
            HeadId::SlcHot => [HeadId::Slc, HeadId::Native],
            HeadId::Slc | HeadId::Meta => [HeadId::Native, HeadId::SlcHot],
        });
        let Some(other) = other else { return wanted };
        let flash = self.records.flash();
        let takes = flash.phase().is_logged() && flash.free_blocks() > self.blocks_kept();
        if takes { wanted } else { other }
    }

    /// Free blocks that must stay when one is taken though another head has room. A call that writes to several heads has
    /// found room for one block more, not for one each.
    fn blocks_kept(&self) -> u32 {
        match self.write {
            Write::Host | Write::Synced { .. } if self.records.write_regions.is_both => {
                self.records.space().budget(Call::CHANGE).for_commit()
            }
            _ => self.records.space().recovery_blocks(),
        }
    }
}

/// The region of a log head.
fn region_of(head: HeadId) -> Region {
    if head == HeadId::Native { Region::Native } else { Region::Slc }
}

/// The log head of a region.
pub(super) fn log_head(region: Region) -> HeadId {
    match region {
        Region::Slc => HeadId::Slc,
        Region::Native => HeadId::Native,
    }
}

/// What of moving `live_bytes` out of a block of this mode is said to whoever places it.
pub(super) fn of_copy<N: Nand>(records: &Records<N>, mode: CellMode, live_bytes: u32) -> Write {
    let shape = records.flash().shape();
    Write::Copy {
        native: mode == CellMode::Native,
        live_bytes,
        slc_bytes: shape.slc.content_slots() * shape.slot_bytes as u32,
        overfull: records.is_overfull(),
    }
}
