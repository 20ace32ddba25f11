//! The block map in map blocks, which are written in a round: the current one page by page, while the next one is cleaned.
//!
//! Every page holds the pool's fragment and one fragment of the map (see [`super::fragment`]); fragments are fetched on
//! demand, and a directory says where the newest page of each stands. Invariant: the current map block has as many pages
//! left as the next one has pages that count, so that the next one can always be cleaned before it is erased.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::fragment::{Listed, Shape, Standing};
use super::log::Log;
use super::places::Places;
use crate::flash::anchor::{Anchors, Record};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Found, Outcome, Place};
use crate::{Error, Result};

/// A page that carries no fragment of the map.
pub(super) const NO_FRAGMENT: u32 = u32::MAX;
/// A fragment that was never written.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A data block that changes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub block: u32,
    pub now: Standing,
}

/// What the pool's fragment is made of.
pub(super) struct Books<'a> {
    pub logs: &'a [Log],
    /// The last stamp up to which every request is whole, where one is being undone.
    pub resolved: Option<u64>,
}

/// The block map on flash. Its parts are plain values to the files beside this one.
#[derive(Clone, Debug)]
pub(super) struct MapBlocks {
    pub(super) shape: Shape,
    pub(super) anchors: Anchors,
    /// Holds the round of map blocks.
    pub(super) record: Record,
    /// Map blocks of the round while none has failed.
    pub(super) ring_len: usize,
    /// The current map block's place in the round.
    pub(super) current: usize,
    pub(super) next_page: u32,
    /// That page may have been half programmed when the power went.
    pub(super) is_suspect: bool,
    /// The next map block of the round needs no erase before it is used.
    pub(super) next_is_erased: bool,
    /// Where the newest page of each fragment stands.
    pub(super) directory: Places,
    /// The fragment in `cache`.
    pub(super) cached: u32,
    pub(super) cache: Vec<u8>,
    /// Map blocks begun.
    pub(super) turns: u32,
    /// After so many of them one is exchanged for a free block; 0: never.
    pub(super) swap_every: u32,
    /// Fragments of the reserve that may have blocks still; they are used up from the last one on.
    pub(super) reserve_left: u32,
}

impl MapBlocks {
    /// The map of a new volume: each data block has a block of its own, which holds nothing.
    pub fn format<N: Nand>(
        flash: &mut Flash<N>,
        shape: Shape,
        record: Record,
        books: &Books<'_>,
        data: &[u32],
        reserve: &[u32],
    ) -> Result<Self> {
        let first = *record.ring.first().ok_or(Error::Unfit("the map needs blocks"))?;
        if flash.erase(first, Cause::Metadata)? == Outcome::Failed {
            return Err(Error::Unfit("a map block is bad and not marked so"));
        }
        let anchors = Anchors::format(flash)?;
        let mut map = Self::new(flash, shape, anchors, record, 0);
        for (fragment, blocks) in data.chunks(shape.entries() as usize).enumerate() {
            map.make_room(flash, books, 1)?;
            let first = fragment as u32 * shape.entries();
            let empty = |&block: &u32| Standing { block, is_empty: true };
            let changes = (first..).zip(blocks.iter().map(empty)).map(|(block, now)| Change { block, now });
            map.write(flash, books, &changes.collect::<Vec<_>>())?;
        }
        for (fragment, blocks) in (shape.count..).zip(reserve.chunks(shape.entries() as usize)) {
            map.format_reserve(flash, books, fragment, blocks)?;
        }
        map.anchors.write(flash, &map.record)?;
        Ok(map)
    }

    pub(super) fn new<N: Nand>(
        flash: &Flash<N>,
        shape: Shape,
        anchors: Anchors,
        record: Record,
        swap_every: u32,
    ) -> Self {
        let cache = alloc::vec![0xff; flash.page_bytes() / 2];
        let directory = Places::new(shape.fragments(), u64::from(flash.blocks()) * u64::from(flash.pages_per_block()));
        let ring_len = record.ring.len();
        Self {
            shape,
            anchors,
            record,
            ring_len,
            current: 0,
            next_page: 0,
            is_suspect: false,
            next_is_erased: false,
            directory,
            cached: NO_FRAGMENT,
            cache,
            turns: 0,
            swap_every,
            reserve_left: shape.reserve,
        }
    }

    pub(super) fn next(&self) -> usize {
        (self.current + 1) % self.record.ring.len().max(1)
    }

    pub(super) fn block_at(&self, turn: usize) -> u32 {
        self.record.ring.get(turn).copied().unwrap_or_default()
    }

    /// Where a data block stands.
    pub fn find<N: Nand>(&mut self, flash: &mut Flash<N>, block: u32) -> Result<Standing> {
        let (fragment, at) = self.shape.split(block);
        self.fetch(flash, fragment)?;
        self.shape.entry(&self.cache, at).ok_or(Error::NoVolume("a data block is beyond the map"))
    }

    /// Brings a fragment into the cache.
    pub(super) fn fetch<N: Nand>(&mut self, flash: &mut Flash<N>, fragment: u32) -> Result<()> {
        if self.cached == fragment {
            return Ok(());
        }
        self.cached = NO_FRAGMENT;
        let Some(place) = self.directory.get(fragment) else {
            self.cache.fill(0xff);
            self.cached = fragment;
            return Ok(());
        };
        let found = flash.read(Place::unpack(place, flash.pages_per_block()), &mut [], Cause::Metadata)?;
        let half = flash.page().get(self.shape.bytes..).unwrap_or_default();
        match found {
            Found::Page(tag) if tag.kind == Kind::Map && tag.logical == fragment && half.len() == self.cache.len() => {
                self.cache.copy_from_slice(half);
            }
            _ => {
                let first = u64::from(fragment) * u64::from(self.shape.entries());
                return Err(Error::Unreadable { sector: first * u64::from(flash.pages_per_block()) });
            }
        }
        self.cached = fragment;
        Ok(())
    }

    /// Writes changes of the map in one sequence of pages, which a power cut leaves whole or not at all. Room was made.
    pub fn write<N: Nand>(&mut self, flash: &mut Flash<N>, books: &Books<'_>, changes: &[Change]) -> Result<()> {
        let mut fragments: Vec<u32> = changes.iter().map(|change| self.shape.split(change.block).0).collect();
        fragments.sort_unstable();
        fragments.dedup();
        'sequence: loop {
            for (at, &fragment) in fragments.iter().enumerate() {
                self.fetch(flash, fragment)?;
                let its = changes.iter().map(|change| (self.shape.split(change.block), change.now));
                for ((_, at), now) in its.filter(|((other, _), _)| *other == fragment) {
                    self.shape.set_entry(&mut self.cache, at, now);
                }
                let ends = at + 1 == fragments.len();
                let before = if ends { at as u16 } else { 0 };
                flash.counts_mut().map_writes += 1;
                if self.put(flash, books, fragment, ends, before)? == Outcome::Failed {
                    self.replace_current(flash)?;
                    continue 'sequence;
                }
            }
            return Ok(());
        }
    }

    /// Writes the pool's fragment anew, and with it the fragment that is in the cache.
    pub fn refresh<N: Nand>(&mut self, flash: &mut Flash<N>, books: &Books<'_>) -> Result<()> {
        let fragment = self.cached;
        self.make_room(flash, books, 1)?;
        loop {
            if fragment != NO_FRAGMENT {
                self.fetch(flash, fragment)?;
            }
            if self.put(flash, books, fragment, true, 0)? == Outcome::Done {
                return Ok(());
            }
            self.replace_current(flash)?;
        }
    }

    /// Programs one page of the map: the pool's fragment, and the cache as that fragment.
    pub(super) fn put<N: Nand>(
        &mut self,
        flash: &mut Flash<N>,
        books: &Books<'_>,
        fragment: u32,
        ends: bool,
        before: u16,
    ) -> Result<Outcome> {
        let at = Place { block: self.block_at(self.current), page: self.next_page };
        let packed = at.pack(flash.pages_per_block());
        let was = self.directory.get(fragment);
        self.directory.set(fragment, Some(packed));
        let listed = Listed {
            logs: books.logs.iter().map(|log| log.block).collect(),
            free: flash.pool.listed().collect(),
            directory: if self.shape.holds_directory {
                self.directory.iter().map(|place| place.unwrap_or(NOWHERE)).collect()
            } else {
                Vec::new()
            },
            resolved: books.resolved.unwrap_or(flash.next_stamp()),
        };
        if !self.shape.has_room(&listed) {
            return Err(Error::MapFull { pages: 1 });
        }
        let tag = Tag { kind: Kind::Map, ends, logical: fragment, stamp: 0, extra: before };
        let (shape, cache) = (self.shape, &self.cache);
        let outcome = flash.program_filled(at, tag, Cause::Metadata, |page| {
            let (pool, own) = page.split_at_mut(shape.bytes.min(page.len()));
            shape.encode(&listed, pool);
            own.iter_mut().zip(cache).for_each(|(slot, byte)| *slot = *byte);
        })?;
        self.next_page += 1;
        match outcome {
            Outcome::Done => self.record.dropped.clear(),
            Outcome::Failed => self.directory.set(fragment, was),
        }
        Ok(outcome)
    }

    /// How often a map block is exchanged for a free one.
    pub fn set_swap_every(&mut self, swap_every: u32) {
        self.swap_every = swap_every;
    }

    /// The map blocks.
    pub fn ring(&self) -> &[u32] {
        &self.record.ring
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        size_of::<Self>()
            + (self.record.ring.capacity() + self.record.dropped.capacity()) * size_of::<u32>()
            + self.directory.ram_bytes()
            + self.cache.capacity()
    }
}
