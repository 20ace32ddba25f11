//! The log on the chip: slots are appended to it, committed and acknowledged, and followed where they move.
//!
//! Invariant: of a mounted volume nothing else programs or erases the chip. A slot that moves is told to the index, a page
//! of the index or of the block table to the checkpoint.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::error::Result;
use crate::flash::append::Draft;
use crate::flash::head::LaneId;
use crate::flash::slots::Slots;
use crate::flash::{Flash, Moved, MovedPage, Purpose};
use crate::format::key::{KeyKind, key};
use crate::format::node;
use crate::format::place::{Place, Slot};
use crate::format::tag::Kind;
use crate::index::{Index, Relocation};
use crate::policy::Region;
use crate::policy::channel::{CHANNELS_MAX, ChannelRule};

/// Where a slot goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    pub at: LaneId,
    pub region: Region,
    /// It is likely to be written again soon.
    pub hot: bool,
}

/// The log of a volume, and the chip under it.
pub struct Log<N: Nand> {
    flash: Flash<N>,
    /// Pages that the checkpoint under way has not followed yet.
    moved_pages: Vec<MovedPage>,
    /// The channels that callers' data went to.
    requests: ChannelRequests,
}

/// The channels that callers' pages went to.
pub(super) struct ChannelRequests {
    /// Channels that are told apart.
    pub channels: u8,
    /// The turn of lanes: units of callers' data begun since mount.
    pub turn: u64,
    /// The rule that chooses channels, and its turn.
    pub rule: ChannelRule,
    pub rule_turn: u64,
    /// Pages given to each channel since mount, and by the request under way.
    pub issued: [u64; CHANNELS_MAX],
    pub of_request: [u32; CHANNELS_MAX],
    /// Pages of that request.
    pub request_pages: u32,
}

impl ChannelRequests {
    /// A page goes to this lane, and begins a unit there or does not.
    fn count(&mut self, at: LaneId, begins_unit: bool) {
        let channel = usize::from(at.lane % self.channels.max(1));
        if begins_unit {
            self.turn += 1;
            let channels = usize::from(self.channels);
            self.rule_turn = self.rule.turn_after(self.request_pages, channels, self.rule_turn, channel);
        }
        if let (Some(issued), Some(given)) = (self.issued.get_mut(channel), self.of_request.get_mut(channel)) {
            (*issued, *given) = (*issued + 1, *given + 1);
        }
    }
}

impl<N: Nand> Log<N> {
    /// The log that a flash manager goes on with, on a chip whose channels are told apart and chosen by that rule.
    pub(super) fn new(flash: Flash<N>, channels: u8, rule: ChannelRule) -> Self {
        let (issued, of_request) = ([0; CHANNELS_MAX], [0; CHANNELS_MAX]);
        let requests = ChannelRequests { channels, turn: 0, rule, rule_turn: 0, issued, of_request, request_pages: 0 };
        Self { flash, moved_pages: Vec::new(), requests }
    }

    /// The flash manager, to look at.
    pub fn flash(&self) -> &Flash<N> {
        &self.flash
    }

    /// The flash manager, for what changes blocks and anchors.
    pub(super) fn flash_mut(&mut self) -> &mut Flash<N> {
        &mut self.flash
    }

    /// The chip's slots, to read them, or to count them as needed or not.
    pub(super) fn slots_mut(&mut self) -> &mut Slots<N> {
        self.flash.slots_mut()
    }

    /// Gives the chip back as it is.
    pub(super) fn into_chip(self) -> N {
        self.flash.into_nand()
    }

    /// Reads of the chip since mount.
    pub(super) fn reads(&self) -> u64 {
        self.flash.slots().reads()
    }

    /// Takes one step towards room for a slot that goes there. Whether there is room.
    pub(super) fn prepare(&mut self, to: Placement, purpose: Purpose) -> Result<bool> {
        self.flash.prepare(to.at, purpose)
    }

    /// The channels that callers' pages went to.
    pub(super) fn requests(&self) -> &ChannelRequests {
        &self.requests
    }

    /// A caller begins to write so many pages.
    pub(super) fn begin_request(&mut self, pages: u64) {
        self.requests.request_pages = u32::try_from(pages).unwrap_or(u32::MAX);
        self.requests.of_request = [0; CHANNELS_MAX];
    }

    /// Appends a slot at the place it was given.
    pub(super) fn append(&mut self, to: Placement, draft: Draft, bytes: &[u8], purpose: Purpose) -> Result<Slot> {
        let lanes = self.flash.slots().lanes();
        if lanes.are_several() && draft.is_of_caller() {
            let begins_unit = !lanes.get(to.at).is_gathering();
            self.requests.count(to.at, begins_unit);
        }
        self.flash.append(to.at, draft, bytes, purpose)
    }

    /// Takes one step towards room for a page of the index or of the block table. Whether there is room.
    pub(super) fn prepare_page(&mut self, to: LaneId) -> Result<bool> {
        self.flash.prepare(to, Purpose::of(Cause::Metadata))
    }

    /// Appends a page of the index or of the block table.
    pub(super) fn append_page(&mut self, to: LaneId, draft: Draft, bytes: &[u8]) -> Result<Slot> {
        self.flash.append(to, draft, bytes, Purpose::of(Cause::Metadata))
    }

    /// Closes the current group: everything appended so far counts.
    pub(super) fn end_group(&mut self) {
        self.flash.end_group();
    }

    /// Programs one gathered unit. `false`: there is none, and what was appended before is on flash.
    pub(super) fn commit_unit(&mut self) -> Result<bool> {
        self.flash.flush_unit()
    }

    /// Promises what is on flash to the caller that waits for it.
    pub(super) fn acknowledge(&mut self) {
        self.flash.numbers_mut().promise();
    }

    /// Whether everything that was appended was promised.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.flash.numbers().is_ended() && self.flash.numbers().is_promised()
    }

    /// Lets the index follow slots that moved because their block failed under a unit of several slots. One that it cannot
    /// follow, as a page of the index is unreadable, does not keep it from the others.
    pub(super) fn follow_moved(&mut self, index: &mut Index) -> Result<()> {
        let mut outcome = Ok(());
        for moved in self.flash.take_moved() {
            outcome = outcome.and(self.relocate(index, &moved));
        }
        outcome
    }

    /// What stood in a slot stands in another: the index follows, or the checkpoint is to.
    fn relocate(&mut self, index: &mut Index, moved: &Moved) -> Result<()> {
        match moved.tag.kind {
            Kind::Data => {
                let place = |slot| Place::Run { slot, count: 1 };
                let key = key(moved.tag.ino, KeyKind::Data, moved.tag.chunk);
                let relocation = Relocation { key, from: place(moved.from), to: place(moved.to) };
                self.relocate_in(index, relocation)
            }
            Kind::Nodes => {
                let bytes = self.flash.slots_mut().read_uncached(moved.to, Kind::Nodes, Cause::Metadata)?;
                for (at, units, found) in node::nodes(&bytes, moved.tag.len as usize) {
                    let Some(key) = found.key() else { continue };
                    let place = |slot| Place::Node { slot, at, units };
                    self.relocate_in(index, Relocation { key, from: place(moved.from), to: place(moved.to) })?;
                }
                Ok(())
            }
            _ => {
                self.relocate_page(MovedPage { from: moved.from, to: moved.to });
                Ok(())
            }
        }
    }

    /// Makes a key point to a copy, if it still points to the original.
    fn relocate_in(&mut self, index: &mut Index, relocation: Relocation) -> Result<()> {
        let release = self.flash.by_copy();
        index.relocate(self.flash.slots_mut(), relocation, release).map(|_| ())
    }

    /// A page of the index or of the block table moved: it counts in its new place, and the checkpoint is to follow.
    fn relocate_page(&mut self, page: MovedPage) {
        let held = self.flash.held_era();
        let slots = self.flash.slots_mut();
        slots.release_page(page.from, held);
        slots.retain(Place::Run { slot: page.to, count: 1 });
        self.moved_pages.push(page);
    }

    /// Pages of the index and of the block table that stand elsewhere now, since they were asked for last.
    pub(super) fn take_moved_pages(&mut self) -> Vec<MovedPage> {
        core::mem::take(&mut self.moved_pages)
    }

    /// The same, to look at.
    pub(super) fn moved_pages(&self) -> &[MovedPage] {
        &self.moved_pages
    }
}
