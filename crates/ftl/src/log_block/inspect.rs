//! Looking at the log blocks of a volume: what memory knows of each is held against its pages.
//!
//! Invariant: nothing is changed.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use nand::Nand;

use super::LogBlock;
use super::log::scan;
use crate::Result;
use crate::flash::Flash;

impl LogBlock {
    /// A line for each log block of which memory knows something else than stands in it.
    pub(super) fn log_differences(&self, flash: &mut Flash<impl Nand>) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        for log in &self.logs {
            let found = scan(flash, log.block, u64::MAX)?.log;
            let differs = |offset| found.as_ref().is_none_or(|found| found.entry(offset) != log.entry(offset));
            if let Some(offset) = (0..self.pages_per_block).find(|&offset| !log.is_empty() && differs(offset)) {
                findings.push(format!(
                    "log block {}: page {offset} of its data block is not where memory has it",
                    log.block
                ));
            }
        }
        Ok(findings)
    }
}
