//! Opening a volume: the tag of every page is read, and the latest page of each sector counts.
//!
//! The newest page of all is read twice, and written anew: it may be torn and not show it. The block in which it stands is
//! written on, so that power cuts in a row take no block each. Invariant: nothing is programmed before the whole chip is known.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::PageMap;
use super::trims::ranges;
use crate::Result;
use crate::flash::pages::NOWHERE;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Place, newer, still_reads, to_write_anew};

/// The latest page of a sector.
type Latest = (u64, u32);

impl PageMap {
    /// Reads the whole chip until the newest page reads as it did, and goes on in the block of that.
    pub(super) fn read_settled(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        let mut newest = self.read_all(flash)?;
        while !still_reads(flash, newest)? {
            newest = self.read_all(flash)?;
        }
        if let Some((at, _)) = newest {
            self.pages.reopen(flash, &mut self.head, at.block)?;
        }
        let is_latest = |_: &Flash<_>, sector, at| self.map.get(sector as usize) == Some(&self.pages.pack(at));
        match to_write_anew(flash, newest, is_latest)? {
            Some((sector, data)) => self.write_sector(flash, sector, &data),
            None => Ok(()),
        }
    }

    /// Reads the whole chip. The newest page.
    fn read_all(&mut self, flash: &mut Flash<impl Nand>) -> Result<Option<(Place, Tag)>> {
        let mut latest: Vec<Latest> = alloc::vec![(0, NOWHERE); self.map.len()];
        let mut newest: Option<(Place, Tag)> = None;
        let mut trims = Vec::new();
        for block in flash.usable().collect::<Vec<_>>() {
            for page in 0..flash.pages_per_block() {
                let at = Place { block, page };
                let Some(tag) = flash.read(at, &mut [], Cause::Metadata)?.tag() else { continue };
                flash.saw_stamp(tag.stamp);
                newest = newer(newest, Some((at, tag)));
                let packed = self.pages.pack(at);
                let its = match tag.kind {
                    Kind::Trim => {
                        trims.push(packed);
                        ranges(flash.page(), tag.logical, latest.len() as u32)
                    }
                    Kind::Data | Kind::Merged | Kind::Lost => alloc::vec![(tag.logical, 1)],
                    _ => continue,
                };
                for sector in its.into_iter().flat_map(|(first, count)| first..first.saturating_add(count)) {
                    if let Some(slot) = latest.get_mut(sector as usize).filter(|slot| slot.0 < tag.stamp) {
                        *slot = (tag.stamp, packed);
                    }
                }
            }
        }
        self.adopt(flash, &latest, &trims);
        Ok(newest)
    }

    /// Counts what the latest pages of all sectors come to.
    fn adopt(&mut self, flash: &mut Flash<impl Nand>, latest: &[Latest], trims: &[u32]) {
        self.trims.clear();
        self.pages.clear();
        self.written.fill(0);
        for (slot, &(_, packed)) in self.map.iter_mut().zip(latest) {
            *slot = packed;
        }
        let mut counting: Vec<Latest> = latest.iter().copied().filter(|&(_, packed)| packed != NOWHERE).collect();
        for &(_, packed) in &counting {
            // The chip was read in the order of its pages.
            if trims.binary_search(&packed).is_ok() {
                *self.trims.entry(packed).or_insert(0) += 1;
            }
        }
        counting.sort_unstable();
        counting.dedup();
        for (stamp, packed) in counting {
            self.pages.counts_now(packed);
            self.written_at(packed, stamp);
        }
        self.pages.adopt(flash);
    }
}
