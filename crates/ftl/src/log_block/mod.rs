//! The log-block scheme (Kim et al. 2002, §III): data blocks mapped by block, and a few log blocks mapped by page.
//!
//! Small writes go to a log block of their data block until that is full, or another data block wants one; then the two
//! are merged, or the log block takes the data block's place as it is. With map blocks (L) the block map is on flash and a
//! start-up reads map blocks and log blocks only; without (L-M) it is in memory, and a start-up reads every block.
//!
//! Invariant: what a request returned for is durable, and a request of several sectors is there as a whole or not at all.

mod create;
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
mod victim;
mod write;

use alloc::string::String;
use alloc::vec::Vec;

use nand::Nand;

use crate::block_use::BlockUse;
use crate::device::Span;
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors, Record};
use crate::flash::{Flash, Place, SectorPlace};
use crate::sector_map::{Demand, SchemeRow, SectorMap, write_anchor};
use crate::settings::{Format, Options};
use crate::{Error, Result};
use create::{map_blocks, usual_mapped};
use log::{Entry, Log};
use table::Table;

/// The row of the scheme with map blocks.
pub const MAPPED: SchemeRow = SchemeRow {
    name: "log-block",
    letters: "L",
    code: 1,
    is_atomic: true,
    logs_min: 2,
    limits_map_blocks: false,
    usual: usual_mapped,
};

/// The row of the scheme without map blocks.
pub const SCANNED: SchemeRow =
    SchemeRow { name: "log-block-scanned", letters: "L-M", code: 2, usual: |_, format| format, ..MAPPED };

/// Free blocks that no request takes: for a merge, and for one whose block goes bad in it.
const RESERVE_BLOCKS: u32 = 2;
/// Where sectors stand in data blocks and log blocks.
#[derive(Clone, Debug)]
pub struct LogBlock {
    options: Options,
    pages_per_block: u32,
    data_blocks: u32,
    logs_max: u32,
    table: Table,
    logs: Vec<Log>,
}

impl LogBlock {
    /// The place of the log block of a data block.
    fn log_of(&self, block: u32) -> Option<usize> {
        self.logs.iter().position(|log| log.owner == block)
    }
}

impl SectorMap for LogBlock {
    const ROWS: &'static [SchemeRow] = &[MAPPED, SCANNED];

    fn demand(record: &Record, flash: &Flash<impl Nand>, format: &Format) -> Result<Demand> {
        let map_blocks = map_blocks(record, format);
        if !Record::fits(flash, map_blocks as usize) {
            return Err(Error::Unfit("the map takes more blocks than an anchor has room for"));
        }
        let extra_blocks = map_blocks.saturating_add(format.logs).saturating_add(ANCHOR_BLOCKS + RESERVE_BLOCKS + 1);
        let refusal = "at least two log blocks, and three free blocks beside them, are needed";
        Ok(Demand { extra_blocks, logs: format.logs, refusal })
    }

    fn empty(flash: &Flash<impl Nand>, record: &Record, options: Options) -> Result<Self> {
        let (pages_per_block, data_blocks, logs_max) = (flash.pages_per_block(), record.data_blocks, record.logs);
        // A map that is on flash takes the place of the one in memory when it is made or found.
        let in_memory = if record.scheme == MAPPED.code { 0 } else { data_blocks };
        let (table, logs) = (Table::scanned(in_memory), Vec::new());
        Ok(Self { options, pages_per_block, data_blocks, logs_max, table, logs })
    }

    fn create(&mut self, flash: &mut Flash<impl Nand>, record: Record, format: &Format) -> Result<()> {
        self.logs.reserve_exact(self.logs_max as usize);
        if record.scheme == MAPPED.code {
            return self.create_mapped(flash, record, format);
        }
        write_anchor(flash, &record)
    }

    fn recover(&mut self, flash: &mut Flash<impl Nand>, anchors: Anchors, record: Record) -> Result<()> {
        if record.scheme == MAPPED.code {
            return self.recover_mapped(flash, anchors, record);
        }
        self.recover_scanned(flash)
    }

    fn sectors(&self) -> u64 {
        u64::from(self.data_blocks) * u64::from(self.pages_per_block)
    }

    fn find(&mut self, flash: &mut Flash<impl Nand>, sector: u32) -> Result<SectorPlace> {
        let (owner, offset) = flash.split(u64::from(sector));
        let entry = self.log_of(owner).and_then(|at| self.logs.get(at)).map(|log| (log.block, log.entry(offset)));
        Ok(SectorPlace::slot(match entry {
            Some((_, Entry::Trimmed)) => None,
            Some((block, Entry::Page(page))) => Some(Place { block, page }),
            None | Some((_, Entry::Absent)) => {
                self.table.holder(flash, owner)?.map(|block| Place { block, page: offset })
            }
        }))
    }

    fn write(&mut self, flash: &mut Flash<impl Nand>, span: Span, data: &[u8]) -> Result<()> {
        self.write_span(flash, span, data)
    }

    fn trim(&mut self, flash: &mut Flash<impl Nand>, span: Span) -> Result<()> {
        self.trim_span(flash, span)
    }

    fn step(&mut self, flash: &mut Flash<impl Nand>) -> Result<bool> {
        self.reclaim_ahead(flash)
    }

    fn differences(&mut self, flash: &mut Flash<impl Nand>) -> Result<Vec<String>> {
        self.log_differences(flash)
    }

    fn visit_uses(&mut self, flash: &mut Flash<impl Nand>, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        if let Table::Mapped(map) = &mut self.table {
            map.ring().iter().for_each(|&block| visit(block, BlockUse::Map));
            map.visit_reserve(flash, &mut |block| visit(block, BlockUse::Free))?;
        }
        self.logs.iter().for_each(|log| visit(log.block, BlockUse::Log(log.owner)));
        for owner in 0..self.data_blocks {
            if let Some(standing) = self.table.find(flash, owner)? {
                visit(standing.block, BlockUse::Data(owner));
            }
        }
        Ok(())
    }

    fn ram_bytes(&self) -> usize {
        let logs: usize = self.logs.iter().map(Log::ram_bytes).sum();
        let unused = (self.logs.capacity() - self.logs.len()) * size_of::<Log>();
        size_of::<Self>() + logs + unused + self.table.ram_bytes()
    }
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;
    use crate::device::BlockDevice;
    use crate::scheme::Scheme;
    use crate::translation::Translation;

    type Device = Translation<Chip, LogBlock>;

    #[test]
    fn a_map_of_more_fragments_than_its_blocks_can_turn_over_is_refused() {
        let profile = Profile::builtin("k9f5608u0m").unwrap().with_capacity(256 << 20).unwrap();
        let format = |map_blocks| {
            let chip = Chip::without_data(&profile, 1).unwrap();
            let format = Format { volume: 1, extra_blocks: 64, logs: 8, map_blocks };
            Device::create(chip, &MAPPED, &format, Options { payload: crate::Payload::Absent, ..Options::default() })
        };
        assert!(matches!(format(8), Err(Error::Unfit(_))));
        let mut device = format(10).unwrap();
        for turn in 0..600 {
            device.write(turn * 4_099 % device.sectors(), &[0; 512]).unwrap();
        }
        assert!(device.flash.counts().map_writes > 500, "{:?}", device.flash.counts());
        let options = Options { payload: crate::Payload::Absent, ..Options::default() };
        let mut opened = Device::recover(device.into_chip(), options).unwrap();
        assert_eq!(opened.check().unwrap(), Vec::<String>::new());
    }

    /// The block was taken for a free one, and its other pages were lost with the first.
    #[test]
    fn a_log_block_whose_first_page_is_lost_keeps_the_others() {
        let mut profile = Profile::builtin("k9f5608u0m").unwrap();
        profile.geometry.blocks = 64;
        for row in [SCANNED, MAPPED] {
            let format = Format { volume: 1, extra_blocks: 20, logs: 4, map_blocks: 2 };
            let chip = Chip::new(&profile, 1).unwrap();
            let mut device = Device::create(chip, &row, &format, Options::default()).unwrap();
            (0..3).for_each(|sector| device.write(sector, &[1 + sector as u8; 512]).unwrap());
            let log = device.map.logs[0].block;
            let mut chip = device.into_chip();
            chip.faults_mut().corrupt_page(log, 0, emulator::Corruption::Uncorrectable).unwrap();
            let mut device = Device::recover(chip, Options::default()).unwrap();
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
