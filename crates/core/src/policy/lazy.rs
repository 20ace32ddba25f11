//! Lazy migration: what stands in SLC blocks is moved only as far as the next burst needs blocks.
//!
//! A page that is overwritten or deleted before its block is needed is never copied, and costs no native page. Invariant: as
//! many blocks are to be spare as the greatest burst of late took, and half as many again, and never fewer than a part of all.

/// Of the blocks, one in so many is to be spare, however small bursts are.
const SPARE_PART: u64 = 8;
/// Hundredths of the greatest burst for which there is to be room.
const BURST_HUNDREDTHS: u64 = 150;
/// The greatest burst is forgotten by one part in so many with each one after it.
const FORGOTTEN_PART: u64 = 128;

/// How large bursts are, in pages of callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    pages: u64,
    greatest_pages: u64,
}

impl Bursts {
    /// Hears of a page of the burst under way.
    pub fn count_page(&mut self) {
        self.pages = self.pages.saturating_add(1);
    }

    /// Hears that it is over.
    pub fn end(&mut self) {
        let faded_pages = self.greatest_pages - self.greatest_pages / FORGOTTEN_PART;
        self.greatest_pages = self.pages.max(faded_pages);
        self.pages = 0;
    }

    /// SLC blocks that the next one may take, where each takes so many pages.
    pub fn burst_blocks(self, slc_block_pages: u32) -> u64 {
        let burst_pages = self.greatest_pages.max(self.pages) * BURST_HUNDREDTHS / 100;
        burst_pages.div_ceil(u64::from(slc_block_pages.max(1)))
    }

    /// Blocks to be spare for it, of so many.
    pub fn spare_blocks(self, slc_block_pages: u32, blocks: u64) -> u64 {
        self.burst_blocks(slc_block_pages).max(blocks / SPARE_PART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bursts: impl Iterator<Item = u64>) -> Bursts {
        let mut seen = Bursts::default();
        for pages in bursts {
            (0..pages).for_each(|_| seen.count_page());
            seen.end();
        }
        seen
    }

    #[test]
    fn room_is_kept_for_the_greatest_burst_of_late_and_half_of_it() {
        assert_eq!(after([].into_iter()).spare_blocks(64, 80), 10);
        assert_eq!(after([640, 64].into_iter()).spare_blocks(64, 80), 15);
        let mut growing = after([64].into_iter());
        (0..1280).for_each(|_| growing.count_page());
        assert_eq!(growing.spare_blocks(64, 80), 30, "one that is under way counts");
    }

    #[test]
    fn a_burst_that_does_not_come_again_is_forgotten() {
        let greatest = |small| after([6400].into_iter().chain((0..small).map(|_| 10))).spare_blocks(64, 80);
        assert!((100..150).contains(&greatest(40)), "{}", greatest(40));
        assert_eq!(greatest(1000), 10);
    }
}
