//! The slots of a chip, to be read and changed behind its back.
//!
//! A slot is what one tag describes (docs/FORMAT.md). Blocks that were changed are erased and programmed anew as a
//! whole, so that the chip itself stays consistent. Invariant: a slot that was changed has a tag whose checksum holds,
//! unless that was not asked for.

use std::collections::BTreeMap;

use emulator::Chip;
use nand::{Cause, CellMode, Nand};

pub(crate) const TAG_BYTES: usize = 32;
/// Bytes of a slot, unless pages are smaller.
const SLOT_BYTES_MAX: usize = 4096;
const ANCHOR_MAGIC: &[u8; 8] = b"FlexFS\r\n";

/// What a slot holds, in the order of the codes in its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SlotKind {
    Data,
    Nodes,
    Summary,
    Index,
    Table,
    Anchor,
}

impl SlotKind {
    pub(crate) const ALL: [Self; 6] = [Self::Data, Self::Nodes, Self::Summary, Self::Index, Self::Table, Self::Anchor];
}

/// A slot's bytes.
#[derive(Clone)]
pub(crate) struct Slot {
    pub data: Vec<u8>,
    pub tag: [u8; TAG_BYTES],
    /// Its checksum is left as it is.
    pub unsealed: bool,
}

impl Slot {
    pub(crate) fn kind(&self) -> Option<SlotKind> {
        SlotKind::ALL.get(usize::from(self.tag[15] & 0xf).wrapping_sub(1)).copied()
    }

    pub(crate) fn seq(&self) -> u64 {
        self.tag[4..10].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
    }

    pub(crate) fn set_seq(&mut self, seq: u64) {
        self.tag[4..10].copy_from_slice(&seq.to_le_bytes()[..6]);
    }

    fn seal(&mut self, volume_seed: u32) {
        let seed = if self.kind() == Some(SlotKind::Anchor) { 0 } else { volume_seed };
        self.tag[..4].copy_from_slice(&seed.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&self.tag), &self.data);
        self.tag[..4].copy_from_slice(&crc.to_le_bytes());
    }

    fn is_blank(&self) -> bool {
        self.tag.iter().chain(&self.data).all(|&byte| byte == 0xff)
    }
}

/// Where a slot stands: the block, and its number in programming order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub block: u32,
    pub index: usize,
}

/// A block in memory; `None` where nothing is programmed.
pub(crate) struct Block {
    mode: CellMode,
    pub slots: Vec<Option<Slot>>,
}

/// A chip and what was read of it; only blocks handed out by `block_mut` are written back.
pub(crate) struct Slots {
    chip: Chip,
    slot_bytes: usize,
    volume_seed: u32,
    blocks: BTreeMap<u32, Block>,
}

/// The spots of a volume by what they hold, the newest first.
pub(crate) struct Directory {
    by_kind: [Vec<Spot>; SlotKind::ALL.len()],
    all: Vec<Spot>,
    pub newest_seq: u64,
    volume_seed: u32,
}

impl Slots {
    pub(crate) fn new(chip: Chip, directory: &Directory) -> Self {
        let slot_bytes = SLOT_BYTES_MAX.min(chip.geometry().page_bytes as usize);
        Self { chip, slot_bytes, volume_seed: directory.volume_seed, blocks: BTreeMap::new() }
    }

    /// The address that pages name the slot by.
    pub(crate) fn address(&self, spot: Spot) -> u64 {
        u64::from(spot.block) * self.stride() + spot.index as u64
    }

    /// Slots of a block in native mode.
    pub(crate) fn stride(&self) -> u64 {
        let shape = self.chip.geometry();
        u64::from(shape.pages_per_block) * self.slots_of_page() as u64
    }

    fn slots_of_page(&self) -> usize {
        self.chip.geometry().page_bytes as usize / self.slot_bytes
    }

    /// A block, to be changed.
    pub(crate) fn block_mut(&mut self, number: u32) -> &mut Block {
        if !self.blocks.contains_key(&number) {
            let block = self.read_block(number);
            self.blocks.insert(number, block);
        }
        self.blocks.get_mut(&number).unwrap_or_else(|| unreachable!("block {number} was just read"))
    }

    /// A slot, to be changed, unless it is blank.
    pub(crate) fn slot_mut(&mut self, spot: Spot) -> Option<&mut Slot> {
        self.block_mut(spot.block).slots.get_mut(spot.index)?.as_mut()
    }

    fn read_block(&mut self, number: u32) -> Block {
        let mode = self.chip.block_mode(number).unwrap_or(CellMode::Slc);
        let pages: Vec<u32> = (0..).map_while(|index| self.chip.layout(mode).page(index)).collect();
        let shape = self.chip.geometry();
        let (mut data, mut spare) = (vec![0; shape.page_bytes as usize], vec![0; shape.spare_bytes as usize]);
        let mut slots = Vec::new();
        for page in pages {
            if self.chip.read(number, page, 0, &mut data, &mut spare, Cause::Host).is_err() {
                data.fill(0xff);
                spare.fill(0xff);
            }
            for (data, tag) in data.chunks(self.slot_bytes).zip(spare.chunks_exact(TAG_BYTES)) {
                let tag = crate::record::padded(tag);
                let slot = Slot { data: data.to_vec(), tag, unsealed: false };
                slots.push((!slot.is_blank()).then_some(slot));
            }
        }
        Block { mode, slots }
    }

    /// The page that a slot stands in.
    pub(crate) fn page(&self, spot: Spot) -> Option<u32> {
        let mode = self.chip.block_mode(spot.block).unwrap_or(CellMode::Slc);
        self.chip.layout(mode).page((spot.index / self.slots_of_page()) as u32)
    }

    /// Programs what was changed, and gives the chip back.
    pub(crate) fn into_chip(mut self) -> Chip {
        for (number, block) in std::mem::take(&mut self.blocks) {
            self.write_block(number, block);
        }
        let mut failures = Vec::new();
        self.chip.barrier(&mut failures).unwrap_or_else(|error| panic!("a chip without faults: {error}"));
        self.chip
    }

    fn write_block(&mut self, number: u32, mut block: Block) {
        let shape = self.chip.geometry().clone();
        let per_page = self.slots_of_page();
        for slot in block.slots.iter_mut().flatten().filter(|slot| !slot.unsealed) {
            slot.seal(self.volume_seed);
        }
        let result = self.chip.erase(number, Cause::Host);
        result.unwrap_or_else(|error| panic!("erasing a block of a chip without faults: {error}"));
        let pages = self.chip.layout(block.mode).pages_per_unit() as usize;
        for (unit, slots) in (0u32..).zip(block.slots.chunks(pages * per_page)) {
            if slots.iter().all(Option::is_none) {
                continue;
            }
            let mut data = vec![0xff; pages * shape.page_bytes as usize];
            let mut spare = vec![0xff; pages * shape.spare_bytes as usize];
            for (index, slot) in slots.iter().enumerate() {
                let Some(slot) = slot else { continue };
                data[index * self.slot_bytes..][..self.slot_bytes].copy_from_slice(&slot.data);
                let at = index / per_page * shape.spare_bytes as usize + index % per_page * TAG_BYTES;
                spare[at..at + TAG_BYTES].copy_from_slice(&slot.tag);
            }
            let result = self.chip.program(number, unit, block.mode, &data, &spare, Cause::Host);
            result.unwrap_or_else(|error| panic!("programming a block just erased: {error}"));
        }
    }
}

impl Directory {
    /// What stands on a chip.
    pub(crate) fn of(chip: &Chip) -> Self {
        let mut directory = Self { by_kind: Default::default(), all: Vec::new(), newest_seq: 0, volume_seed: 0 };
        let mut slots = Slots::new(chip.snapshot(), &directory);
        let mut found: Vec<(SlotKind, u64, Spot)> = Vec::new();
        for block in 0..chip.geometry().blocks {
            for (index, slot) in slots.block_mut(block).slots.iter().enumerate() {
                let Some((slot, kind)) = slot.as_ref().and_then(|slot| Some((slot, slot.kind()?))) else { continue };
                let mut age = slot.seq();
                if kind == SlotKind::Anchor && slot.data.starts_with(ANCHOR_MAGIC) {
                    age = u64::from_le_bytes(crate::record::padded(&slot.data[88..96]));
                    let seed = crc32c::crc32c_append(crc32c::crc32c(b"FlexFS volume"), &slot.data[16..32]);
                    directory.volume_seed = seed;
                } else {
                    directory.newest_seq = directory.newest_seq.max(age);
                }
                found.push((kind, age, Spot { block, index }));
            }
        }
        found.sort_by_key(|&(kind, age, spot)| (kind, std::cmp::Reverse(age), spot));
        for (kind, _, spot) in found {
            directory.by_kind[kind as usize].push(spot);
            directory.all.push(spot);
        }
        directory
    }

    /// The spots that hold this kind, or, where none does, all.
    pub(crate) fn spots(&self, kind: Option<SlotKind>) -> &[Spot] {
        match kind.map(|kind| &self.by_kind[kind as usize]).filter(|spots| !spots.is_empty()) {
            Some(spots) => spots,
            None => &self.all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volumes::volumes;

    #[test]
    fn every_kind_of_slot_is_on_some_volume_and_both_modes_on_each() {
        let mut kinds = std::collections::BTreeSet::new();
        for volume in volumes() {
            let directory = Directory::of(&volume.chip);
            let counts = directory.by_kind.each_ref().map(Vec::len);
            println!("{}: {counts:?}, up to {}", volume.name, directory.newest_seq);
            kinds.extend(SlotKind::ALL.into_iter().filter(|&kind| counts[kind as usize] > 0));
            let modes = (0..volume.chip.geometry().blocks).filter_map(|block| volume.chip.block_mode(block));
            let modes: Vec<CellMode> = modes.collect();
            assert!(CellMode::ALL.iter().all(|mode| modes.contains(mode)), "{}", volume.name);
        }
        assert_eq!(kinds.len(), SlotKind::ALL.len(), "{kinds:?}");
    }

    #[test]
    fn a_chip_that_was_read_and_programmed_anew_holds_the_same() {
        for volume in volumes() {
            let directory = Directory::of(&volume.chip);
            let mut slots = Slots::new(volume.chip.snapshot(), &directory);
            for spot in &directory.all {
                slots.block_mut(spot.block);
            }
            let mut chip = slots.into_chip();
            let shape = chip.geometry().clone();
            let read = |chip: &mut Chip, block, page| {
                let (mut data, mut spare) = (vec![0; shape.page_bytes as usize], vec![0; shape.spare_bytes as usize]);
                chip.read(block, page, 0, &mut data, &mut spare, Cause::Host).unwrap();
                (data, spare)
            };
            for (block, page) in volume.chip.written_pages() {
                let same = read(&mut volume.chip.snapshot(), block, page) == read(&mut chip, block, page);
                assert!(same, "{}: block {block}, page {page}", volume.name);
            }
        }
    }
}
