//! What operations take of a battery. Invariant: the energy of an operation does not depend on when it is done.

use nand::CellMode;
use serde::{Deserialize, Serialize};

use crate::bounds::range;
use crate::error::ProfileError;
use crate::levels::{by_level, check_levels};

/// What operations take. All is 0 where nothing is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// With one bit per cell.
    pub slc: ModeEnergy,
    /// With all bits per cell.
    pub native: ModeEnergy,
}

/// What operations take in one mode, in nanojoules, the transfer of a page included. Lists go by level on the word line,
/// LSB first; the last entry serves all further levels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeEnergy {
    /// Reading a page.
    pub read_nj: Vec<u64>,
    /// Programming a unit, by the level of its first page.
    pub program_nj: Vec<u64>,
    /// Erasing a block.
    pub erase_nj: u64,
}

impl ModeEnergy {
    pub(crate) fn read_nj(&self, level: usize) -> u64 {
        by_level(&self.read_nj, level)
    }

    pub(crate) fn program_nj(&self, level: usize) -> u64 {
        by_level(&self.program_nj, level)
    }
}

impl Energy {
    /// Whether nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn mode(&self, mode: CellMode) -> &ModeEnergy {
        match mode {
            CellMode::Slc => &self.slc,
            CellMode::Native => &self.native,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ProfileError> {
        for mode in CellMode::ALL {
            let ModeEnergy { read_nj, program_nj, erase_nj } = self.mode(mode);
            check_levels("energy.*.read_nj", read_nj, 0, MOST_NJ)?;
            check_levels("energy.*.program_nj", program_nj, 0, MOST_NJ)?;
            range("energy.*.erase_nj", *erase_nj, 0, MOST_NJ)?;
        }
        Ok(())
    }
}

/// A joule: more is a typing error.
const MOST_NJ: u64 = 1_000_000_000;
