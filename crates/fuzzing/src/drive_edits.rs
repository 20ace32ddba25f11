//! An input of the `drive` fuzzer: a volume over the drive that maps only blocks, changes to the pages of its chip, and how it
//! is used afterwards.
//!
//! Tags and records get right checksums again, so that what is behind them is reached. Invariant: any bytes are an input; an edit
//! that finds nothing to change changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arbitrary::{Arbitrary, Result, Unstructured};
use emulator::{Chip, Corruption};
use nand::{Cause, CellMode, Nand};
use torture::crash::VolumeOver;

use crate::exercise::{Use, exercise};
use crate::record::{Record, padded, split};
use crate::volumes::{Volume, drives};

const EDITS_MAX: usize = 24;

/// Bytes of a tag, at the end of a page's spare bytes: logical block, generation, erases, checksum.
const TAG_BYTES: usize = 16;
const TAG_FIELDS: [(usize, usize); 3] = [(0, 4), (4, 5), (9, 3)];
/// Where a record has its checksum, its numbers and its entries.
const RECORD_MAGIC: &[u8; 8] = b"FlexBMD1";
const RECORD_SUM: usize = 44;
const RECORD_FIELDS: usize = 9;
const RECORD_ENTRIES: usize = 48;

/// What to do to which volume.
pub struct DriveInput {
    volume: u8,
    usage: Use,
    edits: Vec<DriveEdit>,
}

#[derive(Clone, Copy, Debug)]
enum DriveEdit {
    /// A field of a page's tag; the checksum is put right.
    Tag {
        page: u16,
        field: u8,
        value: u64,
    },
    /// A number of a record, or one of its entries; both checksums are put right.
    RecordNumber {
        record: u16,
        number: u16,
        value: u32,
    },
    /// Bytes of a page or its spare bytes; no checksum is put right.
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

impl DriveEdit {
    fn decode(record: &Record) -> Self {
        let (first, second, form) = (record.u16(2), record.u16(4), record.u8(1));
        let value = match form % 4 {
            0 => record.tail_u64(),
            1 => record.tail_u64() & 0xff,
            2 => u64::MAX,
            _ => 0,
        };
        match record.u8(0) % 16 {
            0..4 => DriveEdit::Tag { page: first, field: form >> 2, value },
            4..8 => DriveEdit::RecordNumber { record: first, number: second, value: value as u32 },
            8 => DriveEdit::Bytes { page: first, offset: second, bytes: record.tail(), count: form % 8 + 1 },
            9 => DriveEdit::CopyPage { from: first, to: second },
            10 | 11 => DriveEdit::CopyBlock { from: first, to: second },
            12 => DriveEdit::Blank { page: first },
            13 => DriveEdit::EraseBlock { block: first },
            14 => DriveEdit::Unreadable { page: first, once_more: form % 2 == 1 },
            _ => DriveEdit::BadBlock { block: first },
        }
    }
}

impl<'a> Arbitrary<'a> for DriveInput {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let ([volume, how, seed, cut], records) = split::<4>(bytes.bytes(bytes.len())?);
        let edits = records.take(EDITS_MAX).map(|record| DriveEdit::decode(&record)).collect();
        Ok(Self { volume, usage: Use::decode(how, seed, cut), edits })
    }
}

impl fmt::Debug for DriveInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "volume {}, {:?}", self.volume().name, self.usage)?;
        self.edits.iter().try_for_each(|edit| writeln!(f, "  {edit:x?}"))
    }
}

impl DriveInput {
    fn volume(&self) -> &'static Volume {
        &drives()[usize::from(self.volume) % drives().len()]
    }

    /// Damages the chip of the drive, then uses what is on it.
    pub fn run(&self) {
        let mut pages = ChipPages::of(self.volume().chip.snapshot());
        self.edits.iter().for_each(|edit| pages.edit(edit));
        exercise(pages.into_chip(), VolumeOver::Codesign, &self.usage);
    }
}

/// A page: its bytes and its spare bytes.
type Page = (Vec<u8>, Vec<u8>);

/// The pages of a chip, to be changed behind the drive's back.
struct ChipPages {
    chip: Chip,
    /// Of each block its pages in the order of units; `None` where nothing is programmed.
    blocks: BTreeMap<u32, (CellMode, Vec<Option<Page>>)>,
    changed: BTreeSet<u32>,
    /// The programmed pages, and those of them that hold records: block and unit.
    programmed: Vec<(u32, usize)>,
    records: Vec<(u32, usize)>,
    /// The drive's number, which its tags' checksums begin with.
    number: u32,
    late: Vec<DriveEdit>,
}

impl ChipPages {
    fn of(mut chip: Chip) -> Self {
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
        let all = blocks
            .iter()
            .flat_map(|(&block, (_, pages))| (0..).zip(pages).map(move |(unit, page)| (block, unit, page)));
        let programmed: Vec<_> = all.filter_map(|(block, unit, page)| Some((block, unit, page.as_ref()?))).collect();
        let is_record = |page: &Page| page.0.starts_with(RECORD_MAGIC);
        let records: Vec<_> = programmed.iter().filter(|(.., page)| is_record(page)).collect();
        let number = records.first().map_or(0, |(.., (data, _))| u32::from_le_bytes(padded(&data[8..12])));
        let records = records.iter().map(|&&(block, unit, _)| (block, unit)).collect();
        let programmed = programmed.iter().map(|&(block, unit, _)| (block, unit)).collect();
        Self { chip, blocks, changed: BTreeSet::new(), programmed, records, number, late: Vec::new() }
    }

    fn at(places: &[(u32, usize)], number: u16) -> Option<(u32, usize)> {
        places.get(usize::from(number) % places.len().max(1)).copied()
    }

    fn block(&self, number: u16) -> u32 {
        u32::from(number) % self.chip.geometry().blocks
    }

    fn page_mut(&mut self, (block, unit): (u32, usize)) -> Option<&mut Option<Page>> {
        self.changed.insert(block);
        self.blocks.get_mut(&block)?.1.get_mut(unit)
    }

    fn edit(&mut self, edit: &DriveEdit) {
        match *edit {
            DriveEdit::Tag { page, field, value } => self.change_tag(page, field, value),
            DriveEdit::RecordNumber { record, number, value } => self.change_record(record, number, value),
            DriveEdit::Bytes { page, offset, bytes, count } => {
                let place = Self::at(&self.programmed, page);
                if let Some(Some((data, spare))) = place.and_then(|place| self.page_mut(place)) {
                    let offset = usize::from(offset) % (data.len() + spare.len());
                    let all = data.iter_mut().chain(spare).skip(offset).take(count.into());
                    all.zip(bytes).for_each(|(to, from)| *to = from);
                }
            }
            DriveEdit::CopyPage { from, to } => {
                let (Some(from), Some(to)) = (Self::at(&self.programmed, from), Self::at(&self.programmed, to)) else {
                    return;
                };
                let copied = self.page_mut(from).cloned();
                if let (Some(copied), Some(to)) = (copied, self.page_mut(to)) {
                    *to = copied;
                }
            }
            DriveEdit::CopyBlock { from, to } => {
                let (from, to) = (self.block(from), self.block(to));
                if let Some(copied) = self.blocks.get(&from).cloned() {
                    self.blocks.insert(to, copied);
                    self.changed.insert(to);
                }
            }
            DriveEdit::Blank { page } => {
                let place = Self::at(&self.programmed, page);
                if let Some(page) = place.and_then(|place| self.page_mut(place)) {
                    *page = None;
                }
            }
            DriveEdit::EraseBlock { block } => {
                let block = self.block(block);
                if let Some((_, pages)) = self.blocks.get_mut(&block) {
                    pages.fill(None);
                    self.changed.insert(block);
                }
            }
            DriveEdit::Unreadable { .. } | DriveEdit::BadBlock { .. } => self.late.push(*edit),
        }
    }

    fn change_tag(&mut self, page: u16, field: u8, value: u64) {
        let number = self.number;
        let place = Self::at(&self.programmed, page);
        let is_record = place.is_some_and(|place| self.records.contains(&place));
        let Some(Some((_, spare))) = place.and_then(|place| self.page_mut(place)) else { return };
        let begin = spare.len() - TAG_BYTES;
        let tag = &mut spare[begin..];
        let (at, bytes) = TAG_FIELDS[usize::from(field) % TAG_FIELDS.len()];
        tag[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        let sum = crc32c::crc32c_append(if is_record { 0 } else { number }, &tag[..12]);
        tag[12..].copy_from_slice(&sum.to_le_bytes());
    }

    fn change_record(&mut self, record: u16, number: u16, value: u32) {
        let place = Self::at(&self.records, record);
        let Some(Some((data, _))) = place.and_then(|place| self.page_mut(place)) else { return };
        let numbers = RECORD_FIELDS + (data.len() - RECORD_ENTRIES) / 4;
        let at = match usize::from(number) % numbers {
            number if number < RECORD_FIELDS => 8 + 4 * number,
            number => RECORD_ENTRIES + 4 * (number - RECORD_FIELDS),
        };
        data[at..at + 4].copy_from_slice(&value.to_le_bytes());
        data[RECORD_SUM..RECORD_SUM + 4].fill(0);
        let sum = crc32c::crc32c(data);
        data[RECORD_SUM..RECORD_SUM + 4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Programs what was changed, and gives the chip back.
    fn into_chip(mut self) -> Chip {
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
                DriveEdit::Unreadable { page, once_more } => {
                    let Some((block, unit)) = Self::at(&self.programmed, page) else { continue };
                    let mode = self.chip.block_mode(block).unwrap_or(CellMode::Slc);
                    let Some(page) = self.chip.layout(mode).page(unit as u32) else { continue };
                    let kind = if once_more { Corruption::Unstable } else { Corruption::Uncorrectable };
                    self.chip.faults_mut().corrupt_page(block, page, kind)
                }
                DriveEdit::BadBlock { block } => self.chip.mark_bad(self.block(block)),
                _ => Ok(()),
            };
            damaged.unwrap_or_else(|error| panic!("damaging the chip: {error}"));
        }
        self.chip
    }
}

#[cfg(test)]
mod tests {
    use ftl::BlockMapDrive;

    use super::*;

    fn edited(edits: &[DriveEdit]) -> Chip {
        let mut pages = ChipPages::of(drives()[0].chip.snapshot());
        edits.iter().for_each(|edit| pages.edit(edit));
        pages.into_chip()
    }

    #[test]
    fn a_drive_programmed_anew_starts_with_the_same_map() {
        for drive in drives() {
            let mut pages = ChipPages::of(drive.chip.snapshot());
            pages.changed.extend(0..drive.chip.geometry().blocks);
            let started = |chip| BlockMapDrive::start(chip).map_err(|(_, error)| error).unwrap();
            let (before, after) = (started(drive.chip.snapshot()), started(pages.into_chip()));
            for block in 0..before.geometry().blocks {
                assert_eq!(before.physical(block), after.physical(block), "{}: {block}", drive.name);
            }
        }
    }

    #[test]
    fn edits_reach_what_their_checksums_cover() {
        let started = |edits: &[DriveEdit]| BlockMapDrive::start(edited(edits)).map_err(|(_, error)| error);
        let before = started(&[]).unwrap();
        let logical = |drive: &BlockMapDrive<Chip>| {
            (0..drive.geometry().blocks).filter(|&block| drive.physical(block).is_some()).count()
        };
        // Each page of blocks in use says another block.
        let pages = ChipPages::of(drives()[0].chip.snapshot());
        let of_blocks = (0..).zip(&pages.programmed).filter(|(_, place)| !pages.records.contains(place));
        let moved: Vec<DriveEdit> = of_blocks.map(|(page, _)| DriveEdit::Tag { page, field: 0, value: 3 }).collect();
        assert_eq!(logical(&started(&moved).unwrap()), 1);
        assert!(logical(&before) > 5);
        let records = 0..pages.records.len() as u16;
        let dies: Vec<DriveEdit> =
            records.map(|record| DriveEdit::RecordNumber { record, number: 1, value: 3 }).collect();
        assert!(started(&dies).is_err(), "it has other dies than its chip");
    }
}
