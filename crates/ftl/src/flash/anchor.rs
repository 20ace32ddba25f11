//! The anchor: the volume's parameters and the places of its map blocks, in blocks 0 and 1 by turns.
//!
//! A record is a page, or several where the map has many blocks; one is added whenever a map block changes its place, which is
//! rare, and the other block is erased only when one is full. Invariant: the newest record that can be read is whole and
//! true, whatever the power did, and its block is not erased.

use alloc::vec::Vec;

use nand::{Cause, Nand};

pub use super::record::Record;
use super::tag::{Kind, Tag};
use super::{Flash, Found, Outcome, Payload, Place};
use crate::{Error, Result};

/// Blocks that hold anchors.
pub const ANCHOR_BLOCKS: u32 = 2;

/// Where records are written.
#[derive(Clone, Copy, Debug)]
pub struct Anchors {
    /// The page for the next record's first part, or the end of a block.
    next: Place,
    /// That page may have been half programmed when the power went.
    is_suspect: bool,
    /// The block of the newest record.
    holder: u32,
    /// The stamp of its last page.
    stamp: u64,
}

/// The newest record of a block.
struct Newest {
    stamp: u64,
    /// Its last page.
    at: Place,
    /// The page after the block's last one that is not erased.
    next: Place,
    record: Record,
}

impl Anchors {
    /// The number that records are checked with, whatever the volume's: it stands in them.
    pub const VOLUME: u32 = 0x464c_4558;

    /// The block of the newest record.
    pub fn block(&self) -> u32 {
        self.holder
    }

    /// The stamp of the newest record.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The pages of the volume on a chip, with its newest record.
    pub fn open<N: Nand>(chip: N, payload: Payload) -> Result<(Flash<N>, Self, Record)> {
        let mut flash = Flash::new(chip, 0, payload)?;
        let (anchors, record) = Self::find(&mut flash)?;
        let blocks = flash.blocks();
        if record.data_blocks == 0 || record.data_blocks >= blocks || record.reserve >= blocks {
            return Err(Error::NoVolume("the anchor's parameters do not fit the chip"));
        }
        flash.set_volume(record.volume);
        Ok((flash, anchors, record))
    }

    /// Finds the newest record.
    pub fn find<N: Nand>(flash: &mut Flash<N>) -> Result<(Self, Record)> {
        let volume = flash.volume();
        flash.set_volume(Self::VOLUME);
        let found = Self::search(flash);
        flash.set_volume(volume);
        found
    }

    fn search<N: Nand>(flash: &mut Flash<N>) -> Result<(Self, Record)> {
        loop {
            let mut newest: Option<Newest> = None;
            for block in 0..ANCHOR_BLOCKS {
                let last = last_in(flash, block)?;
                newest = match (newest, last) {
                    (Some(one), Some(other)) if other.stamp > one.stamp => Some(other),
                    (one, other) => one.or(other),
                };
            }
            let newest = newest.ok_or(Error::NoVolume("there is no anchor in blocks 0 and 1"))?;
            // A page that was torn by the cut may have been read for the first and last time.
            if matches!(flash.read(newest.at, &mut [], Cause::Metadata)?, Found::Page(_)) {
                flash.saw_stamp(newest.stamp);
                let Newest { next, stamp, at, .. } = newest;
                return Ok((Self { next, is_suspect: true, holder: at.block, stamp }, newest.record));
            }
        }
    }

    /// Erases both blocks: the chip holds no volume until a record is written.
    pub fn format<N: Nand>(flash: &mut Flash<N>) -> Result<Self> {
        for block in (0..ANCHOR_BLOCKS).rev() {
            if flash.erase(block, Cause::Metadata)? == Outcome::Failed {
                return Err(Error::Unfit("blocks 0 and 1 must be good"));
            }
        }
        let next = Place { block: 1, page: flash.pages_per_block() };
        Ok(Self { next, is_suspect: false, holder: next.block, stamp: 0 })
    }

    /// Adds a record.
    pub fn write<N: Nand>(&mut self, flash: &mut Flash<N>, record: &Record) -> Result<()> {
        if core::mem::take(&mut self.is_suspect) && self.next.page < flash.pages_per_block() {
            flash.use_up(self.next)?;
            self.next.page += 1;
        }
        let volume = flash.volume();
        flash.set_volume(Self::VOLUME);
        let written = self.add(flash, &record.encode());
        flash.set_volume(volume);
        written
    }

    fn add<N: Nand>(&mut self, flash: &mut Flash<N>, record: &[u8]) -> Result<()> {
        let pages = record.len().div_ceil(flash.page_bytes()) as u32;
        for _ in 0..2 * flash.pages_per_block() {
            if self.next.page + pages > flash.pages_per_block() {
                self.go_on_in_the_other(flash)?;
            }
            if self.program(flash, record, pages)? == Outcome::Done {
                (self.holder, self.stamp) = (self.next.block, flash.next_stamp() - 1);
                return Ok(());
            }
        }
        Err(Error::WornOut)
    }

    /// Begins the other block, unless the newest record stands there: this one has too many bad pages then.
    fn go_on_in_the_other<N: Nand>(&mut self, flash: &mut Flash<N>) -> Result<()> {
        let other = 1 - self.next.block;
        let is_kept = self.stamp > 0 && other == self.holder;
        if is_kept || flash.erase(other, Cause::Metadata)? == Outcome::Failed {
            return Err(Error::WornOut);
        }
        self.next = Place { block: other, page: 0 };
        Ok(())
    }

    /// Programs a record's pages, until one fails.
    fn program<N: Nand>(&mut self, flash: &mut Flash<N>, record: &[u8], pages: u32) -> Result<Outcome> {
        for (nth, part) in (0..).zip(record.chunks(flash.page_bytes())) {
            let ends = u32::from(nth) + 1 == pages;
            let tag = Tag { kind: Kind::Anchor, ends, logical: 0, stamp: 0, extra: nth };
            let outcome = flash.program_filled(self.next, tag, Cause::Metadata, |page| {
                page.iter_mut().zip(part).for_each(|(slot, byte)| *slot = *byte);
            })?;
            self.next.page += 1;
            if outcome == Outcome::Failed {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Done)
    }
}

fn last_in<N: Nand>(flash: &mut Flash<N>, block: u32) -> Result<Option<Newest>> {
    let mut last: Option<Newest> = None;
    let mut parts = Vec::new();
    // The part that comes next, and its stamp.
    let mut awaited = None;
    for page in 0..flash.pages_per_block() {
        let at = Place { block, page };
        let found = flash.read(at, &mut [], Cause::Metadata)?;
        let next = Place { page: page + 1, ..at };
        // A page that was torn may read as erased, with others programmed after it.
        if found != Found::Erased {
            last = last.map(|last| Newest { next, ..last });
        }
        let tag = found.tag().filter(|tag| tag.kind == Kind::Anchor);
        let Some(tag) = tag.filter(|tag| tag.extra == 0 || awaited == Some((tag.extra, tag.stamp))) else {
            awaited = None;
            continue;
        };
        if tag.extra == 0 {
            parts.clear();
        }
        parts.extend_from_slice(flash.page());
        awaited = Some((tag.extra.saturating_add(1), tag.stamp + 1));
        if tag.ends {
            last = Record::decode(&parts)?.map(|record| Newest { stamp: tag.stamp, at, next, record }).or(last);
            awaited = None;
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, FaultConfig, Profile};

    use super::*;

    fn record(logs: u32, map_blocks: u32) -> Record {
        let (ring, dropped) = ((100..100 + map_blocks).collect(), alloc::vec![7, 9]);
        Record { volume: 5, scheme: 1, data_blocks: 3, logs, reserve: 77, ring, dropped }
    }

    fn flash() -> Flash<Chip> {
        let chip = Chip::new(&Profile::builtin("k9f5608u0m").unwrap(), 1).unwrap();
        Flash::new(chip, 9, Payload::Kept).unwrap()
    }

    #[test]
    fn a_record_of_any_number_of_pages_reads_as_it_was_written_last() {
        for map_blocks in [0, 3, 64, 65, 514, 1_900] {
            let mut flash = flash();
            let mut anchors = Anchors::format(&mut flash).unwrap();
            for logs in 0..40 {
                anchors.write(&mut flash, &record(logs, map_blocks)).unwrap();
                let (found, last) = Anchors::find(&mut flash).unwrap();
                assert_eq!((last, found.block()), (record(logs, map_blocks), anchors.block()));
            }
        }
    }

    #[test]
    fn a_cut_in_a_record_of_several_pages_leaves_the_one_before() {
        for cut in 0..60 {
            let mut flash = flash();
            let mut anchors = Anchors::format(&mut flash).unwrap();
            anchors.write(&mut flash, &record(0, 514)).unwrap();
            flash.chip_mut().faults_mut().set(FaultConfig::power_cuts(cut));
            flash.chip_mut().faults_mut().cut_power_at(cut);
            let last = (1..).find(|&logs| anchors.write(&mut flash, &record(logs, 514)).is_err()).unwrap();
            flash.chip_mut().power_on();
            let (mut anchors, found) = Anchors::find(&mut flash).unwrap();
            assert!([record(last - 1, 514), record(last, 514)].contains(&found), "cut {cut}: {}", found.logs);
            anchors.write(&mut flash, &record(1_000, 514)).unwrap();
            assert_eq!(Anchors::find(&mut flash).unwrap().1.logs, 1_000, "cut {cut}");
        }
    }

    /// A record that fails again and again in one block must not take the other block with it.
    #[test]
    fn the_block_of_the_newest_record_is_not_erased_while_no_later_one_is_whole() {
        let mut flash = flash();
        let mut anchors = Anchors::format(&mut flash).unwrap();
        (0..6).for_each(|logs| anchors.write(&mut flash, &record(logs, 514)).unwrap());
        assert_eq!(anchors.block(), 0);
        (0..200).for_each(|program| flash.chip_mut().faults_mut().fail_program_at(program));
        assert_eq!(anchors.write(&mut flash, &record(6, 514)), Err(Error::WornOut));
        assert_eq!(Anchors::find(&mut flash).unwrap().1, record(5, 514));
    }
}
