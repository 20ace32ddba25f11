//! The start of a drive: the map is found again from the tags, the erases of free blocks from the records.
//!
//! Invariants: a start only reads; a block whose first page reads as erased is not in use, and is erased before it is, unless a
//! record keeps it; one whose first page does not read tells by a later one.

use alloc::vec;
use alloc::vec::Vec;

use nand::{Cause, CellMode, Nand, NandError, PageRead};

use super::find_records::{FoundRecords, records_of};
use super::record::Segments;
use super::table::PhysicalUse;
use super::tag::{ANY_DRIVE, BlockTag, FoundTag, RECORD, RawTag, read_tag};
use super::{BlockMapDrive, Leftover};
use crate::{Error, Result};

/// Reads of each die that are asked for at once.
const READS_A_DIE: u32 = 4;
/// Generations that are passed over at a start: later pages of a block may have greater ones than its first.
const GENERATION_GAP: u64 = 1 << 16;

impl<N: Nand> BlockMapDrive<N> {
    /// Starts the drive that is on a chip.
    pub fn start(mut chip: N) -> Result<Self, (N, Error)> {
        let mut reads = 0;
        let found = first_tags(&mut chip, &mut reads).map_err(Error::Nand);
        let (tags, records) = match found.and_then(|tags| {
            let records = records_of(&mut chip, &tags, &mut reads)?;
            Ok((tags, records))
        }) {
            Ok(found) => found,
            Err(error) => return Err((chip, error)),
        };
        let newest = records.segments.first().filter(|newest| {
            let all = Segments::of(newest.size, chip.geometry().page_bytes).count();
            let (size, geometry) = (newest.size, chip.geometry());
            let fits = size.dies == geometry.dies() && size.physical == geometry.blocks / size.dies.max(1);
            let has_pair = newest.pair.iter().all(|&block| block < size.physical_blocks());
            fits && has_pair && size.logical <= size.physical && records.segments.len() == all as usize
        });
        let Some(newest) = newest else { return Err((chip, Error::NoVolume("its records are not whole"))) };
        let (size, number) = (newest.size, newest.drive);
        let mut drive = Self::new(chip, size, number);
        drive.counts.start_reads = reads;
        match drive.set_up(&tags, &records) {
            Ok(()) => Ok(drive),
            Err(error) => Err((drive.into_chip(), error)),
        }
    }

    fn set_up(&mut self, tags: &[RawTag], records: &FoundRecords) -> Result<()> {
        self.use_records(records);
        let (mut owners, mut torn): (Vec<(u32, BlockTag)>, Vec<u32>) = Default::default();
        for (block, raw) in (0..self.table.size().physical_blocks()).zip(tags) {
            if matches!(self.table.used_as(block), PhysicalUse::Bad | PhysicalUse::Record) {
                continue;
            }
            match self.tag_of_block(block, raw)? {
                FoundTag::Tag(tag) if tag.logical < self.geometry.blocks => owners.push((block, tag)),
                FoundTag::Blank => {}
                FoundTag::Tag(_) | FoundTag::Unreadable => {
                    self.table.set_use(block, PhysicalUse::Suspect);
                    torn.push(block);
                }
            }
        }
        // Of two blocks for one logical block the greater generation counts.
        owners.sort_unstable_by_key(|(_, tag)| tag.generation);
        for (block, tag) in owners {
            if let Some(older) = self.table.physical(tag.logical) {
                // Its tags would say the same again once the newer one is erased.
                self.table.set_use(older, PhysicalUse::Suspect);
                self.leftovers.push(Leftover { block: older, older_of: Some(tag.logical) });
            }
            self.table.set(block, PhysicalUse::InUse, tag.erases);
            self.table.set_physical(tag.logical, Some(block));
            self.generation = self.generation.max(tag.generation);
        }
        self.generation += GENERATION_GAP;
        self.leftovers.extend(torn.into_iter().map(|block| Leftover { block, older_of: None }));
        Ok(())
    }

    /// The tag of a block, whose first page says so, or does not read.
    fn tag_of_block(&mut self, block: u32, raw: &RawTag) -> Result<FoundTag> {
        match FoundTag::of(raw, self.number) {
            FoundTag::Unreadable => self.later_tag(block),
            found => Ok(found),
        }
    }

    /// Takes over what the records say.
    fn use_records(&mut self, records: &FoundRecords) {
        let size = self.table.size();
        for record in &records.segments {
            for (at, entry) in self.segments.places(record.segment).zip(&record.entries) {
                let used_as = if entry.kept { PhysicalUse::Kept } else { PhysicalUse::Free };
                self.table.set(size.block(at), used_as, entry.erases);
                if let Some(logical) = size.logical_block(at).filter(|_| entry.marked) {
                    self.table.mark(logical);
                }
            }
        }
        for block in 0..size.physical_blocks() {
            if self.chip.is_bad(block) {
                self.table.set_use(block, PhysicalUse::Bad);
            }
        }
        for (block, erases) in records.pair.into_iter().zip(records.erases) {
            let erases = erases.unwrap_or(self.table.erases(block));
            self.table.set(block, PhysicalUse::Record, erases);
        }
        self.records.pair = records.pair;
        // Pages behind the last one may be torn and read as erased: the next record goes to the other block.
        (self.records.current, self.records.unit) = (records.whole, u32::MAX);
        self.records.due = records.due;
        self.generation = records.generation;
    }

    /// The tag of a block whose first page does not read: of a later page, as far as a program could have destroyed the first.
    fn later_tag(&mut self, block: u32) -> Result<FoundTag> {
        let layout = self.chip.layout(CellMode::Native);
        let reach = layout.pair_distance() + 1;
        // Every page of a unit has the tag.
        let pages: Vec<u32> = (0..=reach).flat_map(|unit| layout.unit_pages(unit).iter().copied()).skip(1).collect();
        for page in pages {
            self.counts.start_reads += 1;
            let raw = read_tag(&mut self.chip, block, page)?;
            match FoundTag::of(&raw, self.number) {
                FoundTag::Tag(tag) => return Ok(FoundTag::Tag(tag)),
                FoundTag::Blank | FoundTag::Unreadable => {}
            }
        }
        Ok(FoundTag::Unreadable)
    }
}

/// A generation past those of all records on a chip.
pub fn generation_past_all<N: Nand>(chip: &mut N) -> Result<u64, NandError> {
    let tags = first_tags(chip, &mut 0)?;
    let generations = tags.iter().filter_map(|raw| match FoundTag::of(raw, ANY_DRIVE) {
        FoundTag::Tag(tag) if tag.logical == RECORD => Some(tag.generation + GENERATION_GAP),
        _ => None,
    });
    Ok(generations.max().unwrap_or(0))
}

/// The tags of the first pages of all blocks.
fn first_tags<N: Nand>(chip: &mut N, reads: &mut u64) -> Result<Vec<RawTag>, NandError> {
    let (blocks, dies) = (chip.geometry().blocks, chip.geometry().dies());
    let spare_bytes = chip.geometry().spare_bytes as usize;
    let mut tags = Vec::with_capacity(blocks as usize);
    let many = (READS_A_DIE * dies) as usize;
    let mut spares = vec![0; many * spare_bytes];
    let numbers: Vec<u32> = (0..blocks).collect();
    let first = chip.layout(CellMode::Native).page(0).unwrap_or(0);
    for numbers in numbers.chunks(many) {
        let mut asked: Vec<PageRead> = numbers
            .iter()
            .zip(spares.chunks_exact_mut(spare_bytes.max(1)))
            .map(|(&block, spare)| PageRead::new(block, first, 0, &mut [], spare, Cause::Metadata))
            .collect();
        chip.read_many(&mut asked);
        *reads += numbers.len() as u64;
        for read in asked {
            tags.push(match read.outcome {
                Ok(_) => read.spare.last_chunk().copied(),
                Err(NandError::Uncorrectable { .. }) => None,
                Err(error) => return Err(error),
            });
        }
    }
    Ok(tags)
}
