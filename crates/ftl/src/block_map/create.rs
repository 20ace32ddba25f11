//! How a drive is made of a chip: its sizes, the blocks of its records, and the first of these.
//!
//! Invariant: every die offers the same number of logical blocks, and has two blocks or 2 % of its own to spare, those of the
//! records among them.

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

/// The sizes of a drive on a chip.
fn size_of(chip: &impl Nand) -> Result<DriveSize> {
    let geometry = chip.geometry();
    let (dies, physical) = (geometry.dies(), geometry.blocks / geometry.dies());
    if (geometry.spare_bytes as usize) < TAG_BYTES {
        return Err(Error::Unfit("a page needs 16 spare bytes for the tag of its block"));
    }
    // The blocks of records are among the spares: two of one die, or one each of two dies.
    let records = if dies == 1 { RECORD_BLOCKS } else { 0 };
    let spares = physical.div_ceil(SPARE_PART).max(SPARES_MIN + records);
    match physical.checked_sub(spares) {
        Some(logical) if logical > 0 => Ok(DriveSize { dies, physical, logical }),
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
        self.record_all().map_err(Error::Nand)
    }
}
