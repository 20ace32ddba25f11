//! The shape of a chip: how many blocks and pages it has, and what its cells can hold.

/// How the cells of a block are programmed, from one erase to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CellMode {
    /// One bit per cell: fast, enduring, `1 / bits_per_cell` of the capacity.
    Slc,
    /// All the bits the cell was made for (2 for MLC, 3 for TLC, 4 for QLC).
    Native,
}

impl CellMode {
    /// Both modes, SLC first: the order in which per-mode tables are laid out.
    pub const ALL: [CellMode; 2] = [CellMode::Slc, CellMode::Native];
}

/// The fixed shape of a chip (or of several chips driven as one).
///
/// Erase blocks are numbered `0..blocks` over all dies; block `b` stands on die `b % dies()`, so that neighbours
/// in number are neighbours in no queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Buses that transfer independently of each other.
    pub channels: u16,
    /// Chips on each channel.
    pub chips_per_channel: u16,
    /// Dies in each chip: the unit that is busy while an operation lasts.
    pub dies_per_chip: u16,
    /// Planes in each die.
    pub planes_per_die: u16,
    /// Erase blocks over all dies.
    pub blocks: u32,
    /// Pages of an erase block in native mode.
    pub pages_per_block: u32,
    /// Bytes of data in a page.
    pub page_bytes: u32,
    /// Spare (out-of-band) bytes of a page that software may use; the chip's ECC parity is not among them.
    pub spare_bytes: u32,
    /// Whether the chip's ECC corrects those spare bytes too.
    pub spare_ecc: bool,
    /// Bits a cell holds in native mode: 1 SLC, 2 MLC, 3 TLC, 4 QLC.
    pub bits_per_cell: u8,
}

impl Geometry {
    /// Dies over all channels and chips; at least 1.
    pub fn dies(&self) -> u32 {
        let dies = u32::from(self.channels) * u32::from(self.chips_per_channel) * u32::from(self.dies_per_chip);
        dies.max(1)
    }

    /// The die block `block` stands on.
    pub fn die_of(&self, block: u32) -> u32 {
        block % self.dies()
    }

    /// The channel that block `block` is reached by: dies are counted over the channels, and again.
    pub fn channel_of(&self, block: u32) -> u32 {
        self.die_of(block) % u32::from(self.channels.max(1))
    }

    /// The number of block `block` among those of its die.
    pub fn block_on_die(&self, block: u32) -> u32 {
        block / self.dies()
    }

    /// Data bytes of one erase block in native mode.
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.pages_per_block) * u64::from(self.page_bytes)
    }

    /// Data bytes of the whole chip in native mode, bad blocks included.
    pub fn native_bytes(&self) -> u64 {
        self.block_bytes() * u64::from(self.blocks)
    }
}
