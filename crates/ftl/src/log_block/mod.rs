//! The log-block scheme (Kim et al. 2002, §III): data blocks mapped by block, and a few log blocks mapped by page.
//!
//! Small writes go to a log block of their data block until that is full, or another data block wants one; then the two
//! are merged, or the log block takes the data block's place as it is. With map blocks (L) the block map is on flash and a
//! start-up reads map blocks and log blocks only; without (L-M) it is in memory, and a start-up reads every block.
//!
//! Invariant: what a request returned for is durable, and a request of several sectors is there as a whole or not at all.

mod fragment;
mod idle;
mod inspect;
mod log;
mod map_blocks;
mod map_open;
mod map_ring;
mod merge;
mod places;
mod recover;
mod reserve;
mod scan;
mod table;
mod trim;
mod undo;
pub mod victim;
mod write;

use alloc::vec::Vec;

use nand::Nand;

use crate::device::{Layer, Span};
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::pool::Pool;
use crate::flash::{Flash, Place};
use crate::look::BlockUse;
use crate::settings::{Format, Options};
use crate::{Error, Result, Scheme};
pub(crate) use fragment::Shape;
use log::{Entry, Log};
use map_blocks::{Books, MapBlocks};
use table::Table;

/// Free blocks that no request takes: for a merge, and for one whose block goes bad in it.
const RESERVE_BLOCKS: u32 = 2;

/// A block device of the log-block scheme.
#[derive(Clone, Debug)]
pub struct LogBlock<N> {
    flash: Flash<N>,
    options: Options,
    data_blocks: u32,
    logs_max: u32,
    table: Table,
    pool: Pool,
    logs: Vec<Log>,
    /// A write failed half way: memory may differ from flash.
    has_failed: bool,
}

impl<N: Nand> LogBlock<N> {
    /// Makes a volume in which every sector reads as zeros.
    pub fn format(chip: N, format: &Format, options: Options) -> Result<Self> {
        let mut flash = Flash::new(chip, format.volume, options.payload)?;
        let blocks = flash.blocks();
        let good: Vec<u32> = (ANCHOR_BLOCKS..blocks).filter(|&block| !flash.is_bad(block)).collect();
        let data_blocks = (ANCHOR_BLOCKS + good.len() as u32).saturating_sub(format.extra_blocks);
        let kept = format.map_blocks.saturating_add(format.logs).saturating_add(ANCHOR_BLOCKS + RESERVE_BLOCKS + 1);
        if !Record::fits(&flash, format.map_blocks as usize) {
            return Err(Error::Unfit("the map takes more blocks than an anchor has room for"));
        }
        if format.logs < 2 || format.extra_blocks < kept || data_blocks == 0 {
            return Err(Error::Unfit("at least two log blocks, and three free blocks beside them, are needed"));
        }
        let (ring, rest) = good.split_at_checked(format.map_blocks as usize).unwrap_or_default();
        let scheme = if ring.is_empty() { Scheme::LogBlockScanned } else { Scheme::LogBlock };
        let (volume, logs) = (format.volume, format.logs);
        let (scheme, ring_blocks) = (scheme.code(), ring.to_vec());
        let record = Record { volume, scheme, data_blocks, logs, ring: ring_blocks, ..Record::default() };
        let (mut pool, no_logs) = (Pool::default(), []);
        let table = if ring.is_empty() {
            rest.iter().for_each(|&block| pool.release(block));
            Anchors::format(&mut flash)?.write(&mut flash, &record)?;
            Table::scanned(data_blocks)
        } else {
            let (data, free) = rest.split_at_checked(data_blocks as usize).unwrap_or_default();
            let listed = free.len().min(Shape::listed_max(flash.page_bytes(), blocks) as usize);
            let (free, reserve) = free.split_at_checked(listed).unwrap_or_default();
            if format.logs.saturating_add(RESERVE_BLOCKS + 1) > listed as u32 {
                return Err(Error::Unfit("the log blocks do not fit one fragment of the map"));
            }
            let record = Record { reserve: reserve.len() as u32, ..record };
            let shape = Shape::with_reserve(flash.page_bytes(), blocks, data_blocks, listed as u32, record.reserve);
            if format.map_blocks < shape.map_blocks_min(flash.pages_per_block()) {
                return Err(Error::Unfit(
                    "the map has too few blocks: half of all but one must be enough for every fragment",
                ));
            }
            free.iter().for_each(|&block| pool.release(block));
            let books = &mut Books { logs: &no_logs, pool: &mut pool, resolved: None };
            let mut map = MapBlocks::format(&mut flash, shape, record, books, data, reserve)?;
            map.set_swap_every(options.swap_every);
            Table::Mapped(map)
        };
        let logs = Vec::with_capacity(logs as usize);
        Ok(Self { flash, options, data_blocks, logs_max: format.logs, table, pool, logs, has_failed: false })
    }

    /// Gives the chip back.
    pub fn into_chip(self) -> N {
        self.flash.into_chip()
    }

    /// Bytes of memory the scheme takes, one page buffer and the chip left out.
    pub fn ram_bytes(&self) -> usize {
        let logs: usize = self.logs.iter().map(Log::ram_bytes).sum();
        let fixed = size_of::<Self>() - size_of::<Flash<N>>() + self.flash.ram_bytes();
        let unused = (self.logs.capacity() - self.logs.len()) * size_of::<Log>();
        fixed + logs + unused + self.table.ram_bytes() + self.pool.ram_bytes()
    }

    /// The place of the log block of a data block.
    fn log_of(&self, block: u32) -> Option<usize> {
        self.logs.iter().position(|log| log.owner == block)
    }
}

impl<N: Nand> Layer for LogBlock<N> {
    type Chip = N;

    fn flash(&self) -> &Flash<N> {
        &self.flash
    }

    fn flash_mut(&mut self) -> &mut Flash<N> {
        &mut self.flash
    }

    fn has_failed(&mut self) -> &mut bool {
        &mut self.has_failed
    }

    fn all_sectors(&self) -> u64 {
        u64::from(self.data_blocks) * u64::from(self.flash.pages_per_block())
    }

    fn write_sectors(&mut self, span: Span, data: &[u8]) -> Result<()> {
        self.write_span(span, data)
    }

    fn trim_sectors(&mut self, span: Span) -> Result<()> {
        self.trim_span(span)
    }

    fn visit_uses(&mut self, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        if let Table::Mapped(map) = &mut self.table {
            map.ring().iter().for_each(|&block| visit(block, BlockUse::Map));
            map.visit_reserve(&mut self.flash, &mut |block| visit(block, BlockUse::Free))?;
        }
        self.pool.listed().for_each(|block| visit(block, BlockUse::Free));
        self.logs.iter().for_each(|log| visit(log.block, BlockUse::Log(log.owner)));
        for block in 0..self.data_blocks {
            if let Some(standing) = self.table.find(&mut self.flash, block)? {
                visit(standing.block, BlockUse::Data(block));
            }
        }
        Ok(())
    }

    fn read_sector(&mut self, sector: u64, data: &mut [u8]) -> Result<()> {
        let (block, offset) = self.flash.split(sector);
        let entry = self.log_of(block).and_then(|at| self.logs.get(at)).map(|log| (log.block, log.entry(offset)));
        let at = match entry {
            Some((_, Entry::Trimmed)) => None,
            Some((log, Entry::Page(page))) => Some(Place { block: log, page }),
            None | Some((_, Entry::Absent)) => {
                self.table.holder(&mut self.flash, block)?.map(|block| Place { block, page: offset })
            }
        };
        let Some(at) = at else {
            data.fill(0);
            return Ok(());
        };
        self.read_at(at, sector, data)
    }
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;
    use crate::BlockDevice;

    #[test]
    fn a_map_of_more_fragments_than_its_blocks_can_turn_over_is_refused() {
        let profile = Profile::builtin("k9f5608u0m").unwrap().with_capacity(256 << 20).unwrap();
        let format = |map_blocks| {
            let chip = Chip::without_data(&profile, 1).unwrap();
            let format = Format { volume: 1, extra_blocks: 64, logs: 8, map_blocks };
            LogBlock::format(chip, &format, Options { payload: crate::Payload::Absent, ..Options::default() })
        };
        assert!(matches!(format(8), Err(Error::Unfit(_))));
        let mut device = format(10).unwrap();
        for turn in 0..600 {
            device.write(turn * 4_099 % device.sectors(), &[0; 512]).unwrap();
        }
        assert!(device.flash.counts().map_writes > 500, "{:?}", device.flash.counts());
        let options = Options { payload: crate::Payload::Absent, ..Options::default() };
        let mut opened = LogBlock::open(device.into_chip(), options).unwrap();
        assert_eq!(opened.check().unwrap(), Vec::<String>::new());
    }

    /// The block was taken for a free one, and its other pages were lost with the first.
    #[test]
    fn a_log_block_whose_first_page_is_lost_keeps_the_others() {
        let mut profile = Profile::builtin("k9f5608u0m").unwrap();
        profile.geometry.blocks = 64;
        for map_blocks in [0, 2] {
            let format = Format { volume: 1, extra_blocks: 20, logs: 4, map_blocks };
            let chip = Chip::new(&profile, 1).unwrap();
            let mut device = LogBlock::format(chip, &format, Options::default()).unwrap();
            (0..3).for_each(|sector| device.write(sector, &[1 + sector as u8; 512]).unwrap());
            let log = device.logs[0].block;
            let mut chip = device.into_chip();
            chip.faults_mut().corrupt_page(log, 0, emulator::Corruption::Uncorrectable).unwrap();
            let mut device = LogBlock::open(chip, Options::default()).unwrap();
            let mut found = [0; 512];
            for sector in 1..3 {
                device.read(sector, &mut found).unwrap();
                assert_eq!(found, [1 + sector as u8; 512]);
            }
        }
    }

    #[test]
    fn numbers_of_blocks_that_no_chip_has_are_refused() {
        let profile = Profile::builtin("k9f5608u0m").unwrap().with_capacity(4 << 20).unwrap();
        let usual = Format { volume: 1, extra_blocks: 100, logs: 8, map_blocks: 3 };
        for format in [
            Format { extra_blocks: u32::MAX, ..usual },
            Format { logs: u32::MAX, ..usual },
            Format { map_blocks: u32::MAX, ..usual },
            Format { map_blocks: 88, ..usual },
            Format { logs: 120, extra_blocks: 140, ..usual },
        ] {
            for scheme in Scheme::ALL {
                let chip = Chip::without_data(&profile, 1).unwrap();
                let made = crate::Device::format(chip, scheme, &format, Options::default());
                let is_asked = scheme == Scheme::LogBlock || format.extra_blocks == u32::MAX;
                assert!(!is_asked || matches!(made, Err(Error::Unfit(_))), "{scheme}: {format:?}");
            }
        }
    }
}
