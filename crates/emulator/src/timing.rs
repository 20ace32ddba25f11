//! The time that operations take.
//!
//! Invariant: the time of an operation does not depend on when it is done; waiting for a die or a bus comes on top.

use nand::CellMode;
use serde::{Deserialize, Serialize};

use crate::bounds::range;
use crate::error::ProfileError;
use crate::levels::{by_level, check_levels};

/// What operations cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Picoseconds a byte takes on the bus; 0 where the other figures include the transfer.
    pub bus_ps_per_byte: u64,
    /// With one bit per cell.
    pub slc: ModeTiming,
    /// With all bits per cell.
    pub native: ModeTiming,
}

/// What operations cost in one mode, in nanoseconds. Lists go by level on the word line, LSB first; the last entry
/// serves all further levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeTiming {
    /// Sensing a page.
    pub read_ns: Vec<u64>,
    /// Programming a unit, by the level of its first page.
    pub program_ns: Vec<u64>,
    /// Erasing a block.
    pub erase_ns: u64,
}

impl ModeTiming {
    pub(crate) fn read_ns(&self, level: usize) -> u64 {
        by_level(&self.read_ns, level)
    }

    pub(crate) fn program_ns(&self, level: usize) -> u64 {
        by_level(&self.program_ns, level)
    }
}

impl Timing {
    pub(crate) fn mode(&self, mode: CellMode) -> &ModeTiming {
        match mode {
            CellMode::Slc => &self.slc,
            CellMode::Native => &self.native,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ProfileError> {
        range("timing.bus_ps_per_byte", self.bus_ps_per_byte, 0, 1_000_000_000)?;
        for mode in CellMode::ALL {
            let ModeTiming { read_ns, program_ns, erase_ns } = self.mode(mode);
            check_levels("timing.*.read_ns", read_ns, 1, MOST_NS)?;
            check_levels("timing.*.program_ns", program_ns, 1, MOST_NS)?;
            range("timing.*.erase_ns", *erase_ns, 0, MOST_NS)?;
        }
        Ok(())
    }
}

/// A thousand seconds: more is a typing error.
const MOST_NS: u64 = 1_000_000_000_000;
