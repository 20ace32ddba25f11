//! Finding the map again at a start-up, by reading map blocks only (paper §III.C).
//!
//! The newest page that ends a sequence has the pool's fragment and, where it fits, the directory; else the map blocks are
//! read backwards from there until every fragment is found. Invariant: a sequence that was cut before its end counts for
//! nothing.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::fragment::Shape;
use super::map_blocks::{MapBlocks, NOWHERE};
use crate::flash::anchor::{Anchors, Record};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found, Place};
use crate::{Error, Result};

/// What a mount finds in the map blocks.
pub(super) struct Mounted {
    pub map: MapBlocks,
    pub logs: Vec<u32>,
    pub free: Vec<u32>,
    /// Stamp of the newest page of the map.
    pub stamp: u64,
    /// Every request up to this stamp is whole, or left nothing.
    pub resolved: u64,
}

/// The newest page that ends a sequence, and the end of what is programmed in the round.
struct Newest {
    at: Place,
    tag: Tag,
    current: usize,
    next_page: u32,
}

impl MapBlocks {
    /// Finds the newest page of the map, reading map blocks only.
    pub fn open<N: Nand>(
        flash: &mut Flash<N>,
        shape: Shape,
        anchors: Anchors,
        record: Record,
        swap_every: u32,
    ) -> Result<Mounted> {
        let mut map = Self::new(flash, shape, anchors, record, swap_every);
        let newest = map.find_newest(flash)?;
        (map.current, map.next_page, map.is_suspect) = (newest.current, newest.next_page, true);
        let half = flash.page().get(..shape.bytes).unwrap_or_default();
        let listed = shape.decode(half).ok_or(Error::NoVolume("the newest page of the map is not one"))?;
        if let (Some(half), true) = (flash.page().get(shape.bytes..), newest.tag.logical < shape.fragments()) {
            map.cache.copy_from_slice(half);
            map.cached = newest.tag.logical;
        }
        if listed.directory.len() == map.directory.len() {
            for (fragment, &place) in (0..).zip(&listed.directory) {
                map.directory.set(fragment, Some(place).filter(|&place| place != NOWHERE));
            }
        } else {
            map.scan(flash, newest.at)?;
        }
        // The anchor knows the round; the page may have been written before the last change of it.
        if map.anchors.stamp() < newest.tag.stamp {
            map.record.dropped.clear();
        }
        let Record { ring, dropped, .. } = &map.record;
        let free = listed.free.iter().filter(|block| !ring.contains(block)).chain(dropped).copied();
        let free = free.filter(|&block| !flash.is_bad(block)).collect();
        let logs = listed.logs.into_iter().filter(|&block| !flash.is_bad(block)).collect();
        Ok(Mounted { map, logs, free, stamp: newest.tag.stamp, resolved: listed.resolved })
    }

    fn find_newest<N: Nand>(&self, flash: &mut Flash<N>) -> Result<Newest> {
        loop {
            let newest = self.search(flash)?.ok_or(Error::NoVolume("the map blocks hold no map"))?;
            flash.saw_stamp(newest.tag.stamp);
            // A page that was torn by the cut may have been read for the first and last time.
            if let Found::Page(tag) = flash.read(newest.at, &mut [], Cause::Metadata)?
                && tag == newest.tag
            {
                return Ok(newest);
            }
        }
    }

    fn search<N: Nand>(&self, flash: &mut Flash<N>) -> Result<Option<Newest>> {
        let mut begun = Vec::new();
        for (turn, &block) in self.record.ring.iter().enumerate() {
            begun.extend(first_stamp(flash, block)?.map(|stamp| (stamp, turn, block)));
        }
        begun.sort_unstable_by(|one, other| other.cmp(one));
        let mut end = None;
        for (_, turn, block) in begun {
            let mut last = None;
            let mut next_page = 0;
            for page in 0..flash.pages_per_block() {
                let at = Place { block, page };
                let found = flash.read(at, &mut [], Cause::Metadata)?;
                // A page that was torn may read as erased, with others programmed after it.
                if found != Found::Erased {
                    next_page = page + 1;
                }
                if let Some(tag) = found.tag() {
                    flash.saw_stamp(tag.stamp);
                    if tag.kind == Kind::Map && tag.ends {
                        last = Some((at, tag));
                    }
                }
            }
            let (current, next_page) = *end.get_or_insert((turn, next_page));
            if let Some((at, tag)) = last {
                return Ok(Some(Newest { at, tag, current, next_page }));
            }
        }
        Ok(None)
    }

    /// Finds the newest page of every fragment: backwards from the newest of all, until each is found.
    fn scan<N: Nand>(&mut self, flash: &mut Flash<N>, from: Place) -> Result<()> {
        let ring = self.record.ring.clone();
        let start = ring.iter().position(|&block| block == from.block).unwrap_or(0);
        let mut missing = self.directory.len();
        // Pages before one that ends a sequence belong to it as far as it says; others were never committed.
        let mut in_sequence = 0;
        for back in 0..ring.len() {
            let block = ring.get((start + ring.len() - back) % ring.len()).copied().unwrap_or(from.block);
            let last = if back == 0 { from.page } else { flash.pages_per_block() - 1 };
            for page in (0..=last).rev() {
                if missing == 0 {
                    return Ok(());
                }
                let Some(Found::Page(tag)) = read_map_tag(flash, Place { block, page })? else { continue };
                if tag.ends {
                    in_sequence = u32::from(tag.extra) + 1;
                }
                if in_sequence == 0 {
                    continue;
                }
                in_sequence -= 1;
                let packed = Place { block, page }.pack(flash.pages_per_block());
                if tag.logical < self.shape.fragments() && self.directory.get(tag.logical).is_none() {
                    self.directory.set(tag.logical, Some(packed));
                    missing -= 1;
                }
            }
        }
        Ok(())
    }
}

/// The stamp of the first page of a map block that can be read: the very first may have been torn.
fn first_stamp<N: Nand>(flash: &mut Flash<N>, block: u32) -> Result<Option<u64>> {
    for page in 0..flash.pages_per_block() {
        match flash.read(Place { block, page }, &mut [], Cause::Metadata)? {
            Found::Erased => return Ok(None),
            Found::Page(tag) if tag.kind == Kind::Map => return Ok(Some(tag.stamp)),
            Found::Page(_) | Found::Unreadable => {}
        }
    }
    Ok(None)
}

/// A page's tag, if the page is one of the map.
fn read_map_tag<N: Nand>(flash: &mut Flash<N>, at: Place) -> Result<Option<Found>> {
    let found = flash.read(at, &mut [], Cause::Metadata)?;
    Ok(Some(found).filter(|found| found.tag().is_some_and(|tag| tag.kind == Kind::Map)))
}
