//! Admission: callers' pages that go to SLC blocks beyond the share that idle time is expected to migrate (α).
//!
//! Without it a volume that is never left alone is as slow as its native cells, however empty it is. Invariant: pages are
//! let in only while fewer blocks are SLC blocks than are to spare, so that nothing is let in where callers make room.

/// How much is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Admission {
    /// Percent of all blocks that may be SLC blocks, whatever α is.
    pub blocks_percent: u8,
    /// A time without a request, ns, after which callers are expected to have a burst of their own.
    pub pause_ns: i64,
    /// Percent of the native capacity that is let in beyond that, after such a pause.
    pub pause_percent: u8,
}

/// The rule by which callers' pages go to SLC blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlcRule {
    /// As many as idle time is expected to migrate: the share α.
    IdleTime,
    /// All of them, since few blocks are SLC blocks.
    FewBlocks,
    /// All of them, since callers had paused for long.
    LongPause,
}

impl SlcRule {
    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IdleTime => "idle time",
            Self::FewBlocks => "few SLC blocks",
            Self::LongPause => "long pause",
        }
    }
}

/// What admission looks at of a volume.
#[derive(Clone, Copy, Debug)]
pub struct SlcUse {
    pub blocks: u32,
    /// SLC blocks that hold something, or are being filled.
    pub slc_blocks: u32,
    /// Free blocks beyond those that calls need once the log heads are full and a checkpoint is due.
    pub spare_blocks: i64,
    /// Pages that a native block takes.
    pub native_block_pages: u32,
    /// Pages let in for the last long pause; `None`: there was none.
    pub pause_pages: Option<u64>,
}

/// SLC blocks that were let in, for each block to spare, beyond which callers migrate.
const UNPAID_PER_SPARE: u64 = 4;
/// Slots that callers copy then, for so many that they write. Of two bits a cell, with at least `k = r / (r + 2)` copied for each
/// written the unpaid blocks fall `r` times as fast as those to spare: 2/3 for 4.
pub const COPIED_OF_WRITTEN: (u64, u64) = (3, 4);

impl Admission {
    /// A fifth of the blocks; after a minute, a twentieth of the native capacity more.
    pub const DEFAULT: Self = Self { blocks_percent: 20, pause_ns: 60_000_000_000, pause_percent: 5 };

    /// How many of so many blocks may be SLC blocks, whatever α is.
    pub fn blocks_max(self, blocks: u32) -> u32 {
        share_of_blocks(blocks, self.blocks_percent)
    }

    /// The rule for callers' next pages.
    pub fn rule(self, volume: &SlcUse) -> SlcRule {
        if i64::from(volume.slc_blocks) >= volume.spare_blocks {
            return SlcRule::IdleTime;
        }
        let capacity_pages = u64::from(volume.blocks) * u64::from(volume.native_block_pages);
        let pause_pages_max = capacity_pages * u64::from(self.pause_percent) / 100;
        if volume.slc_blocks <= self.blocks_max(volume.blocks) {
            SlcRule::FewBlocks
        } else if volume.pause_pages.is_some_and(|pages| pages < pause_pages_max) {
            SlcRule::LongPause
        } else {
            SlcRule::IdleTime
        }
    }
}

/// Whether callers are to migrate, where so many SLC blocks were let in that nobody has migrated, and so many blocks are to
/// spare. Were it left until none is to spare, a call that needs one would wait for whole blocks.
pub fn is_overdrawn(unpaid_blocks: u64, spare_blocks: i64) -> bool {
    unpaid_blocks > unpaid_blocks_max(spare_blocks)
}

/// SLC blocks that may be let in before callers are to migrate, where so many blocks are to spare.
pub fn unpaid_blocks_max(spare_blocks: i64) -> u64 {
    UNPAID_PER_SPARE * u64::try_from(spare_blocks).unwrap_or(0)
}

/// How many of so many blocks a percentage is.
pub fn share_of_blocks(blocks: u32, percent: u8) -> u32 {
    (u64::from(blocks) * u64::from(percent) / 100) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 blocks of 100 native pages.
    fn rule(slc_blocks: u32, spare_blocks: i64, pause_pages: Option<u64>) -> SlcRule {
        let volume = SlcUse { blocks: 1000, slc_blocks, spare_blocks, native_block_pages: 100, pause_pages };
        Admission::DEFAULT.rule(&volume)
    }

    #[test]
    fn a_fifth_of_the_blocks_takes_pages_without_idle_time() {
        assert_eq!(rule(200, 800, None), SlcRule::FewBlocks);
        assert_eq!(rule(201, 799, None), SlcRule::IdleTime);
    }

    #[test]
    fn a_long_pause_lets_in_a_twentieth_of_the_capacity() {
        assert_eq!(rule(201, 500, Some(4999)), SlcRule::LongPause);
        assert_eq!(rule(201, 500, Some(5000)), SlcRule::IdleTime);
        assert_eq!(rule(200, 500, Some(0)), SlcRule::FewBlocks, "what few blocks let in is not counted");
    }

    #[test]
    fn as_many_slc_blocks_as_are_to_spare_let_nothing_in() {
        assert_eq!(rule(100, 101, None), SlcRule::FewBlocks);
        for pause_pages in [None, Some(0)] {
            assert_eq!(rule(100, 100, pause_pages), SlcRule::IdleTime);
            assert_eq!(rule(0, -3, pause_pages), SlcRule::IdleTime);
        }
    }

    #[test]
    fn callers_migrate_before_no_block_is_to_spare() {
        assert!(!is_overdrawn(200, 50) && is_overdrawn(201, 50));
        assert!(!is_overdrawn(0, -1) && is_overdrawn(1, -1));
    }
}
