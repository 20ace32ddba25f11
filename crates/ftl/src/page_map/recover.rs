//! Opening a volume: the tag of every page is read, and the latest page of each sector counts.
//!
//! The newest page of all is read twice, and written anew: it may be torn and not show it. The block in which it stands is
//! written on, so that power cuts in a row take no block each. Invariant: nothing is programmed before the whole chip is known.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::trims::ranges;
use super::{NOWHERE, PageMap, cleaning};
use crate::device::Layer;
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Found, Place};
use crate::settings::Options;
use crate::{Error, Result, Scheme};

/// The latest page of a sector.
type Latest = (u64, u32);

impl<N: Nand> PageMap<N> {
    /// Opens the volume on a chip.
    pub fn open(chip: N, options: Options) -> Result<Self> {
        let (flash, _, record) = Anchors::open(chip, options.payload)?;
        let scheme = Scheme::from_code(record.scheme).ok_or(Error::NoVolume("its scheme is not known"))?;
        let mut device = Self::empty(flash, cleaning(scheme)?, record.data_blocks);
        let mut newest = device.read_all()?;
        while !crate::flash::still_reads(&mut device.flash, newest)? {
            newest = device.read_all()?;
        }
        if let Some((at, _)) = newest {
            device.pages.reopen(&mut device.flash, &mut device.head, at.block)?;
        }
        device.write_anew(newest)?;
        Ok(device)
    }

    /// Reads the whole chip. The newest page.
    fn read_all(&mut self) -> Result<Option<(Place, Tag)>> {
        let mut latest: Vec<Latest> = alloc::vec![(0, NOWHERE); self.map.len()];
        let mut newest: Option<(Place, Tag)> = None;
        let mut trims = Vec::new();
        for block in (ANCHOR_BLOCKS..self.flash.blocks()).filter(|&block| !self.flash.is_bad(block)).collect::<Vec<_>>()
        {
            for page in 0..self.flash.pages_per_block() {
                let at = Place { block, page };
                let Some(tag) = self.flash.read(at, &mut [], Cause::Metadata)?.tag() else { continue };
                self.flash.saw_stamp(tag.stamp);
                newest = crate::flash::newer(newest, Some((at, tag)));
                let packed = self.pages.pack(at);
                let its = match tag.kind {
                    Kind::Trim => {
                        trims.push(packed);
                        ranges(self.flash.page(), tag.logical)
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
        self.adopt(&latest, &trims);
        Ok(newest)
    }

    /// Counts what the latest pages of all sectors come to.
    fn adopt(&mut self, latest: &[Latest], trims: &[u32]) {
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
        self.pages.adopt(&self.flash);
    }

    /// The newest page is written anew, if it counts.
    fn write_anew(&mut self, newest: Option<(Place, Tag)>) -> Result<()> {
        let Some((at, tag)) = newest.filter(|(_, tag)| tag.kind.is_payload()) else { return Ok(()) };
        if self.map.get(tag.logical as usize) != Some(&self.pages.pack(at)) {
            return Ok(());
        }
        let mut data = alloc::vec![0; self.flash.page_bytes()];
        match self.flash.read(at, &mut data, Cause::Metadata)? {
            Found::Page(_) => self.change(|device| device.write_sector(u64::from(tag.logical), &data)),
            Found::Erased | Found::Unreadable => Ok(()),
        }
    }
}
