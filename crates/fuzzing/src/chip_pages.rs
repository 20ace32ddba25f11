//! The pages of a chip, changed behind the back of what stands on it: bytes, copies, blanks, pages that cannot be read, bad
//! blocks. What mends checksums is left to those who know them.
//!
//! Invariant: an edit that finds nothing to change changes nothing; what was not changed reads as before.

use std::collections::{BTreeMap, BTreeSet};

use emulator::{Chip, Corruption};
use nand::{Cause, CellMode, Nand};

use crate::record::Record;

/// A page: its bytes and its spare bytes.
pub(crate) type Page = (Vec<u8>, Vec<u8>);

/// A programmed page: its block and its unit.
pub(crate) type PagePlace = (u32, usize);

/// A change of pages or blocks that mends no checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PageEdit {
    /// Bytes of a page or its spare bytes.
    Bytes {
        page: u16,
        offset: u16,
        bytes: [u8; 8],
        count: u8,
    },
    CopyPage {
        from: u16,
        to: u16,
    },
    CopyBlock {
        from: u16,
        to: u16,
    },
    Blank {
        page: u16,
    },
    EraseBlock {
        block: u16,
    },
    Unreadable {
        page: u16,
        once_more: bool,
    },
    BadBlock {
        block: u16,
    },
}

impl PageEdit {
    /// One of eight forms: that of the record's first byte.
    pub(crate) fn decode(record: &Record) -> Self {
        let (first, second, form) = (record.u16(2), record.u16(4), record.u8(1));
        match record.u8(0) % 8 {
            0 => Self::Bytes { page: first, offset: second, bytes: record.tail(), count: form % 8 + 1 },
            1 => Self::CopyPage { from: first, to: second },
            2 | 3 => Self::CopyBlock { from: first, to: second },
            4 => Self::Blank { page: first },
            5 => Self::EraseBlock { block: first },
            6 => Self::Unreadable { page: first, once_more: form % 2 == 1 },
            _ => Self::BadBlock { block: first },
        }
    }
}

/// The pages of a chip.
pub(crate) struct ChipPages {
    chip: Chip,
    /// Of each block its pages in the order of units; `None` where nothing is programmed.
    blocks: BTreeMap<u32, (CellMode, Vec<Option<Page>>)>,
    changed: BTreeSet<u32>,
    programmed: Vec<PagePlace>,
    late: Vec<PageEdit>,
}

impl ChipPages {
    pub(crate) fn of(mut chip: Chip) -> Self {
        let geometry = chip.geometry().clone();
        let mut blocks = BTreeMap::new();
        for block in 0..geometry.blocks {
            let mode = chip.block_mode(block).unwrap_or(CellMode::Slc);
            let pages: Vec<u32> = (0..).map_while(|unit| chip.layout(mode).page(unit)).collect();
            let read = |page| {
                let (mut data, mut spare) =
                    (vec![0; geometry.page_bytes as usize], vec![0; geometry.spare_bytes as usize]);
                chip.read(block, page, 0, &mut data, &mut spare, Cause::Host).ok()?;
                data.iter().chain(&spare).any(|&byte| byte != 0xff).then_some((data, spare))
            };
            blocks.insert(block, (mode, pages.into_iter().map(read).collect::<Vec<Option<Page>>>()));
        }
        let of_block = |(&block, (_, pages)): (&u32, &(CellMode, Vec<Option<Page>>))| {
            let units = pages.iter().enumerate().filter(|(_, page)| page.is_some()).map(|(unit, _)| unit);
            units.map(|unit| (block, unit)).collect::<Vec<PagePlace>>()
        };
        let programmed = blocks.iter().flat_map(of_block).collect();
        Self { chip, blocks, changed: BTreeSet::new(), programmed, late: Vec::new() }
    }

    /// The programmed pages.
    pub(crate) fn programmed(&self) -> &[PagePlace] {
        &self.programmed
    }

    /// A programmed page of some number, round and round.
    pub(crate) fn numbered(places: &[PagePlace], number: u16) -> Option<PagePlace> {
        places.get(usize::from(number) % places.len().max(1)).copied()
    }

    fn block(&self, number: u16) -> u32 {
        u32::from(number) % self.chip.geometry().blocks
    }

    pub(crate) fn page(&self, (block, unit): PagePlace) -> Option<&Page> {
        self.blocks.get(&block)?.1.get(unit)?.as_ref()
    }

    /// A page, to be changed.
    pub(crate) fn page_mut(&mut self, (block, unit): PagePlace) -> Option<&mut Option<Page>> {
        self.changed.insert(block);
        self.blocks.get_mut(&block)?.1.get_mut(unit)
    }

    pub(crate) fn edit(&mut self, edit: &PageEdit) {
        match *edit {
            PageEdit::Bytes { page, offset, bytes, count } => {
                let place = Self::numbered(&self.programmed, page);
                if let Some(Some((data, spare))) = place.and_then(|place| self.page_mut(place)) {
                    let offset = usize::from(offset) % (data.len() + spare.len());
                    let all = data.iter_mut().chain(spare).skip(offset).take(count.into());
                    all.zip(bytes).for_each(|(to, from)| *to = from);
                }
            }
            PageEdit::CopyPage { from, to } => {
                let numbered = |number| Self::numbered(&self.programmed, number);
                let (Some(from), Some(to)) = (numbered(from), numbered(to)) else { return };
                let copied = self.page(from).cloned();
                if let (Some(copied), Some(to)) = (copied, self.page_mut(to)) {
                    *to = Some(copied);
                }
            }
            PageEdit::CopyBlock { from, to } => {
                let (from, to) = (self.block(from), self.block(to));
                if let Some(copied) = self.blocks.get(&from).cloned() {
                    self.blocks.insert(to, copied);
                    self.changed.insert(to);
                }
            }
            PageEdit::Blank { page } => {
                let place = Self::numbered(&self.programmed, page);
                if let Some(page) = place.and_then(|place| self.page_mut(place)) {
                    *page = None;
                }
            }
            PageEdit::EraseBlock { block } => {
                let block = self.block(block);
                if let Some((_, pages)) = self.blocks.get_mut(&block) {
                    pages.fill(None);
                    self.changed.insert(block);
                }
            }
            PageEdit::Unreadable { .. } | PageEdit::BadBlock { .. } => self.late.push(*edit),
        }
    }

    /// Programs what was changed, and gives the chip back.
    pub(crate) fn into_chip(mut self) -> Chip {
        for block in std::mem::take(&mut self.changed) {
            let Some((mode, pages)) = self.blocks.get(&block) else { continue };
            self.chip.erase(block, Cause::Host).unwrap_or_else(|error| panic!("a chip without faults: {error}"));
            for (unit, page) in (0..).zip(pages) {
                let Some((data, spare)) = page else { continue };
                let programmed = self.chip.program(block, unit, *mode, data, spare, Cause::Host);
                programmed.unwrap_or_else(|error| panic!("programming a block just erased: {error}"));
            }
        }
        let settled = self.chip.barrier(&mut Vec::new());
        settled.unwrap_or_else(|error| panic!("a chip without faults: {error}"));
        for edit in std::mem::take(&mut self.late) {
            let damaged = match edit {
                PageEdit::Unreadable { page, once_more } => {
                    let Some((block, unit)) = Self::numbered(&self.programmed, page) else { continue };
                    let mode = self.chip.block_mode(block).unwrap_or(CellMode::Slc);
                    let Some(page) = self.chip.layout(mode).page(unit as u32) else { continue };
                    let kind = if once_more { Corruption::Unstable } else { Corruption::Uncorrectable };
                    self.chip.faults_mut().corrupt_page(block, page, kind)
                }
                PageEdit::BadBlock { block } => self.chip.mark_bad(self.block(block)),
                _ => Ok(()),
            };
            damaged.unwrap_or_else(|error| panic!("damaging the chip: {error}"));
        }
        self.chip
    }
}
