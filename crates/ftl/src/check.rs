//! Looking at a volume: the use of every block, and whether everything that counts can be read.
//!
//! Invariant: nothing is programmed or erased.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use nand::Nand;

use crate::block_use::BlockUse;
use crate::device::BlockDevice;
use crate::flash::anchor::ANCHOR_BLOCKS;
use crate::sector_map::SectorMap;
use crate::translation::Translation;
use crate::{Error, Result};

impl<N: Nand, M: SectorMap> Translation<N, M> {
    /// The use of every block.
    pub fn uses(&mut self) -> Result<Vec<BlockUse>> {
        let blocks = self.flash.blocks();
        let mut uses = alloc::vec![BlockUse::Unknown; blocks as usize];
        // A block that was taken for the map is free until that is committed.
        self.visit_uses(&mut |block, found| {
            let slot = uses.get_mut(block as usize).filter(|slot| (**slot, found) != (BlockUse::Free, BlockUse::Map));
            slot.into_iter().for_each(|slot| *slot = found);
        })?;
        for (block, slot) in (0..blocks).zip(&mut uses) {
            if block < ANCHOR_BLOCKS {
                *slot = BlockUse::Anchor;
            } else if *slot == BlockUse::Unknown && self.flash.is_bad(block) {
                *slot = BlockUse::Bad;
            }
        }
        Ok(uses)
    }

    /// Reads everything that counts; a line for each thing that is not as it should be.
    pub fn check(&mut self) -> Result<Vec<String>> {
        let mut findings = self.used_twice()?;
        findings.extend(self.unreadable()?);
        findings.extend(self.map.differences(&mut self.flash)?);
        Ok(findings)
    }

    /// Names the use of every block that is known of, bad blocks and anchors left out.
    fn visit_uses(&mut self, visit: &mut dyn FnMut(u32, BlockUse)) -> Result<()> {
        self.flash.pool.listed().for_each(|block| visit(block, BlockUse::Free));
        self.map.visit_uses(&mut self.flash, visit)
    }

    /// A line for every block of two uses.
    fn used_twice(&mut self) -> Result<Vec<String>> {
        let mut uses: BTreeMap<u32, BlockUse> = (0..ANCHOR_BLOCKS).map(|block| (block, BlockUse::Anchor)).collect();
        let mut findings = Vec::new();
        self.visit_uses(&mut |block, found| {
            if let Some(other) = uses.insert(block, found) {
                findings.push(format!("block {block}: {found}, and {other} as well"));
            }
        })?;
        Ok(findings)
    }

    /// A line for every sector that cannot be read.
    fn unreadable(&mut self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        let mut page = alloc::vec![0; self.flash.page_bytes()];
        for sector in 0..self.sectors() {
            match self.read_sector(sector, &mut page) {
                Ok(()) => {}
                Err(Error::Unreadable { .. }) => findings.push(format!("sector {sector} cannot be read")),
                Err(error) => return Err(error),
            }
        }
        Ok(findings)
    }
}
