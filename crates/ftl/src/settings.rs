//! What a volume is made with, and how it is run.
//!
//! Invariant: whatever the options, a volume that was made with one format is opened with any.

use nand::{CellMode, Nand};

use crate::dftl::blocks_of_map;
pub use crate::flash::Payload;
use crate::log_block::Shape;
pub use crate::log_block::victim::Victim;
use crate::{Result, Scheme};

/// What a volume is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The volume's number; another one than that of any volume the chip held before.
    pub volume: u32,
    /// Blocks that are no data blocks: two anchors, map blocks, log blocks and free blocks.
    pub extra_blocks: u32,
    /// Log blocks at most.
    pub logs: u32,
    /// Map blocks in the round; schemes without a map on flash leave it at 0.
    pub map_blocks: u32,
}

/// Extra blocks of a usual volume: one of so many.
const EXTRA_SHARE: u32 = 64;
/// And at least so many.
const EXTRA_MIN: u32 = 32;
/// Where the page map is on flash: as many as its translation pages fill, as many again, and so many.
const EXTRA_BESIDE_MAP: u32 = 16;
/// Log blocks of a usual volume, and of one with at least twice the extra blocks (§V). Where the map is so large that blocks are in
/// reserve, memory is for the map.
const LOGS: [u32; 2] = [8, 16];

impl Format {
    /// A volume with as many blocks of each kind as suit the chip.
    pub fn usual<N: Nand>(chip: &N, scheme: Scheme, volume: u32) -> Result<Self> {
        let (blocks, page_bytes) = (chip.geometry().blocks, chip.geometry().page_bytes as usize);
        let pages_per_block = chip.layout(CellMode::Slc).pages();
        let extra_blocks = (blocks / EXTRA_SHARE).max(EXTRA_MIN);
        let extra_blocks = match scheme {
            Scheme::Dftl => {
                let of_map = blocks_of_map(page_bytes, pages_per_block, blocks, blocks);
                extra_blocks.max(EXTRA_BESIDE_MAP + 2 * of_map)
            }
            _ => extra_blocks,
        };
        let [few, many] = LOGS;
        let has_reserve = scheme == Scheme::LogBlock && extra_blocks > Shape::listed_max(page_bytes, blocks);
        let logs = if has_reserve || extra_blocks < 2 * EXTRA_MIN { few } else { many };
        let mut format = Self { volume, extra_blocks, logs, map_blocks: 0 };
        if scheme == Scheme::LogBlock {
            let shape = Shape::new(page_bytes, blocks, blocks.saturating_sub(extra_blocks), extra_blocks);
            format.map_blocks = shape.map_blocks_min(pages_per_block).max(3);
        }
        Ok(format)
    }
}

/// What a request does that cannot be written at once because too few blocks are free (§III.D: the host's choice).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TooLarge {
    /// It fails, and nothing of it is written.
    #[default]
    Refuse,
    /// It is written in several parts, each there as a whole or not at all.
    Split,
}

/// How a volume is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub victim: Victim,
    pub too_large: TooLarge,
    /// A log block in order takes the rest of its data block's pages, instead of a merge of all.
    pub merges_partially: bool,
    /// After so many map blocks begun, one is exchanged for a free block; 0: never.
    pub swap_every: u32,
    pub payload: Payload,
}

impl Default for Options {
    fn default() -> Self {
        let (victim, too_large, payload) = (Victim::default(), TooLarge::default(), Payload::default());
        Self { victim, too_large, merges_partially: true, swap_every: 8, payload }
    }
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;
    use crate::Device;

    #[test]
    fn the_usual_format_fits_small_and_large_chips_of_every_scheme() {
        let sizes =
            [("k9f5608u0m", 2 << 20), ("k9f5608u0m", 16 << 20), ("k9f5608u0m", 1 << 30), ("k9k8g08u0m", 1 << 30)];
        for (profile, bytes) in sizes {
            let profile = Profile::builtin(profile).unwrap().with_capacity(bytes).unwrap();
            for scheme in Scheme::ALL {
                let chip = Chip::without_data(&profile, 1).unwrap();
                let format = Format::usual(&chip, scheme, 1).unwrap();
                let made = Device::format(chip, scheme, &format, Options::default());
                assert!(made.is_ok(), "{scheme} on {bytes} bytes: {format:?}: {:?}", made.err());
            }
        }
    }
}
