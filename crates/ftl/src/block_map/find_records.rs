//! Finding the records of a drive at its start: the blocks that hold some, and in them the newest of each segment.
//!
//! Invariant: what a record keeps is believed only where no newer record can have been lost.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError};

use super::record::{SegmentRecord, Segments};
use super::record_log::RecordsDue;
use super::table::DriveSize;
use super::tag::{ANY_DRIVE, BlockTag, FoundTag, RECORD, RawTag, read_tag};
use crate::{Error, Result};

/// Units that are tried where the first page of a block of records does not tell.
const LATER_TRIES: u32 = 4;

/// The records of a chip.
pub struct FoundRecords {
    pub pair: [u32; 2],
    /// Erases of these blocks, as far as their tags tell.
    pub erases: [Option<u32>; 2],
    /// Which of them holds a record of every segment.
    pub whole: usize,
    /// The greatest generation of a record.
    pub generation: u64,
    /// The newest record of each segment; the newest of all first.
    pub segments: Vec<SegmentRecord>,
    /// Whether they are to be written anew.
    pub due: RecordsDue,
}

/// A record as it was read.
struct ReadRecord {
    record: SegmentRecord,
    tag: BlockTag,
    is_fading: bool,
}

/// What was read in some blocks of records.
struct RecordSearch {
    /// The drive's number and size, the blocks of the records and the generation, as the newest says.
    head: (u32, DriveSize, [u32; 2], u64),
    /// The block in which the search ended: it and newer ones hold a record of every segment.
    whole: Option<u32>,
    is_fading: bool,
    /// Whether a record did not read that may be newer than one that did.
    lacks_newer: bool,
    segments: Vec<SegmentRecord>,
}

/// Finds the records by the first tags of all blocks.
pub fn records_of<N: Nand>(chip: &mut N, tags: &[RawTag], reads: &mut u64) -> Result<FoundRecords> {
    let first = |raw: &RawTag| match FoundTag::of(raw, ANY_DRIVE) {
        FoundTag::Tag(tag) if tag.logical == RECORD => Some(tag),
        _ => None,
    };
    let mut blocks: Vec<(u32, BlockTag)> =
        (0..).zip(tags).filter_map(|(block, raw)| Some((block, first(raw)?))).collect();
    let mut search = newest_records(chip, &mut blocks, reads)?;
    let known: Vec<u32> = blocks.iter().map(|(block, _)| *block).collect();
    // The other block of the pair may be the newer one, and have lost its first page.
    let (_, _, pair, _) = search.head;
    let lost: Vec<u32> = pair.into_iter().filter(|block| !known.contains(block)).collect();
    let does_not_tell = |block: &&u32| {
        tags.get(**block as usize).is_some_and(|raw| FoundTag::of(raw, ANY_DRIVE) == FoundTag::Unreadable)
    };
    for &block in lost.iter().filter(does_not_tell) {
        for unit in 1..=LATER_TRIES {
            if let Some(ReadRecord { tag, .. }) = read_record(chip, block, unit, reads)? {
                blocks.push((block, tag));
                search = newest_records(chip, &mut blocks, reads)?;
                break;
            }
        }
    }
    let RecordSearch { head: (_, _, pair, generation), whole, is_fading, lacks_newer, mut segments } = search;
    let erases = pair.map(|of| blocks.iter().find(|(block, _)| *block == of).map(|(_, tag)| tag.erases));
    let mut due = if is_fading { RecordsDue::Fading } else { RecordsDue::No };
    let entries = segments.iter_mut().flat_map(|record| &mut record.entries);
    // What these keep a record that does not read may have let go.
    for entry in entries.filter(|entry| (lacks_newer || !lost.is_empty()) && entry.kept) {
        entry.kept = false;
        due = RecordsDue::Outdated;
    }
    let whole = usize::from(whole != Some(pair[0]));
    Ok(FoundRecords { pair, erases, whole, generation, segments, due })
}

/// The newest record of each segment in these blocks, which are put in order, the newest first.
fn newest_records<N: Nand>(chip: &mut N, blocks: &mut [(u32, BlockTag)], reads: &mut u64) -> Result<RecordSearch> {
    blocks.sort_unstable_by_key(|(_, tag)| core::cmp::Reverse(tag.generation));
    let mut segments: Vec<SegmentRecord> = Vec::new();
    let (mut newest, mut whole, mut is_fading, mut lacks_newer) = (None, None, false, false);
    for &mut (block, _) in blocks {
        let end = used_units(chip, block, reads)?;
        for unit in (0..end).rev() {
            let Some(ReadRecord { record, tag, is_fading: fades }) = read_record(chip, block, unit, reads)? else {
                lacks_newer = true;
                continue;
            };
            // A page that was being written when the power went may read well once, and never again.
            if newest.is_none() && read_record(chip, block, unit, reads)?.is_none() {
                lacks_newer = true;
                continue;
            }
            is_fading |= fades;
            let head = newest.get_or_insert((record.drive, record.size, record.pair, tag.generation));
            let is_known = segments.iter().any(|known| known.segment == record.segment);
            if !is_known && (record.drive, record.size) == (head.0, head.1) {
                segments.push(record);
            }
            if segments.len() >= Segments::of(head.1, chip.geometry().page_bytes).count() as usize {
                // A block that lacks some was cut while it was begun; no block was taken by what it says.
                whole = Some(block);
                break;
            }
        }
        if whole.is_some() {
            break;
        }
    }
    let head = newest.ok_or(Error::NoVolume("no record of a drive is on it"))?;
    Ok(RecordSearch { head, whole, is_fading, lacks_newer, segments })
}

/// Units of a block of records that are programmed: the rest reads as erased.
fn used_units<N: Nand>(chip: &mut N, block: u32, reads: &mut u64) -> Result<u32> {
    let (mut used, mut end) = (1, chip.layout(CellMode::Slc).units());
    while used < end {
        let middle = used.midpoint(end);
        let page = chip.layout(CellMode::Slc).unit_pages(middle).first().copied().unwrap_or(0);
        *reads += 1;
        match FoundTag::of(&read_tag(chip, block, page)?, ANY_DRIVE) {
            FoundTag::Blank => end = middle,
            FoundTag::Tag(_) | FoundTag::Unreadable => used = middle + 1,
        }
    }
    Ok(used)
}

fn read_record<N: Nand>(chip: &mut N, block: u32, unit: u32, reads: &mut u64) -> Result<Option<ReadRecord>> {
    let page = chip.layout(CellMode::Slc).unit_pages(unit).first().copied().unwrap_or(0);
    let mut data = vec![0; chip.geometry().page_bytes as usize];
    let mut spare = vec![0; chip.geometry().spare_bytes as usize];
    *reads += 1;
    let is_fading = match chip.read(block, page, 0, &mut data, &mut spare, Cause::Metadata) {
        Ok(info) => info.is_strained(),
        Err(NandError::Uncorrectable { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let tag = match FoundTag::of(&spare.last_chunk().copied(), ANY_DRIVE) {
        FoundTag::Tag(tag) if tag.logical == RECORD => tag,
        _ => return Ok(None),
    };
    Ok(SegmentRecord::decode(&data).map(|record| ReadRecord { record, tag, is_fading }))
}
