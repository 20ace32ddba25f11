//! A profile made ready to run: the nand crate's geometry and layouts, and costs looked up without a search.
//!
//! Shared by a chip and all its snapshots. Invariant: never changes after it is made.

use nand::{CellMode, Geometry, Layout};

use crate::{error::ProfileError, pairing, profile::Profile};

#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) profile: Profile,
    pub(crate) geometry: Geometry,
    pub(crate) slc: Layout,
    pub(crate) native: Layout,
    /// Level on its word line of each page of a block.
    levels: Vec<u8>,
}

impl Spec {
    pub(crate) fn new(profile: &Profile) -> Result<Self, ProfileError> {
        profile.check()?;
        let shape = &profile.geometry;
        let pages = pairing::pages(&profile.programming, shape.pages_per_block, shape.bits_per_cell)?;
        let geometry = Geometry {
            channels: shape.channels,
            chips_per_channel: shape.chips_per_channel,
            dies_per_chip: shape.dies_per_chip,
            planes_per_die: shape.planes_per_die,
            blocks: shape.blocks,
            pages_per_block: shape.pages_per_block,
            page_bytes: shape.page_bytes,
            spare_bytes: shape.spare_bytes,
            spare_ecc: shape.spare_ecc,
            bits_per_cell: shape.bits_per_cell,
        };
        Ok(Self { profile: profile.clone(), geometry, slc: pages.slc, native: pages.native, levels: pages.levels })
    }

    pub(crate) fn layout(&self, mode: CellMode) -> &Layout {
        match mode {
            CellMode::Slc => &self.slc,
            CellMode::Native => &self.native,
        }
    }

    /// The level of a page on its word line: 0 for the LSB page.
    pub(crate) fn level(&self, page: u32) -> usize {
        self.levels.get(page as usize).map_or(0, |&level| usize::from(level))
    }

    pub(crate) fn read_ns(&self, mode: CellMode, level: usize) -> u64 {
        self.profile.mode_timing(mode).read_ns(level)
    }

    pub(crate) fn program_ns(&self, mode: CellMode, level: usize) -> u64 {
        self.profile.mode_timing(mode).program_ns(level)
    }

    pub(crate) fn erase_ns(&self, mode: CellMode) -> u64 {
        self.profile.mode_timing(mode).erase_ns
    }

    /// How long `bytes` are on the bus.
    pub(crate) fn transfer_ns(&self, bytes: usize) -> u64 {
        bytes as u64 * self.profile.timing.bus_ps_per_byte / 1000
    }

    pub(crate) fn endurance(&self, mode: CellMode) -> u32 {
        match mode {
            CellMode::Slc => self.profile.endurance.slc_erases,
            CellMode::Native => self.profile.endurance.native_erases,
        }
    }

    /// Data bytes of a unit in `mode`, and of its spare areas.
    pub(crate) fn unit_bytes(&self, mode: CellMode) -> (usize, usize) {
        let pages = self.layout(mode).pages_per_unit() as usize;
        (pages * self.geometry.page_bytes as usize, pages * self.geometry.spare_bytes as usize)
    }
}
