//! Opening a volume: the first page of each block, all pages of map blocks, every translation page, and the data blocks that
//! were written since the oldest entry changed which no translation page has.
//!
//! A data page that is newer than the translation page of its sector's fragment is where the sector stands. Where a page of a map
//! block cannot be read and no power cut explains it, all data blocks are read, and entries are compared with tags.
//! Invariant: nothing is programmed before all this is known.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::translation::Shape;
use super::{Dftl, NOWHERE};
use crate::Result;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found, Outcome, Place, newer, still_reads};

/// What was read of a chip.
#[derive(Default)]
struct Survey {
    /// The latest translation page of each fragment.
    fragments: BTreeMap<u32, (u64, Place)>,
    /// The newest translation page.
    map: Option<(Place, Tag)>,
    /// The map block with the newest page, and that page's stamp.
    map_head: Option<(u64, u32)>,
    /// Data blocks by the stamp of their first page.
    data: Vec<(u64, u32)>,
    /// The newest page with a sector.
    newest: Option<(Place, Tag)>,
    /// Map blocks with a page that is lost.
    lost: Vec<u32>,
    /// Sectors that stand in a page newer than their translation page: its stamp and number.
    changed: BTreeMap<u32, (u64, u32)>,
}

impl Dftl {
    /// Reads what the mapping follows from until it reads the same twice, and goes on from there.
    pub(super) fn read_settled(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        // What was torn by a power cut may have been read for the first and last time.
        loop {
            let survey = self.survey(flash)?;
            if still_reads(flash, survey.newest)? && self.adopt(flash, &survey)? {
                return self.settle(flash, &survey);
            }
        }
    }

    fn survey(&mut self, flash: &mut Flash<impl Nand>) -> Result<Survey> {
        let mut survey = Survey::default();
        for block in flash.usable().collect::<Vec<_>>() {
            match self.first_tag(flash, block)? {
                Some(tag) if tag.kind == Kind::Map => self.survey_map(flash, block, &mut survey)?,
                Some(tag) => survey.data.push((tag.stamp, block)),
                None => {}
            }
        }
        survey.data.sort_unstable();
        let mut all_before = 0;
        if let Some((at, _)) = survey.map.filter(|_| survey.lost.is_empty()) {
            flash.read(at, &mut self.page, Cause::Metadata)?;
            all_before = Shape::head(&self.page);
        }
        let nexts = survey.data.iter().skip(1).map(|&(stamp, _)| stamp).chain([u64::MAX]);
        let blocks = survey.data.iter().zip(nexts).filter(|(_, next)| *next > all_before);
        for block in blocks.map(|((_, block), _)| *block).collect::<Vec<_>>() {
            self.survey_data(flash, block, &mut survey)?;
        }
        Ok(survey)
    }

    /// The first tag of a block that says what the block holds.
    fn first_tag(&mut self, flash: &mut Flash<impl Nand>, block: u32) -> Result<Option<Tag>> {
        for page in 0..flash.pages_per_block() {
            match flash.read(Place { block, page }, &mut [], Cause::Metadata)? {
                Found::Page(tag) if tag.kind != Kind::Filler => return Ok(Some(tag)),
                Found::Erased if page == 0 => return Ok(None),
                Found::Page(_) | Found::Erased | Found::Unreadable => {}
            }
        }
        Ok(None)
    }

    /// Reads all pages of a map block. A page that cannot be read was torn where no translation page follows it in the block:
    /// an opening uses up the page behind it.
    fn survey_map(&mut self, flash: &mut Flash<impl Nand>, block: u32, survey: &mut Survey) -> Result<()> {
        let mut is_torn = false;
        for page in 0..flash.pages_per_block() {
            let at = Place { block, page };
            let found = flash.read(at, &mut [], Cause::Metadata)?;
            let was_torn = core::mem::replace(&mut is_torn, found == Found::Unreadable);
            if was_torn && (is_torn || matches!(found, Found::Page(tag) if tag.kind == Kind::Map)) {
                survey.lost.push(block);
            }
            let Some(tag) = found.tag() else { continue };
            flash.saw_stamp(tag.stamp);
            survey.map_head = survey.map_head.max(Some((tag.stamp, block)));
            if tag.kind == Kind::Map && tag.logical < self.shape.fragments() {
                survey.map = newer(survey.map, Some((at, tag)));
                let latest = survey.fragments.entry(tag.logical).or_insert((tag.stamp, at));
                *latest = (*latest).max((tag.stamp, at));
            }
        }
        if is_torn {
            survey.lost.push(block);
        }
        survey.lost.dedup();
        Ok(())
    }

    /// Reads all pages of a data block.
    fn survey_data(&mut self, flash: &mut Flash<impl Nand>, block: u32, survey: &mut Survey) -> Result<()> {
        for page in 0..flash.pages_per_block() {
            let at = Place { block, page };
            let Some(tag) = flash.read(at, &mut [], Cause::Metadata)?.tag() else { continue };
            flash.saw_stamp(tag.stamp);
            if !is_sector(tag) || tag.logical >= self.shape.sectors {
                continue;
            }
            survey.newest = newer(survey.newest, Some((at, tag)));
            let of_map = survey.fragments.get(&(tag.logical / self.shape.entries)).map_or(0, |&(stamp, _)| stamp);
            let latest = survey.changed.get(&tag.logical).map_or(of_map, |&(stamp, _)| stamp);
            if tag.stamp > latest {
                survey.changed.insert(tag.logical, (tag.stamp, self.pages.pack(at)));
            }
        }
        Ok(())
    }

    /// Takes over what the survey found. Whether every translation page still reads as it did then.
    fn adopt(&mut self, flash: &mut Flash<impl Nand>, survey: &Survey) -> Result<bool> {
        self.pages.clear();
        self.cache.clear();
        self.map_blocks.clear();
        self.directory.fill(NOWHERE);
        let mut changed: Vec<_> = survey.changed.iter().collect();
        changed.sort_unstable_by_key(|(_, (stamp, _))| *stamp);
        for (&sector, &(stamp, packed)) in changed {
            self.pages.counts_now(packed);
            self.cache.change(sector, packed, stamp, false);
        }
        for (&fragment, &(stamp, at)) in &survey.fragments {
            let found = flash.read(at, &mut self.page, Cause::Metadata)?;
            if !matches!(found, Found::Page(tag) if tag.stamp == stamp && tag.kind == Kind::Map) {
                return Ok(false);
            }
            let packed = self.pages.pack(at);
            self.pages.counts_now(packed);
            self.map_blocks.insert(at.block);
            if let Some(slot) = self.directory.get_mut(fragment as usize) {
                *slot = packed;
            }
            for sector in self.shape.sectors_of(fragment) {
                let packed = self.shape.entry(&self.page, sector);
                if packed != NOWHERE && !survey.changed.contains_key(&sector) {
                    self.adopt_entry(flash, sector, packed, survey)?;
                }
            }
        }
        self.pages.adopt(flash);
        Ok(true)
    }

    /// Takes over an entry of a translation page, which may be out of date where a page of the map was lost.
    fn adopt_entry(&mut self, flash: &mut Flash<impl Nand>, sector: u32, packed: u32, survey: &Survey) -> Result<()> {
        let mut is_right = packed < flash.blocks() * flash.pages_per_block();
        if is_right && !survey.lost.is_empty() {
            is_right = !self.pages.counts(packed)
                && match flash.read(self.pages.place(packed), &mut [], Cause::Metadata)? {
                    Found::Page(tag) => is_sector(tag) && tag.logical == sector,
                    Found::Unreadable => true,
                    Found::Erased => false,
                };
        }
        if is_right {
            self.pages.counts_now(packed);
        } else {
            // It needs a stamp of its own, as every change does.
            let stamp = flash.next_stamp();
            flash.saw_stamp(stamp);
            self.cache.change(sector, NOWHERE, stamp, false);
        }
        Ok(())
    }

    /// Goes on in the blocks that were being written. The newest page is written anew: it may be torn and not show it.
    fn settle(&mut self, flash: &mut Flash<impl Nand>, survey: &Survey) -> Result<()> {
        // Blocks with a lost page are emptied and erased in the end, and neither cleaned nor taken before.
        survey.lost.iter().for_each(|&block| self.pages.set_aside(&mut flash.pool, block));
        if let Some(&(_, block)) = survey.data.last() {
            self.pages.reopen(flash, &mut self.data_head, block)?;
        }
        if let Some((_, block)) = survey.map_head.filter(|(_, block)| !survey.lost.contains(block)) {
            self.map_blocks.insert(block);
            self.pages.reopen(flash, &mut self.map_head, block)?;
        }
        if let Some((at, tag)) = newer(survey.map, survey.newest) {
            let packed = self.pages.pack(at);
            match self.pages.counts(packed) {
                true if tag.kind == Kind::Map => self.write_fragment(flash, tag.logical)?,
                true => self.move_page(flash, packed)?,
                false => {}
            }
        }
        self.mend(flash, survey)?;
        self.shrink(flash)?;
        self.give_up_failing(flash)
    }

    /// Writes all that changed to translation pages where one was lost, and has no lost page met again.
    fn mend(&mut self, flash: &mut Flash<impl Nand>, survey: &Survey) -> Result<()> {
        if survey.lost.is_empty() {
            return Ok(());
        }
        let fragments = self.cache.dirty_fragments(self.shape.entries);
        fragments.into_iter().try_for_each(|fragment| self.write_fragment(flash, fragment))?;
        for &block in &survey.lost {
            self.empty_block(flash, block)?;
            self.map_blocks.remove(&block);
            match flash.erase(block, Cause::Metadata)? {
                Outcome::Done => flash.pool.release(block),
                Outcome::Failed => flash.mark_bad(block)?,
            }
        }
        Ok(())
    }
}

/// Whether a page says where its sector stands.
pub(super) fn is_sector(tag: Tag) -> bool {
    tag.kind.is_payload() || tag.kind == Kind::Lost
}
