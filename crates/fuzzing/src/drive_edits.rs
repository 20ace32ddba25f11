//! An input of the `drive` fuzzer: a volume over the drive that maps only blocks, changes to the pages of its chip, and how it
//! is used afterwards.
//!
//! Tags and records get right checksums again, so that what is behind them is reached. Invariant: any bytes are an input; an edit
//! that finds nothing to change changes nothing.

use std::fmt;

use arbitrary::{Arbitrary, Result, Unstructured};
use emulator::Chip;
use torture::crash::VolumeOver;

use crate::chip_pages::{ChipPages, PageEdit, PagePlace};
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
    Tag { page: u16, field: u8, value: u64 },
    /// A number of a record, or one of its entries; both checksums are put right.
    RecordNumber { record: u16, number: u16, value: u32 },
    /// No checksum is put right.
    Page(PageEdit),
}

impl DriveEdit {
    fn decode(record: &Record) -> Self {
        let (first, second, form) = (record.u16(2), record.u16(4), record.u8(1));
        let value = record.field_value(form);
        match record.u8(0) % 16 {
            0..4 => DriveEdit::Tag { page: first, field: form >> 2, value },
            4..8 => DriveEdit::RecordNumber { record: first, number: second, value: value as u32 },
            _ => DriveEdit::Page(PageEdit::decode(record)),
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
        let mut drive = DrivePages::of(self.volume().chip.snapshot());
        self.edits.iter().for_each(|edit| drive.edit(edit));
        exercise(drive.pages.into_chip(), VolumeOver::Codesign, &self.usage);
    }
}

/// The pages of a drive's chip.
struct DrivePages {
    pages: ChipPages,
    /// The pages that hold records.
    records: Vec<PagePlace>,
    /// The drive's number, which its tags' checksums begin with.
    number: u32,
}

impl DrivePages {
    fn of(chip: Chip) -> Self {
        let pages = ChipPages::of(chip);
        let data = |place: &PagePlace| pages.page(*place).map(|(data, _)| data.as_slice()).unwrap_or_default();
        let is_record = |place: &&PagePlace| data(place).starts_with(RECORD_MAGIC);
        let records: Vec<PagePlace> = pages.programmed().iter().filter(is_record).copied().collect();
        let number = records.first().map_or(0, |place| u32::from_le_bytes(padded(&data(place)[8..12])));
        Self { pages, records, number }
    }

    fn edit(&mut self, edit: &DriveEdit) {
        match edit {
            DriveEdit::Tag { page, field, value } => self.change_tag(*page, *field, *value),
            DriveEdit::RecordNumber { record, number, value } => self.change_record(*record, *number, *value),
            DriveEdit::Page(edit) => self.pages.edit(edit),
        }
    }

    fn change_tag(&mut self, page: u16, field: u8, value: u64) {
        let number = self.number;
        let place = ChipPages::numbered(self.pages.programmed(), page);
        let is_record = place.is_some_and(|place| self.records.contains(&place));
        let Some(Some((_, spare))) = place.and_then(|place| self.pages.page_mut(place)) else { return };
        let begin = spare.len() - TAG_BYTES;
        let tag = &mut spare[begin..];
        let (at, bytes) = TAG_FIELDS[usize::from(field) % TAG_FIELDS.len()];
        tag[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        let sum = crc32c::crc32c_append(if is_record { 0 } else { number }, &tag[..12]);
        tag[12..].copy_from_slice(&sum.to_le_bytes());
    }

    fn change_record(&mut self, record: u16, number: u16, value: u32) {
        let place = ChipPages::numbered(&self.records, record);
        let Some(Some((data, _))) = place.and_then(|place| self.pages.page_mut(place)) else { return };
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
}

#[cfg(test)]
mod tests {
    use ftl::BlockMapDrive;
    use nand::Nand;

    use super::*;

    fn edited(edits: &[DriveEdit]) -> Chip {
        let mut drive = DrivePages::of(drives()[0].chip.snapshot());
        edits.iter().for_each(|edit| drive.edit(edit));
        drive.pages.into_chip()
    }

    #[test]
    fn a_drive_programmed_anew_starts_with_the_same_map() {
        for drive in drives() {
            let mut pages = ChipPages::of(drive.chip.snapshot());
            for place in pages.programmed().to_vec() {
                pages.page_mut(place);
            }
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
        let drive = DrivePages::of(drives()[0].chip.snapshot());
        let of_blocks = (0..).zip(drive.pages.programmed()).filter(|(_, place)| !drive.records.contains(place));
        let moved: Vec<DriveEdit> = of_blocks.map(|(page, _)| DriveEdit::Tag { page, field: 0, value: 3 }).collect();
        assert_eq!(logical(&started(&moved).unwrap()), 1);
        assert!(logical(&before) > 5);
        let records = 0..drive.records.len() as u16;
        let dies: Vec<DriveEdit> =
            records.map(|record| DriveEdit::RecordNumber { record, number: 1, value: 3 }).collect();
        assert!(started(&dies).is_err(), "it has other dies than its chip");
    }
}
