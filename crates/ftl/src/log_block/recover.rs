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
use crate::device::{Layer, Span};
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::pool::Pool;
use crate::flash::tag::{Kind, Tag};
use crate::flash::{Flash, Outcome, Place, newer, still_reads};
use crate::settings::Options;
use crate::{Error, Result, Scheme};

/// Log blocks as they were read.
struct Logs {
    scans: Vec<(u32, Scan)>,
    /// The highest stamp of a page that ends a request.
    ended: u64,
    newest: Option<(Place, Tag)>,
}

impl<N: Nand> LogBlock<N> {
    /// Opens the volume on a chip.
    pub fn open(chip: N, options: Options) -> Result<Self> {
        let (flash, anchors, record) = Anchors::open(chip, options.payload)?;
        if record.logs < 2 {
            return Err(Error::NoVolume("the anchor's parameters do not fit the chip"));
        }
        if record.scheme == Scheme::LogBlock.code() {
            Self::open_mapped(flash, options, anchors, record)
        } else if record.scheme == Scheme::LogBlockScanned.code() {
            Self::open_scanned(flash, options, record)
        } else {
            Err(Error::NoVolume("it is of another scheme"))
        }
    }

    fn open_mapped(mut flash: Flash<N>, options: Options, anchors: Anchors, record: Record) -> Result<Self> {
        let shape = Self::shape(&flash, &record);
        let (data_blocks, logs_max) = (record.data_blocks, record.logs);
        let mounted = MapBlocks::open(&mut flash, shape, anchors, record, options.swap_every)?;
        let Mounted { map, logs, free, stamp, resolved } = mounted;
        let mut candidates = logs;
        let mut pool = Pool::default();
        for block in free {
            // A log block that was opened after the newest page of the map was written.
            if beginning(&mut flash, block)?.is_some_and(|tag| tag.stamp > stamp) {
                candidates.push(block);
            } else {
                pool.release(block);
            }
        }
        let logs = read_logs(&mut flash, &candidates)?;
        let ended = logs.ended.max(resolved);
        let table = Table::Mapped(map);
        let device = Self { flash, options, data_blocks, logs_max, table, pool, logs: Vec::new(), has_failed: false };
        let newest = logs.newest.filter(|(_, tag)| tag.stamp > stamp);
        device.settle(logs.scans, ended, newest, &[])
    }

    /// The fragments of a volume. What the pool's fragment lists follows from the blocks that are good.
    fn shape(flash: &Flash<N>, record: &Record) -> Shape {
        let (page_bytes, blocks) = (flash.page_bytes(), flash.blocks());
        // A map block that has gone bad stays in the round until it is cleaned.
        let bad = (0..blocks).filter(|&block| flash.is_bad(block) && !record.ring.contains(&block)).count();
        let others = bad + record.ring.len() + ANCHOR_BLOCKS as usize;
        let listed = (blocks - record.data_blocks).saturating_sub(others as u32).saturating_sub(record.reserve);
        Shape::with_reserve(page_bytes, blocks, record.data_blocks, listed, record.reserve)
    }

    fn open_scanned(mut flash: Flash<N>, options: Options, record: Record) -> Result<Self> {
        let Scanned { table, logs, pool, ended, newest, void } = scan_all(&mut flash, record.data_blocks)?;
        let (data_blocks, logs_max) = (record.data_blocks, record.logs);
        let device = Self { flash, options, data_blocks, logs_max, table, pool, logs: Vec::new(), has_failed: false };
        device.settle(logs, ended, newest, &void)
    }

    /// Undoes what is void, or writes the newest page anew. `wholes` are whole blocks of a request that is void.
    fn settle(
        mut self,
        scans: Vec<(u32, Scan)>,
        ended: u64,
        newest: Option<(Place, Tag)>,
        wholes: &[u32],
    ) -> Result<Self> {
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
                None => self.pool.release(block),
            }
        }
        for &block in wholes {
            if self.flash.erase(block, Cause::Metadata)? == Outcome::Failed {
                self.flash.mark_bad(block)?;
            } else {
                self.pool.release(block);
            }
        }
        if !torn.is_empty() {
            self.undo_logs(&torn, ended, None)?;
            self.refresh_map()?;
        } else if let Some((at, tag)) = newest {
            self.write_anew(at, tag)?;
        } else {
            self.refresh_map()?;
        }
        Ok(self)
    }

    /// The newest page of the map is written anew, with the pool as it is.
    pub(super) fn refresh_map(&mut self) -> Result<()> {
        match &mut self.table {
            Table::Mapped(map) => {
                let books = &mut Books { logs: &self.logs, pool: &mut self.pool, resolved: None };
                map.refresh(&mut self.flash, books)
            }
            Table::Scanned(_) => Ok(()),
        }
    }

    /// The newest page of the log blocks is written anew, as its request would be.
    fn write_anew(&mut self, at: Place, tag: Tag) -> Result<()> {
        match tag.kind {
            Kind::Log => {
                let mut data = alloc::vec![0; self.flash.page_bytes()];
                self.flash.read(at, &mut data, Cause::Metadata)?;
                let span = Span { first: u64::from(tag.logical), count: 1 };
                self.change(|device| device.write_span(span, &data))
            }
            _ => Ok(()),
        }
    }
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

/// The blocks that may hold data or logs.
pub(super) fn usable<N: Nand>(flash: &Flash<N>) -> Vec<u32> {
    (ANCHOR_BLOCKS..flash.blocks()).filter(|&block| !flash.is_bad(block)).collect()
}
