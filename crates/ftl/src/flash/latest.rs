//! The latest page of every sector, found by reading the tag of every page: how schemes open that keep no map on flash.
//!
//! Invariant: a block is passed over only if every page in it is a copy of one that is still there.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::anchor::ANCHOR_BLOCKS;
use super::tag::{Kind, Tag};
use super::{Flash, Found, Place, newer, still_reads};
use crate::Result;

/// What the tag of a page says that a merge copied.
pub const COPIED: u16 = 1;

/// The latest page of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latest {
    pub at: Place,
    pub kind: Kind,
    pub stamp: u64,
}

/// What was read of a chip.
pub struct Scanned {
    /// The latest page of each sector; `None` where it stands nowhere.
    latest: Vec<Option<Latest>>,
    /// The newest page of all.
    pub newest: Option<(Place, Tag)>,
    /// Blocks with a page that cannot be read.
    pub torn: Vec<u32>,
    /// Blocks that a merge began.
    copied: BTreeMap<u32, Copied>,
}

/// The stamp of a block's first page, and the place after its last.
struct Copied {
    begun: u64,
    end: u32,
}

impl Scanned {
    /// Whether a merge was copying to this block when the power went: pages of its data block are missing at its end that
    /// were there before it was begun, so that every block which it is copied from is still there. Where such blocks counted,
    /// power cuts in a row would take a free block each. One page that is missing may be lost, and proves nothing.
    fn is_cut_merge(&self, data_block: u32, block: u32, pages_per_block: u32) -> bool {
        let Some(&Copied { begun, end }) = self.copied.get(&block) else { return false };
        let its = self.of_block(data_block, pages_per_block);
        let is_older = |latest: Latest| latest.at.block != block && latest.stamp < begun;
        its.iter().rposition(|latest| latest.is_some_and(is_older)).is_some_and(|last| last > end as usize)
    }

    /// The latest page of each sector; `None` where it stands nowhere.
    pub fn all(&self) -> impl Iterator<Item = Option<Latest>> + '_ {
        self.latest.iter().copied()
    }

    /// The latest pages of a data block's sectors.
    pub fn of_block(&self, data_block: u32, pages_per_block: u32) -> &[Option<Latest>] {
        let first = data_block as usize * pages_per_block as usize;
        self.latest.get(first..first + pages_per_block as usize).unwrap_or_default()
    }
}

/// Reads the whole chip, until the newest page reads as it did, and until no block is left that a merge was copying to
/// when the power went: it is passed over. A page that holds a sector is passed over where `may_stand` says that it
/// cannot stand at its place. `holders` names the blocks that the latest pages of data blocks are taken to stand in.
pub fn scan_settled<N: Nand>(
    flash: &mut Flash<N>,
    sectors: u64,
    may_stand: impl Fn(Place, &Tag) -> bool,
    mut holders: impl FnMut(&Scanned) -> Vec<(u32, u32)>,
) -> Result<Scanned> {
    let mut void = Vec::new();
    loop {
        let found = scan(flash, sectors as usize, &void, &may_stand)?;
        if !still_reads(flash, found.newest)? {
            continue;
        }
        let (held, pages) = (holders(&found), flash.pages_per_block());
        let cut = held.into_iter().filter(|&(data_block, block)| found.is_cut_merge(data_block, block, pages));
        let known = void.len();
        void.extend(cut.map(|(_, block)| block));
        if void.len() == known {
            return Ok(found);
        }
    }
}

/// Reads the whole chip but for the blocks in `void`.
fn scan<N: Nand>(
    flash: &mut Flash<N>,
    sectors: usize,
    void: &[u32],
    may_stand: impl Fn(Place, &Tag) -> bool,
) -> Result<Scanned> {
    let latest = alloc::vec![None; sectors];
    let mut scanned = Scanned { latest, newest: None, torn: Vec::new(), copied: BTreeMap::new() };
    for block in ANCHOR_BLOCKS..flash.blocks() {
        if flash.is_bad(block) || void.contains(&block) {
            continue;
        }
        let mut is_first = true;
        for page in 0..flash.pages_per_block() {
            let at = Place { block, page };
            let found = flash.read(at, &mut [], Cause::Metadata)?;
            if found == Found::Unreadable && scanned.torn.last() != Some(&block) {
                scanned.torn.push(block);
            }
            let Some(tag) = found.tag() else { continue };
            flash.saw_stamp(tag.stamp);
            if core::mem::take(&mut is_first) && tag.extra == COPIED {
                scanned.copied.insert(block, Copied { begun: tag.stamp, end: page });
            }
            scanned.copied.entry(block).and_modify(|copied| copied.end = page + 1);
            scanned.newest = newer(scanned.newest, Some((at, tag)));
            let Tag { kind, stamp, .. } = tag;
            let is_no_sector = matches!(kind, Kind::Map | Kind::Anchor | Kind::Filler);
            let Some(slot) = scanned.latest.get_mut(tag.logical as usize).filter(|_| !is_no_sector) else { continue };
            if slot.is_none_or(|latest| latest.stamp < stamp) && may_stand(at, &tag) {
                *slot = Some(Latest { at, kind, stamp });
            }
        }
    }
    Ok(scanned)
}
