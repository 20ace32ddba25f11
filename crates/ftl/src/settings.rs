//! What a volume is made with, and how it is run.
//!
//! Invariant: whatever the options, a volume that was made with one format is opened with any.

pub use crate::flash::Payload;

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
/// Log blocks of a usual volume, and of one with at least twice the extra blocks (§V).
pub(crate) const LOGS: [u32; 2] = [8, 16];

impl Format {
    /// A volume on a chip of so many blocks, as it suits a scheme that asks for nothing of its own.
    pub(crate) fn for_blocks(blocks: u32, volume: u32) -> Self {
        Self::with_extra((blocks / EXTRA_SHARE).max(EXTRA_MIN), volume)
    }

    /// A volume with so many extra blocks, and the log blocks that suit them.
    pub(crate) fn with_extra(extra_blocks: u32, volume: u32) -> Self {
        let [few, many] = LOGS;
        let logs = if extra_blocks < 2 * EXTRA_MIN { few } else { many };
        Self { volume, extra_blocks, logs, map_blocks: 0 }
    }
}

/// How the log block is chosen that is reclaimed when another one is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Victim {
    /// The one that was written least recently.
    #[default]
    LeastRecent,
    /// The one that has been used up most, weighed by how long ago it was written (the paper's future work, §V): pages
    /// still free in a log block are lost when it is reclaimed, and one written lately will be written again.
    RecencyAndUse,
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
