//! Opening a volume: the tag of every page is read; the blocks of a data block in which the latest page of any place stands
//! are its chain.
//!
//! The newest page of all is read twice, and written anew: it may be torn and not show it. The page that was being
//! programmed may be any that reads as erased, so that blocks are written no further. Invariant: nothing is programmed
//! before the whole chip is known.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::{ABSENT, Chain, LINKS_MAX, NOWHERE, Replacement};
use crate::device::Layer;
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors};
use crate::flash::latest::{Scanned, scan};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Place, still_reads};
use crate::settings::Options;
use crate::{BlockDevice, Error, Result, Scheme};

impl<N: Nand> Replacement<N> {
    /// Opens the volume on a chip.
    pub fn open(chip: N, options: Options) -> Result<Self> {
        let (flash, _, record) = Anchors::open(chip, options.payload)?;
        if record.scheme != Scheme::Replacement.code() {
            return Err(Error::NoVolume("it is of another scheme"));
        }
        let mut device = Self::empty(flash, record.data_blocks);
        let mut void = Vec::new();
        loop {
            let (sectors, pages) = (device.sectors() as usize, device.flash.pages_per_block());
            let found = scan(&mut device.flash, sectors, &void, |at, tag| tag.logical % pages == at.page)?;
            if !still_reads(&mut device.flash, found.newest)? {
                continue;
            }
            device.adopt(&found);
            let chained =
                device.chains.iter().flat_map(|(&owner, chain)| chain.blocks.iter().map(move |&at| (owner, at)));
            let cut = chained.filter(|&(owner, block)| found.is_cut_merge(owner, block, pages)).map(|(_, block)| block);
            let known = void.len();
            void.extend(cut);
            if void.len() == known {
                device.write_anew(found.newest)?;
                return Ok(device);
            }
        }
    }

    /// Makes the map and the chains of the latest pages of all sectors. A block with a torn page has a chain even if it is
    /// alone, since the page is to be passed over.
    fn adopt(&mut self, found: &Scanned) {
        self.chains.clear();
        self.pool = Default::default();
        let mut used: Vec<u32> = Vec::new();
        let pages = self.flash.pages_per_block();
        for (slot, owner) in self.map.iter_mut().zip(0..) {
            let holders = found.of_block(owner, pages).iter().map(|latest| latest.map(|latest| latest.at.block));
            let mut blocks: Vec<u32> = holders.clone().flatten().collect();
            blocks.sort_unstable();
            blocks.dedup();
            blocks.truncate(LINKS_MAX);
            used.extend(&blocks);
            *slot = blocks.first().copied().unwrap_or(NOWHERE);
            if blocks.len() > 1 || blocks.iter().any(|block| found.torn.contains(block)) {
                let link = |holder: Option<u32>| blocks.iter().position(|&other| Some(other) == holder);
                let latest = holders.map(|holder| link(holder).map_or(ABSENT, |at| at as u8)).collect();
                self.chains.insert(owner, Chain { blocks, latest });
            }
        }
        used.sort_unstable();
        let free = (ANCHOR_BLOCKS..self.flash.blocks()).filter(|block| used.binary_search(block).is_err());
        for block in free.filter(|&block| !self.flash.is_bad(block)).collect::<Vec<_>>() {
            self.pool.release(block);
        }
    }

    /// The newest page is written anew, if it counts.
    fn write_anew(&mut self, newest: Option<(Place, Tag)>) -> Result<()> {
        let newest =
            newest.filter(|(at, tag)| tag.kind.is_payload() && self.holder(u64::from(tag.logical)) == Some(*at));
        let Some((at, tag)) = newest else { return Ok(()) };
        let mut data = alloc::vec![0; self.flash.page_bytes()];
        match self.flash.read(at, &mut data, Cause::Metadata)?.tag() {
            Some(_) => self.change(|device| device.write_sector(u64::from(tag.logical), Kind::Data, &data)),
            None => Ok(()),
        }
    }
}
