//! Looking at a volume: every block is held against the map, the pool and the log blocks.
//!
//! Invariant: nothing is changed.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use nand::Nand;

use super::LogBlock;
use super::log::scan;
use crate::Result;
use crate::device::Layer;

impl<N: Nand> LogBlock<N> {
    /// Reads everything that counts; a line for whatever is not as it should be.
    pub fn check(&mut self) -> Result<Vec<String>> {
        let mut findings = self.used_twice()?;
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
