//! Opening a volume: the tag of every page is read, and the latest page of each sector counts.
//!
//! The newest page of all is read twice, and written anew: it may be torn and not show it. The log block that was written last is
//! written on, after its next page is used up. A data block that stands in several blocks, or in one with a torn page, is merged.
//! Invariant: nothing is programmed before the whole chip is known.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::{Fast, Log, NOWHERE};
use crate::device::Layer;
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors};
use crate::flash::latest::{Scanned, scan};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Found, Place, still_reads};
use crate::settings::Options;
use crate::{BlockDevice, Error, Result, Scheme};

/// The blocks of a volume that opens.
#[derive(Default)]
struct Sorted {
    /// For data blocks, the blocks in which their latest pages stand, log blocks left out.
    holders: BTreeMap<u32, Vec<u32>>,
    /// Log blocks, with the stamp of the last page that counts.
    logs: BTreeMap<u32, u64>,
}

/// Whether a page stands in a log block.
fn is_logged(kind: Kind) -> bool {
    matches!(kind, Kind::Log | Kind::Trim)
}

impl<N: Nand> Fast<N> {
    /// Opens the volume on a chip.
    pub fn open(chip: N, options: Options) -> Result<Self> {
        let (flash, _, record) = Anchors::open(chip, options.payload)?;
        if record.scheme != Scheme::Fast.code() {
            return Err(Error::NoVolume("it is of another scheme"));
        }
        if record.logs == 0 {
            return Err(Error::NoVolume("the anchor's parameters do not fit the chip"));
        }
        let mut device = Self::empty(flash, record.data_blocks, record.logs);
        let mut void = Vec::new();
        loop {
            let (sectors, pages) = (device.sectors() as usize, device.flash.pages_per_block());
            let may_stand = |at: Place, tag: &Tag| is_logged(tag.kind) || tag.logical % pages == at.page;
            let found = scan(&mut device.flash, sectors, &void, may_stand)?;
            if !still_reads(&mut device.flash, found.newest)? {
                continue;
            }
            let sorted = sort(&found, device.map.len() as u32, pages);
            let held =
                sorted.holders.iter().flat_map(|(&owner, blocks)| blocks.iter().map(move |&block| (owner, block)));
            let cut = held.filter(|&(owner, block)| found.is_cut_merge(owner, block, pages)).map(|(_, block)| block);
            let known = void.len();
            void.extend(cut);
            if void.len() == known {
                device.adopt(&found, &sorted)?;
                device.write_anew(found.newest)?;
                return Ok(device);
            }
        }
    }

    /// Makes map, index and log blocks of the latest pages, and merges what does not stand in one block.
    fn adopt(&mut self, found: &Scanned, sorted: &Sorted) -> Result<()> {
        let pages = self.flash.pages_per_block();
        let used: BTreeSet<u32> = sorted.holders.values().flatten().chain(sorted.logs.keys()).copied().collect();
        for block in (ANCHOR_BLOCKS..self.flash.blocks()).filter(|block| !used.contains(block)) {
            if !self.flash.is_bad(block) {
                self.pool.release(block);
            }
        }
        self.adopt_logs(found, sorted)?;
        for (&owner, blocks) in &sorted.holders {
            let [block] = blocks.as_slice() else { continue };
            if let Some(slot) = self.map.get_mut(owner as usize).filter(|_| !found.torn.contains(block)) {
                *slot = *block;
            }
        }
        for (&owner, blocks) in &sorted.holders {
            if self.map.get(owner as usize).is_some_and(|&block| block != NOWHERE) {
                continue;
            }
            let its = (owner * pages..).zip(found.of_block(owner, pages));
            self.index.extend(its.filter_map(|(sector, latest)| latest.map(|latest| (sector, latest.at))));
            self.change(|device| device.merge(owner))?;
            blocks.iter().for_each(|&block| self.pool.release(block));
        }
        Ok(())
    }

    /// The log blocks, in the order in which they were written. The last one's next page may have been half programmed when the
    /// power went.
    fn adopt_logs(&mut self, found: &Scanned, sorted: &Sorted) -> Result<()> {
        let pages = self.flash.pages_per_block();
        let mut blocks: Vec<(u64, u32)> = sorted.logs.iter().map(|(&block, &stamp)| (stamp, block)).collect();
        blocks.sort_unstable();
        let mut logs: BTreeMap<u32, Log> = BTreeMap::new();
        for (sector, latest) in (0..).zip(found.all()) {
            let Some(latest) = latest.filter(|latest| is_logged(latest.kind)) else { continue };
            let block = latest.at.block;
            let log = logs.entry(block).or_insert_with(|| Log { block, sectors: alloc::vec![None; pages as usize] });
            log.sectors.get_mut(latest.at.page as usize).into_iter().for_each(|slot| *slot = Some(sector));
            self.index.insert(sector, latest.at);
        }
        self.logs = blocks.iter().filter_map(|(_, block)| logs.remove(block)).collect();
        let Some(last) = self.logs.last_mut() else { return Ok(()) };
        let mut next = pages;
        while next > 0
            && self.flash.read(Place { block: last.block, page: next - 1 }, &mut [], Cause::Metadata)? == Found::Erased
        {
            next -= 1;
        }
        if next < pages {
            self.flash.use_up(Place { block: last.block, page: next })?;
            last.sectors.truncate(next as usize + 1);
        }
        Ok(())
    }

    /// The newest page is written anew, if it counts.
    fn write_anew(&mut self, newest: Option<(Place, Tag)>) -> Result<()> {
        let newest = newest.filter(|(at, tag)| tag.kind.is_payload() && self.holder(tag.logical) == Some(*at));
        let Some((at, tag)) = newest else { return Ok(()) };
        let mut data = alloc::vec![0; self.flash.page_bytes()];
        match self.flash.read(at, &mut data, Cause::Metadata)?.tag() {
            Some(_) => self.change(|device| device.append_to_log(tag.logical, Kind::Log, &data)),
            None => Ok(()),
        }
    }
}

/// Tells log blocks from others, by the kind of the pages that count in them.
fn sort(found: &Scanned, data_blocks: u32, pages_per_block: u32) -> Sorted {
    let mut sorted = Sorted::default();
    for owner in 0..data_blocks {
        for latest in found.of_block(owner, pages_per_block).iter().flatten() {
            let block = latest.at.block;
            if is_logged(latest.kind) {
                let last = sorted.logs.entry(block).or_insert(0);
                *last = latest.stamp.max(*last);
                continue;
            }
            let blocks = sorted.holders.entry(owner).or_default();
            if !blocks.contains(&block) {
                blocks.push(block);
            }
        }
    }
    sorted
}
