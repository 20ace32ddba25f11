//! The block table: 8 bytes a block.

/// What a block is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Use {
    /// Nothing that is needed.
    #[default]
    Free,
    /// A part of the log: data and nodes.
    Log,
    /// Index and table pages.
    Meta,
    /// Anchors.
    Anchor,
    /// Retired.
    Bad,
}

/// A block as the table on flash knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockEntry {
    pub used_as: Use,
    /// Programmed natively since its last erase, else as SLC.
    pub native: bool,
    /// Known to be fully erased.
    pub erased: bool,
    /// Its last slots hold a summary.
    pub sealed: bool,
    /// Failed a program or an erase: to be emptied and tested.
    pub failing: bool,
    /// Programmed, since its last erase, with what was likely to be written again soon.
    pub hot: bool,
    /// Erases so far, 24 bits.
    pub erases: u32,
    /// Bytes in it that the index or a table points to.
    pub live_bytes: u32,
}

/// Bytes of an encoded entry.
pub const BLOCK_BYTES: usize = 8;

impl BlockEntry {
    /// erases 24, flags 8 (use 3, native, erased, sealed, failing, hot), live bytes 32.
    pub fn encode(&self) -> u64 {
        let code = match self.used_as {
            Use::Free => 0,
            Use::Log => 1,
            Use::Meta => 2,
            Use::Anchor => 3,
            Use::Bad => 4u64,
        };
        let flags = code
            | u64::from(self.native) << 3
            | u64::from(self.erased) << 4
            | u64::from(self.sealed) << 5
            | u64::from(self.failing) << 6
            | u64::from(self.hot) << 7;
        u64::from(self.erases.min(0xff_ffff)) | flags << 24 | u64::from(self.live_bytes) << 32
    }

    /// The entry, or `None` where the use is unknown.
    pub fn decode(bits: u64) -> Option<Self> {
        let used_as = match bits >> 24 & 7 {
            0 => Use::Free,
            1 => Use::Log,
            2 => Use::Meta,
            3 => Use::Anchor,
            4 => Use::Bad,
            _ => return None,
        };
        Some(Self {
            used_as,
            native: bits >> 27 & 1 != 0,
            erased: bits >> 28 & 1 != 0,
            sealed: bits >> 29 & 1 != 0,
            failing: bits >> 30 & 1 != 0,
            hot: bits >> 31 & 1 != 0,
            erases: bits as u32 & 0xff_ffff,
            live_bytes: (bits >> 32) as u32,
        })
    }
}
