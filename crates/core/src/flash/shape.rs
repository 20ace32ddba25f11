//! The chip as slots: how blocks, program units and pages turn into slot addresses and back.

use alloc::vec::Vec;

use nand::{CellMode, Geometry, Layout, Nand};

use crate::error::{Error, Result};
use crate::format::place::Slot;
use crate::format::summary;
use crate::format::tag::TAG_BYTES;

/// A data chunk where pages are large enough.
const CHUNK_BYTES: u32 = 4096;

/// Bytes of a slot on a chip of such pages.
pub fn slot_bytes(page_bytes: u32) -> u32 {
    page_bytes.min(CHUNK_BYTES)
}

/// Spare bytes that the tags of a page take.
pub fn spare_bytes_needed(page_bytes: u32) -> u32 {
    page_bytes / slot_bytes(page_bytes).max(1) * TAG_BYTES as u32
}

/// A chip must have this many blocks: anchors, index, two heads, a reserve.
const BLOCKS_MIN: u32 = 12;

/// One cell mode's slots. Open to other rooms as a plain value, but for the list that `threat` looks things up in.
#[derive(Clone, Debug)]
pub struct ModeShape {
    /// Programs that fill a block.
    pub units: u32,
    /// Slots of one program.
    pub unit_slots: u32,
    /// Units before the summary.
    pub content_units: u32,
    /// Slots of the summary.
    pub summary_slots: u32,
    /// For each unit the last one that endangers it, 0 for none.
    threat: Vec<u32>,
    /// Slots after which an earlier page can no longer be endangered.
    pub pair_slots: u32,
    /// Slots of a block that one torn program may leave half readable, as far as a recovery can tell.
    pub doubtful_slots: u32,
}

impl ModeShape {
    fn new(layout: &Layout, slots_per_page: u32, slot_bytes: u32) -> Option<Self> {
        let unit_slots = layout.pages_per_unit() * slots_per_page;
        let units = layout.units();
        let slots = units * unit_slots;
        let summary_slots = (1..slots).find(|&taken| {
            summary::slots_needed((slots - taken) as usize, slot_bytes as usize) <= taken as usize
                && taken % unit_slots == 0
        })?;
        let mut threat = alloc::vec![0; units as usize];
        for unit in 0..units {
            for &victim in layout.endangers(unit) {
                if let Some(last) = threat.get_mut(victim as usize) {
                    *last = unit;
                }
            }
        }
        let mut shape = Self {
            units,
            unit_slots,
            content_units: units - summary_slots / unit_slots,
            summary_slots,
            threat,
            pair_slots: layout.pair_distance() * unit_slots,
            doubtful_slots: 0,
        };
        let victims =
            |last| (last..shape.past_torn(last + 2, 0, layout)).map(|unit| layout.endangers(unit).len()).sum();
        let most: usize = (0..shape.content_units).map(victims).max().unwrap_or(0);
        shape.doubtful_slots = (most as u32 + 1) * unit_slots;
        Some(shape)
    }

    /// The first unit from `past` on that no torn program can have hit: one of the workload and one of each recovery
    /// begun, each perhaps after units its head skipped to spare earlier ones.
    pub fn past_torn(&self, past: u32, recoveries: u32, layout: &Layout) -> u32 {
        let mut next = past;
        for _ in 0..=recoveries {
            while next < self.content_units && !layout.endangers(next).is_empty() {
                next += 1;
            }
            next += 1;
        }
        next
    }

    /// The last unit whose torn program may destroy `unit`; 0 if none.
    pub fn threat(&self, unit: u32) -> u32 {
        self.threat.get(unit as usize).copied().unwrap_or(0)
    }

    /// Slots of a block that carry content.
    pub fn content_slots(&self) -> u32 {
        self.content_units * self.unit_slots
    }
}

/// Where a slot stands on the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub block: u32,
    pub page: u32,
    /// Byte of the page the slot's data starts at.
    pub column: u32,
    /// Byte of the page's spare area the slot's tag starts at.
    pub tag_at: usize,
}

/// The chip's shape in slots.
#[derive(Clone, Debug)]
pub struct Shape {
    pub geometry: Geometry,
    pub slot_bytes: usize,
    pub slots_per_page: u32,
    /// Slots of a block in native mode: what a block's addresses are apart.
    pub stride: u64,
    pub slc: ModeShape,
    pub native: ModeShape,
}

impl Shape {
    /// The shape of a chip, or why it cannot carry a FlexFS.
    pub fn of<N: Nand>(nand: &N) -> Result<Self> {
        let geometry = nand.geometry().clone();
        if geometry.page_bytes < 2048 || !geometry.page_bytes.is_power_of_two() || geometry.page_bytes > 65536 {
            return Err(Error::Unsuitable("pages must be 2 KiB to 64 KiB"));
        }
        let slot_bytes = slot_bytes(geometry.page_bytes);
        let slots_per_page = geometry.page_bytes / slot_bytes;
        if geometry.spare_bytes < spare_bytes_needed(geometry.page_bytes) {
            return Err(Error::Unsuitable("each 4 KiB of a page (or smaller page) needs 32 spare bytes for its tag"));
        }
        if !geometry.spare_ecc {
            return Err(Error::Unsuitable("the chip's ECC must cover the spare bytes"));
        }
        if geometry.blocks < BLOCKS_MIN {
            return Err(Error::Unsuitable("fewer than 12 erase blocks"));
        }
        let stride = u64::from(geometry.pages_per_block) * u64::from(slots_per_page);
        if stride * u64::from(geometry.blocks) >= 1 << 40 {
            return Err(Error::Unsuitable("more than 2^40 slots"));
        }
        let mode = |mode| {
            ModeShape::new(nand.layout(mode), slots_per_page, slot_bytes)
                .ok_or(Error::Unsuitable("a block has too few pages for a summary"))
        };
        let (slc, native) = (mode(CellMode::Slc)?, mode(CellMode::Native)?);
        Ok(Self { geometry, slot_bytes: slot_bytes as usize, slots_per_page, stride, slc, native })
    }

    /// The slots of a mode.
    pub fn mode(&self, mode: CellMode) -> &ModeShape {
        match mode {
            CellMode::Slc => &self.slc,
            CellMode::Native => &self.native,
        }
    }

    /// The block a slot stands in.
    pub fn block_of(&self, slot: Slot) -> u32 {
        (slot / self.stride.max(1)) as u32
    }

    /// The slot at a place in a block.
    pub fn slot(&self, block: u32, index: u32) -> Slot {
        u64::from(block) * self.stride + u64::from(index)
    }

    /// A slot's place within its block.
    pub fn index_of(&self, slot: Slot) -> u32 {
        (slot % self.stride.max(1)) as u32
    }

    /// Whether a slot is the first of its block.
    pub fn is_first(&self, slot: Slot) -> bool {
        self.index_of(slot) == 0
    }

    /// Where a slot stands, its block being programmed as `layout` says.
    pub fn spot(&self, slot: Slot, layout: &Layout) -> Option<Spot> {
        let index = self.index_of(slot);
        let part = index % self.slots_per_page;
        Some(Spot {
            block: self.block_of(slot),
            page: layout.page(index / self.slots_per_page)?,
            column: part * self.slot_bytes as u32,
            tag_at: part as usize * TAG_BYTES,
        })
    }
}
