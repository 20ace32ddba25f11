//! How much life a chip has left: in a word for `info`, and as a warning for whoever keeps a mount, long before its end.
//!
//! Invariant: a warning says what to do, and holds no figures that change, so that it is told once.

use flexfs_core::{Ended, Fs, Info};
use nand::{CellMode, Nand};

/// A block this far through its endurance is worth a word.
const WORN: f64 = 0.8;

/// What is to be said of a chip.
pub struct Health {
    pub word: &'static str,
    /// How far the most worn block is through its native endurance.
    pub life_used: f64,
    pub warning: Option<&'static str>,
}

impl Health {
    /// The health of the chip under a mounted volume; `None` where the volume cannot tell.
    pub fn of_volume<N: Nand>(fs: &mut Fs<N>) -> Option<Self> {
        let endurance = fs.chip().endurance(CellMode::Native);
        fs.info().ok().map(|info| Self::of(&info, endurance))
    }

    /// The health of a chip of which these are the figures, and whose blocks endure so many erases.
    pub fn of(info: &Info, endurance: u32) -> Self {
        let life_used = f64::from(info.erases_max) / f64::from(endurance.max(1));
        let (word, warning) = match info.ended {
            Some(Ended::NoBlocks) => (
                "at its end",
                Some(
                    "too few good blocks are left: nothing can be written any more, what was synced can be read; copy it to \
                     another chip",
                ),
            ),
            Some(Ended::Damaged) => (
                "read-only",
                Some("what would have to be written anew cannot be read: nothing more is written; check it with fsck"),
            ),
            // The failure itself has been told.
            Some(_) => ("read-only", None),
            None if life_used >= 1.0 => (
                "worn out",
                Some("its blocks have used up their endurance and will fail; copy what it holds to another chip"),
            ),
            None if info.failing_blocks > 0 => ("failing", Some("blocks have begun to fail; have another chip ready")),
            None if life_used >= WORN => {
                ("worn", Some("its blocks have used 80 % of their endurance; have another chip ready"))
            }
            None => ("good", None),
        };
        Self { word, life_used, warning }
    }
}
