//! What stands on a chip, block by block, without an index that says where to look.
//!
//! Invariant: nothing here depends on index pages or the block table, and of the anchors only whether the last group
//! counted; the mode of a block follows from which of its pages are programmed, and whether one holds content where an SLC
//! block has its summary.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Layout, Nand};

use super::cuts::{History, Hole};
use super::seed::Unseed;
use crate::error::{Error, Result};
use crate::flash::slots::Slots;
use crate::format::key::{Key, KeyKind, key};
use crate::format::node::{self, Order};
use crate::format::place::Slot;
use crate::format::tag::{Kind, Tag, is_blank};
use crate::mount::block_log::SEQ_END;

/// Slots that must agree on the seed before it is believed, where there are so many.
const VOTES: u32 = 64;

/// What a look at a slot showed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looked {
    Blank,
    Unreadable,
    Holds(Tag),
}

impl Looked {
    /// Whether an SLC block of so many content slots cannot hold that: it has no such slot, or its summary there.
    fn is_of_native(&self, in_slc: Option<u32>, slc_content: u32) -> bool {
        let Some(index) = in_slc else { return *self != Looked::Blank };
        index >= slc_content && matches!(self, Looked::Holds(tag) if is_content(tag))
    }

    /// The erase count of the block, where a tag tells.
    fn erases(&self) -> Option<u32> {
        match self {
            Looked::Holds(tag) => tag.erases,
            Looked::Blank | Looked::Unreadable => None,
        }
    }
}

fn is_content(tag: &Tag) -> bool {
    matches!(tag.kind, Kind::Data | Kind::Nodes)
}

/// A block with data or nodes in it.
#[derive(Clone, Copy)]
pub struct Found {
    pub block: u32,
    pub native: bool,
    pub sealed: bool,
    /// Its erase count, where a tag tells.
    pub erases: Option<u32>,
}

/// Everything of use that stands on a chip.
#[derive(Default)]
pub struct Remains {
    /// Data and nodes that count.
    pub(super) slots: Vec<(Tag, Slot)>,
    pub(super) blocks: Vec<Found>,
    /// The order of chunks that stood in slots that cannot be read, by their keys.
    pub(super) lost: BTreeMap<Key, u64>,
    /// Slots among data and nodes that cannot be read.
    pub(super) unreadable: u64,
    /// Slots that were never part of the volume: their group has no end.
    pub(super) dropped: u64,
    /// The number to go on with.
    pub(super) next_seq: u64,
    /// Tags of slots whose bytes came without their checksum, where no summary tells what stood there.
    doubtful: BTreeMap<Slot, Tag>,
    pub(super) history: History,
}

/// What seeds the checksums of most slots.
pub fn find_seed<N: Nand>(chip: &mut Slots<N>) -> Result<Option<u32>> {
    let mut votes: BTreeMap<u32, u32> = BTreeMap::new();
    let Some(unseed) = Unseed::of_slots(chip.shape().slot_bytes) else { return Ok(None) };
    let mut data = vec![0; chip.shape().slot_bytes];
    let slots = chip.shape().native.units * chip.shape().native.unit_slots;
    for block in 0..chip.shape().geometry.blocks {
        for index in 0..slots {
            let raw = match chip.read_raw(chip.shape().slot(block, index), CellMode::Native, &mut data, Cause::Metadata)
            {
                Ok(raw) if !is_blank(&raw) => raw,
                Ok(_) | Err(Error::Corrupt { .. }) => continue,
                Err(error) => return Err(error),
            };
            if !Tag::decode_unchecked(&raw).is_some_and(|tag| tag.kind != Kind::Anchor) {
                continue;
            }
            let seed = unseed.seed_of(&raw, &data);
            let count = votes.entry(seed).or_default();
            *count += 1;
            if *count >= VOTES {
                return Ok(Some(seed));
            }
        }
    }
    Ok(votes.into_iter().max_by_key(|&(_, count)| count).filter(|&(_, count)| count > 1).map(|(seed, _)| seed))
}

impl Remains {
    /// Reads the whole chip; the newest anchor says that the log was to go on with `anchored`; `told` hears of every block
    /// done.
    pub fn read<N: Nand>(chip: &mut Slots<N>, anchored: Option<u64>, told: &mut dyn FnMut(u32, u32)) -> Result<Self> {
        let mut remains = Self::default();
        remains.history.anchored = anchored;
        let pages = Pages::of(chip);
        let blocks = chip.shape().geometry.blocks;
        for block in 0..blocks {
            remains.read_block(chip, block, &pages)?;
            told(block + 1, blocks);
        }
        remains.leave_out_cuts();
        Ok(remains)
    }

    fn read_block<N: Nand>(&mut self, chip: &mut Slots<N>, block: u32, pages: &Pages) -> Result<()> {
        let (mode, mut looked) = self.look(chip, block, pages)?;
        let shape = chip.shape().mode(mode).clone();
        for looked in &looked {
            if let Looked::Holds(tag) = looked {
                let original = is_content(tag) && !tag.copy;
                self.history.given.insert(if original { tag.seq } else { tag.seq.saturating_sub(1) });
            }
        }
        let content = shape.content_slots() as usize;
        let is_summary = |looked: &Looked| matches!(looked, Looked::Holds(tag) if tag.kind == Kind::Summary);
        let summary = looked.split_off(content.min(looked.len()));
        let sealed = !summary.is_empty() && summary.iter().all(is_summary);
        let holds = |looked: &Looked| matches!(looked, Looked::Holds(tag) if is_content(tag));
        // A block of anchors holds nothing else; what else it seems to hold must not keep it from being erased.
        if !looked.iter().any(holds) || chip.holds_anchor(block)? {
            return Ok(());
        }
        if sealed {
            self.name_lost(chip, block, mode, &looked)?;
        } else {
            forget_unstable(chip, block, mode, &mut looked)?;
            self.note_doubtful(chip, block, mode, &looked)?;
        }
        self.note_holes(chip.shape().slot(block, 0), &looked, chip.nand().layout(mode), shape.unit_slots);
        let mut erases = summary.iter().filter_map(Looked::erases).max();
        for (index, looked) in (0..).zip(&looked) {
            let Looked::Holds(tag) = looked else { continue };
            erases = erases.max(tag.erases);
            if !is_content(tag) {
                continue;
            }
            self.slots.push((*tag, chip.shape().slot(block, index)));
        }
        self.blocks.push(Found { block, native: mode == CellMode::Native, sealed, erases });
        Ok(())
    }

    /// Learns from a block's summary which chunks stood in slots that cannot be read: an older one must not take the
    /// place of such a chunk.
    fn name_lost<N: Nand>(&mut self, chip: &mut Slots<N>, block: u32, mode: CellMode, looked: &[Looked]) -> Result<()> {
        if !looked.contains(&Looked::Unreadable) {
            return Ok(());
        }
        let Some(summary) = chip.read_summary(block, mode, 0, Cause::Metadata)? else { return Ok(()) };
        for (raw, _) in summary.tags.iter().zip(looked).filter(|(_, looked)| **looked == Looked::Unreadable) {
            self.note_lost(Tag::decode_unchecked(raw));
        }
        Ok(())
    }

    fn note_lost(&mut self, tag: Option<Tag>) {
        if let Some(tag) = tag.filter(|tag| tag.kind == Kind::Data) {
            let order = 2 * tag.seq + u64::from(!tag.copy);
            let newest = self.lost.entry(key(tag.ino, KeyKind::Data, tag.chunk)).or_default();
            *newest = order.max(*newest);
        }
    }

    /// Learns the same of a block without a summary from the tags in such slots, as far as the chip gives their bytes out.
    fn note_doubtful<N: Nand>(
        &mut self,
        chip: &mut Slots<N>,
        block: u32,
        mode: CellMode,
        looked: &[Looked],
    ) -> Result<()> {
        let erases: BTreeSet<u32> = looked.iter().filter_map(Looked::erases).collect();
        let addresses = chip.shape().slot(chip.shape().geometry.blocks, 0);
        let is_of_this_life = |tag: &Tag| match tag.erases {
            Some(count) => erases.is_empty() || erases.contains(&count),
            None => tag.source < addresses,
        };
        let mut data = vec![0; chip.shape().slot_bytes];
        for index in (0..).zip(looked).filter(|(_, looked)| **looked == Looked::Unreadable).map(|(index, _)| index) {
            let slot = chip.shape().slot(block, index);
            let raw = match chip.read_raw(slot, mode, &mut data, Cause::Metadata) {
                Ok(raw) => raw,
                Err(Error::Corrupt { .. }) => continue,
                Err(error) => return Err(error),
            };
            let tag = Tag::decode_unchecked(&raw).filter(|tag| tag.seq < SEQ_END && is_of_this_life(tag));
            self.doubtful.extend(tag.map(|tag| (slot, tag)));
        }
        Ok(())
    }

    /// Notes the slots of a block that cannot be read, by what stands around them.
    fn note_holes(&mut self, first: Slot, looked: &[Looked], layout: &Layout, unit_slots: u32) {
        if !looked.contains(&Looked::Unreadable) {
            return;
        }
        let original = |looked: &Looked| match looked {
            Looked::Holds(tag) if is_content(tag) && !tag.copy && !tag.unlogged => Some(tag.seq),
            _ => None,
        };
        let units: Vec<&[Looked]> = looked.chunks(unit_slots as usize).collect();
        let is_blank =
            |unit: usize| units.get(unit).is_none_or(|slots| slots.iter().all(|slot| *slot == Looked::Blank));
        // The units that a program may have destroyed that was the last before units were left out.
        let lasts = (0..units.len()).filter(|&unit| is_blank(unit + 1));
        let endangered: BTreeSet<u32> = lasts.flat_map(|unit| layout.endangers(unit as u32).iter().copied()).collect();
        let mut behind: Vec<Option<u64>> = Vec::with_capacity(looked.len());
        for slot in looked.iter().rev() {
            behind.push(original(slot).or(behind.last().copied().flatten()));
        }
        let mut before = None;
        for ((at, slot), behind) in looked.iter().enumerate().zip(behind.into_iter().rev()) {
            before = original(slot).or(before);
            if *slot == Looked::Unreadable {
                let endangered = endangered.contains(&(at as u32 / unit_slots));
                let (slot, before) = (first + at as u64, before.or(behind).unwrap_or(0));
                self.history.holes.push(Hole { slot, before, behind, endangered });
            }
        }
    }

    /// Leaves out what did not count when the volume was recovered after a power cut.
    fn leave_out_cuts(&mut self) {
        let originals = self.slots.iter().filter(|(tag, _)| !tag.copy && !tag.unlogged);
        self.history.originals = originals.map(|(tag, _)| (tag.seq, tag.end)).collect();
        let cuts = self.history.cuts();
        let all = self.slots.len();
        self.slots.retain(|(tag, _)| tag.copy || tag.unlogged || !cuts.dropped.contains(&tag.seq));
        (self.dropped, self.unreadable) = ((all - self.slots.len()) as u64, cuts.damaged.len() as u64);
        // What a cut tore never counted, and a number that stands elsewhere was never that slot's.
        for tag in cuts.damaged.iter().filter_map(|slot| self.doubtful.remove(slot)).collect::<Vec<_>>() {
            let known = !tag.copy && self.history.given.contains(&tag.seq);
            self.note_lost(Some(tag).filter(|_| !known));
        }
        self.next_seq = cuts.next;
        // A recovery that was cut may have used numbers that were used again: the last one with a number counts.
        self.slots.sort_by_key(|(tag, _)| !tag.unlogged);
    }

    /// Reads a block's slots, in programming order of the mode it was programmed in.
    fn look<N: Nand>(&mut self, chip: &mut Slots<N>, block: u32, pages: &Pages) -> Result<(CellMode, Vec<Looked>)> {
        let per_page = chip.shape().slots_per_page;
        let mut data = vec![0; chip.shape().slot_bytes];
        let mut by_page = Vec::with_capacity(pages.native.len());
        let (mut mode, slc_content) = (CellMode::Slc, chip.shape().slc.content_slots());
        for (place, in_slc) in pages.native.iter().zip(&pages.slc) {
            for part in 0..per_page {
                let Some(place) = place else {
                    by_page.push(Looked::Blank);
                    continue;
                };
                let slot = chip.shape().slot(block, place * per_page + part);
                let looked = match chip.read_tagged_as(slot, CellMode::Native, &mut data, Cause::Metadata) {
                    Ok(None) => Looked::Blank,
                    Ok(Some(tag)) if tag.seq < SEQ_END => Looked::Holds(tag),
                    Ok(Some(_)) | Err(Error::Corrupt { .. }) => Looked::Unreadable,
                    Err(error) => return Err(error),
                };
                if let Looked::Holds(tag) = &looked {
                    self.note_rescued(tag, &data);
                }
                if looked.is_of_native(in_slc.map(|place| place * per_page + part), slc_content) {
                    mode = CellMode::Native;
                }
                by_page.push(looked);
            }
        }
        let shape = chip.shape().mode(mode);
        let mut looked = vec![Looked::Blank; (shape.units * shape.unit_slots) as usize];
        let places = if mode == CellMode::Native { &pages.native } else { &pages.slc };
        for (place, found) in places.iter().zip(by_page.chunks(per_page as usize)) {
            let Some(place) = place else { continue };
            let first = (place * per_page) as usize;
            looked.iter_mut().skip(first).zip(found).for_each(|(to, from)| *to = *from);
        }
        Ok((mode, looked))
    }

    /// Notes what a slot that a recovery wrote is a copy of.
    fn note_rescued(&mut self, tag: &Tag, data: &[u8]) {
        match tag.kind {
            _ if !tag.unlogged || !tag.copy => {}
            Kind::Data => self.history.rescued.extend([tag.source]),
            Kind::Nodes => {
                self.history.rescued.extend(node::nodes(data, tag.len as usize).filter_map(|(_, _, node)| {
                    match node.order {
                        Order::CopyOf { slot, .. } => Some(slot),
                        Order::Back(_) => None,
                    }
                }))
            }
            _ => {}
        }
    }
}

/// Where the pages of a block come in programming order.
struct Pages {
    /// By page.
    slc: Vec<Option<u32>>,
    native: Vec<Option<u32>>,
}

impl Pages {
    fn of<N: Nand>(chip: &Slots<N>) -> Self {
        let pages = chip.shape().geometry.pages_per_block as usize;
        let places = |layout: &Layout| {
            let mut places = vec![None; pages];
            for order in 0..pages as u32 {
                if let Some(place) = layout.page(order).and_then(|page| places.get_mut(page as usize)) {
                    *place = Some(order);
                }
            }
            places
        };
        Self { slc: places(chip.nand().layout(CellMode::Slc)), native: places(chip.nand().layout(CellMode::Native)) }
    }
}

/// Reads the slots again that a torn program may have left readable once: they are not to be relied on.
fn forget_unstable<N: Nand>(chip: &mut Slots<N>, block: u32, mode: CellMode, looked: &mut [Looked]) -> Result<()> {
    let shape = chip.shape().mode(mode).clone();
    let Some(last) = looked.iter().rposition(|looked| *looked != Looked::Blank) else { return Ok(()) };
    let last = last as u32 / shape.unit_slots;
    let layout = chip.nand().layout(mode);
    let end = shape.past_torn(last + 1, 0, layout);
    let mut units: Vec<u32> = (last..end).flat_map(|unit| layout.endangers(unit).iter().copied()).collect();
    units.push(last);
    let mut data = vec![0; chip.shape().slot_bytes];
    for index in units.into_iter().flat_map(|unit| unit * shape.unit_slots..(unit + 1) * shape.unit_slots) {
        let Some(was) = looked.get_mut(index as usize).filter(|was| matches!(was, Looked::Holds(_))) else { continue };
        match chip.read_tagged_as(chip.shape().slot(block, index), mode, &mut data, Cause::Metadata) {
            Ok(_) => {}
            Err(Error::Corrupt { .. }) => *was = Looked::Unreadable,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
