//! Opening a volume: the map is found, then the log blocks are read; what a power cut left undone is undone.
//!
//! One operation at most was under way when the power went. The newest page is read twice, and written anew: it may be torn
//! and not show it. A page is *void* if it is newer than every page that ends a request. Invariant: after an opening no page
//! is void, and nothing but void pages is lost.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use super::LogBlock;
use super::fragment::Shape;
use super::log::{Scan, beginning, scan};
use super::map_blocks::{Books, MapBlocks};
use super::map_open::Mounted;
use super::scan::{Scanned, scan_all};
use super::table::Table;
use crate::Result;
use crate::device::Span;
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Outcome, Place, newer, still_reads, to_write_anew};

/// Log blocks as they were read.
struct Logs {
    scans: Vec<(u32, Scan)>,
    /// The highest stamp of a page that ends a request.
    ended: u64,
    newest: Option<(Place, Tag)>,
}

impl LogBlock {
    /// Finds the mapping of a volume with map blocks.
    pub(super) fn recover_mapped(
        &mut self,
        flash: &mut Flash<impl Nand>,
        anchors: Anchors,
        record: Record,
    ) -> Result<()> {
        let shape = shape(flash, &record);
        let mounted = MapBlocks::open(flash, shape, anchors, record, self.options.swap_every)?;
        let Mounted { map, logs, free, stamp, resolved } = mounted;
        let mut candidates = logs;
        for block in free {
            // A log block that was opened after the newest page of the map was written.
            if beginning(flash, block)?.is_some_and(|tag| tag.stamp > stamp) {
                candidates.push(block);
            } else {
                flash.pool.release(block);
            }
        }
        let logs = read_logs(flash, &candidates)?;
        let ended = logs.ended.max(resolved);
        self.table = Table::Mapped(map);
        let newest = logs.newest.filter(|(_, tag)| tag.stamp > stamp);
        self.settle(flash, logs.scans, ended, newest, &[])
    }

    /// Finds the mapping of a volume without map blocks.
    pub(super) fn recover_scanned(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        let Scanned { table, logs, ended, newest, void } = scan_all(flash, self.data_blocks)?;
        self.table = table;
        self.settle(flash, logs, ended, newest, &void)
    }

    /// Undoes what is void, or writes the newest page anew. `wholes` are whole blocks of a request that is void.
    fn settle(
        &mut self,
        flash: &mut Flash<impl Nand>,
        scans: Vec<(u32, Scan)>,
        ended: u64,
        newest: Option<(Place, Tag)>,
        wholes: &[u32],
    ) -> Result<()> {
        let mut torn = Vec::new();
        for (block, scan) in scans {
            let is_void = scan.newest.is_some_and(|(_, tag)| tag.stamp > ended);
            match scan.log {
                Some(log) => {
                    if is_void {
                        torn.push(block);
                    }
                    self.logs.push(log);
                }
                None => flash.pool.release(block),
            }
        }
        for &block in wholes {
            if flash.erase(block, Cause::Metadata)? == Outcome::Failed {
                flash.mark_bad(block)?;
            } else {
                flash.pool.release(block);
            }
        }
        if !torn.is_empty() {
            self.undo_logs(flash, &torn, ended, None)?;
            self.refresh_map(flash)?;
        } else if newest.is_some() {
            self.write_anew(flash, newest)?;
        } else {
            self.refresh_map(flash)?;
        }
        Ok(())
    }

    /// The newest page of the map is written anew, with the pool as it is.
    pub(super) fn refresh_map(&mut self, flash: &mut Flash<impl Nand>) -> Result<()> {
        match &mut self.table {
            Table::Mapped(map) => {
                let books = &Books { logs: &self.logs, resolved: None };
                map.refresh(flash, books)
            }
            Table::Scanned(_) => Ok(()),
        }
    }

    /// The newest page of the log blocks is written anew, as its request would be.
    fn write_anew(&mut self, flash: &mut Flash<impl Nand>, newest: Option<(Place, Tag)>) -> Result<()> {
        let newest = newest.filter(|(_, tag)| tag.kind == Kind::Log);
        match to_write_anew(flash, newest, |_, _, _| true)? {
            Some((sector, data)) => self.write_span(flash, Span { first: u64::from(sector), count: 1 }, &data),
            None => Ok(()),
        }
    }
}

/// The fragments of a volume. What the pool's fragment lists follows from the blocks that are good.
fn shape(flash: &Flash<impl Nand>, record: &Record) -> Shape {
    let (page_bytes, blocks) = (flash.page_bytes(), flash.blocks());
    // A map block that has gone bad stays in the round until it is cleaned.
    let bad = (0..blocks).filter(|&block| flash.is_bad(block) && !record.ring.contains(&block)).count();
    let others = bad + record.ring.len() + ANCHOR_BLOCKS as usize;
    let listed = (blocks - record.data_blocks).saturating_sub(others as u32).saturating_sub(record.reserve);
    Shape::with_reserve(page_bytes, blocks, record.data_blocks, listed, record.reserve)
}

/// Reads log blocks. The newest page of all is read twice: if it was torn, the first time may have been the last.
fn read_logs<N: Nand>(flash: &mut Flash<N>, blocks: &[u32]) -> Result<Logs> {
    loop {
        let mut logs = Logs { scans: Vec::new(), ended: 0, newest: None };
        for &block in blocks {
            let scan = scan(flash, block, u64::MAX)?;
            logs.ended = logs.ended.max(scan.ended);
            logs.newest = newer(logs.newest, scan.newest);
            logs.scans.push((block, scan));
        }
        if let Some((_, tag)) = logs.newest {
            flash.saw_stamp(tag.stamp);
        }
        if still_reads(flash, logs.newest)? {
            return Ok(logs);
        }
    }
}
