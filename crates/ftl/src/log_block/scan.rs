//! The start-up of the scheme without map blocks (L-M): every block is read, the last page of a data block vouching for it.
//!
//! Of two data blocks for the same sectors the one with the later last page counts; a log block counts if it is later than
//! its data block. Invariant: what counts before a power cut counts after it, for a block is erased only when another one,
//! with a later last page, has taken its place.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::log::{Scan, beginning, scan};
use super::table::Table;
use crate::Result;
use crate::flash::block_map::BlockMap;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Place, newer, still_reads};

/// What a start-up finds on the chip, besides the free blocks, which are in the pool then.
pub(super) struct Scanned {
    pub table: Table,
    pub logs: Vec<(u32, Scan)>,
    /// The highest stamp of a page that ends a request.
    pub ended: u64,
    pub newest: Option<(Place, Tag)>,
    /// Whole blocks of a request that does not count.
    pub void: Vec<u32>,
}

/// A block that holds the sectors of a data block, up to its last page.
struct Whole {
    block: u32,
    owner: u32,
    /// Stamp of its last page.
    stamp: u64,
    made: Made,
}

/// How a block came to hold all of a data block's sectors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    /// By a request that wrote all of it.
    AtOnce,
    /// By requests that wrote it as a log block, in order.
    InOrder,
    /// By a merge.
    Merged,
}

/// What the blocks of a chip hold.
struct Sorted {
    wholes: Vec<Whole>,
    logs: Vec<(u32, Scan)>,
    free: Vec<u32>,
    ended: u64,
    newest: Option<(Place, Tag)>,
}

pub(super) fn scan_all<N: Nand>(flash: &mut Flash<N>, data_blocks: u32) -> Result<Scanned> {
    let mut sorted = sort(flash)?;
    while !still_reads(flash, sorted.newest)? {
        sorted = sort(flash)?;
    }
    let Sorted { wholes, mut logs, free, ended, newest } = sorted;
    free.into_iter().for_each(|block| flash.pool.release(block));
    let mut void = Vec::new();
    let mut newest_of: Vec<Option<Whole>> = (0..data_blocks).map(|_| None).collect();
    for whole in wholes {
        let is_void = whole.stamp > ended;
        match newest_of.get_mut(whole.owner as usize) {
            _ if is_void && whole.made == Made::AtOnce => void.push(whole.block),
            // Its last pages do not count: it is a log block still.
            _ if is_void && whole.made == Made::InOrder => {
                logs.push((whole.block, scan(flash, whole.block, u64::MAX)?))
            }
            Some(slot) if slot.as_ref().is_none_or(|other| other.stamp < whole.stamp) => {
                slot.replace(whole).iter().for_each(|other| flash.pool.release(other.block));
            }
            _ => flash.pool.release(whole.block),
        }
    }
    let mut kept: Vec<(u32, Scan)> = Vec::new();
    for (block, scan) in logs {
        let stamp = scan.newest.map_or(0, |(_, tag)| tag.stamp);
        let owner = scan.log.as_ref().map(|log| log.owner);
        let whole = owner.and_then(|owner| newest_of.get(owner as usize)).and_then(Option::as_ref);
        if owner.is_some_and(|owner| owner < data_blocks) && whole.is_none_or(|whole| whole.stamp < stamp) {
            kept.push((block, scan));
        } else {
            flash.pool.release(block);
        }
    }
    let mut blocks = BlockMap::new(data_blocks);
    for (owner, whole) in (0..).zip(&newest_of) {
        blocks.set(owner, whole.as_ref().map(|whole| whole.block));
    }
    Ok(Scanned { table: Table::Scanned(blocks), logs: kept, ended, newest, void })
}

/// Reads every block as far as it takes to know what it is.
fn sort<N: Nand>(flash: &mut Flash<N>) -> Result<Sorted> {
    let mut sorted = Sorted { wholes: Vec::new(), logs: Vec::new(), free: Vec::new(), ended: 0, newest: None };
    for block in flash.usable().collect::<Vec<_>>() {
        let last = Place { block, page: flash.pages_per_block() - 1 };
        let end = flash.read(last, &mut [], Cause::Metadata)?.tag();
        if let Some(tag) = end.filter(|tag| matches!(tag.kind, Kind::Data | Kind::Merged | Kind::Hole | Kind::Lost)) {
            flash.saw_stamp(tag.stamp);
            sorted.newest = newer(sorted.newest, Some((last, tag)));
            sorted.ended = sorted.ended.max(if tag.ends { tag.stamp } else { 0 });
            let owner = flash.split(u64::from(tag.logical)).0;
            let made = if tag.kind == Kind::Data { Made::AtOnce } else { Made::Merged };
            sorted.wholes.push(Whole { block, owner, stamp: tag.stamp, made });
            continue;
        }
        let first = beginning(flash, block)?;
        first.iter().chain(&end).for_each(|tag| flash.saw_stamp(tag.stamp));
        if first.is_some() || end.is_some_and(|tag| matches!(tag.kind, Kind::Log | Kind::Trim)) {
            let scan = scan(flash, block, u64::MAX)?;
            scan.newest.iter().for_each(|(_, tag)| flash.saw_stamp(tag.stamp));
            sorted.ended = sorted.ended.max(scan.ended);
            sorted.newest = newer(sorted.newest, scan.newest);
            match &scan.log {
                Some(log) if log.in_order() == Some(flash.pages_per_block()) => {
                    let (owner, stamp) = (log.owner, log.written());
                    sorted.wholes.push(Whole { block, owner, stamp, made: Made::InOrder });
                }
                _ => sorted.logs.push((block, scan)),
            }
        } else {
            sorted.free.push(block);
        }
    }
    Ok(sorted)
}
