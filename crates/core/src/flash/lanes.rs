//! The lanes of all heads, each with the block that it fills.
//!
//! Invariant: every head has as many lanes as every other, one at least.

use alloc::vec::Vec;

use nand::Geometry;

use super::dies::HomeDies;
use super::head::{Head, HeadId, LaneId};
use super::shape::{ModeShape, Shape};
use crate::format::anchor::{HEADS, HeadAt};

/// The lanes of all heads.
pub struct Lanes {
    /// The first lane of each head.
    first: [Head; HEADS],
    /// Their second lanes, their third ones, and so on.
    others: Vec<Head>,
    /// Lanes of each head.
    count: u8,
    /// Programs since mount by die, with anchors and tests of blocks.
    programs: Vec<u64>,
}

impl Lanes {
    /// So many lanes for each head, none of which stands in a block, on a chip of so many dies.
    pub(super) fn new(count: u8, dies: u32) -> Self {
        let programs = alloc::vec![0; dies as usize];
        let others = (1..count).flat_map(|_| HeadId::ALL.map(|_| Head::new())).collect();
        Self { first: HeadId::ALL.map(|_| Head::new()), others, count: count.max(1), programs }
    }

    /// Lanes of each head.
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Whether each head has more than one.
    pub fn are_several(&self) -> bool {
        self.count > 1
    }

    /// The channels that are told apart on a chip: all there are, or its lanes where these are no multiple.
    pub fn channels(&self, geometry: &Geometry) -> u8 {
        let channels = u8::try_from(geometry.channels).unwrap_or(0);
        if channels > 0 && self.count.is_multiple_of(channels) { channels } else { self.count }
    }

    /// A lane of the same head beside this one that has no block, and for which none is taken.
    pub fn vacant_beside(&self, at: LaneId) -> Option<LaneId> {
        let takes_none = |lane: &Head| lane.is_vacant() && lane.next.is_none();
        self.of_head(at.head).find(|&lane| lane != at && takes_none(self.get(lane)))
    }

    /// Counts a program in a block.
    pub(super) fn count_program(&mut self, block: u32) {
        let die = block % (self.programs.len() as u32).max(1);
        if let Some(count) = self.programs.get_mut(die as usize) {
            *count += 1;
        }
    }

    /// Programs since mount, by die.
    pub fn programs(&self) -> &[u64] {
        &self.programs
    }

    /// The dies that a lane is at home on.
    pub fn home(&self, geometry: &Geometry, at: LaneId) -> HomeDies {
        HomeDies::of(geometry, self.count, at.lane)
    }

    /// The first lane of a head.
    fn first(&self, head: HeadId) -> &Head {
        let [slc, ..] = &self.first;
        self.first.get(head as usize).unwrap_or(slc)
    }

    /// The other lanes of a head.
    fn others_of(&self, head: HeadId) -> impl Iterator<Item = &Head> {
        self.others.iter().skip(head as usize).step_by(HEADS)
    }

    /// A lane. Without so many lanes it is the first one.
    pub fn get(&self, at: LaneId) -> &Head {
        let first = self.first(at.head);
        if at.lane == 0 { first } else { self.others.get(other_index(at)).unwrap_or(first) }
    }

    /// A lane, to change it.
    pub(super) fn get_mut(&mut self, at: LaneId) -> &mut Head {
        let [slc, native, meta, slc_hot] = &mut self.first;
        let first = match at.head {
            HeadId::Slc => slc,
            HeadId::Native => native,
            HeadId::Meta => meta,
            HeadId::SlcHot => slc_hot,
        };
        if at.lane == 0 { first } else { self.others.get_mut(other_index(at)).unwrap_or(first) }
    }

    /// Every lane, in the order of [`Lanes::all`].
    pub(super) fn iter(&self) -> impl Iterator<Item = &Head> {
        self.first.iter().chain(&self.others)
    }

    /// The least figure of any lane.
    pub(super) fn least(&self, figure: impl Fn(&Head) -> u64) -> u64 {
        let [slc, native, meta, slc_hot] = &self.first;
        let first = figure(slc).min(figure(native)).min(figure(meta)).min(figure(slc_hot));
        self.others.iter().fold(first, |least, head| least.min(figure(head)))
    }

    /// The lane of a head that gathers a unit, if one does.
    pub fn gathering(&self, head: HeadId) -> Option<LaneId> {
        self.of_head(head).find(|&at| self.get(at).is_gathering())
    }

    /// Slots that the lanes of a head have left in their blocks.
    pub fn room(&self, head: HeadId, shape: &ModeShape) -> u32 {
        let first = self.first(head).room(shape);
        if self.count == 1 { first } else { first + self.others_of(head).map(|lane| lane.room(shape)).sum::<u32>() }
    }

    /// The same of every head, in the order of their numbers. It is asked before every call.
    #[inline(always)]
    pub fn rooms(&self, shape: &Shape) -> [u32; HEADS] {
        if self.count > 1 {
            return self.rooms_of_several(shape);
        }
        let [slc, native, meta, slc_hot] = &self.first;
        [slc.room(&shape.slc), native.room(&shape.native), meta.room(&shape.slc), slc_hot.room(&shape.slc)]
    }

    /// The same where each head has several lanes.
    #[inline(never)]
    fn rooms_of_several(&self, shape: &Shape) -> [u32; HEADS] {
        let mut rooms = [0; HEADS];
        for lanes in core::iter::once(self.first.as_slice()).chain(self.others.chunks_exact(HEADS)) {
            for ((room, lane), head) in rooms.iter_mut().zip(lanes).zip(HeadId::ALL) {
                *room += lane.room(shape.mode(head.mode()));
            }
        }
        rooms
    }

    /// Whether any lane of a head stands in a block.
    pub fn stands(&self, head: HeadId) -> bool {
        !self.first(head).is_vacant() || self.count > 1 && self.others_of(head).any(|lane| !lane.is_vacant())
    }

    /// The lane of a head without a block that `block` suits best: one that is at home there, else any.
    pub fn vacant(&self, head: HeadId, geometry: &Geometry, block: u32) -> Option<LaneId> {
        let mut vacant = self.of_head(head).filter(|&at| self.get(at).block().is_none());
        let home = vacant.clone().find(|&at| self.home(geometry, at).hold(block));
        home.or_else(|| vacant.next())
    }

    /// The first lane that is so.
    pub fn find(&self, is_so: impl Fn(&Head) -> bool) -> Option<LaneId> {
        let index = self.iter().position(is_so)?;
        self.all().nth(index)
    }

    /// The lanes of a head.
    pub fn of_head(&self, head: HeadId) -> impl Iterator<Item = LaneId> + Clone + use<> {
        (0..self.count).map(move |lane| LaneId { head, lane })
    }

    /// All lanes.
    pub fn all(&self) -> impl Iterator<Item = LaneId> + use<> {
        (0..self.count).flat_map(|lane| HeadId::ALL.map(|head| LaneId { head, lane }))
    }

    /// Those that write the log.
    pub fn of_log(&self) -> impl Iterator<Item = LaneId> + use<> {
        self.all().filter(|at| at.head != HeadId::Meta)
    }

    /// Where a lane stands, as anchors tell it; `None` without a block.
    pub fn stands_at(&self, at: LaneId) -> Option<HeadAt> {
        let head = self.get(at);
        head.block().map(|block| HeadAt { head: at.head as u8, block, unit: head.unit() })
    }
}

/// Where a lane that is not the first of its head stands among the others.
fn other_index(at: LaneId) -> usize {
    (usize::from(at.lane) - 1) * HEADS + at.head as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_of_every_head_is_another() {
        let mut lanes = Lanes::new(3, 8);
        let all: Vec<LaneId> = lanes.all().collect();
        assert_eq!((all.len(), lanes.of_log().count(), lanes.of_head(HeadId::Meta).count()), (12, 9, 3));
        for (block, &at) in (0..).zip(&all) {
            lanes.get_mut(at).start(block);
        }
        assert_eq!(lanes.find(|lane| lane.block() == Some(7)), Some(LaneId { head: HeadId::SlcHot, lane: 1 }));
        let blocks: Vec<Option<u32>> = all.iter().map(|&at| lanes.get(at).block()).collect();
        assert_eq!(blocks, (0..12).map(Some).collect::<Vec<_>>());
    }
}
