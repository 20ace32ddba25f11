//! The contract of a mapping: a scheme without its chip, that is the state that says where sectors stand.
//!
//! The engine (`translation`) asks, and executes the steps that all schemes have in common. Invariant: a mapping keeps
//! no page of its own; all that it says follows from pages with tags, so that it can be recovered from them.

use alloc::string::String;
use alloc::vec::Vec;

use nand::Nand;

use crate::Result;
use crate::block_use::BlockUse;
use crate::device::Span;
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::{ChipSize, Flash, SectorPlace};
use crate::settings::{Format, Options};

/// Free blocks that only merges and cleaning take: one to copy to, and two for others that go bad in it.
pub const RESERVE_BLOCKS: u32 = 3;

/// A row of the table of schemes: the names and rules of one scheme.
#[derive(Clone, Copy, Debug)]
pub struct SchemeRow {
    /// Its name on a command line.
    pub name: &'static str,
    /// Its name in the paper's figures.
    pub letters: &'static str,
    /// Its number in an anchor.
    pub code: u8,
    /// Whether a request of several sectors is there as a whole or not at all after a power cut.
    pub is_atomic: bool,
    /// Log blocks at least.
    pub logs_min: u32,
    /// The blocks that the anchor sets a limit to ([`Record::logs`]) are map blocks, not log blocks.
    pub limits_map_blocks: bool,
    /// Makes the usual format of a chip of that size suit the scheme.
    pub usual: fn(ChipSize, Format) -> Format,
}

/// The blocks of a new volume that are no data blocks, as a scheme asks for them.
pub struct Demand {
    /// Extra blocks at least.
    pub extra_blocks: u32,
    /// Log blocks, or the most of another kind that the scheme keeps, as the anchor has it.
    pub logs: u32,
    /// The error where there are fewer.
    pub refusal: &'static str,
}

/// Where the sectors of a volume stand, and what its blocks are for.
pub trait SectorMap: Sized {
    /// The rows of the schemes that it is the mapping of.
    const ROWS: &'static [SchemeRow];

    /// The blocks that a new volume needs beside the data blocks of `record`.
    fn demand(_record: &Record, _flash: &Flash<impl Nand>, _format: &Format) -> Result<Demand> {
        let extra_blocks = ANCHOR_BLOCKS + RESERVE_BLOCKS + 2;
        Ok(Demand { extra_blocks, logs: 0, refusal: "seven extra blocks are needed" })
    }

    /// The mapping of a volume in which no sector stands anywhere, before it is created or recovered.
    fn empty(flash: &Flash<impl Nand>, record: &Record, options: Options) -> Result<Self>;

    /// Writes a new volume to flash: the anchor, and the map where the scheme keeps it there.
    fn create(&mut self, flash: &mut Flash<impl Nand>, record: Record, _format: &Format) -> Result<()> {
        write_anchor(flash, &record)
    }

    /// Finds where the sectors stand of the volume that `record` is the newest anchor of, and undoes what a power cut
    /// left undone.
    fn recover(&mut self, flash: &mut Flash<impl Nand>, anchors: Anchors, record: Record) -> Result<()>;

    /// Sectors of the volume.
    fn sectors(&self) -> u64;

    /// Where a sector that the volume has is to be read.
    fn find(&mut self, flash: &mut Flash<impl Nand>, sector: u32) -> Result<SectorPlace>;

    /// Writes sectors that the volume has.
    fn write(&mut self, flash: &mut Flash<impl Nand>, span: Span, data: &[u8]) -> Result<()>;

    /// Gives up sectors that the volume has.
    fn trim(&mut self, flash: &mut Flash<impl Nand>, span: Span) -> Result<()>;

    /// Merges or cleans ahead of need. Whether there was something to do.
    fn step(&mut self, flash: &mut Flash<impl Nand>) -> Result<bool>;

    /// A line for each part of the mapping that differs from flash.
    fn differences(&mut self, _flash: &mut Flash<impl Nand>) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Names the use of every block that the scheme knows of; bad blocks, anchors and free blocks are left out.
    fn visit_uses(&mut self, flash: &mut Flash<impl Nand>, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()>;

    /// Bytes of memory.
    fn ram_bytes(&self) -> usize;
}

/// Writes the anchor of a new volume of which every block is free.
pub fn write_anchor(flash: &mut Flash<impl Nand>, record: &Record) -> Result<()> {
    Anchors::format(flash)?.write(flash, record)?;
    flash.release_unused(|_| false);
    Ok(())
}
