//! How a drive is made of a chip: its sizes, the blocks of its records, and the first of these.
//!
//! Invariant: every die offers the same number of logical blocks, and has two blocks or 2 % of its own to spare, those of the
//! records among them; two good ones at least.

use nand::{CellMode, Nand};

use super::BlockMapDrive;
use super::table::{DriveSize, PhysicalUse};
use super::tag::{ANY_DRIVE, TAG_BYTES};
use crate::{Error, Result};

/// Blocks of a die that stand in for others: one in so many, and two at least.
const SPARE_PART: u32 = 50;
const SPARES_MIN: u32 = 2;
/// Blocks that hold records.
const RECORD_BLOCKS: u32 = 2;

/// How a drive is made.
#[derive(Clone, Copy, Debug)]
pub struct DriveFormat {
    /// The drive's number, by chance; 0 counts as 1.
    pub number: u32,
    /// The chip is new, every block of it erased.
    pub blank: bool,
}

impl DriveFormat {
    /// Blocks of a chip of so many dies that offers as many as these.
    pub fn chip_blocks(logical_blocks: u32, dies: u32) -> u32 {
        let dies = dies.max(1);
        let logical = logical_blocks.div_ceil(dies);
        let fits = |physical: &u32| physical.saturating_sub(spares(*physical, dies)) >= logical;
        (logical..u32::MAX / dies).find(fits).unwrap_or(logical) * dies
    }
}

/// Blocks of a die that are to spare.
fn spares(physical: u32, dies: u32) -> u32 {
    physical.div_ceil(SPARE_PART).max(good_spares(dies))
}

/// Blocks of a die that are to spare and good when the drive is made.
fn good_spares(dies: u32) -> u32 {
    // The blocks of records are among them: two of one die, or one each of two dies.
    SPARES_MIN + if dies == 1 { RECORD_BLOCKS } else { 0 }
}

/// The sizes of a drive on a chip.
fn size_of(chip: &impl Nand) -> Result<DriveSize> {
    let geometry = chip.geometry();
    let (dies, physical) = (geometry.dies(), geometry.blocks / geometry.dies());
    if (geometry.spare_bytes as usize) < TAG_BYTES {
        return Err(Error::Unfit("a page needs 16 spare bytes for the tag of its block"));
    }
    let good = |die: u32| (0..physical).filter(|index| !chip.is_bad(index * dies + die)).count() as u32;
    let least_good = (0..dies).map(good).min().unwrap_or(0);
    // Spares stand in for blocks that are bad from the factory, as far as enough are left.
    let logical = physical.saturating_sub(spares(physical, dies)).min(least_good.saturating_sub(good_spares(dies)));
    match logical {
        1.. => Ok(DriveSize { dies, physical, logical }),
        _ => Err(Error::Unfit("too few blocks on a die: two of each are to spare")),
    }
}

impl<N: Nand> BlockMapDrive<N> {
    /// Makes a drive of a chip; all that it held is lost.
    pub fn create(chip: N, format: &DriveFormat) -> Result<Self, (N, Error)> {
        let size = match size_of(&chip) {
            Ok(size) => size,
            Err(error) => return Err((chip, error)),
        };
        let number = if format.number == ANY_DRIVE { 1 } else { format.number };
        let mut drive = Self::new(chip, size, number);
        match drive.make(format.blank) {
            Ok(()) => Ok(drive),
            Err(error) => Err((drive.into_chip(), error)),
        }
    }

    fn make(&mut self, blank: bool) -> Result<()> {
        if 2 * self.segments.count() > self.chip.layout(CellMode::Slc).units() {
            return Err(Error::Unfit("so many blocks do not fit the records of a drive"));
        }
        if !blank {
            // Records of an earlier drive may stay where an erase fails.
            self.generation = super::start::generation_past_all(&mut self.chip)?;
        }
        let untouched = if blank { PhysicalUse::Kept } else { PhysicalUse::Free };
        for block in 0..self.table.size().physical_blocks() {
            self.table.set_use(block, if self.chip.is_bad(block) { PhysicalUse::Bad } else { untouched });
        }
        let dies = self.table.size().dies;
        let enough = (0..dies).all(|die| self.table.has_enough(die));
        let mut chosen = 0;
        for turn in 0..RECORD_BLOCKS {
            while chosen < 2 * dies {
                let die = chosen % dies;
                let Some(block) = self.table.least_erased(die, &[untouched]) else { break };
                if blank || self.erase_now(block, nand::Cause::Metadata)? {
                    self.table.set_use(block, PhysicalUse::Record);
                    if let Some(slot) = self.records.pair.get_mut(turn as usize) {
                        *slot = block;
                    }
                    chosen += 1;
                    break;
                }
                self.table.set_use(block, PhysicalUse::Suspect);
            }
        }
        if !enough || chosen < RECORD_BLOCKS || !(0..dies).all(|die| self.table.has_enough(die)) {
            return Err(Error::WornOut);
        }
        // One in each block: neither is lost with a page.
        self.record_all().map_err(Error::Nand)?;
        (self.records.current, self.records.unit) = (1, 0);
        self.record_all().map_err(Error::Nand)
    }
}
