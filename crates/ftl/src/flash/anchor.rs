//! The anchor: the volume's parameters and the places of its map blocks, in blocks 0 and 1 by turns.
//!
//! A record is a page; one is added whenever a map block changes its place, which is rare, and the other block is erased
//! only when one is full. Invariant: the newest record that can be read is whole and true, whatever the power did.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::tag::{Kind, Tag};
use super::{Flash, Found, Outcome, Payload, Place};
use crate::{Error, Result};

/// Blocks that hold anchors.
pub const ANCHOR_BLOCKS: u32 = 2;
const MAGIC: [u8; 8] = *b"FlexFTL1";
/// Map blocks that a record has room for.
pub const RING_MAX: usize = 64;

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The volume's number, under which all its other pages are checked.
    pub volume: u32,
    /// The scheme's code.
    pub scheme: u8,
    /// Logical blocks of the device.
    pub data_blocks: u32,
    /// Log blocks, or the most of another kind that a scheme keeps.
    pub logs: u32,
    /// The map blocks in their round; empty where a scheme has none.
    pub ring: Vec<u32>,
}

/// Where the last record was written.
#[derive(Clone, Copy, Debug)]
pub struct Anchors {
    at: Place,
    /// The page after that may have been half programmed when the power went.
    is_suspect: bool,
}

/// The newest record of a block.
struct Newest {
    stamp: u64,
    at: Place,
    /// The block's last page that is not erased.
    end: u32,
    record: Record,
}

impl Anchors {
    /// The number that records are checked with, whatever the volume's: it stands in them.
    pub const VOLUME: u32 = 0x464c_4558;

    /// The block of the newest record.
    pub fn block(&self) -> u32 {
        self.at.block
    }

    /// The pages of the volume on a chip, with its newest record.
    pub fn open<N: Nand>(chip: N, payload: Payload) -> Result<(Flash<N>, Self, Record)> {
        let mut flash = Flash::new(chip, 0, payload)?;
        let (anchors, record) = Self::find(&mut flash)?;
        if record.data_blocks == 0 || record.data_blocks >= flash.blocks() {
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
                let at = Place { page: newest.end, ..newest.at };
                return Ok((Self { at, is_suspect: true }, newest.record));
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
        Ok(Self { at: Place { block: 1, page: flash.pages_per_block() }, is_suspect: false })
    }

    /// Adds a record.
    pub fn write<N: Nand>(&mut self, flash: &mut Flash<N>, record: &Record) -> Result<()> {
        if core::mem::take(&mut self.is_suspect) && self.at.page + 1 < flash.pages_per_block() {
            self.at.page += 1;
            flash.use_up(self.at)?;
        }
        for _ in 0..2 * flash.pages_per_block() {
            let at = self.next(flash)?.ok_or(Error::WornOut)?;
            self.at = at;
            let volume = flash.volume();
            flash.set_volume(Self::VOLUME);
            let tag = Tag { kind: Kind::Anchor, ends: true, logical: 0, stamp: 0, extra: 0 };
            let outcome = flash.program_filled(at, tag, Cause::Metadata, |page| encode(record, page));
            flash.set_volume(volume);
            if outcome? == Outcome::Done {
                return Ok(());
            }
        }
        Err(Error::WornOut)
    }

    /// The page for the next record; `None` where both blocks have gone bad.
    fn next<N: Nand>(&self, flash: &mut Flash<N>) -> Result<Option<Place>> {
        let page = self.at.page + 1;
        if page < flash.pages_per_block() {
            return Ok(Some(Place { page, ..self.at }));
        }
        let other = 1 - self.at.block;
        let outcome = flash.erase(other, Cause::Metadata)?;
        Ok((outcome == Outcome::Done).then_some(Place { block: other, page: 0 }))
    }
}

fn last_in<N: Nand>(flash: &mut Flash<N>, block: u32) -> Result<Option<Newest>> {
    let mut last: Option<Newest> = None;
    for page in 0..flash.pages_per_block() {
        let at = Place { block, page };
        let found = flash.read(at, &mut [], Cause::Metadata)?;
        // A page that was torn may read as erased, with others programmed after it.
        if found != Found::Erased {
            last = last.map(|last| Newest { end: page, ..last });
        }
        if let Some(Tag { kind: Kind::Anchor, stamp, .. }) = found.tag() {
            last = decode(flash.page()).map(|record| Newest { stamp, at, end: page, record }).or(last);
        }
    }
    Ok(last)
}

fn encode(record: &Record, page: &mut [u8]) {
    let numbers = [record.volume, u32::from(record.scheme), record.data_blocks, record.logs, record.ring.len() as u32];
    let numbers = numbers.into_iter().chain(record.ring.iter().copied());
    let bytes = MAGIC.into_iter().chain(numbers.flat_map(u32::to_le_bytes));
    page.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = byte);
}

fn decode(page: &[u8]) -> Option<Record> {
    let (magic, rest) = page.split_first_chunk::<8>()?;
    let mut numbers = rest.chunks_exact(4).map(|bytes| bytes.try_into().map_or(0, u32::from_le_bytes));
    let mut next = || numbers.next();
    let (volume, scheme, data_blocks, logs, count) = (next()?, next()?, next()?, next()?, next()? as usize);
    if *magic != MAGIC || count > RING_MAX {
        return None;
    }
    let ring: Vec<u32> = numbers.take(count).collect();
    Some(Record { volume, scheme: u8::try_from(scheme).ok()?, data_blocks, logs, ring })
}
