//! Opening a volume: the tag of every page is read; the blocks of a data block in which the latest page of any place stands
//! are its chain.
//!
//! The newest page of all is read twice, and written anew: it may be torn and not show it. The page that was being
//! programmed may be any that reads as erased, so that blocks are written no further. Invariant: nothing is programmed
//! before the whole chip is known.

use alloc::vec::Vec;

use nand::Nand;

use super::{ABSENT, Chain, LINKS_MAX, Replacement};
use crate::Result;
use crate::flash::latest::{Scanned, scan_settled};
use crate::flash::tag::Kind;
use crate::flash::{Flash, to_write_anew};
use crate::sector_map::SectorMap;

impl Replacement {
    /// Reads the whole chip, and writes the newest page anew, if it counts.
    pub(super) fn read_all(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        let (sectors, pages) = (self.sectors(), self.pages_per_block);
        let found = scan_settled(
            flash,
            sectors,
            |at, tag| tag.logical % pages == at.page,
            |found| {
                self.adopt(found);
                let chains = self.chains.iter();
                chains.flat_map(|(&owner, chain)| chain.blocks.iter().map(move |&block| (owner, block))).collect()
            },
        )?;
        let used = self.used();
        flash.release_unused(|block| used.binary_search(&block).is_ok());
        let is_latest = |flash: &Flash<_>, sector, at| self.holder(flash, sector) == Some(at);
        match to_write_anew(flash, found.newest, is_latest)? {
            Some((sector, data)) => self.write_sector(flash, sector, Kind::Data, &data),
            None => Ok(()),
        }
    }

    /// Makes the map and the chains of the latest pages of all sectors. A block with a torn page has a chain even if it is
    /// alone, since the page is to be passed over.
    fn adopt(&mut self, found: &Scanned) {
        self.chains.clear();
        for owner in 0..self.map.data_blocks() {
            let latest = found.of_block(owner, self.pages_per_block).iter();
            let holders = latest.map(|latest| latest.map(|latest| latest.at.block));
            let mut blocks: Vec<u32> = holders.clone().flatten().collect();
            blocks.sort_unstable();
            blocks.dedup();
            blocks.truncate(LINKS_MAX);
            self.map.set(owner, blocks.first().copied());
            if blocks.len() > 1 || blocks.iter().any(|block| found.torn.contains(block)) {
                let link = |holder: Option<u32>| blocks.iter().position(|&other| Some(other) == holder);
                let latest = holders.map(|holder| link(holder).map_or(ABSENT, |at| at as u8)).collect();
                self.chains.insert(owner, Chain { blocks, latest });
            }
        }
    }

    /// Every block in which a data block stands, in ascending order.
    fn used(&self) -> Vec<u32> {
        let alone = self.map.iter().map(|(_, block)| block);
        let mut used: Vec<u32> = alone.chain(self.chains.values().flat_map(|chain| chain.blocks.clone())).collect();
        used.sort_unstable();
        used
    }
}
