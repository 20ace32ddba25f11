//! Opening a volume: the tag of every page is read; the blocks of a data block in which the latest page of any place stands
//! are its chain.
//!
//! The newest page of all is read twice, and written anew: it may be torn and not show it. The page that was being
//! programmed may be any that reads as erased, so that blocks are written no further. Invariant: nothing is programmed
//! before the whole chip is known.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::{ABSENT, COPIED, Chain, LINKS_MAX, NOWHERE, Replacement};
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found, Place, newer, still_reads};
use crate::settings::Options;
use crate::{Error, Result, Scheme};

/// The latest page of a sector: its stamp, and the block.
type Latest = (u64, u32);

/// What was read of a chip.
struct Scanned {
    /// The latest page of each sector.
    latest: Vec<Latest>,
    newest: Option<(Place, Tag)>,
    /// Blocks that a merge began.
    copied: BTreeMap<u32, Copied>,
}

/// The stamp of a block's first page, and the place after its last.
struct Copied {
    begun: u64,
    end: u32,
}

impl<N: Nand> Replacement<N> {
    /// Opens the volume on a chip.
    pub fn open(chip: N, options: Options) -> Result<Self> {
        let mut flash = Flash::new(chip, 0, options.payload)?;
        let record = Anchors::find(&mut flash)?.1;
        flash.set_volume(record.volume);
        if record.scheme != Scheme::Replacement.code() {
            return Err(Error::NoVolume("it is of another scheme"));
        }
        if record.data_blocks == 0 || record.data_blocks >= flash.blocks() {
            return Err(Error::NoVolume("the anchor's parameters do not fit the chip"));
        }
        let mut device = Self::empty(flash, record.data_blocks);
        let mut void = Vec::new();
        loop {
            let found = device.read_all(&void)?;
            if !still_reads(&mut device.flash, found.newest)? {
                continue;
            }
            let cut = device.cut_merges(&found);
            if cut.is_empty() {
                device.write_anew(found.newest)?;
                return Ok(device);
            }
            void.extend(cut);
        }
    }

    /// Blocks to which a merge was copying when the power went: pages are missing at their end that were there before they were
    /// begun, so that every block which they are copied from is still there. Without them, power cuts in a row would take a free
    /// block each. One page that is missing may be lost, and proves nothing.
    fn cut_merges(&self, found: &Scanned) -> Vec<u32> {
        let pages = self.flash.pages_per_block() as usize;
        let is_cut = |owner: u32, block: u32| {
            let Some(&Copied { begun, end }) = found.copied.get(&block) else { return false };
            let its = found.latest.chunks(pages).nth(owner as usize).unwrap_or_default();
            let is_older = |&(stamp, holder): &Latest| holder != block && holder != NOWHERE && stamp < begun;
            its.iter().rposition(is_older).is_some_and(|last| last > end as usize)
        };
        let blocks =
            self.chains.iter().flat_map(|(&owner, chain)| chain.blocks.iter().map(move |&block| (owner, block)));
        blocks.filter(|&(owner, block)| is_cut(owner, block)).map(|(_, block)| block).collect()
    }

    /// Reads the whole chip, but for blocks that are void.
    fn read_all(&mut self, void: &[u32]) -> Result<Scanned> {
        let pages = self.flash.pages_per_block();
        let mut latest: Vec<Latest> = alloc::vec![(0, NOWHERE); self.map.len() * pages as usize];
        let (mut newest, mut torn, mut copied) = (None, Vec::new(), BTreeMap::new());
        for block in ANCHOR_BLOCKS..self.flash.blocks() {
            if self.flash.is_bad(block) || void.contains(&block) {
                continue;
            }
            let mut is_first = true;
            for page in 0..pages {
                let at = Place { block, page };
                let found = self.flash.read(at, &mut [], Cause::Metadata)?;
                if found == Found::Unreadable && torn.last() != Some(&block) {
                    torn.push(block);
                }
                let Some(tag) = found.tag() else { continue };
                self.flash.saw_stamp(tag.stamp);
                if core::mem::take(&mut is_first) && tag.extra == COPIED {
                    copied.insert(block, Copied { begun: tag.stamp, end: page });
                }
                copied.entry(block).and_modify(|copied| copied.end = page + 1);
                newest = newer(newest, Some((at, tag)));
                let is_sector = matches!(tag.kind, Kind::Data | Kind::Merged | Kind::Hole | Kind::Lost);
                let slot = latest.get_mut(tag.logical as usize).filter(|slot| is_sector && slot.0 < tag.stamp);
                if let Some(slot) = slot.filter(|_| tag.logical % pages == page) {
                    *slot = (tag.stamp, block);
                }
            }
        }
        self.adopt(&latest, &torn, pages as usize);
        Ok(Scanned { latest, newest, copied })
    }

    /// Makes the map and the chains of the latest pages of all sectors. A block with a torn page has a chain even if it is
    /// alone, since the page is to be passed over.
    fn adopt(&mut self, latest: &[Latest], torn: &[u32], pages: usize) {
        self.chains.clear();
        self.pool = Default::default();
        let mut used: Vec<u32> = Vec::new();
        for ((slot, its), owner) in self.map.iter_mut().zip(latest.chunks(pages)).zip(0..) {
            let mut blocks: Vec<u32> = its.iter().map(|&(_, block)| block).filter(|&block| block != NOWHERE).collect();
            blocks.sort_unstable();
            blocks.dedup();
            blocks.truncate(LINKS_MAX);
            used.extend(&blocks);
            *slot = blocks.first().copied().unwrap_or(NOWHERE);
            if blocks.len() > 1 || blocks.iter().any(|block| torn.contains(block)) {
                let place = |&(_, block): &Latest| blocks.iter().position(|&other| other == block);
                let latest = its.iter().map(|its| place(its).map_or(ABSENT, |at| at as u8)).collect();
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
