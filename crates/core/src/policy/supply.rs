//! How many blocks are free, and how many of them must stay so.

use super::budget::Budget;

/// What there is of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// Blocks that can be taken.
    pub free: u32,
    /// The same once the log heads have filled the blocks they stand in.
    pub free_soon: u32,
    /// The same once what is gathered is programmed, and the pages it endangers are given up.
    pub free_sealed: u32,
    /// The same for a recovery, if the power failed now.
    pub free_for_certain: u32,
    pub budget: Budget,
}
