//! A block being emptied, as data. Invariant: it can be dropped at any moment: nothing counts on its being finished.

use alloc::vec::Vec;

use nand::Cause;

use crate::format::key::Key;
use crate::format::place::Place;
use crate::format::tag::TAG_BYTES;

/// A node on its way to a new slot.
pub(super) struct Moving {
    pub(super) key: Key,
    pub(super) from: Place,
    pub(super) bytes: Vec<u8>,
}

/// A block being emptied.
pub struct Collector {
    pub(super) victim: u32,
    /// The victim's erases: with one more it is another block.
    pub(super) erases: u32,
    pub(super) cause: Cause,
    /// Whether copies go to native cells.
    pub(super) to_native: bool,
    /// Whether they go to worn blocks.
    pub(super) cold: bool,
    /// The block's tags, if its summary has been read.
    pub(super) tags: Option<Vec<[u8; TAG_BYTES]>>,
    /// Whether the summary has been looked for.
    pub(super) looked: bool,
    pub(super) next: u32,
    pub(super) moving: Vec<Moving>,
    pub(super) moving_bytes: usize,
}

impl Collector {
    pub(super) fn new((victim, erases): (u32, u32), cause: Cause, to_native: bool) -> Self {
        let (tags, moving) = (None, Vec::new());
        Self { victim, erases, cause, to_native, cold: false, tags, looked: false, next: 0, moving, moving_bytes: 0 }
    }
}
