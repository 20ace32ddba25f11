//! What workloads run on: a bare chip, or the drive of the co-design on one, which maps only blocks.
//!
//! Invariant: either is counted by the counters of the emulated chip at the bottom.

use emulator::Chip;
use ftl::{BlockMapDrive, DriveFormat};
use nand::Nand;
use serde::Serialize;
use torture::crash::Emulated;

use super::BenchError;

/// What the drive did for a workload, the operations before the counting included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriveLoad {
    /// Blocks that the file system has, and those of the chip.
    pub logical_blocks: u32,
    pub physical_blocks: u32,
    /// Commands: page reads, programs of a unit, and block TRIMs.
    pub reads: u64,
    pub programs: u64,
    pub trims: u64,
    /// Programs and erases of the drive's own.
    pub own_programs: u64,
    pub own_erases: u64,
}

/// A chip that a workload can run on.
pub trait BenchChip: Emulated + Sized {
    /// Makes it of a new chip.
    fn of(chip: Chip, seed: u64) -> Result<Self, BenchError>;

    /// A copy as it is found after the power was off: of a drive, by what stands on its chip.
    fn copy(&self) -> Result<Self, BenchError>;

    /// What a drive did, if it is one.
    fn drive_load(&self) -> Option<DriveLoad>;
}

impl BenchChip for Chip {
    fn of(chip: Chip, _: u64) -> Result<Self, BenchError> {
        Ok(chip)
    }

    fn copy(&self) -> Result<Self, BenchError> {
        Ok(self.snapshot())
    }

    fn drive_load(&self) -> Option<DriveLoad> {
        None
    }
}

impl BenchChip for BlockMapDrive<Chip> {
    fn of(chip: Chip, seed: u64) -> Result<Self, BenchError> {
        let format = DriveFormat { number: seed as u32, blank: true };
        Self::create(chip, &format).map_err(|(_, source)| BenchError::Drive(source))
    }

    fn copy(&self) -> Result<Self, BenchError> {
        Self::start(self.chip().snapshot()).map_err(|(_, source)| BenchError::Drive(source))
    }

    fn drive_load(&self) -> Option<DriveLoad> {
        let counts = self.counts();
        Some(DriveLoad {
            logical_blocks: self.geometry().blocks,
            physical_blocks: self.chip().geometry().blocks,
            reads: counts.reads,
            programs: counts.programs,
            trims: counts.trims,
            own_programs: counts.own_programs,
            own_erases: counts.own_erases,
        })
    }
}
