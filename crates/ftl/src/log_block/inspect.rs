//! Looking at a volume: every block is held against the map, the pool and the log blocks.
//!
//! Invariant: nothing is changed.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use nand::Nand;

use super::LogBlock;
use super::log::scan;
use super::table::Table;
use crate::Result;
use crate::device::Layer;
use crate::flash::anchor::ANCHOR_BLOCKS;

impl<N: Nand> LogBlock<N> {
    /// Reads everything that counts; a line for whatever is not as it should be.
    pub fn check(&mut self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        let mut uses: BTreeMap<u32, String> = (0..ANCHOR_BLOCKS).map(|block| (block, String::from("anchor"))).collect();
        let mut note = |block: u32, what: String, findings: &mut Vec<String>| {
            if let Some(other) = uses.insert(block, what.clone()) {
                findings.push(format!("block {block}: {what}, and {other} as well"));
            }
        };
        if let Table::Mapped(map) = &self.table {
            map.ring().iter().for_each(|&block| note(block, String::from("map block"), &mut findings));
        }
        self.pool.listed().for_each(|block| note(block, String::from("free"), &mut findings));
        for log in &self.logs {
            note(log.block, format!("log block of block {}", log.owner), &mut findings);
        }
        for block in 0..self.data_blocks {
            if let Some(standing) = self.table.find(&mut self.flash, block)? {
                note(standing.block, format!("data block {block}"), &mut findings);
            }
        }
        self.check_logs(&mut findings)?;
        findings.extend(self.unreadable()?);
        Ok(findings)
    }

    /// What memory knows of the log blocks is what stands in them.
    fn check_logs(&mut self, findings: &mut Vec<String>) -> Result<()> {
        let pages = self.flash.pages_per_block();
        for log in &self.logs {
            let found = scan(&mut self.flash, log.block, u64::MAX)?.log;
            let differs = |offset| found.as_ref().is_none_or(|found| found.entry(offset) != log.entry(offset));
            if let Some(offset) = (0..pages).find(|&offset| !log.is_empty() && differs(offset)) {
                findings.push(format!(
                    "log block {}: page {offset} of its data block is not where memory has it",
                    log.block
                ));
            }
        }
        Ok(())
    }
}
