//! Opening a volume: the tag of every page is read, and the latest page of each sector counts.
//!
//! The newest page of all is read twice, and written anew: it may be torn and not show it. The log block that was written last is
//! written on, after its next page is used up. A data block that stands in several blocks, or in one with a torn page, is merged.
//! Invariant: nothing is programmed before the whole chip is known.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use nand::Nand;

use super::{Fast, Log};
use crate::Result;
use crate::flash::latest::{Scanned, scan_settled};
use crate::flash::tag::Kind;
use crate::flash::{Flash, Place, to_write_anew};
use crate::sector_map::SectorMap;

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

impl Fast {
    /// Reads the whole chip, and writes the newest page anew, if it counts.
    pub(super) fn read_all(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        let (data_blocks, pages) = (self.map.data_blocks(), self.pages_per_block);
        let found = scan_settled(
            flash,
            self.sectors(),
            |at, tag| is_logged(tag.kind) || tag.logical % pages == at.page,
            |found| {
                let holders = sort(found, data_blocks, pages).holders.into_iter();
                holders.flat_map(|(owner, blocks)| blocks.into_iter().map(move |block| (owner, block))).collect()
            },
        )?;
        self.adopt(flash, &found, &sort(&found, data_blocks, pages))?;
        let is_latest = |flash: &Flash<_>, sector, at| self.holder(flash, sector) == Some(at);
        match to_write_anew(flash, found.newest, is_latest)? {
            Some((sector, data)) => self.append_to_log(flash, sector, Kind::Log, &data),
            None => Ok(()),
        }
    }

    /// Makes map, index and log blocks of the latest pages, and merges what does not stand in one block.
    fn adopt(&mut self, flash: &mut Flash<impl Nand>, found: &Scanned, sorted: &Sorted) -> Result<()> {
        let used: BTreeSet<u32> = sorted.holders.values().flatten().chain(sorted.logs.keys()).copied().collect();
        flash.release_unused(|block| used.contains(&block));
        self.adopt_logs(flash, found, sorted)?;
        for (&owner, blocks) in &sorted.holders {
            let [block] = blocks.as_slice() else { continue };
            if !found.torn.contains(block) {
                self.map.set(owner, Some(*block));
            }
        }
        let pages = self.pages_per_block;
        for (&owner, blocks) in &sorted.holders {
            if self.map.get(owner).is_some() {
                continue;
            }
            let its = (owner * pages..).zip(found.of_block(owner, pages));
            self.index.extend(its.filter_map(|(sector, latest)| latest.map(|latest| (sector, latest.at))));
            self.merge(flash, owner)?;
            blocks.iter().for_each(|&block| flash.pool.release(block));
        }
        Ok(())
    }

    /// The log blocks, in the order in which they were written. The last one's next page may have been half programmed when the
    /// power went.
    fn adopt_logs(&mut self, flash: &mut Flash<impl Nand>, found: &Scanned, sorted: &Sorted) -> Result<()> {
        let pages = self.pages_per_block;
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
        let next = flash.end_of(last.block)?;
        if next < pages {
            flash.use_up(Place { block: last.block, page: next })?;
            last.sectors.truncate(next as usize + 1);
        }
        Ok(())
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
