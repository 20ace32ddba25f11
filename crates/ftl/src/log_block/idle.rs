//! Work in idle time: log blocks are reclaimed until half of them are in use, and free blocks erased, before a request needs
//! them (the paper's future work, §V). When there is idle time, the caller decides.
//!
//! Invariant: a step is one log block reclaimed, or one block erased.

use nand::{Cause, Nand};

use super::LogBlock;
use crate::Result;
use crate::device::Layer;

impl<N: Nand> LogBlock<N> {
    /// Does one step of work ahead of need. Whether there was one to do.
    pub fn background(&mut self) -> Result<bool> {
        self.change(Self::step)
    }

    fn step(&mut self) -> Result<bool> {
        let full = self.logs.iter().position(|log| log.room() == 0);
        let half_in_use = self.logs.len() as u32 > self.logs_max / 2;
        let coldest = if half_in_use { self.options.victim.choose(self.log_views()) } else { None };
        if let Some(at) = full.or(coldest) {
            self.reclaim(at)?;
            return Ok(true);
        }
        self.pool.erase_ahead(&mut self.flash, Cause::Gc)
    }
}
