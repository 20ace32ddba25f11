//! The pages of a file on each channel of its chip, and how even they are.
//!
//! Invariant: a chunk counts where it has a slot of its own; what a node holds, or is only reserved, stands on no channel.

use alloc::vec;
use alloc::vec::Vec;

use nand::Geometry;

use super::IndexEntry;
use crate::flash::shape::slot_bytes;

/// The pages of a file by channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelPages {
    geometry: Geometry,
    pages: Vec<u64>,
}

impl ChannelPages {
    /// No pages yet, on a chip of this shape.
    pub fn on(geometry: &Geometry) -> Self {
        Self { pages: vec![0; usize::from(geometry.channels.max(1))], geometry: geometry.clone() }
    }

    /// Counts the chunks that an entry of the index covers, if they have slots of their own: these stand in one block.
    pub fn count(&mut self, entry: &IndexEntry) {
        let (Some(first), None, "data") = (entry.slot, entry.node, entry.kind) else { return };
        let slots_per_page = self.geometry.page_bytes / slot_bytes(self.geometry.page_bytes).max(1);
        let slots_per_block = u64::from(self.geometry.pages_per_block) * u64::from(slots_per_page);
        let block = (first / slots_per_block.max(1)) as u32;
        if let Some(pages) = self.pages.get_mut(self.geometry.channel_of(block) as usize) {
            *pages += entry.count;
        }
    }

    /// The pages on each channel.
    pub fn by_channel(&self) -> &[u64] {
        &self.pages
    }

    /// The greatest count less the least.
    pub fn difference(&self) -> u64 {
        self.most() - self.pages.iter().min().copied().unwrap_or(0)
    }

    /// The imbalance rate.
    pub fn imbalance(&self) -> f64 {
        imbalance_rate(&self.pages)
    }

    fn most(&self) -> u64 {
        self.pages.iter().max().copied().unwrap_or(0)
    }
}

/// The imbalance rate of a file's pages by channel (Qiu et al., Eq. 1): the greatest count less the least, over the pages that
/// the fullest channel would hold if all were spread evenly. 0 where there are fewer pages than channels, and no channel holds
/// two of them.
pub fn imbalance_rate(pages_by_channel: &[u64]) -> f64 {
    let (total, channels) = (pages_by_channel.iter().sum::<u64>(), pages_by_channel.len() as u64);
    let most = pages_by_channel.iter().max().copied().unwrap_or(0);
    let least = pages_by_channel.iter().min().copied().unwrap_or(0);
    if total < channels && most < 2 {
        return 0.0;
    }
    (most - least) as f64 / total.div_ceil(channels.max(1)).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_channels(pages: [u64; 8]) -> ChannelPages {
        let geometry = Geometry {
            channels: 8,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks: 64,
            pages_per_block: 16,
            page_bytes: 8192,
            spare_bytes: 128,
            spare_ecc: true,
            bits_per_cell: 1,
        };
        let mut found = ChannelPages::on(&geometry);
        for (block, count) in (16u64..).zip(pages) {
            let entry = |kind| IndexEntry { ino: 2, kind, offset: 0, count, slot: Some(block * 32), node: None };
            found.count(&entry("data"));
            found.count(&entry("inode"));
            found.count(&IndexEntry { node: Some((0, 64)), ..entry("data") });
            found.count(&IndexEntry { slot: None, ..entry("data") });
        }
        assert_eq!(found.by_channel(), pages);
        found
    }

    #[test]
    fn the_imbalance_of_a_file_is_that_of_the_papers_equation() {
        let even = [2, 2, 2, 2, 1, 1, 1, 1];
        // Its Fig. 1: 14 pages, of which a channel holds 3 and others 1.
        let of_figure = [3, 1, 1, 1, 2, 2, 2, 2];
        let few = [1, 1, 1, 0, 0, 0, 0, 0];
        let two_of_few = [2, 1, 0, 0, 0, 0, 0, 0];
        for (pages, rate) in
            [(even, 0.5), (of_figure, 1.0), (few, 0.0), (two_of_few, 2.0), ([4; 8], 0.0), ([0; 8], 0.0)]
        {
            assert_eq!(on_channels(pages).imbalance(), rate, "{pages:?}");
        }
    }
}
